# shellcheck shell=bash
# The programs that everybody runs first, over every pair of drivers and both usual MTUs.

PAIRS=${PAIRS:-weft:weft weft:siw siw:weft}

tests() {
	local pair mtu program
	for pair in $PAIRS; do
		for mtu in 1500 9000; do
			echo "rping-${pair/:/-}-mtu$mtu rping $pair $mtu"
			for program in ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_send_lat; do
				echo "$program-${pair/:/-}-mtu$mtu perftest $program $pair $mtu"
			done
		done
	done
}

# rping checks every byte that comes back (-V).
rping() {
	pair "$1" "$2"
	start_b server rping -s -a "$IP_B" -C 20 -S 4000 -V
	wait_listen_b 7174
	run rping -c -a "$IP_B" -C 20 -S 4000 -V -v
	[ "$(grep -c 'ping data' "$TEST_DIR/rping.log")" = 20 ] || fail "not 20 pings came back"
	finish_b server
}

# perftest PROGRAM PAIR MTU. -e where it exists: a machine of the lab has one or two CPUs, and
# busy polling would measure its scheduler.
perftest() {
	local program=$1 opts=(-R -F -n 200)
	pair "$2" "$3"
	case $program in
	*_bw) opts+=(-s 65536 -Q 1) ;;
	*_lat) opts+=(-s 64) ;;
	esac
	case $program in
	ib_write_lat) ;;
	*) opts+=(-e) ;;
	esac
	start_b server "$program" -d "$DEV_B" "${opts[@]}"
	wait_listen_b 18515
	run "$program" -d "$DEV_A" "${opts[@]}" "$IP_B"
	# The line of figures: size, iterations, and something above zero.
	awk -v size="${opts[4]}" '$2 == 200 && $4 > 0 {found = 1} END {exit !found}' \
		"$TEST_DIR/$program.log" || fail "$program printed no figures"
	finish_b server
}
