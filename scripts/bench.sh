#!/usr/bin/env bash
# `make bench` and `make bench-quick`: runs tests/lab/bench.sh in the user-mode SMP lab and makes
# the table of it: build/bench/figures.csv, report.md and, with gnuplot, the plots.
#   bench.sh [ROUNDS [PLAN]]     5 full; PLAN as tests/lab/bench.sh says
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3

rounds=${1:-5} plan=${2:-full}
out=$WEFT_BUILD/bench
run=$WEFT_BUILD/lab/7.2-smp.bench.sh
mkdir -p "$out"
read -r load _ </proc/loadavg
say "the bench, $rounds rounds; the load of this machine is $load, and should be near 0"
rm -rf "$run/bench"
"$WEFT_TOP/scripts/lab/run.sh" 7.2-smp -x "$WEFT_TOP/tests/lab/bench.sh" "$rounds" "$plan" \
	>"$out/run.log" 2>&1 || {
	tail -n 5 "$out/run.log" >&2
	die "the bench ended early (whole log: $out/run.log)"
}
cp "$run"/bench/figures.csv "$run"/bench/counters-* "$out/"
python3 "$WEFT_TOP/scripts/bench-report.py" "$out/figures.csv" | tee "$out/report.md"
