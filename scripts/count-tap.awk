# Counts TAP on stdin: "PASSED FAILED SKIPPED". Several programs' outputs may follow one
# another. A program that reports fewer tests than its plan has died: the rest have failed.

function close_plan() {
	if (planned > seen)
		failed += planned - seen
	planned = seen = 0
}

/^1\.\.[0-9]+/ {
	# A plan stands first or last, so it ends the program before unless that had none yet.
	if (planned)
		close_plan()
	planned = substr($1, 4) + 0
	if (seen >= planned)
		close_plan()
}

/^(not )?ok( |$)/ {
	if (planned && seen == planned)
		close_plan()
	seen++
	if ($0 ~ /# *[Ss][Kk][Ii][Pp]/)
		skipped++
	else if ($1 == "not")
		failed++
	else
		passed++
}

END {
	close_plan()
	print passed + 0, failed + 0, skipped + 0
}
