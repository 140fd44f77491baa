# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Joins the TAP of several cmocka programs into one numbered stream. A program
# that fails without a "not ok" of its own (a sanitizer, a signal) adds one;
# status 77 means that no test of the program matches TEST_ONLY (only.c).
function result(ok, text) {
	print (ok ? "ok " : "not ok ") ++n " - " text
	bad += !ok
}
/^ok [0-9]+/ { sub(/^ok [0-9]+ (- )?/, ""); result(1, $0); next }
/^not ok [0-9]+/ { sub(/^not ok [0-9]+ (- )?/, ""); result(0, $0); told = 1; next }
/^[0-9]+\.\.[0-9]+/ { next }
/^# (not )?ok - / { next }
/^no test here is called / { next }
/^exit / { if (!told && $3 != 77) result(0, $2 " ended with status " $3); told = 0; next }
{ sub(/^# */, ""); print "# " $0 }
END {
	print "1.." n + 0
	if (!n)
		print "# no test ran"
	exit bad || !n
}
