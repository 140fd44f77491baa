# shellcheck shell=bash
# Features of weft-run alone: devices that only one program sees, its refusals, where it runs, and
# programs that change their process in ways that do not affect a kernel driver.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		devices-are-found-by-every-way devices_found
		devices-of-the-netdevs-asked-for netdevs_asked_for
		without-weft-run-there-is-no-device nothing_outside
		rdma-tool-shows-them rdma_tool
		rdma-tool-counts-objects objects_counted
		devices-are-roce-unless-asked faces_shown
		gids-are-the-addresses gids_shown
		each-gid-leads-to-its-device gids_lead
		rate-is-the-same-by-verbs-and-sysfs rates_agree
		monitors-find-what-they-read monitors_read
		port-follows-its-netdev port_follows
		events-of-a-port-reach-parent-and-child port_events
		events-of-a-port-reach-a-child-that-closed-what-it-inherited port_events closes
		events-of-a-port-spare-contexts-that-a-child-closed port_events adopts
		unread-events-of-a-port-are-bounded port_events_bounded
		each-face-meets-the-other faces_meet
		the-wire-does-not-show-the-face wire_of_faces
		weft-run-refuses-what-it-would-not-reach refusals
		weft-run-refuses-options-that-make-no-sense bad_options
		weft-run-is-as-its-program status_of_program
		check-reports-what-would-not-work check_tells
		read-only-root-with-empty-dev-and-sys read_only_root
		all-descriptors-closed closes_all
		few-descriptors few_descriptors
		habits-of-programs habits_go
		linux-4-18-suffices old_kernel_suffices
		files-of-devices-by-every-call files_called
		memory-that-goes-away memory_goes 1
		memory-that-goes-away-without-crc memory_goes 0
		memory-that-goes-away-from-busy-pollers memory_goes 0 -b
		fork rstream_forks
		rcopy-copies-a-file rcopy_copies
		riostream-verifies-data riostream_verifies
		rdma_server-and-rdma_client server_and_client
		librspreload-under-a-program-of-sockets preloaded_sockets
		librspreload-under-iperf preloaded_iperf
		librspreload-under-nc preloaded_nc
		open-mpi-of-two-ranks open_mpi 2
		open-mpi-of-eight-ranks open_mpi 8
		ports-are-of-the-range-asked-for ports_asked_for
		listener-killed-others-go-on listener_killed
		stopped-peer-does-not-hold-up-the-end stopped_peer
		cmtime-a-thousand-at-once many_at_once 1000
		three-thousand-connections-in-turn in_turn 3000
		small-messages-take-few-instructions few_instructions
		features-that-are-off-take-no-instruction features_off
		features-that-are-off-have-no-descriptor-and-no-socket descriptors
		polls-of-one-cq-keep-the-thread-asleep-for-the-other asleep_for_both
	END
}

# says STATUS[|STATUS]:PATTERN COMMAND...: it ends with that status, and says the pattern.
says() {
	local want=$1 rc=0
	shift
	timeout -k 2 60 "$@" >"$TEST_DIR/said" 2>&1 </dev/null || rc=$?
	[[ $rc =~ ^(${want%%:*})$ ]] || fail "$* ended with $rc; $(words "$TEST_DIR/said")"
	[ -z "${want#*:}" ] || grep -qE -- "${want#*:}" "$TEST_DIR/said" || fail "$* did not say ${want#*:}; $(words "$TEST_DIR/said")"
}

# By weft-run, whose options may come first.
# shellcheck disable=SC2086 # a list
run_says() { PATH=${PATH#*:} says "$1" $AS_USER "$WEFT_RUN" "${@:2}"; }

# --- what a program sees ---

devices_found() {
	local dir=/sys/class/infiniband
	pair weft:weft
	run_says '0:^ +weft_lo ' ibv_devices
	run_says '0:^weft_lo$' ls $dir
	run_says '0:^4: ACTIVE$' cat $dir/weft_lo/ports/1/state
	run_says '0:^uverbs0$' ls /sys/class/infiniband_verbs
	run_says '0:^crw.* /dev/infiniband/uverbs0$' ls -l /dev/infiniband/uverbs0
	run_says '0:rdma_cm$' find /dev/infiniband
	# shellcheck disable=SC2016 # the inner shell's
	run_says '0:^weft_lo Ethernet$' bash -c 'read -r t <"$1/ports/1/link_layer"; echo "${1##*/} $t"' sh $dir/weft_lo
	run_says '0:^weft_lo True 4: ACTIVE$' /usr/bin/python3 -c "
import os
d = '$dir'
name = [n for n in sorted(os.listdir(d)) if n == 'weft_lo'][0]
print(name, os.path.isdir(d + '/' + name), open(d + '/' + name + '/ports/1/state').read().strip())"
}

netdevs_asked_for() {
	[ "$OWN_NET" = yes ] || { echo "lo is the host's: only its device is looked for" && return; }
	run_says '0:^ +weft_eth0 ' ibv_devices
	run_says '0:^ +weft_eth0 ' --netdevs=eth0 ibv_devices
	! grep -q weft_lo "$TEST_DIR/said" || fail "a device of another netdev"
	run_says '0:node GUID' --netdevs=nosuchdev ibv_devices
	! grep -q weft_ "$TEST_DIR/said" || fail "a device of no netdev"
}

nothing_outside() {
	run_says 0:weft_lo ibv_devices
	PATH=${PATH#*:} ibv_devices >"$TEST_DIR/outside" 2>&1
	! grep -q weft_ "$TEST_DIR/outside" || fail "a device without weft-run"
	[ ! -e /sys/class/infiniband/weft_lo ] || fail "something was made"
}

rdma_tool() {
	pair weft:weft
	run_says '0:^link weft_lo/1 state ACTIVE .*netdev lo' rdma link show
	run_says '0:weft_lo: node_type (ca|rnic)' rdma dev show
	run_says '0:"rx_fpdus":0' rdma -j statistic show link weft_lo/1
}

# A process sees its own objects alone: weft-files counts some.
objects_counted() {
	pair weft:weft
	run_says '0:^netns shared' rdma system show
	run_says '0:: weft_lo: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0' rdma resource show
}

# --- the two faces: --device ---

# shows FACE TRANSPORT TYPE KIND
shows() {
	run_says "0:transport:.*$2" "--device=$1" ibv_devinfo -d weft_lo
	run_says "0:^$3\$" "--device=$1" cat /sys/class/infiniband/weft_lo/node_type
	run_says "0:weft_lo: node_type $4 " "--device=$1" rdma dev show
}

faces_shown() {
	shows roce InfiniBand '1: CA' ca
	shows iwarp iWARP '4: RNIC' rnic
	run_says '0:^1: CA$' env -u WEFT_DEVICE "$WEFT_RUN" cat /sys/class/infiniband/weft_lo/node_type
}

# A link-local one first, then IPv4's and IPv6's, each for both types; by sysfs and by both ioctls of verbs.
gids_shown() {
	local port=/sys/class/infiniband/weft_lo/ports/1 i
	local gids=(fe80:0000:0000:0000:0000:5efe:7f00:0001 0000:0000:0000:0000:0000:ffff:7f00:0001
		0000:0000:0000:0000:0000:0000:0000:0001) types=('IB/RoCE v1' 'RoCE v2')
	[ "$OWN_NET" = yes ] || unset 'gids[2]'
	for ((i = 0; i < 2 * ${#gids[@]}; i++)); do
		run_says "0:^${gids[i / 2]}\$" --device=roce cat $port/gids/$i
		run_says "0:^${types[i % 2]}\$" --device=roce cat $port/gid_attrs/types/$i
		run_says '0:^lo$' --device=roce cat $port/gid_attrs/ndevs/$i
	done
	run_says '0:GID\[  3\]:.*::ffff:127.0.0.1, RoCE v2' --device=roce ibv_devinfo -v -d weft_lo
	run_says '0:^table as entries$' --device=roce /usr/bin/python3 -c '
from pyverbs.device import Context
c = Context(name="weft_lo")
n = c.query_port(1).gid_tbl_len
table = c.query_gid_table(n)
assert [str(e) for e in table] == [str(c.query_gid_ex(1, i)) for i in range(n)]
assert [e.gid_index for e in table] == list(range(n))
assert [e.gid_type for e in table] == [1, 2] * (n // 2), [e.gid_type for e in table]
assert len({(str(c.query_gid(1, i)), table[i].gid_type) for i in range(n)}) == n
assert all(e.ndev_ifindex for e in table)
for bad in (lambda: c.query_gid_table(n - 1), lambda: c.query_gid_ex(1, n), lambda: c.query_gid_ex(2, 0)):
    try:
        bad()
    except Exception:
        continue
    raise SystemExit("taken")
print("table as entries")'
}

# Each GID of a device leads to it, over a connection and by datagrams; so does a link-local one of a netdev that has no
# such address.
gids_lead() {
	local i
	pair weft:weft
	for i in 0 1 2 3; do
		pingpong rc $i
		pingpong ud $i
	done
}

# pingpong TYPE GID
pingpong() {
	start_b "$1-$2" "ibv_${1}_pingpong" -d "$DEV_B" -g "$2" -p $((18600 + $2)) -n 50
	wait_listen_b $((18600 + $2))
	run "ibv_${1}_pingpong" -d "$DEV_A" -g "$2" -p $((18600 + $2)) -n 50 "$IP_B"
	finish_b "$1-$2"
}

# --- the port, and what monitors and schedulers read ---

both_wait() { [ "$(grep -c waits "$TEST_DIR/ports.log")" = 2 ]; }

# A child that opens the device itself has its events, and leaves its parent's alone.
# port_events [HOW]: of weft-ports
port_events() {
	[ "$OWN_NET" = yes ] || skip "lo is the host's"
	pair weft:weft
	start_b ports weft-ports weft_lo "$@"
	wait_for 20 both_wait || fail "they do not wait; $(cat "$TEST_DIR/ports.log")"
	ip link set lo down
	ip link set lo up
	finish_b ports
	[ "$(grep -E 'port (error|active) 1$' "$TEST_DIR/ports.log" | sort)" = "child port active 1
child port error 1
parent port active 1
parent port error 1" ] || fail "$(cat "$TEST_DIR/ports.log")"
}

# 300 flaps are 600 events: the program has 256 of them, in order.
port_events_bounded() {
	[ "$OWN_NET" = yes ] || skip "lo is the host's"
	pair weft:weft
	local i line
	coproc UNREAD { PATH=${PATH#*:} exec $AS_USER "$WEFT_RUN" /usr/bin/python3 -c '
import os, select, sys
from pyverbs.device import Context
c = Context(name="weft_lo")
print("open", flush=True)
sys.stdin.readline()
seen = []
fds = "/proc/self/fd/"
fd = [int(f) for f in os.listdir(fds) if int(f) < 100 and "eventfd" in os.path.realpath(fds + f)][0]
while select.select([fd], [], [], 1)[0]:
    e = c.get_async_event()
    seen.append(e.event_type)
    e.ack()
print(len(seen), set(seen[::2]), set(seen[1::2]), flush=True)'; }
	read -r -t 20 line <&"${UNREAD[0]}"
	[ "$line" = open ] || fail "it does not open the device: $line"
	for ((i = 0; i < 300; i++)); do
		ip link set lo down
		ip link set lo up
	done
	echo >&"${UNREAD[1]}"
	read -r -t 60 line <&"${UNREAD[0]}"
	[ "$line" = "256 {10} {9}" ] || fail "events: $line"
}

# Lanes and their speed: gigabits a second, by pyverbs.
rate_by_verbs() {
	/usr/bin/python3 -c '
import sys
from pyverbs.device import Context
p = Context(name=sys.argv[1]).query_port(1)
lanes = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[p.active_width]
speed = {1: 2.5, 2: 5, 4: 10, 8: 10, 16: 14, 32: 25, 64: 50, 128: 100}[p.active_speed]
name = {1: "SDR", 2: "DDR", 4: "QDR", 8: "FDR10", 16: "FDR", 32: "EDR", 64: "HDR", 128: "NDR"}[p.active_speed]
print(f"{lanes * speed:g} Gb/sec ({lanes}X {name})")' "$1"
}

# netdevs_of: those with a device here
netdevs_of() { PATH=${PATH#*:} $AS_USER "$WEFT_RUN" ls /sys/class/infiniband; }

rates_agree() {
	local dev rate
	export -f rate_by_verbs
	for dev in $(netdevs_of); do
		run_says '0:Gb/sec' cat "/sys/class/infiniband/$dev/ports/1/rate"
		rate=$(cat "$TEST_DIR/said")
		run_says 0: bash -c "rate_by_verbs $dev"
		[ "$(cat "$TEST_DIR/said")" = "$rate" ] || fail "$dev: $rate, and by verbs $(cat "$TEST_DIR/said")"
		echo "$dev: $rate"
	done
	[ "$OWN_NET" = no ] || [ "$(PATH=${PATH#*:} $AS_USER "$WEFT_RUN" cat /sys/class/infiniband/weft_eth0/ports/1/rate)" = \
		"10 Gb/sec (1X FDR10)" ] || fail "eth0's speed is $(cat /sys/class/net/eth0/speed)"
}

monitors_read() {
	local dev=/sys/class/infiniband/weft_lo name before after
	pair weft:weft
	for name in board_id hca_type hw_rev node_desc device/numa_node device/vendor device/device device/class \
		device/local_cpulist device/net/lo/ifindex ports/1/counters/port_rcv_data ports/1/counters/symbol_error \
		ports/1/hw_counters/rx_fpdus ports/1/hw_counters/lifespan; do
		run_says '0:.' cat "$dev/$name"
	done
	run_says '0:^/sys/devices/pci[0-9a-f:]+/.*:[0-9a-f]{2}\.[0-7]$' realpath $dev/device
	run_says '0:^/sys/devices/pci.*/infiniband/weft_lo$' realpath $dev
	run_says '0:^lo$' ls $dev/device/net
	run_says '0:7766:' ls /sys/bus/pci/devices
	# Of the netdev, so that a monitor sees what other processes move.
	before=$(PATH=${PATH#*:} $AS_USER "$WEFT_RUN" cat $dev/ports/1/counters/port_xmit_data)
	start_b server rping -s -a "$IP_B" -C 20 -S 10000
	wait_listen_b 7174
	run rping -c -a "$IP_B" -C 20 -S 10000
	finish_b server
	after=$(PATH=${PATH#*:} $AS_USER "$WEFT_RUN" cat $dev/ports/1/counters/port_xmit_data)
	[ $((after - before)) -ge 50000 ] || fail "port_xmit_data: $before, then $after"
}

# What one process reads while its netdev goes down and up: a line for each that it is sent.
states='
import sys
from pyverbs.device import Context
c = Context(name="weft_lo")
port = "/sys/class/infiniband/weft_lo/ports/1/"
for line in sys.stdin:
    print(c.query_port(1).state, open(port + "state").read().strip(), open(port + "phys_state").read().strip(), flush=True)'

state_is() {
	echo >&"${STATES[1]}"
	read -r -t 20 state <&"${STATES[0]}"
	[ "$state" = "$1" ]
}

# The events are those that ibv_asyncwatch prints, which waits without a CQ.
port_follows() {
	[ "$OWN_NET" = yes ] || skip "lo is the host's"
	pair weft:weft 1500
	run_says '0:active_mtu:.*1024' ibv_devinfo -d weft_lo
	ip link set lo mtu 9000
	run_says '0:active_mtu:.*4096' ibv_devinfo -d weft_lo
	start_b watcher stdbuf -oL ibv_asyncwatch -d weft_lo
	wait_for 10 grep -q 'async event FD' "$TEST_DIR/watcher.log" || fail "it does not watch"
	coproc STATES { PATH=${PATH#*:} exec $AS_USER "$WEFT_RUN" /usr/bin/python3 -c "$states"; }
	state_is '4 4: ACTIVE 5: LinkUp' || fail "up: $state"
	ip link set lo down
	wait_for 10 grep -q 'PORT_ERR.*port 1' "$TEST_DIR/watcher.log" || { ip link set lo up && fail "no PORT_ERR"; }
	state_is '1 1: DOWN 3: Disabled' || { ip link set lo up && fail "down: $state"; }
	ip link set lo up
	wait_for 10 grep -q 'PORT_ACTIVE.*port 1' "$TEST_DIR/watcher.log" || fail "no PORT_ACTIVE"
	state_is '4 4: ACTIVE 5: LinkUp' || fail "up again: $state"
	[ "$(grep -c event_type "$TEST_DIR/watcher.log")" = 2 ] || fail "$(cat "$TEST_DIR/watcher.log")"
	kill_users
}

faces_meet() {
	local a b
	for a in roce iwarp; do
		for b in roce iwarp; do
			pair weft:weft
			option a device $a
			at b option b device $b
			start_b "server-$a-$b" rping -s -a "$IP_B" -C 20 -V
			wait_listen_b 7174
			run rping -c -a "$IP_B" -C 20 -V
			finish_b "server-$a-$b"
		done
	done
}

# What comes first from a connection that begins: its MPA Request, depths, private data and all, and then a second
# without a word.
first_octets() {
	pair weft:weft
	option a device "$1"
	start_b "listener-$1" /usr/bin/python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.2", 7174))
c = s.accept()[0]
got = b""
def hear(n, seconds):
    global got
    c.settimeout(seconds)
    try:
        while len(got) < n and (piece := c.recv(n - len(got))):
            got += piece
    except TimeoutError:
        pass
hear(20, 60)
hear(20 + int.from_bytes(got[18:20], "big"), 60)
hear(4096, 1)
print(got.hex())'
	wait_listen_b 7174
	timeout 60 rping -c -a "$IP_B" -C 1 >"$TEST_DIR/client-$1.log" 2>&1 || true
	finish_b "listener-$1"
	mv "$TEST_DIR/listener-$1.log" "$TEST_DIR/octets-$1"
}

wire_of_faces() {
	first_octets roce
	first_octets iwarp
	grep -q '^4d504120494420526571204672616d65' "$TEST_DIR/octets-roce" || fail "no MPA Request"
	cmp -s "$TEST_DIR/octets-roce" "$TEST_DIR/octets-iwarp" || fail "another Request; $(cat "$TEST_DIR"/octets-*)"
}

# --- weft-run itself ---

refusals() {
	local su
	su=$(PATH=$PATH:/bin:/usr/bin command -v su) || fail "no su"
	run_says '126:statically linked' busybox true
	run_says "126:is setuid" "$su"
	run_says '127:there is no such program' no-such-program
	run_says '127:there is no such program' ./no/such/program
	run_says '126:may not be run' /etc/passwd
	run_says '126:may not be run' /etc
	printf '#!%s sh\n' "$(command -v busybox)" >"$TEST_DIR/script"
	chmod 755 "$TEST_DIR/script"
	run_says '126:statically linked' "$TEST_DIR/script"
}

bad_options() {
	local option
	run_says '125:no program is named'
	for option in device=ib device= crc=maybe markers=2 large-fpdus=some mpa-revision=3 rtr= ports=5 ports=9-5 spin=-1 \
		startup-timeout=99 accept-timeout=99 close-timeout=soon rnr-timeout=-1; do
		run_says '125:makes no sense' "--$option" true
	done
	run_says '125:unrecognized option' --no-such-option true
	run_says '0:--mpa-revision' --help
}

status_of_program() {
	run_says 3: sh -c 'exit 3'
	run_says '0:^a  b$' echo 'a  b'
	run_says '143:' sh -c 'kill -TERM $$'
	run_says '0:libweft-rootless.so$' sh -c 'echo "$LD_PRELOAD"'
}

check_tells() {
	run_says '0:^ok .*provider' --check
	! grep -q PROBLEM "$TEST_DIR/said" || fail "$(grep PROBLEM "$TEST_DIR/said")"
	run_says '0:^ok .*rping' --check rping
	run_says '1:^PROBLEM .*statically linked' --check busybox
	run_says '1:^PROBLEM no network interface' --check --netdevs=nosuchdev
}

# --- where it runs ---

# What a container may see: nothing can be written, no device file, no sysfs.
read_only_root() {
	local root=$TEST_DIR/root
	mkdir -p "$root"
	pair weft:weft
	cat >"$TEST_DIR/inside" <<-END
		mount --rbind / "$root" && mount -t tmpfs none "$root/dev" && mount -t tmpfs none "$root/sys" &&
			mount -o remount,bind,ro "$root" || exit 77
		PATH=\${PATH#*:} exec chroot "$root" $AS_USER "$WEFT_RUN" "\$@"
	END
	says 0:weft_lo unshare -m bash "$TEST_DIR/inside" ibv_devices
	start_b server unshare -m bash "$TEST_DIR/inside" rping -s -a "$IP_B" -C 10 -V
	wait_listen_b 7174
	run unshare -m bash "$TEST_DIR/inside" rping -c -a "$IP_B" -C 10 -V -v
	finish_b server
	[ "$(grep -c 'ping data' "$TEST_DIR/unshare.log")" = 10 ] || fail "not 10 pings came back"
}

closes_all() {
	pair weft:weft
	run closes-all "$IP_A" 7471
	! grep '^not ok' "$TEST_DIR/closes-all.log" || fail "$(grep '^not ok' "$TEST_DIR/closes-all.log")"
}

files_called() {
	pair weft:weft
	run weft-files
	! grep '^not ok' "$TEST_DIR/weft-files.log" || fail "$(grep '^not ok' "$TEST_DIR/weft-files.log")"
}

# The thread sanitizer has descriptors of its own, and takes a child with its parent's memory amiss.
few_descriptors() {
	[ "${SAN-}" != thread ] || skip "the thread sanitizer"
	pair weft:weft
	run few-descriptors "$IP_A" 7471
	! grep '^not ok' "$TEST_DIR/few-descriptors.log" || fail "$(grep -m 1 '^not ok' "$TEST_DIR/few-descriptors.log"); $(grep -m 3 '^#' "$TEST_DIR/few-descriptors.log")"
}

# The address sanitizer takes the stack of a thread that is cancelled for one in use, and the thread
# sanitizer has threads wait that are to be cancelled at once.
habits_go() {
	local left_out=
	pair weft:weft
	case ${SAN-} in
	thread) left_out=a-thread-is-cancelled-at-any-time ;;
	?*) left_out=threads-that-wait-for-events-are-cancelled ;;
	esac
	# shellcheck disable=SC2086 # none, or one
	run habits "$IP_A" 7480 $left_out
	! grep '^not ok' "$TEST_DIR/habits.log" || fail "$(grep '^not ok' "$TEST_DIR/habits.log")"
}

# RHEL 8 has it. The calls that came later are refused.
old_kernel_suffices() {
	local what
	pair weft:weft
	start_b server old-kernel rping -s -a "$IP_B" -C 20 -V
	wait_listen_b 7174
	run old-kernel rping -c -a "$IP_B" -C 20 -V
	finish_b server
	for what in "habits $IP_A 7480" "weft-unmap -r 5 $IP_A"; do
		# shellcheck disable=SC2086 # words
		run old-kernel $what
		! grep '^not ok' "$TEST_DIR/old-kernel.log" || fail "$what: $(grep '^not ok' "$TEST_DIR/old-kernel.log")"
	done
}

# memory_goes CRC [OPT]
memory_goes() {
	pair weft:weft
	option "$DEV_A" crc "$1"
	# An emulator of the processor is slow.
	run weft-unmap ${ARCH_A:+-r 5} "${@:2}" "$IP_A"
	! grep '^not ok' "$TEST_DIR/weft-unmap.log" || fail "$(grep -m 1 '^not ok' "$TEST_DIR/weft-unmap.log")"
	grep 'by reset' "$TEST_DIR/weft-unmap.log"
}

# --- other people's programs ---

# both_ends PORT COMMAND...: a server on b, -b ADDRESS, and its client, -s ADDRESS; both end well.
both_ends() {
	pair weft:weft
	start_b server "${@:2}" -b "$IP_B"
	wait_listen_b "$1"
	run "${@:2}" -s "$IP_B"
	finish_b server
}

rstream_forks() { both_ends 7471 rstream -T f -S 10000 -C 20 -I 5; }
riostream_verifies() { both_ends 7471 riostream -T v -S 65537 -C 20 -I 5; }

# The server serves one after the other, for ever.
rcopy_copies() {
	pair weft:weft
	mkdir -p "$HERE/san/files" && chmod 1777 "$HERE/san/files"
	head -c 10000000 /dev/urandom >"$TEST_DIR/in"
	start_b server rcopy
	wait_listen_b 7427
	run rcopy "$TEST_DIR/in" "$IP_B:$HERE/san/files/out"
	cmp "$TEST_DIR/in" "$HERE/san/files/out" || fail "another file came out"
	rm -r "$HERE/san/files"
}

server_and_client() {
	pair weft:weft
	start_b server rdma_server
	wait_listen_b 7471
	run rdma_client -s "$IP_B"
	finish_b server
	grep -q 'end 0' "$TEST_DIR/rdma_client.log" || fail "the client says $(tail -n 1 "$TEST_DIR/rdma_client.log")"
}

# How a program of sockets begins over rsockets.
preloaded() {
	local preload
	preload=$(echo /usr/lib/*/rsocket/librspreload.so)
	[ -e "$preload" ] || fail "librdmacm has no librspreload.so"
	echo "$AS_USER env LD_PRELOAD=$preload $WEFT_RUN"
}

preloaded_iperf() {
	local way
	way=$(preloaded)
	pair weft:weft
	# shellcheck disable=SC2086 # a list
	start_b server $way iperf -s -P 1 -B "$IP_B" -p 7481
	wait_listen_b 7481
	# shellcheck disable=SC2086
	says '0:[1-9][0-9.]* [MG]bits/sec' $way iperf -c "$IP_B" -p 7481 -n 64M
	finish_b server
}

# nc waits by select(), and before rdma-core 63 librspreload's takes a number of its own for the program's if
# it is the lower one (7ea19e136, "librdmacm: Fix select function"). So the client comes when the server is in
# accept(), which has taken the program's number first: librspreload opens /dev/null for it, as for the listener's.
# The server's input ends with the test.
preloaded_nc() {
	local way
	way=$(preloaded)
	pair weft:weft
	head -c 3000000 /dev/urandom >"$TEST_DIR/sent"
	# shellcheck disable=SC2016,SC2086 # the inner shell's; a list
	start_b server bash -c "$(declare -f nulls)"'
		sleep 150 | { me=$BASHPID && echo $me $(nulls $me) >"$2" && shift 2 && exec "$@"; } >"$1"' in \
		"$TEST_DIR/received" "$TEST_DIR/server.pid" $way nc.traditional -l -s "$IP_B" -p 7482
	wait_for 60 in_accept "$TEST_DIR/server.pid" || fail "the server does not accept"
	# shellcheck disable=SC2016,SC2086
	says 0: bash -c 'exec <"$1" && shift && exec "$@"' in "$TEST_DIR/sent" $way nc.traditional -q 3 "$IP_B" 7482
	wait_for 60 cmp -s "$TEST_DIR/sent" "$TEST_DIR/received" || fail "not what was sent has come"
}

# nulls PID: how often it has /dev/null open. in_accept FILE: that has a process, and its nulls before it began.
nulls() { find "/proc/$1/fd" -lname /dev/null 2>/dev/null | wc -l; }
in_accept() {
	local pid before
	[ -s "$1" ] && read -r pid before <"$1" && [ "$(nulls "$pid")" = $((before + 2)) ]
}

# A program of plain sockets over rsockets: libc's calls as librspreload knows them.
preloaded_sockets() {
	local way
	way="$(preloaded) /usr/bin/python3 $TEST_DIR/sockets.py"
	pair weft:weft
	cat >"$TEST_DIR/sockets.py" <<-'END'
		import ctypes, hashlib, socket, struct, sys
		libc = ctypes.CDLL(None, use_errno=True)
		size, buf = 4000000, ctypes.create_string_buffer(65536)
		addr = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(7479), socket.inet_aton(sys.argv[2]))
		fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
		def must(n):
		    assert n >= 0, ctypes.get_errno()
		    return n
		def receive(fd, size):
		    data = b""
		    while len(data) < size:
		        n = must(libc.recv(fd, buf, 65536, 0))
		        assert n > 0
		        data += buf.raw[:n]
		    return data
		def send(fd, data):
		    while data:
		        data = data[must(libc.send(fd, data, len(data), 0)):]
		if sys.argv[1] == "serve":
		    must(libc.bind(fd, addr, len(addr)))
		    must(libc.listen(fd, 1))
		    peer = must(libc.accept(fd, None, None))
		    send(peer, hashlib.sha256(receive(peer, size)).digest())
		    assert libc.recv(peer, buf, 1, 0) == 0
		else:
		    data = (b"rsockets carry it " * size)[:size]
		    must(libc.connect(fd, addr, len(addr)))
		    send(fd, data)
		    assert receive(fd, 32) == hashlib.sha256(data).digest()
		    print("same")
		    must(libc.shutdown(fd, socket.SHUT_RDWR))
		must(libc.close(fd))
	END
	# shellcheck disable=SC2086 # a list
	start_b server $way serve "$IP_B"
	wait_listen_b 7479
	# Were it plain TCP, this would be its client.
	head -c 5000 /dev/zero >"/dev/tcp/$IP_B/7479"
	# shellcheck disable=SC2086 # a list
	says '0:^same' $way ask "$IP_B"
	finish_b server
}

# open_mpi RANKS: over libfabric's verbs provider, and over nothing else.
open_mpi() {
	pair weft:weft
	export WEFT_NETDEVS=eth0 HOME=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	run mpirun.openmpi --oversubscribe -np "$1" --mca pml cm --mca mtl ofi --mca btl self \
		--mca mtl_ofi_provider_include 'verbs;ofi_rxm' "$WEFT_BUILD/bin/mpi-ring"
	grep -qx "$1 ranks" "$TEST_DIR/mpirun.openmpi.log" || fail "$(words "$TEST_DIR/mpirun.openmpi.log")"
}

# --- many, and ends ---

many_at_once() {
	pair weft:weft
	start_b server cmtime -b "$IP_B"
	wait_listen_b 7471
	run cmtime -s "$IP_B" -c "$1"
	grep -q '^disconnect' "$TEST_DIR/cmtime.log" || fail "no figures; $(words "$TEST_DIR/cmtime.log")"
}

in_turn() {
	pair weft:weft
	start_b server weft-churn -l -b "$IP_B"
	wait_listen_b 7472
	run weft-churn -n "$1" "$IP_B"
}

# The end that listens without a port of its own, too.
ports_asked_for() {
	pair weft:weft
	echo "export WEFT_PORTS=20500-20509" >>"$TEST_DIR/options-a"
	start_b server rping -s -a "$IP_B" -C 100000
	wait_listen_b 7174
	rping -c -a "$IP_B" -C 100000 >"$TEST_DIR/client.log" 2>&1 </dev/null &
	wait_for 60 has_in_rts 1 || fail "no connection"
	# 5014 to 501D
	grep -qE ' 0100007F:501[4-9A-D] 0200007F:1C06 01 ' /proc/net/tcp || fail "another port"
	kill -9 $!
	wait $! 2>/dev/null || true
}

# Two listeners of two processes: the death of one is nothing to the other.
listener_killed() {
	pair weft:weft
	start_b other rping -s -P -a "$IP_B"
	wait_listen_b 7174
	start_b server weft-churn -l -b "$IP_B"
	wait_listen_b 7472
	weft-churn -t 120 "$IP_B" >"$TEST_DIR/client.log" 2>&1 </dev/null &
	wait_for 60 grep -qx running "$TEST_DIR/client.log" || fail "no traffic; $(words "$TEST_DIR/client.log")"
	signal_those KILL cmdline '^weft-churn.-l'
	wait_for 60 is_over $! || fail "the client does not see its server's end"
	wait $!
	[ $? = 3 ] || fail "the client did not see the end"
	run rping -c -a "$IP_B" -C 3 -V
	wait_for 60 port_is_free 7472 || fail "its port is still taken"
}

port_is_free() { ! listening "$1"; }

# A peer that is stopped answers nothing; whoever disconnects is done within the time of a close.
stopped_peer() {
	local start=$SECONDS
	pair weft:weft
	at b option "$DEV_B" close_timeout_ms 1000
	option "$DEV_A" close_timeout_ms 1000
	start_b server weft-churn -l -b "$IP_B"
	wait_listen_b 7472
	weft-churn -t 2 "$IP_B" >"$TEST_DIR/client.log" 2>&1 </dev/null &
	wait_for 60 grep -qx running "$TEST_DIR/client.log" || fail "no traffic; $(words "$TEST_DIR/client.log")"
	signal_those STOP cmdline '^weft-churn.-l'
	wait_for 60 is_over $! || fail "the client waits for a peer that is stopped"
	echo "ended after $((SECONDS - start)) s"
}

# A ping-pong, whose send CQ is polled for completions alone. Its clock makes it poll busily on any machine.
asleep_for_both() {
	local log=$TEST_DIR/cost.log
	# shellcheck disable=SC2086 # a command and its arguments
	WEFT_STATS=1 timeout -k 2 100 $AS_USER "$WEFT_RUN" "$WEFT_TOP/build/bin/message-cost" cm2 "$IP_A" inline 20000 >"$log" 2>&1 ||
		fail "message-cost ended with $?: $(tail -n 1 "$log")"
	awk '$1 == "weft:" && $2 == "wakes" { ends++; if ($3 > 400) { print $3 " wakes for 20000 messages"; bad = 1 } }
		END { exit bad || ends != 2 }' "$log" || fail "the progress thread works for the send CQ"
}

# For a message of 8 octets, by rdma_cm and by hand, and for a further FPDU of a long one: within 5 % of the stored figures.
# Instrumented libraries take more.
few_instructions() {
	[ -z "${SAN-}${COVERED-}" ] || { echo "not of these libraries" && return; }
	run "$WEFT_TOP/tests/bench/instructions.sh"
	cat "$TEST_DIR/instructions.sh.log"
	run "$WEFT_TOP/tests/bench/fpdu.sh"
	cat "$TEST_DIR/fpdu.sh.log"
}

# While messages are sent and received: --judge, --faults, --control and --record.
features_off() {
	[ -z "${SAN-}${COVERED-}" ] || { echo "not of these libraries" && return; }
	# Four programs under callgrind: an emulated machine takes minutes.
	run "$WEFT_TOP/tests/bench/features-off.sh"
	cat "$TEST_DIR/features-off.sh.log"
}

# has_open OPTION...: what docs/resources.md lists, and for --control one more.
has_open() {
	# shellcheck disable=SC2086 # a command and its arguments
	PATH=${PATH#*:} $AS_USER timeout 60 python3 "$WEFT_TOP/tests/lab/descriptors.py" "$WEFT_RUN" "$@" >"$TEST_DIR/open" 2>"$TEST_DIR/why" ||
		fail "${*:-plain}: $(words "$TEST_DIR/why")"
	diff <(sort "$TEST_DIR/listed") <(sort "$TEST_DIR/open") || fail "${*:-plain}: $(words "$TEST_DIR/open")"
}

descriptors() {
	[ -z "${SAN-}${COVERED-}" ] || { echo "not of these libraries" && return; }
	local sockets folder=$TEST_DIR/record
	sed -n '/^## Descriptors/,/^## /s/^| `\([^`]*\)` | \([0-9]*\) |.*/\1 \2/p' "$WEFT_TOP/docs/resources.md" >"$TEST_DIR/listed"
	[ "$(wc -l <"$TEST_DIR/listed")" -ge 5 ] || fail "docs/resources.md lists nothing"
	has_open
	echo 'reg_mr nth 1000 -> ENOMEM' >"$TEST_DIR/rules"
	chmod 644 "$TEST_DIR/rules"
	mkdir -m 777 "$folder"
	has_open --faults="$TEST_DIR/rules"
	has_open --judge
	has_open --record="$folder/of"
	sockets=$(mktemp -d)
	chmod 777 "$sockets"
	trap 'rm -rf "$sockets"' EXIT
	echo 'socket of unix 1' >>"$TEST_DIR/listed"
	XDG_RUNTIME_DIR=$sockets has_open --control
}
