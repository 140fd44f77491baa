# shellcheck shell=bash
# The recipes of docs/testing-programs.md and docs/testing-links.md do what the pages say: a test for each, named after its heading, runs the
# indented commands below the heading, by bash -e and as a user without privileges.

recipes_pages="$WEFT_TOP/docs/testing-programs.md $WEFT_TOP/docs/testing-links.md"

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	local heading name
	# shellcheck disable=SC2086 # a list
	sed -n 's/^## //p' $recipes_pages | while read -r heading; do
		name=${heading//[^A-Za-z0-9]/-}
		[ "$heading" = First ] || echo "${name//--/-} recipe ${heading// /:}"
	done
}

# commands_below HEADING
# shellcheck disable=SC2086 # a list
commands_below() { awk -v heading="## $1" 'FNR == 1 {on = 0} /^## / {on = $0 == heading} on && /^    /' $recipes_pages | sed 's/^    //'; }

# recipe HEADING: colons stand for blanks.
recipe() {
	local rc=0 rules
	[ "$OWN_NET" = yes ] || skip "lo is the host's own: its ports may be in use"
	mkdir -m 777 "$TEST_DIR/work"
	cd "$TEST_DIR/work" || fail "no folder"
	commands_below "${1//:/ }" | grep -q . || fail "no commands"
	{ commands_below First; echo 'set -x'; commands_below "${1//:/ }"; } >"$TEST_DIR/commands"
	# The first folder of PATH has programs that begin under weft-run by themselves.
	# shellcheck disable=SC2086 # a list
	PATH=${WEFT_RUN%/*}:${PATH#*:} HOME=$PWD OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 2 170 $AS_USER bash -e "$TEST_DIR/commands" >"$TEST_DIR/said" 2>&1 \
		</dev/null || rc=$?
	[ $rc = 0 ] || fail "it ended with $rc; $(words "$TEST_DIR/said")"
	for rules in *.faults; do
		[ ! -e "$rules" ] || happened "$(cut -d ' ' -f 1 "$rules")" || fail "no fault by $rules"
	done
}

# happened CALL: a log has such a fault, or the trace if there is no log.
happened() { cat "$TEST_DIR/said" ./*.log 2>/dev/null | grep -qE "^(weft: fault: )?$1 nth [0-9]+ -> "; }
