#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Two network namespaces joined by veth, a device of weft in each. The devices are made, verified
# data goes between them, and they end: one by "rdma link del", one with its namespace.

# shellcheck disable=SC1091 # beside this folder, in the kernel's source
source "$(dirname "$(readlink -f "$0")")/../kselftest/ktap_helpers.sh"

A=weft-a-$$
B=weft-b-$$
DEV_A=weft_a_$$
DEV_B=weft_b_$$
# Seconds that anything may take.
LIMIT=60

cleanup() {
	[ -z "$SERVER" ] || kill "$SERVER" 2>/dev/null
	ip netns del "$A" 2>/dev/null
	ip netns del "$B" 2>/dev/null
}
trap cleanup EXIT

in_a() { timeout "$LIMIT" ip netns exec "$A" "$@"; }
in_b() { timeout "$LIMIT" ip netns exec "$B" "$@"; }

# wait_for COMMAND [ARG...]: until it succeeds.
wait_for() {
	local end=$((SECONDS + LIMIT))

	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

is_active() { rdma link show "$1/1" | grep -q "state ACTIVE"; }
has_gone() { ! rdma link show "$1/1"; }
is_listening() { in_b ss -Htln "sport = :7174" | grep -q .; }

networks() {
	ip netns add "$A" && ip netns add "$B" &&
		ip -n "$A" link add eth0 type veth peer name eth0 netns "$B" &&
		ip -n "$A" addr add 10.7.1.1/24 dev eth0 &&
		ip -n "$B" addr add 10.7.1.2/24 dev eth0 &&
		ip -n "$A" addr add fd07::1/64 dev eth0 nodad &&
		ip -n "$B" addr add fd07::2/64 dev eth0 nodad &&
		ip -n "$A" link set eth0 up && ip -n "$B" link set eth0 up &&
		ip -n "$A" link set lo up && ip -n "$B" link set lo up
}

links_are_added() {
	in_a rdma link add "$DEV_A" type weft netdev eth0 &&
		in_b rdma link add "$DEV_B" type weft netdev eth0 &&
		wait_for is_active "$DEV_A" && wait_for is_active "$DEV_B"
}

a_name_twice_is_refused() {
	! in_b rdma link add "$DEV_A" type weft netdev lo 2>/dev/null
}

# rping ADDRESS: both ends compare what arrives.
rping_over() {
	local rc=0

	in_b rping -s -a "$1" -C 5 -V >/dev/null 2>&1 &
	SERVER=$!
	wait_for is_listening || return 1
	in_a rping -c -a "$1" -C 5 -S 4000 -V >/dev/null 2>&1 || rc=1
	wait "$SERVER"
	SERVER=
	return $rc
}

a_link_is_deleted() {
	in_a rdma link del "$DEV_A" && wait_for has_gone "$DEV_A"
}

a_namespace_takes_its_device_along() {
	ip netns del "$B" && wait_for has_gone "$DEV_B"
}

for tool in ip rdma rping ss timeout; do
	if ! command -v "$tool" >/dev/null; then
		ktap_skip_all "no $tool"
		exit "$KSFT_SKIP"
	fi
done
if ! [ -d /sys/module/weft ] && ! modprobe -q weft; then
	ktap_skip_all "no weft"
	exit "$KSFT_SKIP"
fi

ktap_print_header
ktap_set_plan 6
networks || ktap_exit_fail_msg "no namespaces"
ktap_test_result "links are added" links_are_added
ktap_test_result "a name twice is refused" a_name_twice_is_refused
ktap_test_result "rping over IPv4" rping_over 10.7.1.2
ktap_test_result "rping over IPv6" rping_over fd07::2
ktap_test_result "a link is deleted" a_link_is_deleted
ktap_test_result "a namespace takes its device along" a_namespace_takes_its_device_along
ktap_finished
