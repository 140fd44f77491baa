#!/usr/bin/env bash
# The table of programs in docs/compatibility.md, from tests/programs and what `make check` and `make check-full` ran:
# the logs in build/check.
#   programs-table.sh             prints it
#   programs-table.sh --update    puts it into docs/compatibility.md, between its marks
#   programs-table.sh --unknown   prints what tests/programs names and no suite has, or docs/compatibility.md has not
# Environment: LOGS  another folder with GROUP.log
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$WEFT_TOP"

logs=${LOGS:-$WEFT_BUILD/check}

# PROGRAM|CONNECTED|GROUP|REGEX, an expression for all of its tests.
rows() {
	grep -v '^#' tests/programs | while IFS='|' read -r program connected tests; do
		read -r -a tests <<<"$tests"
		echo "${program% }|${connected//[[:blank:]]/ }|${tests[0]}|^($(IFS='|' && echo "${tests[*]:1}"))\$"
	done | sed 's/| */|/; s/ *|/|/g'
}

# Every test of the suites there is at the place rootless, as SUITE/NAME.
plan() {
	local suites=(tests/lab/suites/*.sh)
	suites=("${suites[@]##*/}")
	KERNEL=rootless HAND=full CHURN='' TESTS='' tests/lab/suite.sh --plan "${suites[@]%.sh}" | awk '{print $1 "/" $2}'
}

unknown() {
	local all program connected group pattern
	all=$(plan)
	rows | while IFS='|' read -r program connected group pattern; do
		grep -qE "$pattern" <<<"$all" || echo "$program: $group has no $pattern"
		grep -qF "| $program | $connected | " docs/compatibility.md || echo "$program: docs/compatibility.md has it otherwise"
	done
}

# result GROUP REGEX: of the tests in its log.
result() {
	local log=$logs/$1.log
	[ -e "$log" ] || die "$log is not there: run 'make check' and 'make check-full' first"
	awk -v want="$2" -v full="$([[ $1 != *_full ]] || echo ', full')" '
		/^(not )?ok / {
			name = $1 == "ok" ? $2 : $3
			if (name !~ want)
				next
			if (!(name in good))
				good[name] = ++n > 0
			good[name] = good[name] && $1 == "ok"
		}
		END {
			for (name in good) passed += good[name]
			print (!n ? "not run" : passed " of " n " tests pass") full
		}' "$log"
}

table() {
	local program connected group pattern
	echo '| program | how connected | result |'
	echo '|---|---|---|'
	rows | while IFS='|' read -r program connected group pattern; do
		echo "| $program | $connected | $(result "$group" "$pattern") |"
	done
}

update() {
	local new
	new=$(mktemp)
	table >"$new.table" || die "no table"
	awk -v table="$new.table" '
		/^<!-- programs: end -->/ { skip = 0 }
		!skip { print }
		/^<!-- programs: begin/ { skip = 1; print ""; while ((getline line <table) > 0) print line; print "" }
	' docs/compatibility.md >"$new"
	cat "$new" >docs/compatibility.md
	rm "$new" "$new.table"
}

case ${1-} in
'') table ;;
--update) update ;;
--unknown) unknown ;;
*) die "see the top of $0" ;;
esac
