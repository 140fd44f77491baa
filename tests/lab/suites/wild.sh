# shellcheck shell=bash
# Random calls of everything that a program can call on a device, by several users at once, while devices
# are added and removed and allocations fail (tests/progs/hostile/wild.c). The kernel's log stays clean,
# nothing is left, and it works afterwards. Only on kernels with KASAN and lockdep.
# Environment: WILD_SECONDS  how long (60)

TEST_TIMEOUT=300

tests() {
	[[ ${KERNEL-} != *debug ]] || echo "random-calls-of-all-kinds wild ${WILD_SECONDS:-60}"
}

# Every thousandth allocation below RDMA's core of those processes that ask for it, and what a thread
# asks for itself. Not what fork() needs: where it has no memory user mode forgets a process's own.
faults() {
	local first end
	[ -d /sys/kernel/debug/failslab ] || fail "no fault injection"
	# From its first object to its last.
	read -r first _ <<<"$(text_of ib_pack)"
	read -r _ end <<<"$(text_of ucma_write)"
	[ -n "$first" ] && [ -n "$end" ] || fail "where is RDMA's core?"
	knobs stacktrace-depth 32
	knobs require-start "$first"
	knobs require-end "$end"
	knobs reject-start 0
	knobs reject-end 0
	allow_faults Y -1
	knobs interval 1000
	knobs probability 100
}

# They have other names now, and some none that a shell would find.
delete_all() {
	local dev
	rdma dev | sed -E 's/^[0-9]+: (.*): node_type .*/\1/' >"$TEST_DIR/devices"
	while IFS= read -r dev; do
		within 20 rdma link del "$dev" || fail "$dev cannot be deleted"
	done <"$TEST_DIR/devices"
}

# wild SECONDS
wild() {
	local n dev hung=/proc/sys/kernel/hung_task_timeout_secs
	pair weft:weft
	for n in 0 1; do
		ip link add d$n type dummy && ip addr add 10.9.$n.1/24 dev d$n && ip link set d$n up &&
			rdma link add weft$((n + 2)) type weft netdev d$n || fail "no device on d$n"
	done
	for dev in /sys/class/infiniband/*; do echo 2000 >"$dev/weft/accept_timeout_ms"; done
	echo 30 >$hung
	# A fork that fails for want of memory is more than user mode bears, too.
	echo 1 >/proc/sys/vm/overcommit_memory
	faults
	TIME=$(($1 * 2 + 60)) run wild -t "$1" -f -n /run/netns/b "$IP_A" "$IP_B" 10.9.0.1 10.9.1.1
	stop_faults
	sed -n '/^contexts:/,$p' "$TEST_DIR/wild.log"
	kill_users
	delete_all
	ip link del d0
	ip link del d1
	echo 60 >$hung
	echo 0 >/proc/sys/vm/overcommit_memory
	pair weft:weft
	rping_pair "$IP_B" "$IP_B" -C 10
}
