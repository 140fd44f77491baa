# shellcheck shell=bash
# What one user, or one namespace, can do to another through the device.

PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS = *weft:weft* ]] || return 0
	cat <<-'END'
		strangers strangers weft:weft
		foreigners foreigners weft:weft
	END
}

# Users with rdma_cm alone, and numbers of QPs that they do not have.
strangers() {
	pair "$1"
	tap_run strangers "$IP_A" 7471
}

# From a namespace that has no device.
foreigners() {
	pair "$1"
	ip netns add c && ip -n c link set lo up || fail "no namespace"
	tap_run foreigners "$IP_A" 7471 /run/netns/c
	ip netns del c
}
