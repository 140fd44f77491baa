#!/usr/bin/env bash
# Puts the last run of a bench into docs/, between the marks of its page, and every figure into a CSV.
#   publish.sh           of `make bench`: docs/performance.md, bench.csv, the plots
#   publish.sh native    of `make bench-native`: docs/performance-native.md, bench-native.csv; and the plots,
#                        bandwidth-native.svg and latency-native.svg, if they were made
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

name=bench${1:+-$1} doc=$WEFT_TOP/docs/performance${1:+-$1}.md
out=$WEFT_BUILD/$name
files=(report.md figures.csv)
[ -n "${1-}" ] || files+=(bandwidth.svg latency.svg)
for file in "${files[@]}"; do
	[ -s "$out/$file" ] || die "no $file in build/$name: make $name comes first"
done

# The report begins with what was run, where and when, up to an empty line.
page() {
	local plot
	if [ -n "${1-}" ]; then
		cat "$out/report.md"
	else
		sed '/^$/q' "$out/report.md"
		python3 "$WEFT_TOP/tests/bench/report.py" --page "$out/figures.csv"
	fi
	echo
	for plot in bandwidth latency; do
		[ ! -s "$out/$plot.svg" ] || echo "![$plot over size]($plot${1:+-$1}.svg)"
	done
}

page "${1-}" >"$out/page.md"
awk -v page="$out/page.md" '
	/^<!-- bench: end -->/ {skip = 0}
	!skip {print}
	/^<!-- bench: begin/ {
		while ((getline line < page) > 0)
			print line
		skip = 1
	}' "$doc" >"$doc.new"
mv "$doc.new" "$doc"
for plot in bandwidth latency; do
	[ ! -s "$out/$plot.svg" ] || cp "$out/$plot.svg" "$WEFT_TOP/docs/$plot${1:+-$1}.svg"
done
cp "$out/figures.csv" "$WEFT_TOP/docs/$name.csv"
