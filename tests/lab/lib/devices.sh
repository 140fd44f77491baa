# shellcheck shell=bash
# Drivers, devices, their options and counters, and packet loss. See lib.sh.

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
	insmod "${!ko}" "${@:2}" || return
	[ "$1" != weft ] || remember_not_weft
}

# pair A:B [MTU]: fresh devices, driver A on machine a and B on machine b: DEV_A and DEV_B, two
# names, since in user mode it is one kernel. rootless is no driver: see weft-run.sh.
pair() {
	local a=${1%:*} b=${1#*:} mtu=${2:-1500}
	DEV_A=${a}0 DEV_B=${b}1
	[ "$a" != rootless ] || DEV_A=weft_eth0
	[ "$b" != rootless ] || DEV_B=weft_eth0
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
	if [ "$1" = rootless ]; then
		bring_up_rootless
		return
	fi
	load "$1" && rdma link add "$2" type "$1" netdev eth0
}

# option DEVICE NAME VALUE: an option of a weft device.
option() {
	if is_rootless; then option_rootless "$@"; else echo "$3" >"/sys/class/infiniband/$1/weft/$2"; fi
}

# set_option_b OPTION VALUE: of b's device.
set_option_b() { at b option "$DEV_B" "$1" "$2" || fail "no option $1=$2"; }

# lose PERCENT: of what this machine sends; until the next pair().
lose() { tc qdisc replace dev eth0 root netem loss "$1%"; }

port_is_active() {
	local state=''
	! is_rootless || return 0
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
	at "$1" wait_for 60 port_is_active "$2" || fail "$2 on $1 does not become active"
}

# count DEVICE NAME: a counter of a device of this machine, of now: the core keeps values for 10 ms.
count() {
	local n
	pause 0.02
	read -r n <"/sys/class/infiniband/$1/ports/1/hw_counters/$2" || return
	echo "$n"
}
