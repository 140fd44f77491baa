# shellcheck shell=bash
# Valkey over RDMA, and its own rdma-test, under faults: docs/reactions.md has a row for each test here. rdma-test asserts
# each call; the server has to stay, and to serve the next client to its end.
# Environment: VALKEY  a folder of Valkey's sources, built with BUILD_RDMA=module, and tests/rdma

# NAME client RULE END [WORDS]: the client meets it, ends so, and the server says the words
# NAME server RULE END WORDS: the server meets it
tests() {
	[ "${KERNEL-}" = rootless ] && [ -n "${VALKEY-}" ] || return 0
	cat <<-'END'
		valkeys-table-has-a-row-for-each-test rows
		valkey-serves-on-after-a-client-without-a-region client reg_mr:->:ENOMEM 134=ssertion
		valkey-serves-on-after-a-client-without-a-qp client create_qp:->:ENOMEM 134=ssertion
		valkeys-client-waits-a-second-if-a-post-fails client post_send:nth:20:->:ENOMEM 134=read:timeout Flushed
		valkey-serves-on-after-a-clients-request-fails client post_send:nth:20:->:loc_prot_err 134=send/recv:failed Flushed
		valkey-serves-on-after-a-clients-write-is-refused client post_send:opcode:write_imm:nth:5:->:rem_access_err 134=send/recv:failed
		valkey-serves-on-after-a-clients-qp-fails client post_send:nth:20:->:qp_fatal 134=send/recv:failed Flushed
		valkey-serves-on-after-a-client-is-refused client connect:->:rejected 134=REJECTED
		valkey-serves-on-after-a-client-dies client_dies
		valkey-refuses-a-client-without-a-region server reg_mr:times:1:->:ENOMEM 134=REJECTED reg:mr
		valkey-refuses-a-client-without-a-qp server create_qp:times:1:->:ENOMEM 134=REJECTED create:qp:failed
		valkey-closes-a-connection-whose-post-fails server post_send:nth:20:->:ENOMEM 134=send/recv:failed post:send:failed
		valkey-closes-a-connection-whose-request-fails server post_send:nth:20:->:loc_prot_err 134=send/recv:failed local:protection:error
		valkey-closes-a-connection-whose-qp-fails server post_send:nth:20:->:qp_fatal 134=send/recv:failed Flushed
		valkey-refuses-a-client-that-it-cannot-accept server accept:times:1:->:ECONNRESET 134=REJECTED accept:failed
		valkeys-client-aborts-if-its-server-dies server_dies
		valkey-goes-on-after-a-port-flaps port_flaps
	END
}

# under NAME [OPTION...] PROGRAM...: its output is NAME.log.
# shellcheck disable=SC2086 # a list
under() { PATH=${PATH#*:} $AS_USER "$WEFT_RUN" --netdevs=lo "${@:2}" >"$TEST_DIR/$1.log" 2>&1 </dev/null; }

# serve [OPTION...]: of weft-run. Valkey overwrites its environment: the lab does not find it afterwards.
serve() {
	pair weft:weft
	trap 'kill -9 $valkey_pid; ip link set lo up' EXIT
	mkdir -m 777 "$TEST_DIR/work"
	cd "$TEST_DIR/work" || fail "no folder"
	# shellcheck disable=SC2086 # a list
	(PATH=${PATH#*:} exec $AS_USER "$WEFT_RUN" --netdevs=lo "$@" "$VALKEY/src/valkey-server" --port 0 --save '' \
		--protected-mode no --loglevel verbose --loadmodule "$VALKEY/src/valkey-rdma.so" port=6399 bind=127.0.0.2) \
		>"$TEST_DIR/server.log" 2>&1 </dev/null &
	valkey_pid=$!
	wait_listen_b 6399
}

# asks NAME [OPTION...]: its status
asks() { under "$1" "${@:2}" timeout 30 "$VALKEY/tests/rdma/rdma-test" --thread 1 -h 127.0.0.2 -p 6399; }

# rules RULE: colons stand for blanks.
rules() {
	mkdir -m 777 "$TEST_DIR/log"
	log=$TEST_DIR/log/of-faults
	echo "${1//:/ }" >"$TEST_DIR/faults"
	faulty=(--faults="$TEST_DIR/faults" --fault-log="$log")
}

# ended RC END
ended() {
	local want=${2#*=}
	[[ $1 =~ ^(${2%%=*})$ ]] || fail "the client ended with $1: $(words "$TEST_DIR/client.log")"
	grep -qE -- "${want//:/ }" "$TEST_DIR/client.log" || fail "it did not say ${want//:/ }: $(words "$TEST_DIR/client.log")"
	[ -s "$log" ] || fail "no fault"
}

serves_on() {
	! is_over $valkey_pid || fail "the server is gone: $(words "$TEST_DIR/server.log")"
	asks second || fail "the second client ended with $?: $(words "$TEST_DIR/second.log")"
	[ -z "${1-}" ] || grep -qE -- "${1//:/ }" "$TEST_DIR/server.log" || fail "the server did not say ${1//:/ }: $(words "$TEST_DIR/server.log")"
}

client() {
	local rc=0
	rules "$1"
	serve
	asks client "${faulty[@]}" || rc=$?
	ended $rc "$2"
	serves_on "${3-}"
}

server() {
	local rc=0
	rules "$1"
	serve "${faulty[@]}"
	asks client || rc=$?
	ended $rc "$2"
	serves_on "$3"
}

# The rule has it wait where it is.
client_dies() {
	local client
	rules 'post_send nth 20 -> delay 30s'
	serve
	asks client "${faulty[@]}" &
	client=$!
	wait_for 20 [ -s "$log" ] || fail "no fault"
	signal_those KILL comm '^rdma-test$'
	[ ${#signalled[@]} = 1 ] || fail "${#signalled[@]} clients"
	wait $client || true
	serves_on
}

server_dies() {
	local client rc=0
	rules 'post_send nth 20 -> delay 1s'
	serve
	asks client "${faulty[@]}" &
	client=$!
	wait_for 20 [ -s "$log" ] || fail "no fault"
	kill -9 $valkey_pid
	wait $client || rc=$?
	ended $rc '134=send/recv:failed|DISCONNECTED'
}

port_flaps() {
	local client
	[ "$OWN_NET" = yes ] || skip "lo is the host's own"
	rules 'post_send every 20 -> delay 20ms'
	serve
	asks client "${faulty[@]}" &
	client=$!
	wait_for 20 [ -s "$log" ] || fail "no fault"
	ip link set lo down
	pause 0.3		# rdma-test waits for a second
	ip link set lo up
	wait $client || fail "it ended with $?: $(words "$TEST_DIR/client.log")"
	serves_on
}

# shellcheck disable=SC2016 # a page's backquotes
rows() {
	diff <(tests | sed '1d; s/ .*//') <(sed -n '/^## Valkey/,$s/^|.*| `\([^`]*\)` |$/\1/p' "$WEFT_TOP/docs/reactions.md") ||
		fail "docs/reactions.md has other rows"
}
