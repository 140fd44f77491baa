# shellcheck shell=bash
# What a test inside the lab has: two machines, a and b, joined by eth0. The test runs on a;
# on_b runs a command on b. In QEMU b is another machine, in user-mode Linux a namespace.
# Sourced by machine.sh and one-test.sh. Names in capitals come from /run/weft/env.

SHARE=/run/weft
IP_A=10.7.0.1 IP_B=10.7.0.2
IP6_A=fd07::1 IP6_B=fd07::2

fail() {
	echo "FAIL: $*"
	exit 1
}

# within SECONDS COMMAND [ARG...]: as timeout(1), but also gives up on a command that sleeps in
# the kernel where no signal reaches it.
within() {
	local left=$(($1 * 10)) pid rc=0
	shift
	"$@" &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		[ $((left -= 1)) -gt 0 ] || {
			kill -9 $pid
			return 124
		}
		sleep 0.1
	done
	wait $pid || rc=$?
	return $rc
}

# --- the other machine ---

# on_b COMMAND [ARG...]: run it on b; output and exit status are the command's.
on_b() {
	if [ "$WEFT_LINK" = netns ]; then
		nsenter --net=/run/netns/b "$@" </dev/null
		return
	fi
	local n rc
	{
		flock 7
		n=$(($(cat /run/on_b.count 2>/dev/null || echo 0) + 1))
		echo "$n" >/run/on_b.count
		printf '%q ' "$@" >"$SHARE/req/.$n"
		mv "$SHARE/req/.$n" "$SHARE/req/$n"
		until [ -e "$SHARE/req/$n.rc" ]; do sleep 0.03; done
	} 7>/run/on_b.lock
	cat "$SHARE/req/$n.out"
	rc=$(cat "$SHARE/req/$n.rc")
	return "$rc"
}

# On either: on a|b COMMAND [ARG...]
on() {
	local where=$1
	shift
	if [ "$where" = b ]; then on_b "$@"; else "$@"; fi
}

# eth0 of this machine, and in user mode the namespace b with its own.
link_here() {
	local mine=$IP_A mine6=$IP6_A
	if [ "$WEFT_LINK" = netns ]; then
		ip netns add b
		ip link add eth0 address 02:77:65:66:74:0a type veth \
			peer name eth0 address 02:77:65:66:74:0b netns b
		on_b ip link set lo up
		on_b ip addr add $IP_B/24 dev eth0
		on_b ip addr add $IP6_B/64 dev eth0 nodad
		on_b ip link set eth0 up
	elif [ "$WEFT_ROLE" = b ]; then
		mine=$IP_B mine6=$IP6_B
	fi
	ip addr add $mine/24 dev eth0
	ip addr add $mine6/64 dev eth0 nodad
	ip link set eth0 up
}

# Until b answers.
link_peer() {
	local tries=0
	until [ "$WEFT_LINK" = netns ] || [ -e $SHARE/b.ready ]; do
		sleep 0.2
		[ $((tries += 1)) -lt 300 ] || fail "machine b does not come up"
	done
	ping -q -c 1 -w 20 $IP_B >/dev/null || fail "no ping from a to b"
}

# --- drivers and devices ---

# load DRIVER: on the machine it runs on. weft and siw are files of their own, the rest is
# the kernel's.
load() {
	local var=KO_$1 dep
	grep -q "^$1 " /proc/modules && return
	modprobe -d "$MODULES" -a ib_uverbs rdma_ucm || return
	if [ -z "${!var:-}" ]; then
		modprobe -d "$MODULES" "$1"
		return
	fi
	for dep in $(modinfo -F depends "${!var}" | tr , ' '); do
		modprobe -d "$MODULES" "$dep" || return
	done
	insmod "${!var}"
}

# The device's name on each machine. Two names, since in user mode it is one kernel.
dev() {
	if [ "$1" = a ]; then echo "${2}0"; else echo "${2}1"; fi
}

# at a|b FUNCTION [ARG...]: a function of this file on either machine.
at() {
	local where=$1
	shift
	if [ "$where" = a ]; then
		"$@"
	else
		on_b bash -c ". '$WEFT_TOP/tests/lab/lib.sh'; $*"
	fi
}

# pair A:B [MTU]: fresh devices, driver A on machine a and B on machine b.
pair() {
	local a=${1%:*} b=${1#*:} mtu=${2:-1500}
	ip link set eth0 mtu "$mtu" || fail "no MTU $mtu on a"
	on_b ip link set eth0 mtu "$mtu" || fail "no MTU $mtu on b"
	load "$a" || fail "$a does not load on a"
	at b load "$b" || fail "$b does not load on b"
	DEV_A=$(dev a "$a") DEV_B=$(dev b "$b")
	rdma link add "$DEV_A" type "$a" netdev eth0 || fail "no $a device on a"
	on_b rdma link add "$DEV_B" type "$b" netdev eth0 || fail "no $b device on b"
	wait_active a "$DEV_A"
	wait_active b "$DEV_B"
}

wait_active() {
	local tries=0
	until on "$1" rdma link show "$2/1" | grep -q 'state ACTIVE'; do
		[ $((tries += 1)) -lt 20 ] || fail "$2 on $1 does not become active"
		sleep 0.1
	done
}

# --- programs ---

# start_b NAME COMMAND [ARG...]: in the background on b, output in NAME.log of the test.
start_b() {
	local name=$1
	shift
	# shellcheck disable=SC2016 # for b's shell
	on_b bash -c 'out=$1; shift
		{ "$@" >"$out.log" 2>&1 </dev/null; echo $? >"$out.rc"; } >/dev/null 2>&1 </dev/null &' \
		start_b "$TEST_DIR/$name" "$@"
}

# finish_b NAME [SECONDS]: its exit status must be 0.
finish_b() {
	local left=$((${2:-15} * 10))
	until [ -s "$TEST_DIR/$1.rc" ]; do
		[ $((left -= 1)) -gt 0 ] || fail "$1 on b does not end; $(tail -n 3 "$TEST_DIR/$1.log")"
		sleep 0.1
	done
	[ "$(cat "$TEST_DIR/$1.rc")" = 0 ] ||
		fail "$1 on b ended with $(cat "$TEST_DIR/$1.rc"); $(tail -n 3 "$TEST_DIR/$1.log")"
}

# wait_listen_b PORT: until a kernel or user socket of b listens there. The kernel's table is
# read, so that no connection is made.
wait_listen_b() {
	local hex left=150
	hex=$(printf ':%04X 0*:0000 0A' "$1")
	until on_b cat /proc/net/tcp /proc/net/tcp6 | grep -q "$hex"; do
		[ $((left -= 1)) -gt 0 ] || fail "nobody listens on port $1 of b"
		sleep 0.1
	done
}

# run COMMAND [ARG...]: on a, within TIME seconds (60), output in NAME.log where NAME is the
# command's.
run() {
	local log=$TEST_DIR/${1##*/}.log rc=0
	timeout -k 2 "${TIME:-60}" "$@" >"$log" 2>&1 </dev/null || rc=$?
	[ $rc = 124 ] && fail "$1 ran into its time-out; $(tail -n 3 "$log")"
	[ $rc = 0 ] || fail "$1 ended with $rc; $(tail -n 3 "$log")"
}

# --- after a test ---

# What a test may have left behind, on the machine it runs on: programs, devices, drivers.
# Fails if something cannot be taken away, which is how leaked references show.
clean_here() {
	local pid dev driver bad=0
	# Whoever has an RDMA file open, by process id.
	for pid in $(find /proc/[0-9]*/fd -lname '/dev/infiniband/*' 2>/dev/null | cut -d/ -f3 | sort -u); do
		[ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
	done
	for dev in $(rdma link show | sed -n 's/^link \([^/]*\)\/.*/\1/p'); do
		no_objects "$dev" || bad=1
		within 20 rdma link del "$dev" || { echo "$dev cannot be deleted"; bad=1; }
	done
	for driver in weft siw; do
		grep -q "^$driver " /proc/modules || continue
		within 20 rmmod "$driver" || { echo "$driver cannot be unloaded"; bad=1; }
	done
	return $bad
}

# Programs are dead: nothing but what the driver itself leaked can still be there.
no_objects() {
	local left=30 line
	while :; do
		line=$(rdma resource show "$1" 2>/dev/null)
		grep -qE '(qp|cm_id|mr|pd|cq) [1-9]' <<<"$line" || return 0
		[ $((left -= 1)) -gt 0 ] || break
		sleep 0.1
	done
	echo "objects left: $line"
	return 1
}

# --- the kernel's log ---

klog_mark() { echo "weft-lab: begin $1" >/dev/kmsg; }

# klog_since MARK: on the machine it runs on, all that the kernel said after klog_mark MARK.
klog_since() {
	dmesg | awk -v mark="weft-lab: begin $1" 'seen {print} index($0, mark) {seen = 1}'
}

# klog_faults: lines of a kernel log on stdin that no healthy run has.
klog_faults() {
	grep -E 'BUG:|kernel BUG|WARNING:|Oops|Call Trace|KASAN|possible (recursive|circular) locking|inconsistent lock state|suspicious RCU|sleeping function called|blocked for more than|soft lockup|hard LOCKUP|rcu.*(stall|detected)|refcount_t:|list_(add|del) corruption|general protection|unregister_netdevice: waiting|memory leak|restrack:|[Ll]eaked|still held|Bad page|kernel panic'
}
