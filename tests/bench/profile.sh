#!/usr/bin/env bash
# Where does the time go? Runs a program of perftest in the user-mode SMP lab, client and server
# over lo, and perf on the host beside it; names the functions of the guest's modules, too.
#   profile.sh DRIVER[+crc] MTU PROGRAM [ARG...]     profile.sh weft 1500 ib_write_bw -s 65536 -D 6
#   profile.sh tcp MTU weft-rate -K [ARG...]         the same data by TCP alone
# Prints the program's result, then the functions by their own time and by all that they call.
# Environment: ONLY  samples whose call chain has this function: of a doorbell ib_uverbs_ioctl, of
#                    weft-rate -K ping_write_iter
# What perf recorded stays in build/profile.
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
need perf python3
: "${3:?DRIVER MTU PROGRAM [ARG...]}"

out=$WEFT_BUILD/profile
run=$WEFT_BUILD/lab/7.2-smp.profile.sh
rm -rf "$out" "$run"
mkdir -p "$out"
"$WEFT_TOP/tests/lab/run.sh" 7.2-smp -x "$WEFT_TOP/tests/lab/profile.sh" "$@" >"$out/run.log" 2>&1 &
lab=$!
until [ -s "$run/kallsyms" ]; do
	kill -0 $lab 2>/dev/null || die "the lab has ended: $(tail -n 1 "$out/run.log")"
	sleep 0.1
done
pid=$(pgrep -f "WEFT_RUN=$run" | head -n 1)
cp "/proc/$pid/maps" "$run/kallsyms" "$out/"
perf record -q -a -g -e cpu-clock -F 1499 -o "$out/perf.data" -- sleep 3 >/dev/null 2>&1
wait $lab || die "the program failed: $(tail -n 1 "$out/run.log")"
perf script -i "$out/perf.data" -F comm,pid,ip,sym,dso >"$out/samples" 2>/dev/null
cat "$out/run.log"
python3 "$WEFT_TOP/tests/bench/profile-tables.py" "$out" "${ONLY-}"
