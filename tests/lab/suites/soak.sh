# shellcheck shell=bash
# Everything at once, on a user-mode kernel with all kernel users of RDMA: verified patterns, disks and trees of
# kernel users in turn, killed programs, devices that are renamed and removed with their netdevs, over a network
# that loses, reorders, duplicates and corrupts packets. Data is right, the kernel's log stays clean, memory stays
# bounded, and nothing is left.
# Environment: USERS_ROOT    see lib/users.sh
#              SOAK_SECONDS  how long (60); work in progress is then finished

suites=${BASH_SOURCE[0]%/*}
# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "$suites/../lib/users.sh"

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=900

tests() { echo "everything-at-once everything ${SOAK_SECONDS:-60}"; }

ENOUGH=/run/enough

# All that a step waits for takes longer beside the others.
export PATIENCE=12

# party NAME COMMAND [ARG...]: does it again and again, in the background; $round counts. Its files are in a
# folder of its own.
party() {
	local name=$1
	shift
	mkdir "$TEST_DIR/$name"
	(
		TEST_DIR=$TEST_DIR/$name round=0
		while [ ! -e $ENOUGH ]; do
			"$@" || fail "round $round ended with $?"
			echo $((round += 1)) >"$TEST_DIR/rounds"
			find "$TEST_DIR" -name '*[0-9].log' -delete
		done
	) >"$TEST_DIR/$name.out" 2>&1 &
	parties[$!]=$name
}

# turn SUITE COMMAND [ARG...]: a test of it, on the devices that are there.
turn() {
	(
		# shellcheck disable=SC1090 # a suite
		. "$suites/$1.sh"
		pair() { DEV_A=weft0 DEV_B=weft1; }
		devices_go() { :; }
		echo "$@"
		"${@:2}"
	)
}

verified() {
	local port=$((8000 + round % 1000))
	start_b "server$round" weft-verify -l -b "$IP_B" -p $port
	wait_listen_b $port
	TIME=300 run weft-verify -p $port -k wrsi -m 16 -S "$round" "$IP_B"
	finish_b "server$round"
	rm "$TEST_DIR/server$round".*
}

disks() {
	turn nvme disk_under_io 2 && turn iser disk_under_io 2 && turn srp disk_under_io 2 && turn rtrs disk_under_io 2
}

trees() { turn nfs file_tree 3 weft:weft && turn smb file_tree && turn nfs file_tree 4.2 weft:weft; }

# Either end of a connection under traffic, by turns; the other sees the end, and its program goes.
killed() {
	local port=$((9000 + round % 1000)) victim survivor
	nsenter --net=/run/netns/b weft-churn -l -b "$IP_B" -p $port >"$TEST_DIR/server$round.log" 2>&1 </dev/null &
	local server=$!
	wait_listen_b $port
	weft-churn -t 600 -p $port "$IP_B" >"$TEST_DIR/client$round.log" 2>&1 </dev/null &
	local client=$!
	wait_for 5 [ -s "$TEST_DIR/client$round.log" ] || fail "no traffic"
	pause "0.$((RANDOM % 900 + 100))"
	victim=$client survivor=$server
	[ $((round % 2)) = 0 ] || victim=$server survivor=$client
	kill -9 "$victim"
	# A server goes on to the next client.
	[ "$survivor" = "$client" ] || kill -9 "$server"
	wait_for 5 is_over "$survivor" || fail "the client does not see that its server has been killed"
	wait "$client" "$server"
	true
}

links() { turn churn links_of_churn; }

# In the suite churn's shell: its functions.
links_of_churn() {
	local longest=0
	round=0
	netdev_loses_device other_names
	ip link del d0
	netdev_removed
	netdev_moved
	netns_ends
}

other_names() {
	local name
	for name in weft8 "a name" weft7; do
		rdma dev set "$(device_of_d0)" name "$name" || return
		pause 0.1
	done
	rdma link del weft7
}

device_of_d0() { rdma link | sed -n 's,^link \(.*\)/1 state .* netdev d0 *$,\1,p'; }

# What the network does to each direction for some seconds.
network() {
	local side kind kinds=("loss 1%" "delay 1ms reorder 25% 50%" "duplicate 2%" "corrupt 0.5%" "delay 2ms 1ms"
		"loss 1% corrupt 0.2% duplicate 1%")
	for side in a b; do
		kind=${kinds[RANDOM % ${#kinds[@]}]}
		# shellcheck disable=SC2086 # a list
		on $side tc qdisc replace dev eth0 root netem $kind || fail "no netem $kind"
	done
	pause 3
}

# What is neither free nor a cache that can be dropped, in kilobytes.
memory_in_use() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '{ kb[$1] = $2 } END { print kb["MemTotal:"] - kb["MemFree:"] - kb["Buffers:"] - kb["Cached:"] }' /proc/meminfo
}

# everything SECONDS
everything() {
	local pid before after reason='' parties=()
	local end=$((SECONDS + $1))
	pair weft:weft
	enter_users_root
	before=$(memory_in_use)
	rm -f $ENOUGH
	party verified verified
	party disks disks
	party trees trees
	party killed killed
	party links links
	party network network
	# The first that fails ends them all.
	while [ $SECONDS -lt $end ] && [ -z "$reason" ]; do
		for pid in "${!parties[@]}"; do is_over "$pid" && reason=early; done
		pause 1
	done
	: >$ENOUGH
	reason=
	for pid in "${!parties[@]}"; do
		wait "$pid" || reason+="${parties[pid]}: $(grep '^FAIL: ' "$TEST_DIR/${parties[pid]}.out" || echo "ended with $?"); "
		echo "${parties[pid]}: $(cat "$TEST_DIR/${parties[pid]}/rounds") rounds"
	done
	# The CQs that the RDMA core keeps for the next kernel user would be named instead.
	[ -z "$reason" ] || { devices_go; fail "$reason"; }
	tc qdisc del dev eth0 root
	on_b tc qdisc del dev eth0 root
	no_crc_errors
	devices_go
	after=$(memory_in_use)
	echo "memory in use before and after: $before and $after kB"
	[ $((after - before)) -lt 65536 ] || fail "$((after - before)) kB more are in use than before"
}
