#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tester's own behaviour: command lines, exit status, reports, profiles.
#   cli.sh BIN     TAP on stdout
set -u
bin=${1:?folder of the programs}
spec=$bin/weftspec peer=$bin/weftspec-self-peer
tmp=$(mktemp -d)
peers=()
trap 'kill "${peers[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
n=0 bad=0
quick="--seed 1 --timeout 4 --patience 1000 --color never"
calm="--seed 1 --timeout 20 --patience 5000 --color never"

verdict() { # verdict RC NAME
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else
		bad=1
		echo "not ok $n - $2"
		tail -n 5 "$tmp/out" | sed 's/^/# /'
	fi
}

# exits CODE TEXT NAME COMMAND...: exit status and a text in the output
exits() {
	local want=$1 text=$2 name=$3 rc=0
	shift 3
	timeout 600 "$@" >"$tmp/out" 2>&1 </dev/null || rc=$?
	[ $rc = "$want" ] && grep -qF -- "$text" "$tmp/out"
	verdict $? "$name"
}

# A self-peer; its port in $port.
start() {
	local log
	log=$(mktemp -p "$tmp")
	"$peer" "$@" --listen '127.0.0.1:0' >"$log" 2>&1 &
	peers+=($!)
	until grep -q ready "$log"; do sleep 0.05; done
	port=$(sed -n 's/^ready //p' "$log")
}

exits 2 'no peer' 'no-arguments' "$spec"
exits 2 'not HOST:PORT' 'peer-without-port' "$spec" --peer foo
exits 2 'not a number' 'peer-with-odd-port' "$spec" --peer foo:99999
exits 2 'needs brackets' 'ipv6-without-brackets' "$spec" --peer ::1:7471
exits 2 'cannot be reached' 'no-listener' "$spec" --peer 127.0.0.1:1
exits 2 'cannot be reached' 'initiator-that-never-comes' \
	"$spec" --timeout 1 --listen 0 --exec 'true {port}' MPA-03
exits 2 'needs {port}' 'any-port-without-place-for-it' "$spec" --listen 0 --exec true
exits 2 'go together' 'exec-without-listen' "$spec" --exec true
exits 2 'not a folder' 'pcap-folder-missing' "$spec" --peer 127.0.0.1:1 --pcap "$tmp/none"
exits 2 'No such file' 'profile-missing' "$spec" --peer 127.0.0.1:1 --profile "$tmp/none"
exits 0 '254 rows' 'list' "$spec" --list
exits 0 'a case or a reason' 'table-is-complete' "$spec" --check-table

start
# shellcheck disable=SC2086
run="$spec $quick --peer 127.0.0.1:$port"
exits 2 'no case has such an id' 'unknown-id' $run NOPE-1
exits 0 '1 pass' 'one-row' $run RDM-14
exits 2 'standard output' 'output-cannot-be-written' sh -c "$run RDM-14 >/dev/full"
exits 2 '/dev/full' 'report-cannot-be-written' $run --junit /dev/full RDM-14
exits 0 '1..1' 'tap-plan' $run --tap RDM-14
printf 'RDM-14 fail anything\n' >"$tmp/p"
exits 1 'the profile says otherwise' 'foreseen-deviation-does-not-come' $run --profile "$tmp/p" RDM-14
printf 'RDM-14 perhaps\n' >"$tmp/p"
exits 2 'p:1' 'profile-with-a-wrong-line' $run --profile "$tmp/p" RDM-14
exits 2 '' 'only-skipped-is-no-success' $run MPA-75

start --fault rsvd
run="$spec $quick --peer 127.0.0.1:$port"
exits 1 'DDP Rsvd=1' 'deviation' $run --junit "$tmp/j.xml" DDP-04 DDP-05
grep -q '<failure type="fail" message="expected: .*actual: .*DDP Rsvd=1' "$tmp/j.xml"
verdict $? 'junit-has-expected-and-actual'
grep -q '<testsuite name="DDP" tests="2" failures="1" errors="0" skipped="0">' "$tmp/j.xml"
verdict $? 'junit-counts'
python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$tmp/j.xml" 2>"$tmp/out"
verdict $? 'junit-is-xml'
exits 1 'not ok 1 - DDP-04' 'tap-names-the-case' $run --tap DDP-04
exits 1 'DDP Rsvd=1' 'learn' $run --learn "$tmp/p" DDP-04
exits 0 'known to the profile' 'what-was-learned-is-expected' $run --profile "$tmp/p" DDP-04
printf 'DDP-04 fail another reason\n' >"$tmp/p"
exits 1 'another signature' 'another-signature-is-a-surprise' $run --profile "$tmp/p" DDP-04

start --fault crash-on-reset
run="$spec $quick --peer 127.0.0.1:$port"
exits 1 'crash     MPA-42/rst10' 'crash-is-a-verdict' $run MPA-42/rst10 RDM-14
grep -q '1 crash, 1 skipped' "$tmp/out"
verdict $? 'the-rest-is-skipped'

start --fault terminate-bit-order
exits 1 'quirk siw-bitorder' 'quirk-is-named-once' "$spec" $quick --peer "127.0.0.1:$port" RDM-43 DDP-29
grep -q 'pass      DDP-29' "$tmp/out"
verdict $? 'and-the-rest-judged-on-the-meaning'

# What a profile of hardware says, the manner does.
for manner in irdma cxgb4; do
	set -- --profile "$(dirname "$0")/../profiles/$manner" --jobs 6 MPA-2 MPA-39 MPA-40 ENH-
	start --manner $manner --startup 6000
	exits 0 'known to the profile' "profile-of-$manner-as-responder" "$spec" $calm --p2p --peer "127.0.0.1:$port" "$@"
	exits 0 'known to the profile' "profile-of-$manner-as-initiator" "$spec" $calm --listen 0 \
		--exec "exec $peer --manner $manner --startup 6000 --connect 127.0.0.1:{port} {args}" "$@"
done

echo "1..$n"
exit $bad
