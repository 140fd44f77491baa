# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Reads lines "WHAT WAY FIGURE", of each WHAT as many of each WAY, in the order in which they were taken; one WAY is
# tcp, or what -v base= says. Prints the medians, and of each WAY the median of the ratios of the pairs with that.

BEGIN {
	if (!base)
		base = "tcp"
}

function median(of, n,    i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && of[j - 1] > of[j]; j--) {
			t = of[j]; of[j] = of[j - 1]; of[j - 1] = t
		}
	return of[int((n + 1) / 2)]
}

function show(what, way,    i, m, a, b, r) {
	m = n[what, way]
	for (i = 1; i <= m; i++) {
		a[i] = figure[what, way, i]; b[i] = figure[what, base, i]
		r[i] = b[i] ? a[i] / b[i] : 0
	}
	printf "%s: %s %.4g, %s %.4g, ratio %.3g, of %d pairs\n", what, way, median(a, m), base, median(b, m), median(r, m), m
}

NF == 3 {
	if (!n[$1, $2]++ && $2 != base)
		order[++pairs] = $1 SUBSEP $2
	figure[$1, $2, n[$1, $2]] = $3
}

END {
	for (i = 1; i <= pairs; i++) {
		split(order[i], p, SUBSEP)
		show(p[1], p[2])
	}
}
