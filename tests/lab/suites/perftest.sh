# shellcheck shell=bash
# Debian's perftest, unmodified, in all the ways that users run it. Most of these poll: on one CPU two
# programs would measure the scheduler, so they run only where there are two.

PAIRS=${PAIRS:-weft:weft}

# perftest calibrates its clock before each size by spinning, which takes long on a busy host.
TEST_TIMEOUT=300

# By rdma_cm, and where that can be by hand, too: all sizes, which take minutes, if HAND=full.
tests() {
	local name way
	[[ $PAIRS = *weft:weft* ]] || return 0
	variants
	[ "${KERNEL-}" = rootless ] || return 0
	variants | while read -r name _ way; do
		[[ $name != *-all-sizes || ${HAND-} = full ]] || continue
		echo "$name-by-hand lines_by_hand $way"
	done
}

variants() {
	local p
	for p in ib_write_bw ib_read_bw ib_send_bw; do
		echo "$p-all-sizes lines 23 $p -a -n 20"
		echo "$p-both-ways lines 1 $p -b -n 500"
		echo "$p-16-qps lines 1 $p -q 16 -n 100"
	done
	for p in ib_write_lat ib_read_lat ib_send_lat; do
		echo "$p-all-sizes lines 23 $p -a -n 20"
	done
	# Events are not for Writes, says perftest. And ib_send_bw sleeps on one for ever, if the Write
	# that gives it credit comes after its last look, which under weft-run happens.
	for p in ib_read_bw ib_send_bw ib_read_lat ib_send_lat; do
		[ "$p:${KERNEL-}" != ib_send_bw:rootless ] || continue
		echo "$p-events lines 1 $p -e -n 500"
	done
	# Not ib_send_bw: a side that has had its last receive sleeps on an event, and the credit
	# that lets it send on comes as a Write, which is none.
	echo "ib_read_bw-16-qps-both-ways-events lines 1 ib_read_bw -q 16 -b -e -n 100"
	# Reads have no inline data; and where it ends, at 512.
	for p in ib_write_bw ib_send_bw ib_write_lat ib_send_lat; do
		echo "$p-inline lines 1 $p -I 512 -s 512 -n 500"
	done
	for p in CMP_AND_SWAP FETCH_AND_ADD; do
		echo "ib_atomic_bw-$p lines 1 ib_atomic_bw -A $p -n 500"
		echo "ib_atomic_bw-$p-16-qps lines 1 ib_atomic_bw -A $p -q 16 -n 100"
		echo "ib_atomic_lat-$p lines 1 ib_atomic_lat -A $p -n 500"
	done
	for p in ib_write_bw ib_send_bw; do
		echo "$p-post-lists lines 1 $p -l 16 -s 4096 -n 512"
	done
	# Not --use-srq: its server gives credits by the receive's number, which with an SRQ says
	# nothing of the QP; a client with more credits than Sends posts nothing more.
}

# lines N PROGRAM [OPT...]: it ends well, having printed so many lines of figures. On a busy host
# some of them are "inf".
lines() {
	pair weft:weft
	TIME=$((TEST_TIMEOUT - 20)) perftest_pair "${@:2}"
	has_lines "$1" "$TEST_DIR/$2.log"
}

# The ends tell each other by port 18515.
lines_by_hand() {
	pair weft:weft
	TIME=$((TEST_TIMEOUT - 20)) together 18515 "${@:2}" -F -d "$DEV_B" -- "${@:2}" -F -d "$DEV_A" "$IP_B"
	has_lines "$1" "$TEST_DIR/$2.log"
}

has_lines() {
	local n
	n=$(grep -cE '^ *[0-9]+ +[0-9]+ ' "$2")
	[ "$n" = "$1" ] || fail "$n lines of figures, not $1"
}
