# shellcheck shell=bash
# QPs connected by hand, as by NCCL, Mooncake and libibverbs' pingpongs: their promises (weft-byhand,
# weft-itself, weft-handpeers, weft-crowd), and Debian's programs over them. Only weft-run's devices
# support them.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		by-hand cases weft-byhand
		by-hand-with-other-processes cases weft-handpeers
		by-hand-with-itself cases weft-itself
		by-hand-sixteen-processes-each-with-each crowd 16
		by-hand-sixty-four-processes-each-with-each crowd 64
		another-version-is-refused-by-name version
		types-that-are-refused refused
		ibv_rc_pingpong pingpong rc
		ibv_rc_pingpong-sleeping pingpong rc -e
		ibv_rc_pingpong-over-ipv6 pingpong_six rc
		ibv_srq_pingpong pingpong srq -q 8
		ibv_uc_pingpong pingpong uc
		ib_write_bw-over-uc by_hand ib_write_bw -c UC
		ib_send_bw-over-uc by_hand ib_send_bw -c UC
		ib_send_lat-over-uc by_hand ib_send_lat -c UC
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

# 512 QPs take 0.2 s, of 1 s that they may; the limit is for a machine that has others to serve, and stops each of the
# two programs for 2 s. If each waited for the one before for as long as RTR waits for RTS, that would be 25 s.
cases() {
	pair weft:weft
	if [ "$1" = weft-handpeers ]; then
		tap_run "$1" "$IP_A" "${CONNECT_MS:-6000}"
		grep -m 1 '^# 512 QPs' "$TEST_DIR/$1.log"
	else
		tap_run "$1" "$IP_A"
	fi
}

# So many processes have so many QPs each.
crowd() {
	pair weft:weft
	tap_run weft-crowd "$IP_A" "$1"
	grep -m 1 '^# ' "$TEST_DIR/weft-crowd.log"
}

# Both the connecting and the accepting end report a version mismatch.
version() {
	local case
	pair weft:weft
	for case in "a-listener-in-the-peer's-place-is-detected" wrong-hellos-are-refused; do
		WEFT_TRACE=1 tap_run weft-handpeers "$IP_A" 0 "$case"
		grep -q '^weft: a peer connected by hand has version 2; this is 3' "$TEST_DIR/weft-handpeers.log" ||
			fail "$case: nothing is said of the version"
	done
}

# What the device has not is refused, and the trace has a line of it.
refused() {
	local type
	pair weft:weft
	WEFT_TRACE=1 tap_run weft-byhand "$IP_A" xrc-raw-and-dc-qps-are-refused
	for type in XRC_SEND RAW_PACKET DC; do
		grep -q "^weft: a QP of type .*$type) is refused" "$TEST_DIR/weft-byhand.log" ||
			fail "nothing is said of $type"
	done
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
