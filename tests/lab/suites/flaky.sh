# shellcheck shell=bash
# weft-run --faults: each call of verbs and of rdma_cm fails as a file says, the program is served as usual afterwards, and
# the log says what happened and repeats it. Programs of others show what they do about it.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	local call
	for call in query_device query_port alloc_pd reg_mr rereg_mr alloc_mw create_comp_channel create_cq resize_cq \
		create_qp modify_qp create_srq modify_srq attach_mcast resolve_addr resolve_route listen connect \
		join_multicast; do
		echo "$call-fails-as-asked one_call $call 1"
	done
	cat <<-'END'
		create_id-fails-as-asked one_call create_id 2
		bind_addr-fails-as-asked one_call bind_addr 2
		open_device-fails-as-asked no_device
		an-accept-that-fails-rejects-the-peer no_accept
		resolve_addr-reports-an-error event resolve_addr event:ENETUNREACH RDMA_CM_EVENT_ADDR_ERROR -101
		resolve_route-reports-an-error event resolve_route event:ETIMEDOUT RDMA_CM_EVENT_ROUTE_ERROR -110
		connect-is-rejected event connect rejected RDMA_CM_EVENT_REJECTED 8
		connect-is-unreachable event connect unreachable RDMA_CM_EVENT_UNREACHABLE -110
		connect-fails event connect event:ENETDOWN RDMA_CM_EVENT_CONNECT_ERROR -100
		rejected-on-an-rnic rejected_rnic
		a-datagram-peer-is-unreachable unreachable_ud
		post_recv-fails-at-the-second-of-a-list one_post post_recv
		post_srq_recv-fails-at-the-second-of-a-list one_post post_srq_recv
		post_send-fails-at-the-seventh a_send
		ibv_wr_complete-fails-at-the-seventh a_send -N
		post_send-fails-as-asked one_call post_send 1
		a-qp-that-fails-ends-at-both-ends fatal post_send 1 client server
		a-qp-that-fails-before-a-receive-ends-at-both-ends fatal post_recv 3 server client
		a-qp-by-hand-that-fails-before-it-is-connected fatal_by_hand
		a-group-is-refused-also-if-the-connection-is-to-fail group
		events-of-a-send-of-no-opcode no_opcode
		events-of-a-write-to-another-region other_region write 1 read:Work:Request:Flushed:Error
		events-of-a-read-of-another-region other_region read 0 read:remote:access:error
		a-send-without-rights-to-its-memory broken_send loc_prot_err local:protection:error
		a-send-that-is-too-long broken_send loc_len_err local:length:error -N
		a-request-of-no-opcode broken_send loc_qp_op_err local:QP:operation:error -N
		a-write-to-another-region broken_at_peer write rem_access_err 10 ib_write_bw
		a-read-of-another-region broken_at_peer read rem_access_err 10 ib_read_bw
		an-unaligned-atomic broken_at_peer fetch_add rem_inv_req_err 9 ib_atomic_bw
		a-plain-post-of-a-write-to-another-region broken_at_peer write rem_access_err 10 ib_write_bw --use_old_post_send
		a-send-that-the-peer-cannot-take broken_send rem_op_err remote:operation:error -N
		a-write-without-an-answer no_answer write 7 retry_exc_err 12 ib_write_bw
		a-plain-post-without-an-answer no_answer write 500 retry_exc_err 12 ib_write_bw --use_old_post_send
		a-receiver-that-is-never-ready no_answer send 500 rnr_retry_exc_err 13 ib_send_bw
		a-peer-that-is-dead-before-it-is-connected no_answer read 7 peer_dead 12 ib_read_bw
		a-peer-that-dies-under-a-read no_answer read 500 peer_dead 12 ib_read_bw
		a-peer-that-dies-under-rdma_cm peer_dies
		completions-late-and-in-bursts-keep-their-order late_completions
		a-completion-that-is-late-holds-up-those-after-it burst
		the-latest-completions-keep-their-order latest weft-verify
		a-pingpong-bears-the-latest-completions latest ibv_rc_pingpong
		a-pingpong-goes-on-after-a-port-was-down port_down
		a-cq-overflows overflow
		an-srq-reaches-its-limit srq_event srq_limit SRQ:limit:reached
		a-limit-that-is-not-armed-is-not-reached unarmed
		an-srq-fails srq_event srq_err SRQ:catastrophic:error
		a-qp-fails-that-takes-from-an-srq-in-error failed_srq
		a-device-fails device_fatal
		a-device-fails-under-perftest no_answer write 500 device_fatal 5 ib_write_bw
		conditions-choose-the-call conditions
		threads-and-octets-choose-the-call by_thread
		a-hundred-runs-of-one-seed-have-one-log one_log
		a-log-repeats-the-run repeat
		a-late-call-is-late late
		fork-does-not-wait-for-a-late-call late_fork
		wrong-faults-are-refused-by-line refused
		faults-that-change-later-are-ignored-aloud changed
		without-faults-nothing-is-opened unused
		a-pingpong-without-memory-to-register pingpong_says
		rping-whose-peer-is-unreachable rping_says
	END
}

# says and run_says are of this suite.
# shellcheck source-path=SCRIPTDIR source=rootless.sh
. <(sed -n '/^# says STATUS/,/^# --- what a program sees/p' "$WEFT_TOP/tests/lab/suites/rootless.sh")

# rules LINE...: the fault file, and no log yet.
rules() {
	rm -rf "$TEST_DIR/log"
	mkdir -m 777 "$TEST_DIR/log"
	printf '%s\n' "$@" >"$TEST_DIR/faults"
	log=$TEST_DIR/log/of-faults
}

# calls STATUS:PATTERN [OPTION...] -- [ARG...]: weft-calls by these rules.
calls() {
	local want=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	run_says "$want" --faults="$TEST_DIR/faults" --fault-log="$log" "${options[@]}" "$WEFT_BUILD/bin/weft-calls" \
		127.0.0.1 "${@:2}"
}

# said LINE...: the program printed exactly these lines.
said() { diff <(printf '%s\n' "$@") "$TEST_DIR/said" || fail "it said: $(words "$TEST_DIR/said")"; }

# logged PATTERN...: the log has exactly these lines.
logged() {
	local pattern i=0
	[ "$(wc -l <"$log")" = $# ] || fail "the log has other lines: $(cat "$log")"
	for pattern; do
		i=$((i + 1))
		sed -n ${i}p "$log" | grep -qE -- "$pattern" || fail "line $i of the log is not $pattern: $(cat "$log")"
	done
}

# --- each call ---

# one_call CALL NTH: librdmacm makes an id of its own first, and binds it.
one_call() {
	rules "$1 nth $2 -> EAGAIN"
	calls 0: --
	said "$1 EAGAIN" 'done'
	logged "^$1 nth $2 -> EAGAIN # line 1"
}

# libibverbs looks for another file then, and reports that there is none.
no_device() {
	rules 'open_device nth 1 -> EACCES'
	calls 0: --
	said 'open_device ENOENT' 'done'
	logged '^open_device nth 1 -> EACCES # line 1, device '
}

no_accept() {
	rules 'accept nth 1 -> ECONNRESET'
	calls 0: --
	said 'accept ECONNRESET' 'connect RDMA_CM_EVENT_REJECTED 28' 'done'
	logged '^accept nth 1 -> ECONNRESET # line 1, device .*, type rc$'
}

# event CALL EFFECT EVENT STATUS
event() {
	rules "$1 nth 1 -> ${2/:/ }"
	calls 0: --
	said "$1 $3 $4" 'done'
	logged "^$1 nth 1 -> event E[A-Z]+ # line 1"
}

rejected_rnic() {
	rules 'connect -> rejected'
	run_says '255:RDMA_CM_EVENT_REJECTED, error -111' --device=iwarp --faults="$TEST_DIR/faults" --fault-log="$log" \
		rping -c -a 127.0.0.1 -C 1
	logged '^connect nth 1 -> event ECONNREFUSED # line 1, device .*, type rc$'
}

unreachable_ud() {
	rules 'connect type ud -> unreachable'
	run_says '146:RDMA_CM_EVENT_UNREACHABLE, error: -110' --faults="$TEST_DIR/faults" --fault-log="$log" \
		udaddy -s 127.0.0.1 -c 1
	logged '^connect nth 1 -> event ETIMEDOUT # line 1, device .*, type ud$'
}

# --- posts ---

# one_post CALL: the first of a list of two is posted, and not given back.
one_post() {
	rules "$1 nth 2 -> ENOMEM"
	calls 0: --
	said 'bad_wr 2' "$1 ENOMEM" 'done'
	logged "^$1 nth 2 -> ENOMEM # line 1, device .*, size 0$"
}

# a_send [OPTION]: a program of others that posts by ibv_post_send, or by ibv_wr_*, whose octets are not asked for.
a_send() {
	local size=4096
	rules "post_send type rc size $size nth 7 -> ENOMEM"
	pair weft:weft
	start_b pingpong ibv_rc_pingpong -d weft_lo -g 2
	wait_listen_b 18515
	run_says "1:Couldn't post send" --faults="$TEST_DIR/faults" --fault-log="$log" ibv_rc_pingpong -d weft_lo -g 2 \
		"$@" 127.0.0.1
	logged "^post_send nth 7 -> ENOMEM # line 1, device weft_lo, type rc, qpn [0-9]+, opcode send, size $size$"
}

# terminated TERMINATE: one end sent it, the other received it. Removes the trace, whose order among the program's lines varies.
terminated() {
	local way
	for way in sent received; do
		grep -q "^weft: Terminate $way: $1$" "$TEST_DIR/said" || fail "no Terminate was $way: $(words "$TEST_DIR/said")"
	done
	sed -i '/^weft: /d' "$TEST_DIR/said"
}

# fatal CALL NTH FIRST SECOND: QP_FATAL at the end whose QP fails, and at its peer by the Terminate.
fatal() {
	local send=('send Work Request Flushed Error')
	rules "$1 nth $2 -> qp_fatal"
	calls 0: --
	terminated 'layer 0, etype 0, code 0'
	# If the server fails first, TCP may take the client's Send before the Terminate arrives.
	[ "$3" = client ] || { sed -i "/^${send[*]}$/d" "$TEST_DIR/said" && send=(); }
	said "${send[@]}" 'recv Work Request Flushed Error' "$3 local work queue catastrophic error" \
		"$4 local work queue catastrophic error" 'done'
	logged "^$1 nth $2 -> qp_fatal # line 1, device weft_lo, type rc, qpn [0-9]+, .*size 0$"
}

# perftest posts its first requests while TCP still connects. The peer of the third is unreachable, and never learns.
fatal_by_hand() {
	rules 'post_send nth 3 -> qp_fatal'
	pair weft:weft
	start_b server ib_write_bw -d weft_lo -x 2 -F -n 1000
	wait_listen_b 18515
	run_says '1:Failed status 5:' --faults="$TEST_DIR/faults" --fault-log="$log" --trace ib_write_bw -d weft_lo -x 2 -F \
		-n 1000 127.0.0.1
	logged '^post_send nth 3 -> qp_fatal # line 1, device weft_lo, type rc, qpn [0-9]+, opcode write, size '
}

group() {
	rules 'connect type ud -> unreachable'
	calls 0: --
	said 'done'
	logged '^connect nth [0-9]+ -> event ETIMEDOUT # line 1, device .*, type ud$'
}

# --- requests ---

# broken_send STATUS WORDS [OPTION]: the seventh Send completes so, and the peer's receive is flushed by the Terminate.
broken_send() {
	rules "post_send type rc opcode send nth 7 -> $1"
	pair weft:weft
	start_b pingpong ibv_rc_pingpong -d weft_lo -g 2
	wait_listen_b 18515
	run_says "1:^Failed status ${2//:/ }" --faults="$TEST_DIR/faults" --fault-log="$log" ibv_rc_pingpong -d weft_lo -g 2 \
		"${@:3}" 127.0.0.1
	logged "^post_send nth 7 -> $1 # line 1, device weft_lo, type rc, qpn [0-9]+, opcode send, size "
	wait_for 20 [ -s "$TEST_DIR/pingpong.rc" ] || fail "the peer does not end"
	grep -q '^Failed status Work Request Flushed Error' "$TEST_DIR/pingpong.log" ||
		fail "the peer said: $(words "$TEST_DIR/pingpong.log")"
}

# events OPCODE STATUS TERMINATE COMPLETION... EVENT: what an rdma_cm connection's ends get; the one that finds the
# fault has its event first. TCP has taken a Write when its Terminate arrives, so the Read after it is flushed.
events() {
	local first=client second=server
	[[ $2 = loc_* ]] || first=server second=client
	rules "post_send opcode $1 times 1 -> $2"
	calls 0: --
	terminated "$3"
	said "${@:4:$#-4}" "$first ${*: -1}" "$second ${*: -1}" 'done'
	logged "^post_send nth [0-9]+ -> $2 # line 1, device weft_lo, type rc, qpn [0-9]+, opcode $1, size [08]$"
}

no_opcode() {
	events send loc_qp_op_err 'layer 0, etype 0, code 0' 'send local QP operation error' 'recv Work Request Flushed Error' \
		'local work queue catastrophic error'
}

# other_region OPCODE LAYER COMPLETION
other_region() { events "$1" rem_access_err "layer $2, etype 1, code 0" "${3//:/ }" 'local access violation work queue error'; }

# broken_at_peer OPCODE STATUS NUMBER PROGRAM [OPTION]: the peer refuses the seventh request.
broken_at_peer() {
	rules "post_send opcode $1 nth 7 -> $2"
	pair weft:weft
	start_b server "$4" -d weft_lo -x 2 -F -n 1000 "${@:5}"
	wait_listen_b 18515
	run_says "1:Failed status $3:" --faults="$TEST_DIR/faults" --fault-log="$log" "$4" -d weft_lo -x 2 -F -n 1000 \
		"${@:5}" 127.0.0.1
	logged "^post_send nth [0-9]+ -> $2 # line 1, device weft_lo, type rc, qpn [0-9]+, opcode $1, size "
}

# no_answer OPCODE NTH STATUS NUMBER PROGRAM [OPTION]: the request completes so, and the peer has no error of its own.
no_answer() {
	local ends_with=1
	rules "post_send opcode $1 nth $2 -> $3"
	pair weft:weft
	start_b server "$5" -d weft_lo -x 2 -F -n 1000 "${@:6}"
	wait_listen_b 18515
	[ "$1" != send ] || ends_with=17
	run_says "$ends_with:Failed status $4:" --faults="$TEST_DIR/faults" --fault-log="$log" "$5" -d weft_lo -x 2 -F -n 1000 \
		"${@:6}" 127.0.0.1
	logged "^post_send nth $2 -> $3 # line 1, device weft_lo, type rc, qpn [0-9]+, opcode $1, size "
	! grep -q 'Failed status' "$TEST_DIR/server.log" || fail "the peer said: $(words "$TEST_DIR/server.log")"
}

# Both ends end, each by its own view: one host has gone for the other.
peer_dies() {
	rules 'post_send nth 9 -> peer_dead'
	pair weft:weft
	start_b server rping -s -a 127.0.0.1 -v -C 1000
	wait_listen_b 7174
	# By which of rping's threads is first.
	run_says '0|255:^cq completion failed status 12$' --faults="$TEST_DIR/faults" \
		--fault-log="$log" rping -c -a 127.0.0.1 -v -C 1000
	logged '^post_send nth 9 -> peer_dead # line 1, device weft_lo, type rc, qpn [0-9]+, opcode [a-z]+, size '
	wait_for 20 [ -s "$TEST_DIR/server.rc" ] || fail "the peer does not end"
}

# --- completions, SRQs, the device ---

# The data is compared, message by message.
late_completions() {
	rules 'send_completion chance 5% -> delay 3ms' 'recv_completion chance 5% -> delay 3ms'
	pair weft:weft
	start_b server weft-verify -l -b 127.0.0.1 -p 7471
	wait_listen_b 7471
	run_says 0: --faults="$TEST_DIR/faults" --fault-log="$log" "$WEFT_BUILD/bin/weft-verify" -p 7471 -m 4 127.0.0.1
	finish_b server
	grep -q '^send_completion nth [0-9]* -> delay 3ms # line 1, device weft_lo, type rc, qpn ' "$log" ||
		fail "no completion was late: $(head -n 3 "$log")"
}

burst() {
	local begin end
	rules 'recv_completion nth 500 -> delay 400ms'
	pair weft:weft
	start_b pingpong ibv_rc_pingpong -d weft_lo -g 2
	wait_listen_b 18515
	begin=$(date +%s%3N)
	run_says 0: --faults="$TEST_DIR/faults" --fault-log="$log" ibv_rc_pingpong -d weft_lo -g 2 127.0.0.1
	end=$(date +%s%3N)
	[ $((end - begin)) -ge 400 ] || fail "it took $((end - begin)) ms"
	logged '^recv_completion nth 500 -> delay 400ms # line 1, device weft_lo, type rc, qpn [0-9]+, size 4096$'
	finish_b pingpong
}

# latest PROGRAM
latest() {
	rules 'send_completion every 20 -> latest' 'recv_completion every 30 -> latest'
	pair weft:weft
	if [ "$1" = weft-verify ]; then
		start_b server weft-verify -l -b 127.0.0.1 -p 7471
		wait_listen_b 7471
		run_says 0: --faults="$TEST_DIR/faults" --fault-log="$log" "$WEFT_BUILD/bin/weft-verify" -p 7471 -m 4 127.0.0.1
	else
		start_b server ibv_rc_pingpong -d weft_lo -g 2
		wait_listen_b 18515
		run_says 0: --faults="$TEST_DIR/faults" --fault-log="$log" ibv_rc_pingpong -d weft_lo -g 2 127.0.0.1
	fi
	finish_b server
	grep -q '^send_completion nth 20 -> latest # line 1, device weft_lo, type rc, qpn ' "$log" ||
		fail "no completion was the latest: $(head -n 3 "$log")"
}

port_down() {
	local begin end
	rules 'post_send nth 500 -> port_down 400ms'
	pair weft:weft
	start_b pingpong ibv_rc_pingpong -d weft_lo -g 2
	wait_listen_b 18515
	begin=$(date +%s%3N)
	run_says 0: --faults="$TEST_DIR/faults" --fault-log="$log" ibv_rc_pingpong -d weft_lo -g 2 127.0.0.1
	end=$(date +%s%3N)
	[ $((end - begin)) -ge 400 ] || fail "it took $((end - begin)) ms"
	logged '^post_send nth 500 -> port_down 400ms # line 1, device weft_lo, type rc, qpn [0-9]+, opcode send, size 4096$'
	finish_b pingpong
}

overflow() {
	rules 'recv_completion nth 1 -> cq_overflow'
	calls 0: --
	sed -i '/^weft: /d' "$TEST_DIR/said"
	said 'recv cannot be polled' 'cq CQ error' 'server local work queue catastrophic error' 'done'
	logged '^recv_completion nth 1 -> cq_overflow # line 1, device weft_lo, type rc, qpn [0-9]+, size 0$'
}

# srq_event EFFECT EVENT
srq_event() {
	rules "post_srq_recv nth 3 -> $1"
	calls 0: --
	said "srq ${2//:/ }" 'done'
	logged "^post_srq_recv nth 3 -> $1 # line 1, device .*, size 0$"
}

unarmed() {
	rules 'post_srq_recv nth 2 -> srq_limit'
	calls 0: --
	said 'done'
	[ ! -e "$log" ] || fail "there is a log: $(cat "$log")"
}

# It is the server whose SRQ fails: the client's Sends are not taken any more.
failed_srq() {
	rules 'post_srq_recv nth 600 -> srq_err'
	pair weft:weft
	WEFT_FAULTS=$TEST_DIR/faults WEFT_FAULT_LOG=$log start_b server ib_send_bw -d weft_lo -x 2 -F -n 2000 --use-srq
	wait_listen_b 18515
	run_says '17:Failed status 11:' ib_send_bw -d weft_lo -x 2 -F -n 2000 --use-srq 127.0.0.1
	logged '^post_srq_recv nth 600 -> srq_err # line 1, device weft_lo, size '
}

# Queries fail, too.
device_fatal() {
	rules 'post_send nth 1 -> device_fatal'
	calls 1: --
	sed -i '/^weft: /d' "$TEST_DIR/said"
	said 'send Work Request Flushed Error' 'recv Work Request Flushed Error' 'device local catastrophic error' \
		'query_device EIO' 'query_device EIO' 'query_device EIO'
	logged '^post_send nth 1 -> device_fatal # line 1, device weft_lo, type rc, qpn [0-9]+, .*size 0$'
}

# --- which ---

conditions() {
	rules 'create_qp type ud nth 1 -> ENOMEM' 'reg_mr size 4097- -> ENOMEM' 'create_cq size 10 times 1 -> EIO' \
		'create_qp device nosuch* -> EIO' 'reg_mr after 1000s -> EIO'
	calls 0: --
	said 'create_cq EIO' 'create_qp ENOMEM' 'done'
	logged '^create_cq nth 1 -> EIO # line 3, .* size 10$' '^create_qp nth 2 -> ENOMEM # line 1, .* type ud$'
}

by_thread() {
	rules 'create_cq thread weft-c* -> EIO' 'reg_mr thread another -> EIO' 'reg_mr octets 8193 times 1 -> ENOMEM'
	calls 1: -- 4
	said 'create_cq EIO' 'create_cq EIO' 'create_cq EIO'
	rules 'create_cq thread weft-call times 1 -> EIO' 'create_cq thread weft-calls times 1 -> EIO' \
		'reg_mr octets 8193 times 1 -> ENOMEM'
	calls 0: -- 4
	said 'create_cq EIO' 'reg_mr ENOMEM' 'done'
	logged '^create_cq nth 1 -> EIO # line 2, .* thread weft-calls$' '^reg_mr nth 3 -> ENOMEM # line 3, .* thread weft-calls$'
}

one_log() {
	local i
	rules 'seed 7' 'reg_mr chance 20% -> EAGAIN' 'create_qp chance 0.2 -> ENOMEM' 'resolve_addr chance 0.2 -> event EIO'
	for i in {1..100}; do
		calls 0:^done$ -- 40
		mv "$log" "$TEST_DIR/log/$i"
		cmp "$TEST_DIR/log/1" "$TEST_DIR/log/$i" || fail "run $i had other faults"
	done
	[ "$(wc -l <"$TEST_DIR/log/1")" -ge 3 ] || fail "too few faults to tell: $(cat "$TEST_DIR/log/1")"
	calls 0:^done$ --fault-seed=8 -- 40
	! cmp -s "$TEST_DIR/log/1" "$log" || fail "another seed had the same faults"
}

repeat() {
	rules 'seed 7' 'reg_mr chance 20% -> EAGAIN' 'create_qp chance 0.2 -> ENOMEM' 'connect nth 1 -> delay 1ms rejected'
	calls 0:^done$ -- 40
	mv "$TEST_DIR/said" "$TEST_DIR/first"
	mv "$log" "$TEST_DIR/faults"
	calls 0:^done$ -- 40
	cmp "$TEST_DIR/first" "$TEST_DIR/said" || fail "the program met other faults"
	diff <(sed 's/ #.*//' "$TEST_DIR/faults") <(sed 's/ #.*//' "$log") || fail "the log is another"
}

# --- when ---

late() {
	local begin end
	rules 'reg_mr size 4K times 1 -> delay 400ms' 'create_cq nth 1 -> delay 400ms' 'connect nth 1 -> delay 400ms rejected'
	begin=$(date +%s%3N)
	calls 0:^done$ --
	end=$(date +%s%3N)
	[ $((end - begin)) -ge 1200 ] || fail "it took $((end - begin)) ms"
	logged '^create_cq nth 1 -> delay 400ms # line 2' '^reg_mr nth 1 -> delay 400ms # line 1, .*, size 4096$' \
		'^connect nth 1 -> delay 400ms event ECONNREFUSED # line 3'
}

# The registration takes ten seconds, and fork() is over before.
late_fork() {
	rules 'reg_mr nth 1 -> delay 10s'
	calls '0:^fork\(\) did not wait$' -- 1 "$log"
}

# --- files ---

# refuses WORDS TEXT
refuses() {
	rules "$2"
	run_says "125:$1" --faults="$TEST_DIR/faults" true
}

refused() {
	refuses 'faults: line 2: "post" is not a call' $'reg_mr -> EIO\npost -> EIO'
	refuses 'faults: line 1: post_recv posts no request that can complete with rem_op_err' 'post_recv -> rem_op_err'
	refuses 'faults: line 1: opcode: it should be send, write' 'post_send opcode sand -> EIO'
	refuses 'faults: line 1: reg_mr is not answered by an event' 'reg_mr -> event EIO'
	refuses 'faults: line 1: nth: it should be a number, at least 1' 'reg_mr nth 0 -> EIO'
	run_says '125:no-such-file: No such file' --faults=no-such-file true
	run_says '125:makes no sense' --faults= true
	run_says '125:makes no sense' --fault-seed=0 true
	run_says '125:makes no sense' --fault-log= true
}

changed() {
	rules 'reg_mr -> EIO'
	chmod 666 "$TEST_DIR/faults"
	run_says '0:^weft: /.*/faults is ignored: line 1: "nonsense" is not a call' --faults="$TEST_DIR/faults" \
		sh -c "echo nonsense >'$TEST_DIR/faults'; exec '$WEFT_BUILD/bin/weft-calls' 127.0.0.1"
	grep -q '^done$' "$TEST_DIR/said" || fail "it did not run on: $(words "$TEST_DIR/said")"
}

# Neither with rules that no call meets.
unused() {
	rules 'reg_mr nth 1000 -> EIO'
	calls 0: --
	said 'done'
	[ ! -e "$log" ] || fail "there is a log: $(cat "$log")"
}

# --- programs of others ---

pingpong_says() {
	rules 'reg_mr nth 1 -> ENOMEM'
	run_says "1:Couldn't register MR" --faults="$TEST_DIR/faults" --fault-log="$log" ibv_rc_pingpong -d weft_lo
	logged '^reg_mr nth 1 -> ENOMEM # line 1'
}

rping_says() {
	rules 'connect nth 1 -> unreachable'
	run_says '255:RDMA_CM_EVENT_UNREACHABLE, error -110' --faults="$TEST_DIR/faults" --fault-log="$log" \
		rping -c -a 127.0.0.1 -C 1
	logged '^connect nth 1 -> event ETIMEDOUT # line 1'
}
