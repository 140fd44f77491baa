# shellcheck shell=bash
# weft and siw, either connecting to the other: with CRC and without, by MPA revision 1 and 2.
# Sends, Reads and Writes by rping, whose server does the Reads and Writes, and which compares
# every byte that came back.
# siw uses the CRC if it is asked to: weft's option decides. Which revision siw begins with can
# only be chosen where the lab builds it (scripts/build-module.sh). weft's tracepoint
# shows what the two agreed on, where there is a tracefs.
# And a program without a driver, under weft-run (rootless), against a kernel's weft and siw.

# Three programs, some tried again, in a machine that may be emulated.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=300

PAIRS=${PAIRS:-weft:siw siw:weft rootless:weft weft:rootless rootless:siw siw:rootless}

tests() {
	local pair crc rev verb
	for pair in $PAIRS; do
		# In user mode both ends have the one file system that weft-run is hidden in.
		if [[ $pair = *rootless* && ${KERNEL-} = stock ]]; then
			echo "${pair/:/-}-rping-crc1 rootless_rping $pair 1"
			echo "${pair/:/-}-rping-crc0 rootless_rping $pair 0"
			echo "${pair/:/-}-perftest rootless_perftest $pair"
			echo "${pair/:/-}-verify rootless_verify $pair"
		fi
		[[ $pair = weft:siw || $pair = siw:weft ]] || continue
		for crc in 1 0; do
			for rev in 2 1; do
				[[ $pair = weft:* || $rev = 2 || ${KERNEL-} = stock ]] || continue
				# A responder of siw posts no Read by revision 1, to siw neither.
				if [ "$pair$rev" != weft:siw1 ]; then
					echo "${pair/:/-}-crc$crc-v$rev interop $pair $crc $rev"
					continue
				fi
				for verb in send write read; do
					echo "weft-siw-crc$crc-v1-$verb one_sided $pair $crc 1 $verb"
				done
			done
		done
		echo "${pair/:/-}-crc0-large-fpdus large_fpdus $pair"
		[ "$pair" = weft:siw ] || continue
		echo "weft-siw-immediate-data-ends-in-a-terminate not_siws $pair 19765 qperf rc_rdma_write_lat"
		echo "weft-siw-atomics-end-in-a-terminate not_siws $pair 18515 ib_atomic_bw"
	done
}

# interop PAIR CRC REVISION: a connects, and so chooses the revision.
interop() {
	connect_by "$@"
	rping_pair "$IP_B" "$IP_B" -C 30 -S 60000 -V
	[ "$(grep -c 'ping data' "$TEST_DIR/rping.log")" = 30 ] || fail "not 30 pings came back; $(other_side)"
	agreed "$@"
}

# FPDUs that cross segments, which weft sends if it is asked to. Without CRC: siw takes a trailer that
# TCP has cut for a false CRC (docs/siw-findings.md, 12).
large_fpdus() {
	local side
	side=$(weft_side "$1")
	connect_by "$1" 0 2
	at "$side" option "$(weft_dev "$1")" large_fpdus 1
	rping_pair "$IP_B" "$IP_B" -C 30 -S 60000 -V
	[ "$(grep -c 'ping data' "$TEST_DIR/rping.log")" = 30 ] || fail "not 30 pings came back; $(other_side)"
	agreed "$1" 0 2
	sent_large "$1"
}

# 60 of 60000 octets: FPDUs of segments would be 41 times as many.
sent_large() {
	local fpdus
	fpdus=$(at "$(weft_side "$1")" count "$(weft_dev "$1")" tx_fpdus)
	[ "$fpdus" -lt 600 ] || fail "$fpdus FPDUs were sent: they end with segments"
	echo "$fpdus FPDUs were sent"
}

# perftest's client does it alone; the data is not verified.
one_sided() {
	connect_by "$@"
	perftest_pair "ib_$4_bw" -s 60000 -n 100
	agreed "$@"
}

# not_siws PAIR PORT qperf TEST|ib_atomic_bw: RFC 7306 is not negotiated, and siw has nothing of it. The
# program fails soon, and others go on. In siw's Terminate Layer and EType have changed places
# (docs/siw-findings.md, 4): weft reads its 0/2/06 as 2/0/06, in vendor_err.
not_siws() {
	local server=("$3") client rc try serves='' watched=$2
	pair "$1"
	case $3 in
	# The port of qperf's own connection is known; that of its RDMA is not.
	qperf) watched=!$2 client=(qperf "$IP_B" -cm 1 -to 60 -t 1 -m 8 "$4") ;;
	ib_*) server+=(-R -F -d "$DEV_B") && client=("$3" -R -F -d "$DEV_A" -n 100 "$IP_B") ;;
	esac
	for try in {1..9}; do
		# perftest's server has one client, qperf's serves all.
		[ "$serves" ] || start_b server "${server[@]}"
		wait_listen_b "$2"
		# The first octets may find siw amid accepting: then no answer comes (docs/siw-findings.md).
		[ "$serves" ] || at b run_apart "$TEST_DIR/unread" end_if_unread "$watched" "$TEST_DIR/server.rc"
		serves=
		rc=0
		timeout -k 2 120 "${client[@]}" >"$TEST_DIR/client.log" 2>&1 </dev/null || rc=$?
		[ "$(count "$DEV_A" term_in_mpa_ird)" = 0 ] || break
		if came_early "$TEST_DIR/client.log"; then
			if [ "$3" = qperf ]; then serves=yes; else end_server; fi
		elif left_unread; then
			echo "try $try: siw left octets unread"
			end_server
		else
			break
		fi
	done
	[ $rc = 1 ] || fail "$3 ended with $rc, try $try; $(words "$TEST_DIR/client.log"); $(other_side)"
	[ "$(count "$DEV_A" term_in_mpa_ird)" = 1 ] ||
		fail "no Terminate for what it does not know; $(words "$TEST_DIR/client.log"); $(other_side)"
	if [ "$3" = qperf ]; then
		run qperf "$IP_B" quit
		finish_b server
	else
		grep -qF 'syndrom 0x2006' "$TEST_DIR/client.log" || fail "$(words "$TEST_DIR/client.log")"
		at b kill_users
		wait_for 60 [ -s "$TEST_DIR/server.rc" ] || fail "the server on b cannot be ended"
	fi
	wait_for 10 [ -s "$TEST_DIR/unread.rc" ] || fail "end_if_unread goes on"
	rm -f "$TEST_DIR/server.rc" "$TEST_DIR/server.log" "$TEST_DIR/unread.rc"
	rping_pair "$IP_B" "$IP_B" -C 5 -V
}

# Both ends may have the option, siw does as it is asked.
set_crc() {
	[[ $1 = siw:* ]] || option "$DEV_A" crc "$2"
	[[ $1 = *:siw ]] || at b option "$DEV_B" crc "$2"
}

# rootless_rping PAIR CRC
rootless_rping() {
	pair "$1"
	set_crc "$@"
	rping_pair "$IP_B" "$IP_B" -C 30 -S 60000 -V
	[ "$(grep -c 'ping data' "$TEST_DIR/rping.log")" = 30 ] || fail "not 30 pings came back; $(other_side)"
}

# perftest's ends part in another way on an RNIC than on RoCE, and each goes by its own device.
rootless_perftest() {
	local verb
	pair "$1"
	[[ $1 != rootless:* ]] || option "$DEV_A" device iwarp
	[[ $1 != *:rootless ]] || at b option "$DEV_B" device iwarp
	for verb in send write read; do
		perftest_pair "ib_${verb}_bw" -s 60000 -n 100
		rm -f "$TEST_DIR/server.rc" "$TEST_DIR/unread.rc"
	done
}

rootless_verify() {
	local opts failure
	read -ra opts <<<"-p 7471 $(verify_options "$1")"
	pair "$1"
	# And it takes a trailer that TCP has cut for a false CRC (docs/siw-findings.md, 12). With messages
	# of all sizes TCP cuts where it likes, and rootless has no say in it.
	[[ $1 != *siw* ]] || set_crc "$1" 0
	start_b server weft-verify -l -b "$IP_B" "${opts[@]}"
	wait_listen_b 7471
	failure=$(run weft-verify "${opts[@]}" -m 2 "$IP_B") || fail "${failure#FAIL: }; $(other_side)"
	finish_b server
}

weft_dev() { [[ $1 = weft:* ]] && echo "$DEV_A" || echo "$DEV_B"; }

weft_side() { [[ $1 = weft:* ]] && echo a || echo b; }

# agreed PAIR CRC REVISION: and on nothing else, however often it tried.
agreed() {
	local open
	[ "$KERNEL" = stock ] || return 0
	on "$(weft_side "$1")" cat /sys/kernel/tracing/trace >"$TEST_DIR/trace"
	open=$(grep -o -- '-> open, .*' "$TEST_DIR/trace") || fail "no connection was traced"
	! grep -v ", revision $3, CRC $2\$" <<<"$open" || fail "not by revision $3 and CRC $2: $open"
}

connect_by() {
	pair "$1"
	[ "$KERNEL" != stock ] || at "$(weft_side "$1")" trace_on weft_conn ||
		fail "connections cannot be traced"
	if [ "$1" = weft:siw ]; then
		option "$DEV_A" crc "$2"
		option "$DEV_A" mpa_revision "$3"
	else
		at b option "$DEV_B" crc "$2"
		[ "$3" = 2 ] || echo "$3" >/sys/module/siw/parameters/mpa_version || fail "no option of siw"
	fi
}
