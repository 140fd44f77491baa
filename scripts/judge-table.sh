#!/usr/bin/env bash
# The table of programs in docs/checking-programs.md, from tests/judge/programs, what is installed, and what the suites judge
# and record of `make check` ran: build/check/rootless.log.
#   judge-table.sh             prints it
#   judge-table.sh --update    puts it into docs/checking-programs.md, between its marks
#   judge-table.sh --unknown   prints what tests/judge/programs, the suites and the page do not agree about
# Environment: LOG  another log
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$WEFT_TOP"

log=${LOG:-$WEFT_BUILD/check/rootless.log}
page=docs/checking-programs.md

rows() { grep -v '^#' tests/judge/programs | sed 's/ *| */|/g'; }

# SUITE/NAME FUNCTION ARG...
plan() {
	KERNEL=rootless TESTS='' tests/lab/suite.sh --plan judge record | sed 's/ /\//'
}

# planned SUITE REGEX: those of the plan.
planned() { awk -v want="^$1/($2)\$" '$1 ~ want' <<<"$plan"; }

# reported SUITE REGEX PROGRAM: what these tests say: silent, or the rules with a link to their argument.
reported() {
	local rules
	[ "$2" != - ] || { echo '' && return; }
	rules=$(planned "$1" "$2" | awk '$2 == "argued" {print "[" $3 "](findings.md#" $4 ")"}' | sort -u | paste -sd ' ')
	echo "${rules:-silent}"
}

# passed SUITE REGEX: in the log, all of them.
passed() {
	local name _
	[ "$2" != - ] || return 0
	while read -r name _; do
		grep -q "^ok $name " "$log" || { say "$name has not passed: $log" && return 1; }
	done < <(planned "$1" "$2")
}

version() { dpkg-query -W -f '${Version}' "$1" | sed 's/^[0-9]*://; s/-[^-]*$//'; }

table() {
	local program package judge record
	[ -e "$log" ] || die "$log is not there: run 'scripts/check.sh rootless' first"
	# shellcheck disable=SC2016
	echo '| program | version | `--judge` | records of both ends |'
	echo '|---|---|---|---|'
	rows | while IFS='|' read -r program package judge record; do
		if [ "$package" = 'by hand' ]; then
			echo "| $program | $judge, by hand | $record | |"
			continue
		fi
		passed judge "$judge" && passed record "$record" || exit
		echo "| $program | $(version "$package") | $(reported judge "$judge") | $(reported record "$record") |"
	done
}

# The suites' tests of programs of others, each of which has a row.
of_others() { planned '[a-z]*' '.*-is-silent(-at-both-ends)?|.*-is-reported-(and-argued|at-both-ends)' | awk '{print $1}'; }

unknown() {
	local program package judge record line known=()
	while IFS='|' read -r program package judge record; do
		line=$(grep -F "| $program | " "$page") || { echo "$page lacks $program" && continue; }
		[ "$package" != 'by hand' ] || continue
		[ -n "$(planned judge "$judge")" ] || echo "$program: the suite judge has no $judge"
		[ "$record" = - ] || [ -n "$(planned record "$record")" ] || echo "$program: the suite record has no $record"
		known+=("judge/($judge)" "record/($record)")
		[[ $line == *"| $(reported judge "$judge") | $(reported record "$record") |" ]] ||
			echo "$page has other reports of $program"
	done < <(rows)
	of_others | grep -vxE "$(IFS='|' && echo "${known[*]}")" | sed 's/$/ is in no row of tests\/judge\/programs/'
	:
}

update() {
	local new
	new=$(mktemp)
	table >"$new.table" || die "no table"
	awk -v table="$new.table" '
		/^<!-- programs: end -->/ { skip = 0 }
		!skip { print }
		/^<!-- programs: begin/ { skip = 1; print ""; while ((getline line <table) > 0) print line; print "" }
	' $page >"$new"
	cat "$new" >$page
	rm "$new" "$new.table"
}

plan=$(plan)
case ${1-} in
'') table ;;
--update) update ;;
--unknown) unknown ;;
*) die "see the top of $0" ;;
esac
