# shellcheck shell=bash
# A server and its client, where a side is a function that runs a command: pairs without a lab. Sourced.

listening() {
	local hex
	printf -v hex '%04X' "$1"
	grep -qE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# both SERVER_SIDE CLIENT_SIDE PORT COMMAND... -- SERVER_ARG... -- CLIENT_ARG...
both() {
	local server=$1 client=$2 port=$3 command=() of_server=() pid rc=0
	shift 3
	while [ "$1" != -- ]; do command+=("$1") && shift; done
	shift
	while [ "$1" != -- ]; do of_server+=("$1") && shift; done
	shift
	"$server" "${command[@]}" "${of_server[@]}" &
	pid=$!
	until listening "$port"; do
		kill -0 $pid || return 1
		sleep 0.05
	done
	"$client" "${command[@]}" "$@" || rc=$?
	[ $rc = 0 ] || kill $pid
	wait $pid && return $rc
}

# perftest's server listens anew for a second connection, and a client that comes before is refused:
# then from the beginning.
perftest() {
	for _ in 1 2 3 4 5; do
		both "$1" "$2" 18515 "${@:3}" -R -n 500 -- -- 127.0.0.1 && return
		sleep 1
	done
	return 1
}

# rdma-core 65's rping polls for events, and then takes one. Its other thread may have destroyed the id
# meanwhile, and the event with it: then rping waits for ever.
rping() {
	local rc
	for _ in 1 2 3; do
		both "$@" && return
		rc=$?
		[ $rc = 124 ] || return $rc
	done
	return $rc
}
