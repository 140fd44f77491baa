#!/usr/bin/env bash
# `make bench-native`: runs tests/bench/measure-native.sh on this host and makes a table of it:
# build/bench-native/plan, figures.csv, report.md. No module, no root.
#   native.sh [PAIRS [PLAN [SECONDS]]]    9 goals 420; PLAN as tests/bench/measure-native.sh says
#   native.sh 5 plots                     bandwidth.svg and latency.svg there, instead
# On a slow machine the time is over before there are so many pairs; the report counts them.
# tests/bench/publish.sh native puts table and plots into docs/.
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
need python3 ib_write_bw ib_send_bw ib_read_bw ib_send_lat ib_write_lat ucx_perftest mpirun.openmpi setpriv gnuplot

pairs=${1:-9} plan=${2:-goals} limit=${3:-420}
out=$WEFT_BUILD/bench-native
run=$WEFT_BUILD/lab/rootless.measure-native.sh
turns=$WEFT_TOP/tests/bench/turns.py
say "building weft-run and what it needs"
mkdir -p "$out"
logged "$out/build.log" make -C "$WEFT_TOP" rootless
read -r load _ </proc/loadavg
say "the native bench, $pairs pairs in $limit s; the load of this machine is $load, and should be near 0"
rm -rf "$run/bench"
rc=0
PROGRAMS='weft-rate mpi-verify' WEFTSPEC='' QUIET_LIMIT=300 "$WEFT_TOP/tests/lab/run.sh" rootless -x \
	"$WEFT_TOP/tests/bench/measure-native.sh" "$pairs" "$plan" "$limit" 2>&1 | tee "$out/run.log" |
	sed -un 's/^# /weft: /p' >&2 || rc=$?
[ -s "$run/bench/figures.csv" ] || {
	tail -n 5 "$out/run.log" >&2
	die "the bench took no figure (whole log: $out/run.log)"
}

# plot FILE PROGRAM: TCP's curve and those of that program.
plot() {
	local crc
	for crc in off on; do
		"$turns" --points "^$2, (\d+) octets, CRC $crc" "$run/bench/plan" "$run/bench/figures.csv" >"$out/crc-$crc"
		printf '"weft, CRC %s"\n' $crc
		cut -d ' ' -f 1,2 "$out/crc-$crc"
		printf '\n\n'
	done >"$out/$1.dat"
	{
		echo TCP
		cut -d ' ' -f 1,3 "$out/crc-off"
	} >>"$out/$1.dat"
}

if [ "$plan" = plots ]; then
	plot bandwidth ib_write_bw
	plot latency ib_send_lat
	rm -f "$out"/*.svg
	(cd "$out" && gnuplot -e "bandwidth_of='RDMA Writes (TCP: one send each), MTU 65536'" \
		-e "latency_of='Sends to and fro (TCP: spinning sockets), MTU 65536'" "$WEFT_TOP/tests/bench/plot.gp") ||
		die "too few points for a plot: more SECONDS?"
	say "the plots are build/bench-native/bandwidth.svg and latency.svg"
else
	only=()
	[ "$plan" = goals ] || only=(--only "$plan")
	cp "$run"/bench/{plan,figures.csv,counts,machine} "$out/"
	{
		printf '%s, ' "$(date -u +%F)" "commit $(git -C "$WEFT_TOP" rev-parse --short HEAD)" "plan $plan" \
			"$pairs pairs"
		echo "load before: $load."
		echo "On $(nproc) CPUs of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)."
		cat "$out/machine"
		echo
		"$turns" --table --pairs "$pairs" "${only[@]}" --counts "$out/counts" "$out/plan" "$out/figures.csv" || true
	} | tee "$out/report.md"
fi
[ $rc = 0 ] || die "some rows could not be measured (log: $out/run.log)"
