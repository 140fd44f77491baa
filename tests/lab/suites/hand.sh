# shellcheck shell=bash
# QPs that are connected by hand, as NCCL, Mooncake and libibverbs' own pingpongs do: what they promise
# (weft-byhand, weft-handpeers), and the programs that Debian has. Only weft-run's devices take them.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		by-hand cases weft-byhand
		by-hand-with-other-processes cases weft-handpeers
		ibv_rc_pingpong pingpong rc
		ibv_rc_pingpong-sleeping pingpong rc -e
		ibv_rc_pingpong-over-ipv6 pingpong_six rc
		ibv_srq_pingpong pingpong srq -q 8
		ib_write_lat-by-hand by_hand ib_write_lat
		ib_write_bw-by-hand by_hand ib_write_bw
		ib_write_bw-by-hand-both-ways by_hand ib_write_bw -b
		ib_write_bw-by-hand-of-16-qps by_hand ib_write_bw -q 16
		ib_read_lat-by-hand by_hand ib_read_lat
		ib_read_bw-by-hand by_hand ib_read_bw
		ib_send_lat-by-hand by_hand ib_send_lat
		ib_send_bw-by-hand by_hand ib_send_bw
		ib_send_bw-by-hand-on-events by_hand ib_send_bw -e
		ib_atomic_lat-by-hand by_hand ib_atomic_lat
		ib_atomic_bw-by-hand by_hand ib_atomic_bw
		ucx-messages ucx rc_verbs,ud_verbs tag_lat tag_bw stream_bw ucp_am_bw
		ucx-messages-over-datagrams-alone ucx ud_verbs tag_lat tag_bw
		ucx-put-and-get ucx rc_verbs,ud_verbs ucp_put_lat ucp_put_bw ucp_get
		ucx-atomics ucx rc_verbs,ud_verbs ucp_add ucp_fadd ucp_swap ucp_cswap
	END
}

# The time that 512 QPs may take is for a machine that does nothing else.
cases() {
	pair weft:weft
	if [ "$1" = weft-handpeers ]; then
		tap_run "$1" "$IP_A" "${CONNECT_MS:-20000}"
		grep -m 1 '^# 512 QPs' "$TEST_DIR/$1.log"
	else
		tap_run "$1" "$IP_A"
	fi
}

# The ends tell each other by port 18515.
pingpong() {
	pair weft:weft
	together 18515 "ibv_$1_pingpong" -d "$DEV_B" -g 0 -n 100 "${@:2}" -- \
		"ibv_$1_pingpong" -d "$DEV_A" -g 0 -n 100 "${@:2}" "$IP_B"
}

pingpong_six() {
	pair weft:weft
	together 18515 "ibv_$1_pingpong" -d "$DEV_B" -g 4 -n 100 -- \
		"ibv_$1_pingpong" -d "$DEV_A" -g 4 -n 100 "$IP_B"
}

by_hand() {
	pair weft:weft
	together 18515 "$@" -F -n "${ITERS:-500}" -d "$DEV_B" -- "$@" -F -n "${ITERS:-500}" -d "$DEV_A" "$IP_B"
}

# ucx TRANSPORTS TEST...: UCX's own, of 8 octets; it makes its first acquaintance by datagrams. Its server
# ends with its client.
ucx() {
	local test
	pair weft:weft
	export UCX_TLS=$1 UCX_NET_DEVICES=$DEV_A:1
	shift
	for test; do
		together 13337 ucx_perftest -- ucx_perftest -t "$test" -s 8 -n 1000 -w 10 "$IP_B"
		grep -q '^Final: *1000 ' "$TEST_DIR/ucx_perftest.log" || fail "$test has no figures"
	done
}
