# shellcheck shell=bash
# The machines a and b: commands on b, the mailbox that carries them in QEMU, the link between
# them. See lib.sh.

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
	printf '%q ' "$@" >"$SHARE/req/$n"
	echo >"$SHARE/req/$n.go"
	until [ -s "$SHARE/req/$n.rc" ]; do pause 0.02; done
	while IFS= read -r line || [ -n "$line" ]; do
		printf '%s\n' "$line"
	done <"$SHARE/req/$n.out"
	read -r rc <"$SHARE/req/$n.rc"
	return "$rc"
}

# What b does with the mailbox, for ever.
serve_a() {
	local n=1 command rc
	while :; do
		until [ -e "$SHARE/req/$n.go" ]; do pause 0.02; done
		read -rd '' command <"$SHARE/req/$n" || true
		rc=0
		(eval "$command") </dev/null >"$SHARE/req/$n.out" 2>&1 || rc=$?
		echo $rc >"$SHARE/req/$n.rc"
		n=$((n + 1))
	done
}

# on a|b COMMAND [ARG...]
on() {
	local where=$1
	shift
	if [ "$where" = b ]; then on_b "$@"; else "$@"; fi
}

# at a|b FUNCTION [ARG...]: a function of lib.sh on either machine.
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
		on_b ip addr add "$IP_B/24" dev eth0
		on_b ip addr add "$IP6_B/64" dev eth0 nodad
		on_b ip link set eth0 up
	elif [ "$WEFT_ROLE" = b ]; then
		mine=$IP_B mine6=$IP6_B
	fi
	ip addr add "$mine/24" dev eth0
	ip addr add "$mine6/64" dev eth0 nodad
	ip link set eth0 up
}

# Until b answers.
link_peer() {
	[ "$WEFT_LINK" = netns ] || wait_for 300 [ -e "$SHARE/b.ready" ] || fail "machine b does not come up"
	ping -q -c 1 -w 60 "$IP_B" >/dev/null || fail "no ping from a to b"
}
