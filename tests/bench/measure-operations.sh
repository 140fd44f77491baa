#!/bin/bash
# Posted operations of weft-socket.h and TCP's calls, by turns (turns.py), without and with CRC. Half a round trip
# of 4 octets between two processes that spin, and a stream of 64 KB pieces.
#   tests/lab/run.sh rootless -x tests/bench/measure-operations.sh [PAIRS]
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh disable=SC2086 # AS_USER is a list
. "$WEFT_TOP/tests/lab/lib.sh"

unset WEFT_TRACE
TEST_DIR=$SHARE/bench-operations
mkdir -p "$TEST_DIR"
chmod 1777 "$TEST_DIR"
program=$WEFT_TOP/build/bin/operations-rate

# by tcp|send|put CRC: half a round trip, and the stream.
by() {
	if [ "$1" = tcp ]; then
		${AS_USER%% env LD_PRELOAD=*} "$program" tcp
	else
		$AS_USER env WEFT_CRC="$2" "$WEFT_RUN" --sockets="$TEST_DIR/rules" "$program" "$1"
	fi
}
# What a call of its own does for turns.py.
if [ "${1-}" = by ]; then
	"$@"
	exit
fi

plan() {
	local what crc way goal
	for what in '4 octets|operations_lat' '64 KB pieces|operations_bw'; do
		echo "TCP, ${what%|*} | - | - | - | ${what#*|} | bash $0 by tcp"
		for crc in 0 1; do
			for way in 'send 1.2' 'put 1.5'; do
				goal="<= ${way#* }"
				[ "${what%|*}" = '4 octets' ] || goal='>= 1'
				echo "${what%|*} by ${way% *}, CRC $crc | - | TCP, ${what%|*} | $goal | ${what#*|} | bash $0 by ${way% *} $crc"
			done
		done
	done
}

echo 'tcp both *' >"$TEST_DIR/rules"
plan >"$TEST_DIR/plan"
"$WEFT_TOP/tests/bench/turns.py" --pairs "${1:-9}" --limit 120 "$TEST_DIR/plan" "$TEST_DIR/figures.csv"
