# shellcheck shell=bash
# The programs of Debian's rdmacm-utils, ibverbs-utils, libfabric-bin and qperf, unmodified: those that
# iWARP supports work, the others fail at once with their own error message. (perftest is in the suites
# traffic and perftest.)

PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS = *weft:weft* ]] || return 0
	cat <<-'END'
		ibv_devinfo-v devinfo
		rping-P-serves-four-at-once rping_persistent 4
		ucmatose-four-connections ucmatose_four
		cmtime cmtime_connects
		rstream-verifies-data rstream_verifies
		rstream-nonblocking rstream_nonblocking
		qperf-cm-1 qperf_cm
		qperf-immediates-and-atomics qperf_rates
		fio-writes-and-reads fio_writes_and_reads
		fio-sends-and-posts-receives-late fio_sends
		fi_pingpong-by-verbs fabric verbs msg
		fi_pingpong-by-verbs-and-rxm fabric verbs;ofi_rxm rdm
		udaddy-is-refused udaddy_is_refused
		mckey-is-refused mckey_is_refused
		ibv_rc_pingpong-without-rdma_cm-is-refused pingpong_is_refused
	END
}

devinfo() {
	local log=$TEST_DIR/ibv_devinfo.log line transport=iWARP
	# What weft-run's devices show unless they are asked to be RNICs.
	[ "${KERNEL-}" != rootless ] || transport=InfiniBand
	pair weft:weft
	run ibv_devinfo -v -d "$DEV_A"
	for line in "transport:.*$transport" 'max_qp_rd_atom:.*128' 'max_sge:.*32' \
		'atomic_cap:.*ATOMIC_GLOB' 'state:.*PORT_ACTIVE' 'link_layer:.*Ethernet'; do
		grep -q "$line" "$log" || fail "no line $line"
	done
}

# Programs that post receives when they come to it, which a busy host puts off.
patient_pair() {
	pair weft:weft
	option "$DEV_A" rnr_timeout_ms 30000 || fail "no long patience"
	set_option_b rnr_timeout_ms 30000
}

pings() { grep -c 'ping data' "$TEST_DIR/client$1.log"; }
has_pings() { [ "$(pings "$1")" -ge "$2" ]; }

# One after the other, since rping's server loses one of two that connect at the same moment; then
# all at once, each checking its bytes. The first ones' end leaves a server for one more.
rping_persistent() {
	local i clients=()
	pair weft:weft
	start_b server rping -s -P -a "$IP_B" -S 500 -V
	wait_listen_b 7174
	for ((i = 0; i < $1; i++)); do
		rping -c -a "$IP_B" -S 500 -V -v >"$TEST_DIR/client$i.log" 2>&1 </dev/null &
		clients+=($!)
		wait_for 60 has_pings "$i" 1 || fail "client $i is not served"
	done
	for i in "${!clients[@]}"; do
		wait_for 60 has_pings "$i" $(($(pings "$i") + 20)) || fail "client $i is not served any more"
	done
	kill -9 "${clients[@]}"
	wait "${clients[@]}"
	run rping -c -a "$IP_B" -C 5 -V
}

# both_ends PORT COMMAND...: a server on b, -b ADDRESS, and its client, -s ADDRESS; both end well.
both_ends() {
	pair weft:weft
	start_b server "${@:2}" -b "$IP_B"
	wait_listen_b "$1"
	run "${@:2}" -s "$IP_B"
	finish_b server
}

# The server of this one sends first.
ucmatose_four() { both_ends 7471 ucmatose -c 4 -C 30 -S 4000; }

rstream_verifies() { both_ends 7471 rstream -T v -S 65537 -C 20 -I 5; }
rstream_nonblocking() { both_ends 7471 rstream -T n -S 10000 -C 100 -I 5; }

# The server never ends.
cmtime_connects() {
	pair weft:weft
	start_b server cmtime -b "$IP_B"
	wait_listen_b 7471
	run cmtime -s "$IP_B" -c 50
	grep -q '^disconnect' "$TEST_DIR/cmtime.log" || fail "no figures"
}

# Neither side asks whether the other has receives posted, which ends an iWARP connection: messages
# so large that the 1024 of the beginning last for the second, and not so large that what is left of
# them then takes minutes. (Its RDMA Writes are with Immediate Data.)
# In user mode programs may stand still while softirqs have work (docs/testing-groups.md), past the 5 s that
# qperf waits for its other side, and see nothing of what was carried both ways or read.
qperf_cm() {
	local test seen=rc_lat size=128K
	[[ $KERNEL != stock ]] || size=64K seen='rc_.*'
	patient_pair
	start_b server qperf
	wait_listen_b 19765
	for test in rc_lat rc_bw rc_bi_bw rc_rdma_read_bw; do
		qperf_one $test $size
		figure_of $test '[0-9]' || fail "no figure of $test"
		[[ ! $test =~ ^($seen)$ ]] || figure_of $test '[0-9.]*[1-9]' || fail "nothing was carried by $test"
	done
	run qperf "$IP_B" quit
	finish_b server
}


# Of these qperf verifies what the words come to (ver_).
qperf_rates() {
	local test
	patient_pair
	start_b server qperf
	wait_listen_b 19765
	for test in rc_rdma_write_lat rc_rdma_write_poll_lat rc_fetch_add_mr rc_compare_swap_mr \
		ver_rc_fetch_add ver_rc_compare_swap; do
		qperf_one $test 8
		grep -qE '(latency|msg_rate) *= *[0-9.]*[1-9]' "$TEST_DIR/qperf.log" ||
			fail "nothing was done by $test"
	done
	run qperf "$IP_B" quit
	finish_b server
}
qperf_one() { qperf_anew run qperf "$IP_B" -cm 1 -to 60 -t 1 -m "$2" "$1"; }

# figure_of TEST PATTERN: how the figure begins.
figure_of() { grep -A 1 "^$1:" "$TEST_DIR/qperf.log" | grep -qE "(bw|latency) *= *$2"; }

# fabric PROVIDER KIND: libfabric's; -c looks at every byte. It takes no device on lo for itself, and
# 127.0.0.1 for its server: so weft-run has one device, on eth0, which then serves lo's addresses, too. Its own
# port, 47592, is one that the system gives to clients, and taken for a minute after the end of each that had it.
fabric() {
	local try
	pair weft:weft
	export WEFT_NETDEVS=eth0
	for try in 1 2 3; do
		start_b server fi_pingpong -p "$1" -e "$2" -I 50 -S 4096 -c -B 7592
		wait_listen_b 7592
		run fi_pingpong -p "$1" -e "$2" -I 50 -S 4096 -c -P 7592 "$IP_B"
		lost_its_end "$1" || break
		echo "try $try: libfabric has destroyed its QP before it read the last completions"
		end_server
	done
	finish_b server
	grep -qE '^4k +50 +=50 ' "$TEST_DIR/fi_pingpong.log" || fail "no figures; $(words "$TEST_DIR/fi_pingpong.log")"
}

# lost_its_end PROVIDER: the client has ended well, and the server waits for the completion of the last message. On a busy
# machine libfabric before 2.0 sees the event DISCONNECTED first, and then its rxm destroys the QP: libibverbs' providers
# drop completions of a QP that is destroyed (docs/foreign-suites.md).
lost_its_end() { [[ $1 = *ofi_rxm ]] && ! wait_for 20 [ -s "$TEST_DIR/server.rc" ]; }

# refused PATTERN COMMAND [ARG...]: it fails soon, by itself, saying so; the kernel says nothing.
# (ib_core's word on a virtio interface's speed, at any query of the port, and a busy host's on time are
# about other things.)
refused() {
	local log=$TEST_DIR/$2.log rc=0
	klog_mark refused
	at b klog_mark refused
	timeout -k 2 60 "${@:2}" >"$log" 2>&1 </dev/null || rc=$?
	case $rc in
	0) fail "$2 was not refused" ;;
	124 | 137) fail "$2 hangs; $(tail -n 1 "$log")" ;;
	13? | 14?) fail "$2 died of a signal ($rc)" ;;
	esac
	grep -q "$1" "$log" || fail "$2 did not say $1; $(tail -n 1 "$log")"
	{ klog_since refused && at b klog_since refused; } | grep -vE 'weft-lab:|speed is unknown|interrupt took' >"$TEST_DIR/said"
	[ ! -s "$TEST_DIR/said" ] || fail "the kernel said $(head -n 1 "$TEST_DIR/said")"
}

# UD does not exist in iWARP. A host of programs has no device for it to begin with.
no_ud='unable to create QP: Operation not supported'
[ "${KERNEL-}" != rootless ] || no_ud='RDMA_CM_EVENT_ADDR_ERROR, error: -19\|addr bind failure: No such device'

# What weft-run's devices do that look like RoCE's, the suite datagram shows.
udaddy_is_refused() {
	local -x WEFT_DEVICE=iwarp
	pair weft:weft
	start_b server env WEFT_DEVICE=iwarp udaddy -b "$IP_B"
	pause 1
	refused "$no_ud" udaddy -s "$IP_B"
}

mckey_is_refused() {
	local -x WEFT_DEVICE=iwarp
	pair weft:weft
	refused "$no_ud" mckey -m 239.7.7.7 -b "$IP_A"
	refused "$no_ud" mckey -m 239.7.7.7 -b "$IP_A" -s
}

# Its queue pairs exchange numbers over a socket of the program: an RNIC connects by rdma_cm alone. What
# weft-run's devices do unless they are asked to be RNICs, the suite hand shows.
pingpong_is_refused() {
	local -x WEFT_DEVICE=iwarp
	pair weft:weft
	start_b server env WEFT_DEVICE=iwarp ibv_rc_pingpong -d "$DEV_B" -g 0
	wait_listen_b 18515
	refused "Couldn't read/write remote address" ibv_rc_pingpong -d "$DEV_A" -g 0 "$IP_B"
	wait_for 60 [ -s "$TEST_DIR/server.rc" ] || fail "the server hangs"
	grep -q 'Failed to modify QP to' "$TEST_DIR/server.log" || fail "the server did not say why"
}

# fio with two sides: the reader is the server, and the writer's verb moves the data.
fio_one() {
	local verb=$1 i=$2
	start_b "fio-$verb$i" fio --name=b --ioengine=rdma --filename=x --port=8765 --bs=64k --size=16m --rw=read \
		--iodepth=8
	wait_listen_b 8765
	run fio --name=a --ioengine=rdma --hostname="$IP_B" --port=8765 --verb="$verb" --bs=64k --size=16m \
		--rw=write --iodepth=8
	finish_b "fio-$verb$i"
	grep -qE 'io=16.0MiB' "$TEST_DIR/fio.log" || fail "not 16 MiB; $(words "$TEST_DIR/fio.log")"
}

fio_writes_and_reads() {
	patient_pair
	fio_one write 1
	fio_one read 1
}

# Receives come late there, and are waited for: without that three of four end in an error.
fio_sends() {
	local i
	patient_pair
	for i in 1 2 3 4; do fio_one send $i; done
}
