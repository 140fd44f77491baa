#!/bin/bash
# Posted operations of weft-socket.h and TCP's calls, by turns, each pair as close together as can be, without and
# with CRC; the medians, and the median of the pairs' ratios. Half a round trip of 4 octets in us between two
# processes that spin, and a stream of 64 KB pieces in 10^6 octets a second.
#   tests/lab/run.sh rootless -x tests/bench/measure-operations.sh [ROUNDS]
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh disable=SC2086 # AS_USER is a list
. "$WEFT_TOP/tests/lab/lib.sh"

unset WEFT_TRACE
rounds=${1:-9}
TEST_DIR=$SHARE/bench-operations
mkdir -p "$TEST_DIR"
chmod 1777 "$TEST_DIR"
csv=$TEST_DIR/figures
echo 'tcp both *' >"$TEST_DIR/rules"
program=$WEFT_TOP/build/bin/operations-rate

# by WAY CRC: half a round trip, and the stream.
by() {
	if [ "$1" = tcp ]; then
		plain "$program" tcp
	else
		$AS_USER env WEFT_CRC="$2" "$WEFT_RUN" --sockets="$TEST_DIR/rules" "$program" "$1"
	fi
}
plain() { ${AS_USER%% env LD_PRELOAD=*} "$@"; }

# figures WHAT WAY "HALF-ROUND-TRIP STREAM"
figures() {
	local us mb
	read -r us mb <<<"$3"
	printf '%s %s %s\n' "4B,$1" "$2" "$us" "64KB,$1" "$2" "$mb" >>"$csv"
}

for ((round = 0; round < rounds; round++)); do
	for crc in 0 1; do
		for way in send put; do
			figures "$way,crc=$crc" tcp "$(by tcp)"
			figures "$way,crc=$crc" weft "$(by "$way" "$crc")"
		done
	done
done

awk -f "$WEFT_TOP/tests/bench/pairs.awk" "$csv"
