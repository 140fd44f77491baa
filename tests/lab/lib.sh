# shellcheck shell=bash
# What a test inside the lab has: two machines, a and b, joined by eth0. The test runs on a;
# on_b runs a command on b. In QEMU b is another machine, in user-mode Linux a namespace.
# Sourced by machine.sh and one-test.sh. Names in capitals come from /run/weft/env.
#
# An emulated machine takes a tenth of a second and more to start a program. What runs often
# keeps to what bash has built in.

SHARE=/run/weft
IP_A=10.7.0.1 IP_B=10.7.0.2
IP6_A=fd07::1 IP6_B=fd07::2

# The reason on one line: it is all that the tally shows of a failure.
fail() {
	echo "FAIL: ${*//$'\n'/ | }"
	exit 1
}

# pause SECONDS: reading where nothing comes is a sleep without a process.
[ -p /run/tick ] || mkfifo /run/tick
exec 8<>/run/tick
pause() { read -rt "$1" <&8 || true; }

# wait_for SECONDS COMMAND [ARG...]: until the command succeeds; fails after that time.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		pause 0.05
	done
}

# A process that has ended may stay a zombie until bash finds the time to look at it.
is_over() {
	local stat
	! read -r stat 2>/dev/null </proc/"$1"/stat || [[ $stat == *") Z "* ]]
}

# within SECONDS COMMAND [ARG...]: as timeout(1), but also gives up on a command that sleeps in
# the kernel where no signal reaches it.
within() {
	local seconds=$1 pid rc=0
	shift
	"$@" &
	pid=$!
	wait_for "$seconds" is_over "$pid" || {
		kill -9 $pid
		return 124
	}
	wait $pid || rc=$?
	return $rc
}

# --- the other machine ---

# on_b COMMAND [ARG...]: run it on b; output and exit status are the command's. In QEMU the
# command goes through a mailbox, one at a time: never call this in the background.
on_b() {
	if [ "$WEFT_LINK" = netns ]; then
		nsenter --net=/run/netns/b "$@" </dev/null
		return
	fi
	local n=0 rc line
	[ ! -e /run/on_b.count ] || read -r n </run/on_b.count
	n=$((n + 1))
	echo $n >/run/on_b.count
	printf '%q ' "$@" >$SHARE/req/$n
	echo >$SHARE/req/$n.go
	until [ -s $SHARE/req/$n.rc ]; do pause 0.02; done
	while IFS= read -r line || [ -n "$line" ]; do
		printf '%s\n' "$line"
	done <$SHARE/req/$n.out
	read -r rc <$SHARE/req/$n.rc
	return "$rc"
}

# What b does with the mailbox, for ever.
serve_a() {
	local n=1 command rc
	while :; do
		until [ -e $SHARE/req/$n.go ]; do pause 0.02; done
		read -rd '' command <$SHARE/req/$n || true
		rc=0
		(eval "$command") </dev/null >$SHARE/req/$n.out 2>&1 || rc=$?
		echo $rc >$SHARE/req/$n.rc
		n=$((n + 1))
	done
}

# on a|b COMMAND [ARG...]
on() {
	local where=$1
	shift
	if [ "$where" = b ]; then on_b "$@"; else "$@"; fi
}

# at a|b FUNCTION [ARG...]: a function of this file on either machine.
at() {
	local where=$1
	shift
	if [ "$where" = a ]; then
		"$@"
	elif [ "$WEFT_LINK" = netns ]; then
		on_b bash -c ". '$WEFT_TOP/tests/lab/lib.sh'; \"\$@\"" at "$@"
	else
		on_b "$@"
	fi
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
	[ "$WEFT_LINK" = netns ] || wait_for 120 [ -e $SHARE/b.ready ] || fail "machine b does not come up"
	ping -q -c 1 -w 20 $IP_B >/dev/null || fail "no ping from a to b"
}

# --- drivers and devices ---

# load MODULE [PARAMETER...]: on the machine it runs on. weft, weft_kmod and siw are files of
# their own (KO_x, and DEPS_x what they need), the rest is the kernel's.
load() {
	local ko=KO_$1 deps=DEPS_$1
	[ ! -d "/sys/module/$1" ] || return 0
	if [ -z "${!ko:-}" ]; then
		modprobe -d "$MODULES" -a "$1" ib_uverbs rdma_ucm
		return
	fi
	if [ ! -e "/run/deps.$1" ]; then
		# shellcheck disable=SC2086 # a list
		modprobe -d "$MODULES" -a ib_uverbs rdma_ucm ${!deps} || return
		echo >"/run/deps.$1"
	fi
	insmod "${!ko}" "${@:2}"
}

# pair A:B [MTU]: fresh devices, driver A on machine a and B on machine b: DEV_A and DEV_B, two
# names, since in user mode it is one kernel.
pair() {
	local a=${1%:*} b=${1#*:} mtu=${2:-1500}
	DEV_A=${a}0 DEV_B=${b}1
	at a bring_up "$a" "$DEV_A" "$mtu" || fail "no $a on a"
	at b bring_up "$b" "$DEV_B" "$mtu" || fail "no $b on b"
	wait_active a "$DEV_A"
	wait_active b "$DEV_B"
}

# bring_up DRIVER DEVICE MTU
bring_up() {
	local mtu
	read -r mtu </sys/class/net/eth0/mtu
	# In user mode b, too, sees a's there.
	[ "$WEFT_LINK$mtu" = "vm$3" ] || ip link set eth0 mtu "$3" || return
	# What a test made the network lose is over.
	tc qdisc del dev eth0 root 2>/dev/null || true
	load "$1" && rdma link add "$2" type "$1" netdev eth0
}

# option DEVICE NAME VALUE: an option of a weft device.
option() { echo "$3" >"/sys/class/infiniband/$1/weft/$2"; }

# lose PERCENT: of what this machine sends; until the next pair().
lose() { tc qdisc replace dev eth0 root netem loss "$1%"; }

port_is_active() {
	local state=''
	[ ! -e "/sys/class/infiniband/$1/ports/1/state" ] ||
		read -r state <"/sys/class/infiniband/$1/ports/1/state"
	[ "$state" = '4: ACTIVE' ]
}

# trace_on EVENT: weft's tracepoint, or `.` for all of them, from now on, in /sys/kernel/tracing/trace.
# Not with the names of programs, for which tracing hooks itself into the scheduler: QEMU, when it
# emulates, may leave a CPU at the breakpoint by which the kernel changes code that others run, for
# ever, with interrupts off; and the rest of the machine waits for that CPU.
trace_on() {
	local t=/sys/kernel/tracing
	mountpoint -q $t || mount -t tracefs trace $t || return
	echo 0 >$t/options/record-cmd && : >$t/trace && echo 1 >"$t/events/weft/$1/enable"
}

# How many QPs of machine a's device are connected.
in_rts() { rdma -j resource show qp link "$DEV_A" | grep -o '"state":"RTS"' | grep -c "" || true; }
has_in_rts() { [ "$(in_rts)" = "$1" ]; }

wait_active() {
	at "$1" wait_for 20 port_is_active "$2" || fail "$2 on $1 does not become active"
}

# count DEVICE NAME: a counter of a device of this machine, of now: the core keeps values for 10 ms.
count() {
	local n
	pause 0.02
	read -r n <"/sys/class/infiniband/$1/ports/1/hw_counters/$2" || return
	echo "$n"
}

# --- programs ---

# start_b NAME COMMAND [ARG...]: in the background on b, output in NAME.log of the test.
start_b() {
	local name=$1
	shift
	at b run_apart "$TEST_DIR/$name" "$@"
}

run_apart() {
	local out=$1
	shift
	{
		rc=0
		"$@" >"$out.log" 2>&1 </dev/null || rc=$?
		echo $rc >"$out.rc"
	} >/dev/null 2>&1 </dev/null &
}

# finish_b NAME [SECONDS]: its exit status must be 0.
finish_b() {
	local rc
	wait_for "${2:-20}" [ -s "$TEST_DIR/$1.rc" ] ||
		fail "$1 on b does not end; $(tail -n 3 "$TEST_DIR/$1.log")"
	read -r rc <"$TEST_DIR/$1.rc"
	[ "$rc" = 0 ] || fail "$1 on b ended with $rc; $(words "$TEST_DIR/$1.log")"
}

# words LOG: how it begins and how it ends. What a program says of errors comes first where the rest
# is buffered.
words() {
	if [ "$(wc -l <"$1")" -le 9 ]; then
		cat "$1"
	else
		head -n 5 "$1"
		echo ...
		tail -n 3 "$1"
	fi
}

# wait_listen_b PORT: until a kernel or user socket of b listens there. The kernel's table is
# read, so that no connection is made.
wait_listen_b() {
	at b wait_for 20 listening "$1" || fail "nobody listens on port $1 of b"
}

listening() {
	local hex file port state
	printf -v hex ':%04X ' "$1"
	for file in /proc/net/tcp /proc/net/tcp6; do
		while read -r _ port _ state _; do
			[[ $state != 0A || "$port " != *$hex ]] || return 0
		done <$file
	done
	return 1
}

# run COMMAND [ARG...]: on a, within TIME seconds (100), output in NAME.log where NAME is the
# command's.
run() {
	local log=$TEST_DIR/${1##*/}.log rc=0
	timeout -k 2 "${TIME:-100}" "$@" >"$log" 2>&1 </dev/null || rc=$?
	[ $rc = 0 ] && return
	[ $rc = 124 ] && fail "$1 ran into its time-out; $(words "$log")"
	fail "$1 ended with $rc; $(words "$log")"
}

# together PORT SERVER... -- CLIENT...: b's server, which listens on PORT, and a's client; both end
# well. What excuse() knows is tried again with a new server, twice; whatever else goes wrong is a
# failure. Output in server.log and CLIENT.log.
together() {
	local port=$1 server=() try why failure garbled
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	for try in 1 2 3; do
		garbled=$(siw_garbled)
		start_b server "${server[@]}"
		wait_listen_b "$port"
		[[ $DEV_B != siw* ]] ||
			at b run_apart "$TEST_DIR/unread" end_if_unread "$port" "$TEST_DIR/server.rc"
		failure=$(run "$@") && break
		why=$(excuse "$TEST_DIR/${1##*/}.log") && [ $try != 3 ] || fail "${failure#FAIL: }; $(other_side)"
		echo "try $try: $why"
		end_server
	done
	finish_b server
}

# In user mode all that uses RDMA ends, on a, too.
end_server() {
	at b kill_users
	wait_for 20 [ -s "$TEST_DIR/server.rc" ] || fail "the server on b cannot be ended"
	rm -f "$TEST_DIR/server.rc" "$TEST_DIR/unread.rc"
}

# What b's server came to, and what the devices of both counted: a client that failed tells its half.
other_side() {
	if wait_for 5 [ -s "$TEST_DIR/server.rc" ]; then
		echo "server ended with $(cat "$TEST_DIR/server.rc")"
	else
		echo "server goes on"
	fi
	words "$TEST_DIR/server.log"
	counted "$DEV_A"
	at b counted "$DEV_B"
}

# counted DEVICE: its counters that are not 0, if it is weft's.
counted() {
	local file n all="$1:"
	[[ $1 = weft* ]] || return 0
	for file in "/sys/class/infiniband/$1/ports/1/hw_counters"/*; do
		read -r n <"$file" && [ "$n" != 0 ] && all+=" ${file##*/}=$n"
	done
	echo "$all"
}

# excuse LOG: what others did that the client of LOG failed.
# With -R perftest connects twice, and listens anew in between: a client whose second try comes
# too early is refused, and crashes of that (in librdmacm, on its way out). The errno that it prints
# is any: the event has the reason, ECONNREFUSED. siw connects within the call, and there errno has it.
# What comes while siw makes an accepted QP ready it reads with what comes next; and a program that
# waits for the answer sends nothing next.
# And a message that siw has given to TCP it calls failed, if the peer's FIN comes before it has looked
# again: perftest's server goes as soon as it has the client's last.
# And what a program posts siw sends from two threads at once, now and then: weft finds a bad CRC.
excuse() {
	local overslept
	if grep -qE 'Event: RDMA_CM_EVENT_REJECTED; error: -111\.' "$1" ||
		{ [[ $DEV_A = siw* ]] && refused_at_once "$1"; }; then
		echo "it came before the server's second listener"
		return
	fi
	if [[ $DEV_A = siw* ]] && only_goodbye_failed "$1"; then
		echo "siw called its last message failed, and the server had it"
		return
	fi
	if [ "$(siw_garbled)" != "$garbled" ]; then
		echo "siw sent from two threads at once, and weft found a bad CRC"
		return
	fi
	[[ $DEV_B = siw* ]] && wait_for 20 [ -s "$TEST_DIR/unread.rc" ] || return
	read -r overslept <"$TEST_DIR/unread.rc"
	[ "$overslept" = 0 ] && echo "siw left octets unread"
}

# How many bad CRCs weft on b has had of siw on a; nothing for other pairs.
siw_garbled() { [[ $DEV_A$DEV_B != siw*weft* ]] || at b count "$DEV_B" crc_errors; }

refused_at_once() {
	grep -A 1 -F 'Failed to connect through RDMA CM.' "$1" | grep -qF 'ERRNO: Connection refused.'
}

# The client of LOG printed its figures, failed to say that it is through, and b's server knows.
only_goodbye_failed() {
	local rc
	grep -qF 'Bad wc status 2' "$1" && grep -qF 'Failed to close connection' "$1" &&
		wait_for 20 [ -s "$TEST_DIR/server.rc" ] && read -r rc <"$TEST_DIR/server.rc" && [ "$rc" = 0 ]
}

# perftest_pair PROGRAM [OPT...]: over the devices of pair(), output in PROGRAM.log.
perftest_pair() {
	local TIME=100 program=$1
	shift
	set -- "$program" -R -F "$@"
	# A client that siw leaves waiting ends while there is time to try again.
	[[ $DEV_B != siw* ]] || TIME=60
	together 18515 "$@" -d "$DEV_B" -- "$@" -d "$DEV_A" "$IP_B"
}

# perftest_goes_on PROGRAM [OPT...]: perftest_pair's, but it returns when there is a connection, and
# the programs stay; the client is $client, its output in client.log. To be the first that uses RDMA.
perftest_goes_on() {
	local program=$1 try why garbled
	shift
	set -- -R -F "$@"
	for try in 1 2 3; do
		garbled=$(siw_garbled)
		start_b server "$program" -d "$DEV_B" "$@"
		wait_listen_b 18515
		"$program" -d "$DEV_A" "$@" "$IP_B" >"$TEST_DIR/client.log" 2>&1 </dev/null &
		client=$!
		wait_for 20 connected_or_over "$client"
		! is_over "$client" && has_in_rts 2 && return
		why=$(excuse "$TEST_DIR/client.log") && [ "$try" != 3 ] ||
			fail "$program does not run; $(words "$TEST_DIR/client.log"); $(other_side)"
		echo "try $try: $why"
		end_server
	done
}

# perftest has one more connection, by which its ends talk.
connected_or_over() { is_over "$1" || has_in_rts 2; }

# rping_pair LISTEN CONNECT [OPT...]: b's rping listens on one address, a's connects to the other;
# output in server.log and rping.log.
rping_pair() {
	together 7174 rping -s -a "$1" "${@:3}" -- rping -c -a "$2" "${@:3}" -v
}

# end_if_unread PORT FILE: once a connection to PORT of this machine has had octets to be read for
# ten seconds, programs that use RDMA are ended: 0. Once FILE is there: 1.
end_if_unread() {
	local n=0
	until [ $n = 20 ]; do
		[ ! -s "$2" ] || return 1
		pause 0.5
		if unread "$1"; then n=$((n + 1)); else n=0; fi
	done
	kill_users
}

unread() {
	local hex file port state queues
	printf -v hex ':%04X ' "$1"
	for file in /proc/net/tcp /proc/net/tcp6; do
		while read -r _ port _ state queues _; do
			[[ $state = 01 && "$port " = *$hex && $queues != *:00000000 ]] && return
		done <$file
	done
	return 1
}

# --- after a test ---

# What a test may have left behind, on the machine it runs on: programs, devices, drivers.
# Fails if something cannot be taken away, which is how leaked references show.
clean_here() {
	local dev driver bad=0
	stop_faults
	kill_users
	[ ! -d /sys/module/weft_krefl ] || within 20 rmmod weft_krefl || stuck "weft_krefl cannot be unloaded"
	for dev in /sys/class/infiniband/*; do
		[ -e "$dev" ] || continue
		dev=${dev##*/}
		no_objects "$dev" || bad=1
		within 20 rdma link del "$dev" || { stuck "$dev cannot be deleted"; bad=1; }
	done
	no_memory || bad=1
	for driver in weft siw; do
		[ -d /sys/module/$driver ] || continue
		within 20 rmmod $driver || { stuck "$driver cannot be unloaded"; bad=1; }
	done
	return $bad
}

# What suite faults may have left on: its test may have ended anywhere.
stop_faults() {
	local knob
	for knob in /sys/kernel/debug/fail{slab,_page_alloc}/probability; do
		[ ! -e "$knob" ] || echo 0 >"$knob"
	done
}

# stuck REASON: and the kernel's log gets the stacks of all that sleep in it.
stuck() {
	echo "$*"
	echo w >/proc/sysrq-trigger
}

# Whoever has an RDMA file open ends.
kill_users() {
	local fd file pid
	for file in /dev/infiniband/*; do
		for fd in /proc/[0-9]*/fd/*; do
			[ "$fd" -ef "$file" ] || continue
			pid=${fd#/proc/}
			kill -9 "${pid%%/*}" 2>/dev/null
		done
	done
}

# Programs are dead: nothing but what the driver itself leaked can still be there.
no_objects() {
	local line tries=20
	while line=$(rdma resource show "$1" 2>/dev/null) && [[ $line =~ (qp|cm_id|mr|pd|cq|srq|ctx)\ [1-9] ]]; do
		[ $((tries -= 1)) -gt 0 ] || {
			echo "objects left: $line"
			return 1
		}
		pause 0.1
	done
}

# Devices are deleted: nothing that weft allocated may still be there, neither by pages nor, where
# the kernel keeps account (vm.sh), by kmalloc(); weft's own caches it looks at in rmmod. Only while
# the module is loaded has the kernel a name for who did.
no_memory() {
	local tries=80
	while weft_memory >/run/weft_memory; do
		[ $((tries -= 1)) -gt 0 ] || {
			echo "memory left: $(head -n 1 /run/weft_memory)"
			return 1
		}
		pause 0.1
	done
}

# Fails if there is none.
weft_memory() { grep -F '[weft]' /proc/vmallocinfo || weft_slabs; }

weft_slabs() { grep -hsE '^ *[0-9]+ [^ ]+ \[weft\]' /sys/kernel/debug/slab/kmalloc-*/alloc_traces; }

# --- the kernel's log ---

klog_mark() { echo "weft-lab: begin $1" >/dev/kmsg; }

# klog_since MARK: on the machine it runs on, all that the kernel said after klog_mark MARK. Where
# that has been overwritten it is all that there is, and a line that klog_faults knows.
klog_since() {
	dmesg | awk -v mark="weft-lab: begin $1" '
		seen { print }
		index($0, mark) { seen = 1 }
		{ all = all $0 "\n" }
		END { if (!seen) printf "%sweft-lab: lost what it said since \"%s\"\n", all, mark }'
}

# klog_faults: lines of a kernel log on stdin that no healthy run has. A program's own crash
# ("traps: NAME[") is the program's.
klog_faults() {
	grep -vE '\] traps: [^ ]+\[[0-9]+\]' | grep -E 'BUG:|kernel BUG|WARNING:|Oops|Call Trace|KASAN|possible (recursive|circular) locking|inconsistent lock state|suspicious RCU|sleeping function called|blocked for more than|soft lockup|hard LOCKUP|rcu.*(stall|detected)|refcount_t:|list_(add|del) corruption|general protection|unregister_netdevice: waiting|weft-lab: lost|memory leak|restrack:|[Ll]eaked|still held|Bad page|kernel panic'
}
