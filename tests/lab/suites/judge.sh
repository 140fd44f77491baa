# shellcheck shell=bash
# weft-run --judge: each wrong program of tests/judge is reported by its rule, with the line that breaks it, and its right twin
# is not reported by any. Programs of others are silent.

rules='left-at-close left-at-exit busy-ignored event-not-acknowledged destroyed-twice channel-in-use fork-unprepared
	changed-under-way unmapped-under-way deregistered-under-way receives-overlap freed-under-way foreign-domain outside-region
	no-local-write touched-under-way cq-too-small send-queue-full lost-wake-up field-after-error read-sink gid-index-0'

orders='last-octet-of-a-write last-octet-of-a-long-write data-and-flag-on-two-qps completions-of-two-qps
	event-without-completion send-queue-not-polled'
cm_orders='receive-after-accept short-time-out established-before-message'

# Faults of public threads, rebuilt in weft-known: the rule that finds each. docs/findings.md has a row for each.
declare -A known=(
	[receive-cq-not-polled-after-arming]=lost-wake-up
	[polls-as-many-as-one-qp-has]=lost-wake-up
	[events-acknowledged-to-the-last-cq]=event-not-acknowledged
	[error-event-not-acknowledged]=event-not-acknowledged
	[opcode-looked-at-before-the-status]=overwritten
	[cq-of-one-size-for-all-qps]=cq-too-small
	[window-that-counts-no-credits]=send-queue-full
	[one-buffer-for-all-notifications]=changed-under-way
	[read-sink-freed-at-a-time-out]=freed-under-way
	[emulated-write-without-local-write]=no-local-write
	[read-without-remote-write]=read-sink
	[region-of-credits-left]=busy-ignored
	[cqs-of-two-owners]=destroyed-twice
	[endpoint-deleted-under-a-worker]=destroyed-twice
)

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	local rule
	for rule in $rules; do
		echo "$rule-is-reported reported $rule"
		echo "no-$rule-is-not-reported silent $rule right"
	done
	cat <<-'END'
		memory-that-a-peer-writes-is-not-reported silent memory-that-a-peer-writes right
		objects-left-by-the-last-of-two-contexts-are-reported reported imported-context left-at-close
		objects-of-another-context-of-the-file-are-not-reported silent imported-context right
		a-post-to-a-qp-that-is-gone-is-reported reported posted-after-destroy destroyed-twice
		cm-events-not-acknowledged-are-reported reported cm-event-not-acknowledged event-not-acknowledged
		acknowledged-cm-events-are-not-reported silent cm-event-not-acknowledged right
		a-receive-read-before-its-completion-is-reported reported read-before-completion touched-under-way
		a-receive-read-after-its-completion-is-not-reported silent read-before-completion right
		the-log-is-sarif-by-its-name sarif
		a-wake-up-lost-by-the-second-cq-is-reported reported lost-wake-up-of-second-cq lost-wake-up
		the-second-cq-polled-is-not-reported silent lost-wake-up-of-second-cq right
		memory-at-another-iova-is-judged reported changed-by-iova changed-under-way
		memory-beside-another-iova-is-not-reported silent changed-by-iova right
		a-datagram-that-changes-before-its-answer-is-reported reported datagram-changed changed-under-way
		a-datagram-that-changes-after-its-answer-is-not-reported silent datagram-changed right
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
		librspreload-is-silent preloaded
		ibv_rc_pingpong-is-silent pingpong ibv_rc_pingpong
		ibv_rc_pingpong-with-events-is-silent pingpong ibv_rc_pingpong -e
		ibv_srq_pingpong-is-silent pingpong ibv_srq_pingpong -q 4
		ibv_ud_pingpong-is-silent pingpong ibv_ud_pingpong
		ucx-is-silent ucx tag_lat tag_bw stream_bw ucp_am_bw ucp_put_lat ucp_get
		open-mpi-over-ucx-is-silent open_mpi
		riostream-is-silent quiet 7471 riostream -T v -S 65537 -C 20 -I 5 -b @ -- riostream -T v -S 65537 -C 20 -I 5 -s @
		rcopy-is-silent rcopy_copies
		rdma_xserver-is-silent quiet 7471 rdma_xserver -c r -p 7471 -- rdma_xclient -c r -p 7471 -s @
		mckey-is-silent mckey_members
		fi_pingpong-is-silent fabric
		dtestsrq-is-silent dapl
		cmtime-is-reported-and-argued argued busy-ignored cmtime
		qperf-is-reported-and-argued argued busy-ignored qperf
		ib_send_bw-is-reported-and-argued argued left-at-close ib_send_bw
		ucx_perftest-is-reported-and-argued argued changed-under-way ucx_perftest
		gloo-is-reported-and-argued argued changed-under-way gloo
		fio-is-reported-and-argued argued event-not-acknowledged fio
	END
	local program case
	for case in "${!known[@]}"; do echo "the-known-fault-$case-is-found known $case"; done | sort
	echo 'the-table-of-known-faults-has-a-row-for-each known_rows'
	for case in $orders $cm_orders; do
		echo "adverse-finds-$case finds $case"
	done
	echo "random-misuse-does-no-harm misuse ${MISUSE_SECONDS:-10}"
	echo 'adverse-is-the-same-by-one-seed same_by_seed'
	echo 'adverse-refuses-what-is-no-seed no_seed'
	echo 'a-range-of-seeds-is-run-and-told seed_range'
	for program in ib_send_lat ib_send_bw:-e ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw; do
		echo "${program/:-e/-with-events}-is-silent measured ${program/:/ }"
	done
}

# says and run_says are of this suite.
# shellcheck source-path=SCRIPTDIR source=rootless.sh
. <(sed -n '/^# says STATUS/,/^# --- what a program sees/p' "$WEFT_TOP/tests/lab/suites/rootless.sh")

judged=$WEFT_BUILD/bin/weft-judged

# judge STATUS RULE wrong|right OPTION...
judge() { run_says "$1:" "${@:4}" "$WEFT_BUILD/bin/${PROGRAM-weft-judged}" 127.0.0.1 "$2" "$3"; }

# reports NAME...: the rules of the reports on stderr, each once.
reports() {
	local want got
	want=$(printf '%s\n' "$@" | sort)
	got=$(sed -nE 's/^weft-run: J[0-9]+ ([a-z0-9-]+): .*/\1/p' "$TEST_DIR/said" | sort -u)
	[ "$got" = "$want" ] || fail "reported: $got; $(words "$TEST_DIR/said")"
}

# reported CASE [RULE]: the statement of the wrong program is named by its line, if it makes a call.
reported() {
	local rule=${2-$1}
	judge 99 "$1" wrong --judge="$rule" --judge-fatal
	reports "$rule"
	grep -qE '^      #[0-9]+ [a-z_0-9]+ .*/'"${PROGRAM-weft-judged}"'\.c:[0-9]+$' "$TEST_DIR/said" || fail "no line: $(words "$TEST_DIR/said")"
	local page
	page=$(sed -nE "s/^    see: (docs.*)#$rule\$/\1/p" "$TEST_DIR/said")
	[ -n "$page" ] || fail "no page: $(words "$TEST_DIR/said")"
	grep -qx "<a id=\"$rule\"></a>" "$WEFT_TOP/$page" || fail "$page lacks $rule"
	grep -qF "](${page#docs/}#$rule)" "$WEFT_TOP/docs/checking.md" || fail "docs/checking.md has no link to it"
}

silent() {
	judge 0 "$1" "$2" --judge=all
	reports ''
}

# A program that looks at a field of an error takes the wrong way, here as on an adapter.
known() {
	local PROGRAM=weft-known
	if [ "${known[$1]}" = overwritten ]; then
		judge 0 "$1" wrong
		judge 1 "$1" wrong --judge
	else
		reported "$1" "${known[$1]}"
	fi
	silent "$1" right
}

# Those of weft-orders are found by --adverse.
known_rows() {
	diff <(sed -nE 's/^\t\{ "([a-z0-9-]+)", .*/\1/p' "$WEFT_TOP/tests/judge/weft-known.c" | sort) <(printf '%s\n' "${!known[@]}" | sort) ||
		fail 'weft-known has other cases'
	diff <(sed -nE 's/^\| [^|]*#[0-9]+ \|.*\| `([a-z0-9-]+)` \|$/\1/p' "$WEFT_TOP/docs/findings.md" | grep -vxE "data-and-flag-on-two-qps|last-octet-of-a-write" | sort) \
		<(printf '%s\n' "${!known[@]}" | sort) || fail 'docs/findings.md has other rows'
	# The thread stands at the case, too.
	local thread
	for thread in $(sed -nE 's/^\| ([^ |]*#[0-9]+) \|.*/\1/p' "$WEFT_TOP/docs/findings.md"); do
		grep -qE "^( \*|/\*) $thread\b" "$WEFT_TOP"/tests/judge/weft-{known,orders}.c || fail "no case of $thread"
	done
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

# A document after each process, with a place for each report.
sarif() {
	rm -rf "$TEST_DIR/log"
	mkdir -m 777 "$TEST_DIR/log"
	judge 99 changed-under-way wrong --judge --judge-log="$TEST_DIR/log/judge.sarif"
	judge 99 foreign-domain wrong --judge --judge-log="$TEST_DIR/log/judge.sarif"
	python3 - "$TEST_DIR/log/judge.sarif" <<-'END' || fail "the log: $(cat "$TEST_DIR/log/judge.sarif")"
		import json, sys
		log = json.load(open(sys.argv[1]))
		run, = log["runs"]
		assert log["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "weft-run"
		rules = {rule["id"]: rule["name"] for rule in run["tool"]["driver"]["rules"]}
		assert [rules[result["ruleId"]] for result in run["results"]] == ["changed-under-way", "foreign-domain"], run["results"]
		places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
		assert all(place["artifactLocation"]["uri"].endswith("weft-judged.c") for place in places), places
		assert all(place["region"]["startLine"] > 0 for place in places), places
	END
	echo 'no document' >"$TEST_DIR/log/judge.sarif"
	judge 99 foreign-domain wrong --judge --judge-log="$TEST_DIR/log/judge.sarif"
	grep -q "the judge's log .* cannot be written" "$TEST_DIR/said" || fail "it did not say: $(words "$TEST_DIR/said")"
	grep -qx 'no document' "$TEST_DIR/log/judge.sarif" || fail 'another file was written to'
}

# misuse SECONDS: random calls under the judge end by no signal. What is left is not reported: each line of it takes time.
misuse() {
	PATH=${PATH#*:} run $AS_USER "$WEFT_RUN" --judge=all,-left-at-exit,-left-at-close "$WEFT_BUILD/bin/weft-misuse" 127.0.0.1 "$1"
	grep -E '^[0-9]+ lives' "$TEST_DIR"/*.log || fail 'no life has ended'
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

# --- the worst legal order ---

seeds=20

# order CASE wrong|right OPTION...
order() {
	local program=weft-orders
	[[ " $cm_orders " != *" $1 "* ]] || program=weft-cm-orders
	PATH=${PATH#*:} timeout -k 2 30 $AS_USER "$WEFT_RUN" "${@:3}" "$WEFT_BUILD/bin/$program" 127.0.0.1 "$1" "$2" >"$TEST_DIR/said" 2>&1
}

# The wrong program works as a rule, and by some seed it does not; the right one does by all. On a busy machine the wrong one
# may fail by itself: it is wrong.
finds() {
	local seed found='' works=''
	for ((seed = 1; seed <= 5; seed++)); do
		! order "$1" wrong || works=yes
	done
	[ "$works" ] || fail "$1 fails five times of five without --adverse: $(words "$TEST_DIR/said")"
	for ((seed = 1; seed <= seeds; seed++)); do
		order "$1" right --adverse=$seed || fail "the right program fails by seed $seed: $(words "$TEST_DIR/said")"
		[ -z "$found" ] && ! order "$1" wrong --adverse=$seed || continue
		found=$seed
		grep -q 'FAIL round' "$TEST_DIR/said" || fail "it failed otherwise: $(words "$TEST_DIR/said")"
	done
	[ "$found" ] || fail "no seed of $seeds finds it"
}

# The choices of one connection do not depend on time.
same_by_seed() {
	local first seed
	for seed in 1 2 3; do
		order event-without-completion wrong --adverse=$seed
		first=$(cat "$TEST_DIR/said")
		order event-without-completion wrong --adverse=$seed
		[ "$first" = "$(cat "$TEST_DIR/said")" ] || fail "seed $seed: $first, then $(words "$TEST_DIR/said")"
	done
}

# Each seed is a process of its own; those that fail are named, and a signal ends all.
seed_range() {
	# shellcheck disable=SC2016 # the inner shell's
	run_says '7:^weft-run: 2 of 7 seeds failed$' --adverse=1-7 sh -c '[ $((WEFT_ADVERSE % 3)) != 0 ] || exit 7'
	[ "$(grep -c ': status 7$' "$TEST_DIR/said")" = 2 ] && grep -qx 'weft-run: --adverse=3: status 7' "$TEST_DIR/said" ||
		fail "$(words "$TEST_DIR/said")"
	run_says '0:^weft-run: passed by all 2 seeds$' --adverse=4294967294-4294967295 true
	# shellcheck disable=SC2016
	run_says '139:^weft-run: --adverse=5: signal 11, ' --adverse=5-5 sh -c 'kill -SEGV $$'
	# shellcheck disable=SC2016
	run_says '130:^weft-run: 1 of 1 seeds failed$' --adverse=1-9 sh -c 'kill -INT $$'
	run_says '125:--adverse=5-2 makes no sense' --adverse=5-2 true
	run_says '125:--adverse=0-2 makes no sense' --adverse=0-2 true
	run_says '125:--adverse=1-2x makes no sense' --adverse=1-2x true
}

no_seed() {
	run_says '125:--adverse=0 makes no sense' --adverse=0 true
	run_says '125:--adverse=x makes no sense' --adverse=x true
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

# librdmacm destroys channels of its own while ids have them.
preloaded() {
	local way preload
	preload=$(echo /usr/lib/*/rsocket/librspreload.so)
	are_judged
	way="$AS_USER env LD_PRELOAD=$preload $WEFT_RUN --judge"
	# shellcheck disable=SC2086 # a list
	start_b server $way iperf -s -P 1 -B "$IP_B" -p 7481
	wait_listen_b 7481
	# shellcheck disable=SC2086
	says 0:bits/sec $way iperf -c "$IP_B" -p 7481 -n 16M
	finish_b server
	no_report
	reports ''
}

# The server serves one after the other, for ever.
rcopy_copies() {
	are_judged
	mkdir -m 1777 "$TEST_DIR/files"
	head -c 1000000 /dev/urandom >"$TEST_DIR/in"
	start_b server rcopy
	wait_listen_b 7427
	run rcopy "$TEST_DIR/in" "$IP_B:$TEST_DIR/files/out"
	cmp "$TEST_DIR/in" "$TEST_DIR/files/out" || fail 'another file came out'
	no_report
}

in_group() { grep -qE ' 090707EF:FFFF ' /proc/net/udp; }

mckey_members() {
	are_judged
	start_b one mckey -m 239.7.7.9 -b "$IP_B"
	wait_for 20 in_group || fail 'the member does not enter the group'
	run mckey -m 239.7.7.9 -b "$IP_A" -s
	finish_b one
	no_report
}

# As the suite tools runs it: libfabric takes no device on lo.
fabric() {
	are_judged
	export WEFT_NETDEVS=eth0
	together 7592 fi_pingpong -p verbs -e msg -I 50 -S 4096 -c -B 7592 -- \
		fi_pingpong -p verbs -e msg -I 50 -S 4096 -c -P 7592 "$IP_B"
	no_report
}

# DAT's test, with an adapter of its own on lo.
dapl() {
	echo 'weft u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "lo 0" ""' >"$TEST_DIR/dat.conf"
	chmod a+r "$TEST_DIR/dat.conf"
	export DAT_OVERRIDE=$TEST_DIR/dat.conf
	quiet 45248 dtestsrq -P weft -s -- dtestsrq -P weft -h "$IP_A"
}

# argued RULE PROGRAM: its client is reported, and docs/findings.md says why.
argued() {
	are_judged ''
	"argued_$2"
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
	start_b server cmtime -b "$IP_B"
	wait_listen_b 7471
	ends_reported cmtime -s "$IP_B" -c 10
}

argued_qperf() {
	start_b server qperf
	wait_listen_b 19765
	qperf_anew ends_reported qperf -cm 1 "$IP_B" rc_lat
}

argued_ib_send_bw() {
	start_b server ib_send_bw -d weft_lo -x 2 -F -n 500
	wait_listen_b 18515
	ends_reported ib_send_bw -d weft_lo -x 2 -F -n 500 "$IP_B"
}

argued_ucx_perftest() {
	export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=$DEV_A:1
	start_b server ucx_perftest
	wait_listen_b 13337
	ends_reported ucx_perftest -t ucp_put_bw -s 65536 -n 200 -w 10 "$IP_B"
}

# Its jobs are children.
argued_fio() {
	start_b server fio --name=b --ioengine=rdma --filename=x --port=8765 --bs=64k --size=4m --rw=read --iodepth=8
	wait_listen_b 8765
	run fio --name=a --ioengine=rdma --hostname="$IP_B" --port=8765 --verb=write --bs=64k --size=4m --rw=write --iodepth=8
}

# The ranks are its children, and their status is not its own.
argued_gloo() {
	mkdir -p "$TEST_DIR/ranks" && chmod 1777 "$TEST_DIR/ranks"
	run gloo-verify ibverbs "$DEV_A" 4 "$TEST_DIR/ranks"
}
