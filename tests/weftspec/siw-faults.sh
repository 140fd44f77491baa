#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Which of siw's faults does a peer have? One test for each of siw-faults.def, judged by what
# weftspec printed about that peer (without --tap or --quiet): TAP.
#   siw-faults.sh LOG...
# A fault's test fails if a row that it needs has no passed case, even if all were skipped or not run.
set -u
# grep ends each line, also the last one of a log that was cut off.
grep -h '' -- "$@" | awk '
	# The definitions: each row in each of its roles.
	FILENAME != "-" && /^SIW-/ {
		name[++n] = $1 "-" $2
		for (i = 3; i <= NF; i++) {
			row = text = $i
			roles = sub(/.*@/, "", text) ? substr(text, 1, 1) : "ri"
			if (!sub(/.*~/, "", text))
				text = ""
			sub(/[@~].*/, "", row)
			for (k = 1; k <= length(roles); k++) {
				need[n, ++needs[n]] = row "@" substr(roles, k, 1)
				excuse[n, needs[n]] = text
			}
		}
	}

	# The logs: verdict and id of a case, and below it what was seen of one that deviates.
	FILENAME == "-" && /^(pass|divergent|fail|crash|skipped) +[A-Z]+-[0-9]/ {
		open = $1 != "pass" && $1 != "skipped"
		row = $2
		sub(/\/[^@]*/, "", row)
		if ($1 == "pass") {
			passed[row]++
			if ($2 != row)
				passed[$2]++
		}
		if (open) {
			bad[++bads] = $1 " " $2
			bad_row[bads] = row
		}
	}
	FILENAME == "-" && /^ +actual: / && open {
		sub(/^ +actual: +/, "")
		bad_seen[bads] = $0
	}

	function excused(b, text) {
		return bad[b] ~ /^divergent/ && text != "" && index(bad_seen[b], text) == 1
	}

	function judge(f,	k, b, row, why, cases) {
		for (k = 1; k <= needs[f]; k++) {
			row = need[f, k]
			cases += passed[row]
			if (!passed[row])
				why = why " no pass of " row ";"
			for (b = 1; b <= bads; b++)
				if ((bad_row[b] == row || bad[b] ~ " " row "$") && !excused(b, excuse[f, k]))
					why = why " " bad[b] ";"
		}
		print (why == "" ? "ok " : "not ok ") name[f] " #" (why == "" ? " " cases " cases" : why)
		return why != ""
	}

	END {
		print "1.." n
		for (f = 1; f <= n; f++)
			failed += judge(f)
		exit failed || !n
	}' "$(dirname "$0")/siw-faults.def" -
