#!/usr/bin/env bash
# Lines and branches that the native tests reach: build/coverage/index.html, and a line a folder.
#   coverage.sh [SUITE...]   suites of tests/lab under weft-run as well; all: every one that runs there
# What is killed does not count. Tests run in a copy, build/coverage/tree, so that no other build changes.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need gcc gcovr rsync

out=$WEFT_BUILD/coverage
tree=$out/tree
# Threads count, too.
flags='-O1 -g --coverage -fprofile-update=atomic'
folders=(kernel/proto kernel/core providers/rootless providers/sockets providers/weft)

mkdir -p "$tree"
# Its build/ stays, but for what was counted.
rsync -a --delete --exclude=/build --exclude=/.git "$WEFT_TOP/" "$tree/"
find "$tree" -name '*.gcda' -delete
# Not built without a suite: it would count for lines of older sources.
[ $# -gt 0 ] || rm -rf "$tree/build/rootless"

suite() {
	local name=$1
	shift
	say "coverage: tests/$name"
	# A failed test counts what it reached, too; make check is where it fails.
	make -C "$tree/tests/$name" check SAN=--coverage CFLAGS="$flags" "$@" >"$out/$name.log" 2>&1 ||
		say "coverage: tests/$name failed: $out/$name.log"
	! grep '^not ok' "$out/$name.log" >&2
}

for name in engine stacks provider devices softirq sockets; do suite $name || true; done

if [ $# -gt 0 ]; then
	say "coverage: $* under weft-run"
	# shellcheck source=../tests/lab/rootless.sh disable=SC2154
	[ "$*" != all ] || {
		. "$WEFT_TOP/tests/lab/rootless.sh"
		# shellcheck disable=SC2086 # a list
		set -- $rootless_suites
	}
	make -C "$tree" rootless CFLAGS="$flags" >"$out/rootless.log" 2>&1 ||
		die "coverage: weft-run was not built: $out/rootless.log"
	# Programs run as other users, who may write to files that exist.
	find "$tree/build/rootless" -name '*.gcno' | while read -r notes; do
		install -m 666 /dev/null "${notes%.gcno}.gcda"
	done
	ROOTLESS_CFLAGS=$flags "$tree/tests/lab/run.sh" rootless "$@" >>"$out/rootless.log" 2>&1 ||
		say "coverage: a suite failed: $out/rootless.log"
	find "$tree/build/rootless" -name '*.gcda' -empty -delete
	grep '^not ok' "$out/rootless.log" >&2 || true
fi

# apart FILE...: gcovr (5.2) fails if a function of a file is on different lines in two of them, as is_guarded() of
# guard.c is where one was built with sanitizers. No function is as this script builds them.
apart() {
	python3 - "$@" <<-'END'
		import json, sys
		seen = {}
		for name in sys.argv[1:]:
		    data = json.load(open(name))
		    for file in data['files']:
		        for f in file['functions']:
		            key = file['file'], f['name']
		            if seen.setdefault(key, f['lineno']) != f['lineno']:
		                f['name'] += ':%d' % f['lineno']
		    json.dump(data, open(name, 'w'))
	END
}

# A source is compiled for several tests, which are added up. gcovr has to know where the compiler ran,
# and leaves files where it runs itself.
gcovr_all() {
	local filters=() added=() folder from
	for folder in "${folders[@]}"; do filters+=(--filter "$tree/$folder/"); done
	for from in tests/{engine,stacks,provider,devices,softirq,sockets} providers/rootless; do
		folder=$tree/build/${from#providers/}
		[ -d "$folder" ] || continue
		added+=(--add-tracefile "$out/gcovr/${from##*/}.json")
		gcovr -r "$tree" "${filters[@]}" --exclude-throw-branches --exclude-unreachable-branches \
			--gcov-ignore-parse-errors --object-directory "$tree/$from" \
			--json "$out/gcovr/${from##*/}.json" "$folder" || return
	done
	apart "$out"/gcovr/*.json
	gcovr -r "$tree" "${added[@]}" --html-details "$out/index.html" --json-summary "$out/summary.json"
}

rm -rf "$out/gcovr"
mkdir "$out/gcovr"
(cd "$out/gcovr" && gcovr_all) >"$out/gcovr.log" 2>&1 || {
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
