#!/usr/bin/env bash
# Puts the last run of `make bench` into docs/: tables between the marks of
# docs/performance.md, the plots, and every figure (bench.csv).
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

out=$WEFT_BUILD/bench doc=$WEFT_TOP/docs/performance.md
for file in report.md figures.csv bandwidth.svg latency.svg; do
	[ -s "$out/$file" ] || die "no $file in build/bench: make bench comes first"
done
# The report begins with what was run, where and when, up to an empty line.
{
	sed '/^$/q' "$out/report.md"
	python3 "$WEFT_TOP/tests/bench/report.py" --page "$out/figures.csv"
} >"$out/page.md"
awk -v page="$out/page.md" '
	/^<!-- bench: end -->/ {skip = 0}
	!skip {print}
	/^<!-- bench: begin/ {
		while ((getline line < page) > 0)
			print line
		print "\n![bandwidth over size](bandwidth.svg)\n![latency over size](latency.svg)"
		skip = 1
	}' "$doc" >"$doc.new"
mv "$doc.new" "$doc"
cp "$out/bandwidth.svg" "$out/latency.svg" "$WEFT_TOP/docs/"
cp "$out/figures.csv" "$WEFT_TOP/docs/bench.csv"
