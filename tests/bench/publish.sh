#!/usr/bin/env bash
# Puts the last run of a bench into docs/, between the marks of its page, and every figure into a CSV.
#   publish.sh           of `make bench`: docs/performance.md, bench.csv, the plots
#   publish.sh native    of `make bench-native`: docs/performance-native.md, bench-native.csv
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

name=bench${1:+-$1} doc=$WEFT_TOP/docs/performance${1:+-$1}.md
out=$WEFT_BUILD/$name
files=(report.md figures.csv) plots=()
[ -n "${1-}" ] || plots=(bandwidth.svg latency.svg)
for file in "${files[@]}" "${plots[@]}"; do
	[ -s "$out/$file" ] || die "no $file in build/$name: make $name comes first"
done

# The report begins with what was run, where and when, up to an empty line.
page() {
	if [ -n "${1-}" ]; then
		cat "$out/report.md"
		return
	fi
	sed '/^$/q' "$out/report.md"
	python3 "$WEFT_TOP/tests/bench/report.py" --page "$out/figures.csv"
	printf '\n![bandwidth over size](bandwidth.svg)\n![latency over size](latency.svg)\n'
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
for file in "${plots[@]}"; do cp "$out/$file" "$WEFT_TOP/docs/"; done
cp "$out/figures.csv" "$WEFT_TOP/docs/$name.csv"
