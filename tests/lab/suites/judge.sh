# shellcheck shell=bash
# weft-run --judge: each wrong program of tests/judge is reported by its rule, with the line that breaks it, and its right twin
# is not reported by any. Programs of others are silent.

rules='left-at-close left-at-exit busy-ignored event-not-acknowledged changed-under-way unmapped-under-way
	deregistered-under-way receives-overlap cq-too-small send-queue-full lost-wake-up field-after-error read-sink gid-index-0'

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	local rule
	for rule in $rules; do
		echo "$rule-is-reported reported $rule"
		echo "no-$rule-is-not-reported silent $rule right"
	done
	cat <<-'END'
		memory-that-a-peer-writes-is-not-reported silent memory-that-a-peer-writes right
		fields-of-an-error-are-overwritten overwritten
		rules-are-chosen-by-name-and-number chosen
		wrong-rules-are-refused refused
		suppressed-reports-are-not-made suppressed
		the-first-report-ends-a-program fatal
		reports-are-lines-of-json json
		a-child-is-judged-for-itself child
		the-program-waits-for-its-own-children children
		rping-is-silent quiet 7174 rping -s -a @ -C 50 -- rping -c -a @ -C 50
		ucmatose-is-silent quiet 7471 ucmatose -b @ -c 4 -C 30 -- ucmatose -s @ -c 4 -C 30
		rdma_server-is-silent quiet 7471 rdma_server -s @ -- rdma_client -s @
		udaddy-is-silent quiet udp:7174 udaddy -b @ -- udaddy -s @
		rstream-is-silent quiet 7471 rstream -T v -S 65537 -C 20 -I 5 -b @ -- rstream -T v -S 65537 -C 20 -I 5 -s @
		ibv_rc_pingpong-is-silent pingpong ibv_rc_pingpong
		ibv_rc_pingpong-with-events-is-silent pingpong ibv_rc_pingpong -e
		ibv_srq_pingpong-is-silent pingpong ibv_srq_pingpong -q 4
		ibv_ud_pingpong-is-silent pingpong ibv_ud_pingpong
		ucx-is-silent ucx tag_lat tag_bw stream_bw ucp_am_bw ucp_put_lat ucp_get
		open-mpi-over-ucx-is-silent open_mpi
		cmtime-is-reported-and-argued argued_cmtime
		qperf-is-reported-and-argued argued_qperf
		ib_send_bw-is-reported-and-argued argued_perftest
		ucx_perftest-is-reported-and-argued argued_ucx
	END
	local program
	for program in ib_send_lat ib_send_bw:-e ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw; do
		echo "${program/:-e/-with-events}-is-silent measured ${program/:/ }"
	done
}

# says and run_says are of this suite.
# shellcheck source-path=SCRIPTDIR source=rootless.sh
. <(sed -n '/^# says STATUS/,/^# --- what a program sees/p' "$WEFT_TOP/tests/lab/suites/rootless.sh")

judged=$WEFT_BUILD/bin/weft-judged

# judge STATUS RULE wrong|right OPTION...
judge() { run_says "$1:" "${@:4}" "$judged" 127.0.0.1 "$2" "$3"; }

# reports NAME...: the rules of the reports on stderr, each once.
reports() {
	local want got
	want=$(printf '%s\n' "$@" | sort)
	got=$(sed -nE 's/^weft-run: J[0-9]+ ([a-z0-9-]+): .*/\1/p' "$TEST_DIR/said" | sort -u)
	[ "$got" = "$want" ] || fail "reported: $got; $(words "$TEST_DIR/said")"
}

# The statement of the wrong program is named by its line, if it makes a call.
reported() {
	judge 99 "$1" wrong --judge="$1" --judge-fatal
	reports "$1"
	grep -qE '^      #[0-9]+ [a-z_0-9]+ .*/weft-judged\.c:[0-9]+$' "$TEST_DIR/said" || fail "no line: $(words "$TEST_DIR/said")"
	grep -q "^    see: docs/checking.md#$1$" "$TEST_DIR/said" || fail "no page: $(words "$TEST_DIR/said")"
	grep -qE "^## J[0-9]+ $1\$" "$WEFT_TOP/docs/checking.md" || fail "docs/checking.md lacks $1"
}

silent() {
	judge 0 "$1" "$2" --judge=all
	reports ''
}

overwritten() {
	judge 0 opcode-of-an-error wrong --judge
	grep -qx undefined "$TEST_DIR/said" || fail "it said: $(words "$TEST_DIR/said")"
	judge 0 opcode-of-an-error wrong --judge=-field-after-error
	grep -qx 'a receive' "$TEST_DIR/said" || fail "it said: $(words "$TEST_DIR/said")"
}

chosen() {
	judge 99 receives-overlap wrong --judge=J204
	reports receives-overlap
	judge 0 receives-overlap wrong --judge
	reports ''
	judge 0 changed-under-way wrong --judge=-changed-under-way
	reports ''
	judge 0 changed-under-way wrong --judge=all,-J201
	reports ''
	judge 0 changed-under-way wrong
	reports ''
}

refused() {
	run_says '125:--judge=J201,nonsense: nonsense is no rule' --judge=J201,nonsense true
	run_says '125:is no rule' --judge= true
	run_says '125:no-such-file: No such file' --judge-suppress=no-such-file true
}

suppressed() {
	printf '%s\n' '# in a comment' 'changed-under-way other_function' '* changed_under_w?y' >"$TEST_DIR/known"
	judge 0 changed-under-way wrong --judge --judge-suppress="$TEST_DIR/known"
	reports ''
	echo 'J202 changed_under_way' >"$TEST_DIR/known"
	judge 99 changed-under-way wrong --judge --judge-suppress="$TEST_DIR/known"
	reports changed-under-way
}

# It would wait for an event that does not come.
fatal() {
	judge 99 lost-wake-up wrong --judge --judge-fatal
	reports lost-wake-up
}

json() {
	rm -rf "$TEST_DIR/log"
	mkdir -m 777 "$TEST_DIR/log"
	judge 99 changed-under-way wrong --judge --judge-log="$TEST_DIR/log/json"
	python3 - "$TEST_DIR/log/json" <<-'END' || fail "the log: $(cat "$TEST_DIR/log/json")"
		import json, sys
		lines = [json.loads(line) for line in open(sys.argv[1])]
		assert len(lines) == 1, lines
		report = lines[0]
		assert (report["number"], report["rule"]) == ("J201", "changed-under-way"), report
		assert "was changed" in report["what"]
		titles = [stack["title"] for stack in report["stacks"]]
		assert titles[0] == "the Send of wr_id 0x7 was posted by", titles
		post = report["stacks"][0]["frames"][0]
		assert post["function"] == "send_from" and post["file"].endswith("weft-judged.c") and post["line"] > 0, post
		polled = [frame["function"] for frame in report["stacks"][-1]["frames"]]
		assert polled[-2:] == ["changed_under_way", "main"], polled
	END
}

# A shell's status is its own; that of the program in it is 99.
child() {
	run_says '0:^status 99$' --judge sh -c "'$judged' 127.0.0.1 changed-under-way wrong; echo status \$?"
	reports changed-under-way
}

# The tool that finds lines is no child of the program.
children() {
	run_says '99:^no child$' --judge "$judged" 127.0.0.1 waits-for-children wrong
	! grep -qx 'a signal' "$TEST_DIR/said" || fail "the program's handler ran"
	reports changed-under-way
}

# --- programs of others ---

# are_judged: both sides, but for what is argued.
are_judged() {
	local argued=${1-$WEFT_TOP/tests/judge/argued}
	pair weft:weft
	option "$DEV_A" judge default
	on_b option "$DEV_B" judge default
	[ -z "$argued" ] || { option "$DEV_A" judge_suppress "$argued"; on_b option "$DEV_B" judge_suppress "$argued"; }
}

no_report() { ! grep -hE '^weft-run: J[0-9]+ ' "$TEST_DIR"/*.log || fail "a report: see the logs"; }

# quiet PORT SERVER... -- CLIENT...: @ is b's address.
quiet() {
	are_judged
	together "${@/#@/$IP_B}"
	no_report
}

# pingpong PROGRAM [OPTION...]
pingpong() { quiet 18515 "$1" -d weft_lo -g 2 "${@:2}" -- "$1" -d weft_lo -g 2 "${@:2}" @; }

# measured PROGRAM [OPTION...]
measured() { quiet 18515 "$1" -d weft_lo -x 2 -F -n 500 "${@:2}" -- "$1" -d weft_lo -x 2 -F -n 500 "${@:2}" @; }

# ucx TEST...
ucx() {
	local test
	are_judged
	export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=$DEV_A:1
	for test; do together 13337 ucx_perftest -- ucx_perftest -t "$test" -s 4096 -n 500 -w 10 "$IP_B"; done
	no_report
}

open_mpi() {
	are_judged
	export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=$DEV_A:1
	run mpirun.openmpi --oversubscribe -np 2 --mca pml ucx --mca osc ucx --mca btl self "$WEFT_BUILD/bin/mpi-verify"
	no_report
}

# argued RULE PROGRAM: its client was reported, and docs/findings.md says why.
argued() {
	grep -qE "^weft-run: J[0-9]+ $1: " "$TEST_DIR"/*.log || fail "no report of $1: it need not be argued any more"
	! grep -hE '^weft-run: J[0-9]+ ' "$TEST_DIR"/*.log | grep -v " $1: " || fail "another report: see the logs"
	grep -qE "^## $2\b" "$WEFT_TOP/docs/findings.md" || fail "docs/findings.md lacks $2"
}

# ends_reported COMMAND...: as run, with the judge's status.
ends_reported() {
	local rc=0
	timeout -k 2 60 "$@" >"$TEST_DIR/${1##*/}.log" 2>&1 </dev/null || rc=$?
	[ $rc = 99 ] || fail "$1 ended with $rc; $(words "$TEST_DIR/${1##*/}.log")"
}

argued_cmtime() {
	are_judged ''
	start_b server cmtime -b "$IP_B"
	wait_listen_b 7471
	ends_reported cmtime -s "$IP_B" -c 10
	argued busy-ignored cmtime
}

argued_qperf() {
	are_judged ''
	start_b server qperf
	wait_listen_b 19765
	ends_reported qperf -cm 1 "$IP_B" rc_lat
	argued busy-ignored qperf
}

argued_perftest() {
	are_judged ''
	start_b server ib_send_bw -d weft_lo -x 2 -F -n 500
	wait_listen_b 18515
	ends_reported ib_send_bw -d weft_lo -x 2 -F -n 500 "$IP_B"
	argued left-at-close ib_send_bw
}

argued_ucx() {
	are_judged ''
	export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=$DEV_A:1
	start_b server ucx_perftest
	wait_listen_b 13337
	ends_reported ucx_perftest -t ucp_put_bw -s 65536 -n 200 -w 10 "$IP_B"
	argued changed-under-way ucx_perftest
}
