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
	END
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
		assert polled == ["next", "changed_under_way", "main"], polled
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
