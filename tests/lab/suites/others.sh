# shellcheck shell=bash
# Each call, condition and effect of docs/faults.md, as an unmodified program of others meets it:
# docs/faults-seen.md has a row for each test here, and a word of faults.md that has none fails the first test.

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=100

# Colons stand for blanks.
#   NAME alone RULE END PROGRAM...
#   NAME waiting RULE WORDS PROGRAM...: it does not end
#   NAME facing RULE END PROGRAM [OPTION...]: the client alone meets the fault
#   NAME serving RULE END SERVER PROGRAM...: the server alone meets it, and END is its
#   NAME of_rdma_core RULE END TEST: one of rdma-core's own tests
# END: STATUS=WORDS, both regular expressions.
tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		each-word-of-the-rules-is-seen words_of_rules
		the-table-has-a-row-for-each-test rows
		ibv_devinfo-without-open_device alone open_device:device:weft_l*:->:EIO 1=Failed:to:open:device ibv_devinfo -d weft_lo
		ibv_devinfo-without-query_device alone query_device:->:EIO 2=Failed:to:query:device:props ibv_devinfo -d weft_lo
		ibv_devinfo-without-query_port alone query_port:->:EIO 5=Failed:to:query:port:1:props ibv_devinfo -d weft_lo
		pingpong-without-alloc_pd alone alloc_pd:->:ENOMEM 1=allocate:PD ibv_rc_pingpong -d weft_lo
		pingpong-without-create_comp_channel alone create_comp_channel:->:EMFILE 1=completion:channel ibv_rc_pingpong -d weft_lo -e
		pingpong-without-reg_mr alone reg_mr:size:4K-:times:1:->:ENOMEM 1=register:MR ibv_rc_pingpong -d weft_lo
		pingpong-without-create_cq alone create_cq:->:ENOMEM 1=create:CQ ibv_rc_pingpong -d weft_lo
		pingpong-without-create_qp alone create_qp:type:rc:->:EAGAIN 1=create:QP ibv_rc_pingpong -d weft_lo
		pingpong-without-modify_qp alone modify_qp:->:EINVAL 1=modify:QP:to:INIT ibv_rc_pingpong -d weft_lo
		pingpong-without-create_srq alone create_srq:->:ENOMEM 1=create:SRQ ibv_srq_pingpong -d weft_lo
		pingpong-without-post_recv alone post_recv:nth:100:->:ENOMEM 1=post:receive:.99 ibv_rc_pingpong -d weft_lo
		pingpong-without-post_srq_recv alone post_srq_recv:nth:100:->:ENOMEM 1=post:receive:.99 ibv_srq_pingpong -d weft_lo
		pingpong-without-post_send facing post_send:octets:64K:times:1:->:ENOMEM 1=post:send rc
		pingpong-without-each-fiftieth-post_send facing post_send:every:50:->:EINVAL 1=post:send rc
		pingpong-without-some-post_send facing post_send:chance:20%:->:ENOMEM 1=post:send rc
		pingpong-over-uc-without-post_send facing post_send:type:uc:nth:50:->:ENOMEM 1=post:send uc
		perftest-without-a-threads-post_send facing post_send:thread:ib_write_*:nth:20:->:ENOMEM 1=post:send ib_write_bw
		perftest-without-post_send-after-a-time facing post_send:after:300ms:times:1:->:ENOMEM 1=post:send ib_write_bw -D 5
		pingpong-whose-qp-has-no-post_send by_qpn
		rdma-core-without-alloc_mw of_rdma_core alloc_mw:->:ENOMEM 1=Failed:to:allocate:MW test_mr.MWTest.test_mw_type2
		rdma-core-without-rereg_mr of_rdma_core rereg_mr:->:ENOMEM 1=Failed:to:rereg:MR test_mr.MRTest.test_mr_rereg_addr
		rdma-core-without-resize_cq of_rdma_core resize_cq:->:ENOMEM 1=Failed:to:resize:CQ test_cq.CQTest.test_resize_cq
		rping-without-create_id alone create_id:nth:2:->:ENOMEM 255=rdma_create_id rping -c -a 127.0.0.1 -C 1
		rping-without-bind_addr alone bind_addr:nth:2:->:EADDRINUSE 255=rdma_bind_addr rping -s -a 127.0.0.1
		rping-without-listen alone listen:->:EADDRINUSE 255=rdma_listen rping -s -a 127.0.0.1
		rping-without-resolve_addr alone resolve_addr:->:ENETUNREACH 255=rdma_resolve_addr rping -c -a 127.0.0.1 -C 1
		rping-whose-address-does-not-resolve alone resolve_addr:->:event:EHOSTUNREACH 255=ADDR_ERROR rping -c -a 127.0.0.1 -C 1
		rping-without-resolve_route alone resolve_route:->:ETIMEDOUT 255=rdma_resolve_route rping -c -a 127.0.0.1 -C 1
		rping-without-a-route alone resolve_route:->:event:ETIMEDOUT 255=ROUTE_ERROR rping -c -a 127.0.0.1 -C 1
		rping-waits-without-connect waiting connect:->:EIO connect:error:-1 rping -c -a 127.0.0.1 -C 1
		rping-that-is-rejected alone connect:->:rejected 255=REJECTED rping -c -a 127.0.0.1 -C 1
		rping-whose-peer-is-unreachable alone connect:->:unreachable 255=UNREACHABLE rping -c -a 127.0.0.1 -C 1
		rping-that-cannot-connect alone connect:->:event:ENETDOWN 255=CONNECT_ERROR rping -c -a 127.0.0.1 -C 1
		rping-without-accept serving accept:->:ECONNRESET 255=rdma_accept rping:-s:-a:127.0.0.1 rping -c -a 127.0.0.1 -C 1
		mckey-without-join_multicast alone join_multicast:->:ENOMEM 255=failure:joining mckey -m 239.7.7.7 -b 127.0.0.1
		mckey-without-attach_mcast alone attach_mcast:->:ENOMEM 0=MULTICAST_ERROR mckey -m 239.7.7.7 -b 127.0.0.1
		pingpong-with-a-slow-reg_mr facing reg_mr:->:delay:300ms 0=usec/iter rc
		pingpong-with-late-completions facing send_completion:every:100:->:delay:20ms 0=usec/iter rc
		pingpong-with-the-latest-completions facing recv_completion:every:200:->:latest 0=usec/iter rc
		pingpong-whose-cq-overflows facing recv_completion:nth:100:->:cq_overflow 1=poll:CQ:failed rc
		pingpong-whose-qp-fails facing post_send:nth:50:->:qp_fatal 1=Flushed rc
		pingpong-whose-device-fails facing post_send:nth:50:->:device_fatal 1=Flushed rc
		pingpong-whose-port-is-down facing post_send:nth:50:->:port_down:300ms 0=usec/iter rc
		pingpong-whose-peer-dies facing post_send:nth:50:->:peer_dead 1=retry:counter:exceeded rc
		pingpong-waits-if-its-srq-fails facing post_srq_recv:nth:600:->:srq_err waits srq
		pingpong-whose-send-is-too-long facing post_send:nth:50:->:loc_len_err 1=local:length:error rc
		pingpong-whose-send-has-no-opcode facing post_send:opcode:send:nth:50:->:loc_qp_op_err 1=local:QP:operation:error rc
		pingpong-whose-send-has-no-region facing post_send:nth:50:->:loc_prot_err 1=local:protection:error rc
		pingpong-whose-send-the-peer-cannot-take facing post_send:nth:50:->:rem_op_err 1=remote:operation:error rc
		pingpong-without-an-answer facing post_send:nth:50:->:retry_exc_err 1=retry:counter:exceeded rc
		pingpong-whose-peer-is-not-ready facing post_send:nth:50:->:rnr_retry_exc_err 1=RNR:retry:counter:exceeded rc
		pingpong-whose-send-has-a-general-error facing post_send:nth:50:->:general_err 1=general:error rc
		pingpong-whose-send-has-a-fatal-error facing post_send:nth:50:->:fatal_err 1=fatal:error rc
		perftest-whose-answer-is-wrong facing post_send:opcode:read:nth:20:->:bad_resp_err 1=Failed:status:7 ib_read_bw
		perftest-whose-write-has-no-region facing post_send:opcode:write:nth:20:->:rem_access_err 1=Failed:status:10 ib_write_bw
		perftest-whose-atomic-is-not-aligned facing post_send:opcode:fetch_add:nth:20:->:rem_inv_req_err 1=Failed:status:9 ib_atomic_bw
		rdma-core-whose-window-has-no-region of_rdma_core post_send:opcode:bind_mw:times:1:->:mw_bind_err 1=Memory:window:bind:error test_mr.MWTest.test_mw_type2
		pingpong-whose-receive-has-no-room facing post_recv:nth:7:->:loc_len_err 1=local:length:error rc
		pingpong-whose-receive-has-no-region facing post_recv:nth:7:->:loc_prot_err 1=local:protection:error rc
		pingpong-whose-shared-receive-has-no-room facing post_srq_recv:nth:7:->:loc_len_err 1=local:length:error srq
		pingpong-whose-shared-receive-has-no-region facing post_srq_recv:nth:7:->:loc_prot_err 1=local:protection:error srq
		pingpong-over-datagrams-whose-receive-has-no-region facing post_recv:type:ud:nth:7:->:loc_prot_err 1=local:protection:error ud
	END
}

# shellcheck source-path=SCRIPTDIR source=rootless.sh
. <(sed -n '/^# says STATUS/,/^# --- what a program sees/p' "$WEFT_TOP/tests/lab/suites/rootless.sh")

# rules RULE: for the programs of this side.
rules() {
	pair weft:weft
	mkdir -m 777 "$TEST_DIR/log"
	log=$TEST_DIR/log/of-faults
	echo "${1//:/ }" >"$TEST_DIR/faults"
	option "${PLACE-a}" faults "$TEST_DIR/faults"
	option "${PLACE-a}" fault_log "$log"
}

end_is() {
	local rc=$1 want=${2#*=}
	[[ $rc =~ ^(${2%%=*})$ ]] || fail "it ended with $rc: $(words "$3")"
	grep -qE -- "${want//:/ }" "$3" || fail "it did not say ${want//:/ }: $(words "$3")"
	[ -s "$log" ] || fail "no fault: $(words "$3")"
}

# alone RULE END PROGRAM...
alone() {
	local rc=0
	rules "$1"
	timeout -k 2 60 "${@:3}" >"$TEST_DIR/said" 2>&1 </dev/null || rc=$?
	end_is $rc "$2" "$TEST_DIR/said"
}

# waiting RULE WORDS PROGRAM...: it says the words, and is still there, and idle, a second later.
waiting() {
	rules "$1"
	"${@:3}" >"$TEST_DIR/said" 2>&1 </dev/null &
	wait_for 20 grep -q "${2//:/ }" "$TEST_DIR/said" || fail "it did not say ${2//:/ }: $(words "$TEST_DIR/said")"
	pause 1
	! is_over $! || fail "it ended: $(words "$TEST_DIR/said")"
}

# facing RULE END rc|uc|ud|srq|PROGRAM [OPTION...]: both ends of a pingpong of rdma-core's, or of perftest.
facing() {
	local rc=0 program=$3 options=(-g 0)
	case $3 in
	rc | uc | ud | srq) program=ibv_$3_pingpong ;;
	*) options=(-x 0 -F) ;;
	esac
	rules "$1"
	start_b server "$program" -d "$DEV_B" "${options[@]}" "${@:4}"
	wait_listen_b 18515
	timeout -k 2 60 "$program" -d "$DEV_A" "${options[@]}" "${@:4}" "$IP_B" >"$TEST_DIR/said" 2>&1 </dev/null &
	if [ "$2" = waits ]; then
		wait_for 20 [ -s "$log" ] || fail "no fault: $(words "$TEST_DIR/said")"
		pause 1
		! is_over $! || fail "it ended: $(words "$TEST_DIR/said")"
		return
	fi
	wait $! || rc=$?
	end_is $rc "$2" "$TEST_DIR/said"
}

# serving RULE END SERVER PROGRAM...
serving() {
	local server
	read -ra server <<<"${3//:/ }"
	PLACE=b rules "$1"
	start_b server "${server[@]}"
	wait_listen_b 7174
	timeout -k 2 60 "${@:4}" >"$TEST_DIR/said" 2>&1 </dev/null || true
	wait_for 20 [ -s "$TEST_DIR/server.rc" ] || fail "the server does not end: $(words "$TEST_DIR/server.log")"
	end_is "$(cat "$TEST_DIR/server.rc")" "$2" "$TEST_DIR/server.log"
}

# of_rdma_core RULE END TEST: unchanged from Debian's python3-pyverbs.
of_rdma_core() {
	local at=/usr/share/doc/rdma-core/tests rc=0
	rules "$1"
	mkdir "$TEST_DIR/tests"
	cp $at/* "$TEST_DIR/tests" && gunzip "$TEST_DIR"/tests/*.gz
	chmod -R a+rX "$TEST_DIR"
	# shellcheck disable=SC2086 # a list
	PATH=${PATH#*:} PYTHONPATH=$TEST_DIR:$TEST_DIR/tests PYTHONDONTWRITEBYTECODE=1 timeout -k 2 60 $AS_USER "$WEFT_RUN" \
		--faults="$TEST_DIR/faults" --fault-log="$log" /usr/bin/python3 "$TEST_DIR/tests/run_tests.py" -v \
		--dev weft_lo --port 1 --gid 0 "$3" >"$TEST_DIR/said" 2>&1 </dev/null || rc=$?
	end_is $rc "$2" "$TEST_DIR/said"
}

# The rule names a QP that runs already: weft-ctl brings it.
by_qpn() {
	local run rc=0 runtime client pid qpn
	runtime=$(mktemp -d)
	chmod 777 "$runtime"
	trap 'rm -rf "$runtime"' EXIT
	# shellcheck disable=SC2206 # a list
	run=($AS_USER env XDG_RUNTIME_DIR="$runtime")
	pair weft:weft
	log=$TEST_DIR/client.log
	start_b server ibv_rc_pingpong -d weft_lo -g 0 -n 100000000
	wait_listen_b 18515
	PATH=${PATH#*:} "${run[@]}" "$WEFT_RUN" --control --netdevs=lo ibv_rc_pingpong -d weft_lo -g 0 -n 100000000 "$IP_B" \
		>"$log" 2>&1 </dev/null &
	client=$!
	wait_for 20 has_listed_qp || fail "no QP: $(words "$log")"
	read -r pid _ qpn _ < <(grep ' qp ' "$TEST_DIR/list")
	echo "post_send qpn $((qpn - 1)) -> EIO" | "${run[@]}" "${WEFT_RUN%run}ctl" -p "$pid" faults - || fail "no rules"
	pause 0.3
	! is_over $client || fail "another QP's rule ended it: $(words "$log")"
	echo "post_send qpn $qpn -> ENOMEM" | "${run[@]}" "${WEFT_RUN%run}ctl" -p "$pid" faults - || fail "no rules"
	wait_for 20 is_over $client || fail "it goes on"
	wait $client || rc=$?
	end_is $rc "1=post send" "$log"
}

has_listed_qp() { "${run[@]}" "${WEFT_RUN%run}ctl" list >"$TEST_DIR/list" && grep -q ' qp .* RTS ' "$TEST_DIR/list"; }

# --- the page ---

# Each test's name is in the table once, in this order.
# shellcheck disable=SC2016 # a page's backquotes
rows() {
	diff <(tests | sed '1,2d; s/ .*//') <(sed -n 's/^|.*| `\([^`]*\)` |$/\1/p' "$WEFT_TOP/docs/faults-seen.md") ||
		fail "docs/faults-seen.md has other rows"
}

# Calls, conditions, effects and statuses: the words in the first columns of the tables of faults.md. The page says of two
# that no program here meets them.
# shellcheck disable=SC2016 # a page's backquotes
words_of_rules() {
	local word missing=() unmet='modify_srq srq_limit'
	tests | cut -d ' ' -f 3 | tr ':' '\n' | cat - <(echo qpn) | sort -u >"$TEST_DIR/seen"
	sed -n 's/^| \(`[^|]*\) |.*/\1/p' "$WEFT_TOP/docs/faults.md" | grep -o '`[a-z_]*' | tr -d '`' | sort -u >"$TEST_DIR/words"
	[ "$(wc -l <"$TEST_DIR/words")" -gt 50 ] || fail "the page has other tables: $(words "$TEST_DIR/words")"
	while read -r word; do
		grep -qxF "$word" "$TEST_DIR/seen" || [[ " $unmet " == *" $word "* ]] || missing+=("$word")
	done <"$TEST_DIR/words"
	[ ${#missing[@]} = 0 ] || fail "no program of others meets ${missing[*]}"
	for word in $unmet; do
		! grep -qxF "$word" "$TEST_DIR/seen" && grep -q "^- .*\`$word\`" "$WEFT_TOP/docs/faults-seen.md" ||
			fail "$word is met, or the page does not say that it is not"
	done
}
