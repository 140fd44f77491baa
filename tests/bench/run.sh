#!/usr/bin/env bash
# `make bench` and `make bench-quick`: runs tests/bench/measure.sh in the user-mode SMP lab and makes
# the tables and plots of it: build/bench/figures.csv, report.md, bandwidth.svg, latency.svg.
#   run.sh [ROUNDS [PLAN]]     5 full; PLAN as tests/bench/measure.sh says
# Environment: LOSS_SECONDS  how long a round of the cells with loss lasts (60)
#              BENCH_OUT     where it goes instead of build/bench
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
need python3 gnuplot ib_write_bw qperf iperf3

rounds=${1:-5} plan=${2:-full}
out=${BENCH_OUT:-$WEFT_BUILD/bench}
run=$WEFT_BUILD/lab/7.2-smp.measure.sh
read -r load _ </proc/loadavg
say "the bench, $rounds rounds; the load of this machine is $load, and should be near 0"
rm -rf "$run/bench" "$out"
mkdir -p "$out"
rc=0
"$WEFT_TOP/tests/lab/run.sh" 7.2-smp -x "$WEFT_TOP/tests/bench/measure.sh" "$rounds" "$plan" \
	"${LOSS_SECONDS:-60}" 2>&1 | tee "$out/run.log" | sed -un 's/^# /weft: /p' >&2 || rc=$?
[ -s "$run/bench/figures.csv" ] || {
	tail -n 5 "$out/run.log" >&2
	die "the bench took no figure (whole log: $out/run.log)"
}

cp "$run"/bench/figures.csv "$run"/bench/machine "$out/"
{
	printf '%s, ' "$(date -u +%F)" "commit $(git -C "$WEFT_TOP" rev-parse --short HEAD)" \
		"plan $plan" "$rounds rounds"
	echo "load before: $load."
	echo "On $(nproc) CPUs of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1):"
	sed '$s/$/./' "$out/machine"
	echo
	python3 "$WEFT_TOP/tests/bench/report.py" "$out/figures.csv" "$out"
} | tee "$out/report.md"
[ ! -s "$out/latency.dat" ] || [ "$plan" != full ] || (cd "$out" && gnuplot "$WEFT_TOP/tests/bench/plot.gp")
[ $rc = 0 ] || die "the bench ended early, and these are the figures until then (log: $out/run.log)"
