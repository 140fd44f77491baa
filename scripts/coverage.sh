#!/usr/bin/env bash
# Lines and branches that the native tests reach: build/coverage/index.html, and a line a folder.
#   coverage.sh [SUITE...]   the suites of tests/lab that also run under weft-run; without a name, none
# Tests run in a copy of the checkout, build/coverage/tree, so that no other build changes.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need gcc gcovr rsync

out=$WEFT_BUILD/coverage
tree=$out/tree
flags='-O1 -g --coverage'
folders=(kernel/proto kernel/core providers/rootless providers/sockets)

mkdir -p "$tree"
# Its build/ stays, but for what was counted.
rsync -a --delete --exclude=/build --exclude=/.git "$WEFT_TOP/" "$tree/"
find "$tree" -name '*.gcda' -delete

suite() {
	local name=$1
	shift
	say "coverage: tests/$name"
	# A failed test counts what it reached, too; make check is where it fails.
	make -C "$tree/tests/$name" check SAN=--coverage CFLAGS="$flags" "$@" >"$out/$name.log" 2>&1 ||
		say "coverage: tests/$name failed: $out/$name.log"
	! grep '^not ok' "$out/$name.log" >&2
}

for name in engine stacks provider softirq sockets; do suite $name || true; done

if [ $# -gt 0 ]; then
	say "coverage: $* under weft-run"
	# Programs under weft-run may be another user's: only there may they write what they counted.
	counted=$out/counted
	rm -rf "$counted"
	mkdir -p "$counted"
	chmod 1777 "$counted"
	mkdir -p "$tree/build"
	[ ! -d "$WEFT_BUILD/provider" ] || cp -a "$WEFT_BUILD"/{lib,etc} "$tree/build/"
	if ! make -C "$tree" rootless CFLAGS="$flags" CAN_JOIN= >"$out/rootless.log" 2>&1 ||
		! GCOV_PREFIX=$counted "$tree/tests/lab/run.sh" rootless "$@" >>"$out/rootless.log" 2>&1; then
		say "coverage: a suite failed: $out/rootless.log"
	fi
	rsync -r --no-links --include='*/' --include='*.gcda' --exclude='*' "$counted$tree/build/" "$tree/build/"
	grep '^not ok' "$out/rootless.log" >&2 || true
fi

# gcovr_of ARG...: of the folders above; a source is compiled for several tests, which are added up.
gcovr_of() {
	local filters=() folder
	for folder in "${folders[@]}"; do filters+=(--filter "$tree/$folder/"); done
	gcovr -r "$tree" "${filters[@]}" --exclude-throw-branches --exclude-unreachable-branches \
		--gcov-ignore-parse-errors "$@" "$tree/build"
}

gcovr_of --html-details "$out/index.html" --json-summary "$out/summary.json" >"$out/gcovr.log" 2>&1 || {
	tail "$out/gcovr.log" >&2
	die 'gcovr failed'
}
python3 - "$out/summary.json" "${folders[@]}" <<'END'
import json, sys
files = json.load(open(sys.argv[1]))['files']
print('%-28s %7s %7s %9s' % ('folder', 'lines', 'reached', 'branches'))
def row(name, chosen):
    total = {k: sum(f[k] for f in chosen) for k in ('line_total', 'line_covered', 'branch_total', 'branch_covered')}
    if total['line_total']:
        print('%-28s %7d %6.1f%% %8.1f%%' % (name, total['line_total'],
              100 * total['line_covered'] / total['line_total'],
              100 * total['branch_covered'] / max(1, total['branch_total'])))
for top in sys.argv[2:]:
    below = [f for f in files if f['filename'].startswith(top + '/')]
    row(top, below)
    rooms = sorted({f['filename'].rsplit('/', 1)[0] for f in below})
    for room in rooms if len(rooms) > 1 else []:
        row('  ' + room[len(top) + 1:] if room != top else '  .', [f for f in below if f['filename'].rsplit('/', 1)[0] == room])
END
say "coverage: $out/index.html"
