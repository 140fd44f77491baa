# shellcheck shell=bash
# What one user, or one namespace, can do to another through the device.

PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS = *weft:weft* ]] || return 0
	cat <<-'END'
		other-users-connect-no-queue-pair whose_qp weft:weft
		foreigners foreigners weft:weft
	END
	# The mode cannot be changed while there is another namespace, and b is one in user mode,
	# which has no BPF either.
	[[ ${KERNEL-} != stock ]] || cat <<-'END'
		foreigners-in-exclusive-mode exclusive weft:weft
		cgroup-bpf-programs-are-run hooks weft:weft
	END
}

# Users with rdma_cm alone, and numbers of QPs that they do not have.
whose_qp() {
	pair "$1"
	tap_run whose-qp "$IP_A" 7471
}

# From a namespace that has no device.
foreigners() {
	pair "$1"
	ip netns add c && ip -n c link set lo up || fail "no namespace"
	tap_run foreigners "$IP_A" 7471 /run/netns/c
	ip netns del c
}

exclusive() {
	local rc=0
	load weft || fail "no weft"
	rdma system set netns exclusive || fail "no exclusive mode"
	(foreigners "$1") || rc=1
	ip netns del c 2>/dev/null
	rdma link del "${1%:*}0" && rdma system set netns shared || rc=1
	[ $rc = 0 ] || fail "not in exclusive mode"
}

hooks() {
	local group=/run/cgroup/hooks
	mkdir -p /run/cgroup
	mountpoint -q /run/cgroup || mount -t cgroup2 none /run/cgroup || fail "no cgroups"
	mkdir -p $group
	pair "$1"
	tap_run hooks "$IP_A" 7471 $group
	rmdir $group
}
