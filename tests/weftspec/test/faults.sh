#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Does the tester notice?  For each fault of the self-peer the rows that must
# notice it are run; each must come out as something other than pass.  Before
# that, a clean self-peer must pass every row in each of its modes.
#   faults.sh BIN [FAULT...]     TAP on stdout
set -u
bin=${1:?folder of the programs}
shift
spec=$bin/weftspec peer=$bin/weftspec-self-peer
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
quick="--seed 1 --timeout 4 --patience 1000 --color never --allow-destructive"
# Of a clean self-peer nothing is waited for in vain: the time that a crowd may take costs nothing.
calm="--timeout 30 --patience 10000"
workers=${WORKERS:-4}

# run MODE FAULT OUT ARG...: weftspec against a fresh self-peer.
run() {
	local mode=$1 fault=$2 out=$3 opts="" port pid rc=0 mine=""
	shift 3
	case $mode in m) opts=--markers ;; p) opts=--p2p ;; v) opts="--rev 1" mine="--rev 1" ;; n) opts=--no-crc ;; x) opts=--no-ext ;; esac
	[ "$fault" != none ] || opts+=" --startup 6000"
	if [ "$mode" = i ] || [ "$mode" = p ]; then
		# shellcheck disable=SC2086 # words on purpose
		timeout 1200 "$spec" $quick --listen 0 --exec \
			"exec $peer --fault $fault $opts --connect 127.0.0.1:{port} {args}" \
			"$@" >"$out" 2>"$out.err"
		return
	fi
	# shellcheck disable=SC2086
	"$peer" --fault "$fault" $opts --listen 127.0.0.1:0 >"$out.peer" 2>&1 &
	pid=$!
	until grep -qs ready "$out.peer" || ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	port=$(sed -n "s/^ready //p" "$out.peer")
	# shellcheck disable=SC2086
	timeout 1200 "$spec" $quick $mine --peer "127.0.0.1:$port" "$@" >"$out" 2>"$out.err" || rc=$?
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	return $rc
}

verdict_of() {
	sed -n "s/^| $1 | [^|]* | [^|]* | \([a-z ]*\) |.*/\1/p" "$2"
}

# noticed FAULT MODE ROW...: one line a row.
noticed() {
	local fault=$1 mode=$2 row verdict out
	shift 2
	out=$tmp/$fault.$mode
	run "$mode" "$fault" "$out" --markdown --jobs 6 "$@"
	for row; do
		verdict=$(verdict_of "$row" "$out")
		# A crash before it leaves a row without its turn; so does a machine with no time for it.
		for _ in 1 2; do
			[ "$verdict" = skipped ] || [ -z "$verdict" ] || break
			run "$mode" "$fault" "$out.again" --markdown "$row"
			verdict=$(verdict_of "$row" "$out.again")
		done
		case $verdict in
		fail | crash | divergent) echo "ok - $fault@$mode $row" ;;
		*) echo "not ok - $fault@$mode $row # ${verdict:-no verdict}" ;;
		esac
	done >"$out.tap"
}

one_fault() {
	local fault=$1 word mode
	shift
	local -A rows=()
	for word; do
		mode=r
		case $word in @*) mode=${word:1:1} word=${word#@?:} ;; esac
		rows[$mode]+=" $word"
	done
	for mode in "${!rows[@]}"; do
		# shellcheck disable=SC2086
		noticed "$fault" "$mode" ${rows[$mode]}
	done
}

clean() {
	local mode=$1 only=()
	case $mode in v) only=(ENH-06 ENH-05 MPA-18) ;; n) only=(MPA-11 MPA-12 RDM-1) ;; x) only=(RDM-05) ;; esac
	# shellcheck disable=SC2086 # words on purpose
	if run "$mode" none "$tmp/clean.$mode" $calm --jobs 2 "${only[@]}"; then
		echo "ok - clean@$mode"
	else
		echo "not ok - clean@$mode"
		grep -A 3 -E '^(fail|crash)' "$tmp/clean.$mode" | grep -v '^pass' | sed 's/^/# /'
	fi >"$tmp/clean.$mode.tap"
}

# A SHOULD that was missed in the crowd is asked for once more, alone.
ask_again() {
	local mode=$1 log=$tmp/clean.$1 row
	for row in $(sed -n 's/^divergent *\([A-Z]*-[0-9]*\).*/\1/p' "$log" | sort -u); do
		# shellcheck disable=SC2086 # words on purpose
		run "$mode" none "$log.again" $calm "$row"
		grep -E "^[a-z]+ +${row}[@/]" "$log.again" >"$log.new" || continue
		grep -vE "^[a-z]+ +${row}[@/]" "$log" >>"$log.new"
		mv "$log.new" "$log"
	done
}

wanted() {
	local fault=$1 f
	shift
	[ $# -eq 0 ] && return
	for f; do [ "$f" = "$fault" ] && return; done
	return 1
}

throttle() { while [ "$(jobs -rp | wc -l)" -ge "$workers" ]; do sleep 0.05; done; }

if [ $# -eq 0 ]; then
	for mode in r i m p v n x; do
		throttle
		clean $mode &
	done
fi
while read -r fault rows; do
	wanted "$fault" "$@" || continue
	throttle
	# shellcheck disable=SC2086
	one_fault "$fault" $rows &
done < <("$peer" --faults)
wait

cat "$tmp"/*.tap >"$tmp/all"
if [ $# -eq 0 ]; then
	for mode in r i m p v n x; do ask_again $mode; done
	# And weft's own stack has none of siw's faults.
	"$(dirname "$0")/../siw-faults.sh" "$tmp"/clean.[rimpvnx] |
		sed -n 's/ok SIW/ok - SIW/p' >>"$tmp/all"
	# Every row with a case is noticed to fail by at least one fault.
	"$spec" --list | awk '/^(MPA|ENH|DDP|RDM|EXT|SEC)-/ && !/ 0 cases/ { print $1 }' |
		while read -r row; do
			grep -q "^ok - [^ ]* $row\$" "$tmp/all" ||
				echo "not ok - $row is noticed by no fault"
		done >"$tmp/uncovered"
	cat "$tmp/uncovered" >>"$tmp/all"
fi
awk '/^(not )?ok/ { n++; sub(/ok -/, "ok " n " -") } { print } END { print "1.." n }' "$tmp/all"
echo "# $(grep -c '^ok' "$tmp/all") ok, $(grep -c '^not ok' "$tmp/all") not ok," \
	"$(sed -n 's/^ok - [^ ]* \([A-Z]*-[0-9]*\).*/\1/p' "$tmp/all" | sort -u | wc -l) rows detect a fault"
! grep -q '^not ok' "$tmp/all"
