# shellcheck shell=bash
# Does weft conform? weftspec on a judges it on b, in both roles, SHOULDs and destructive cases
# included, then with each of its options. A failed case or a crash fails the test.

# One of these is hundreds of tests: time to it.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=1200

tests() {
	[ "${KERNEL-}" = rootless ] || echo "kernel-consumer kernel_consumer 39"
	if [ "${KERNEL-}" = rootless ]; then
		echo "by-hand-responder by_hand 440"
		echo "by-hand-initiator by_hand 383 --listen 0"
		echo "by-hand-large-fpdus by_hand 8 --large-fpdus MPA-53 MPA-54 MPA-65"
	fi
	cat <<-'END'
		responder conforms 460 responder
		initiator conforms 397 initiator
		with-markers conforms 73 both markers=1 MPA-5 MPA-7 MPA-06 MPA-09
		rtr-send-initiator rtr_initiator 3 send write read
		rtr-write-initiator rtr_initiator 3 write send read
		rtr-read-initiator rtr_initiator 3 read send write
		rtr-send-responder conforms 12 responder rtr=send ENH-16 ENH-17 ENH-18 ENH-19 ENH-20 ENH-24
		rtr-write-responder conforms 15 responder rtr=write ENH-16 ENH-17 ENH-18 ENH-19 ENH-20 ENH-23 ENH-24
		rtr-read-responder conforms 15 responder rtr=read ENH-16 ENH-17 ENH-18 ENH-19 ENH-20 ENH-24 ENH-25
		revision-1 conforms 4 both mpa_revision=1 --rev 1 ENH-06 MPA-18 DDP-10
		without-crc conforms 13 both crc=0 --no-crc MPA-11 MPA-12 RDM-17
		without-extensions conforms 16 both extensions=0 RDM-05
		large-fpdus conforms 16 both large_fpdus=1 --large-fpdus MPA-53 MPA-54 MPA-65
		segments-beyond-the-longest-ulpdu conforms 4 both mtu=65000 MPA-53
	END
}

# One line for each fault that siw has: the rows that show it have passed here. And what one of the runs
# skipped, since the device's options were not for it, another has run. QPs that are connected by hand are
# another peer: not all rows are for them.
after() {
	local logs
	mapfile -t logs < <(find "$1" -path '*/by-hand-*' -prune -o -name weftspec.log -print | sort)
	"$WEFT_TOP/tests/weftspec/siw-faults.sh" "${logs[@]}" | sed 's/ok SIW/ok spec\/SIW/'
	no_case_is_left "${logs[@]}"
}

no_case_is_left() {
	local left
	left=$(awk '
		/^(pass|divergent|skipped) +[A-Z]+-[0-9]/ { if ($1 == "skipped") skipped[$2]; else run[$2] }
		END { for (id in skipped) if (!(id in run)) print id }' "$@" | paste -sd ' ')
	echo 1..1
	echo "${left:+not }ok spec/no-case-is-left-skipped${left:+ # $left}"
}

# conforms LEAST ROLE [mtu=MTU|OPTION=VALUE] [ARG...]
conforms() {
	local least=$1 roles=() mtu=9000 imm=--imm
	# RDM-05 has cases for a peer without RFC 7306.
	[ "${3-}" != extensions=0 ] || imm=
	[ "$2" = initiator ] || roles+=(--peer "$IP_B:7471")
	[ "$2" = responder ] || roles+=(--listen 0 --exec "$(start_of_initiator $imm)")
	shift 2
	case ${1-} in mtu=*) mtu=${1#*=} && shift ;; esac
	pair weft:weft "$mtu"
	# MPA-37 waits less than the minute that a program has to accept.
	set_option_b accept_timeout_ms 10000
	case ${1-} in *=*) set_option_b "${1%%=*}" "${1#*=}" && shift ;; esac
	# shellcheck disable=SC2086 # one option, or none
	start_b reflector weft-reflector $imm --listen "$IP_B:7471"
	wait_listen_b 7471
	start_starter
	judge "${roles[@]}" "$@"
	verdict "$least"
}

# by_hand LEAST [--listen 0]: the same, of QPs that are connected without rdma_cm. What does not apply to them
# the profile says. The GIDs are one address, for a loopback has no more. The lower port connects: the peer's,
# where the tester listens.
by_hand() {
	local log=$TEST_DIR/weftspec.log least=$1 counts passed
	shift
	pair weft:weft 9000
	set_option_b ports 20000-20999
	start_b reflector weft-reflector --imm --by-hand "$IP_A:7481"
	wait_listen_b 7481
	ask "$log" --jobs 4 --junit "$TEST_DIR/junit.xml" --by-hand \
		--profile "$WEFT_TOP/tests/weftspec/profiles/by-hand" --peer "$IP_A:7481" "$@"
	counts=$(grep '^cases:' "$log") || fail "weftspec did not end; $(tail -n 3 "$log")"
	told "$counts"
	! grep -q '^surprise' "$log" || fail "$(grep -m 3 '^surprise' "$log")"
	read -r _ passed _ <<<"$counts"
	[ "$passed" -ge "$least" ] || fail "$counts, but $least should pass"
}

# rtr_initiator LEAST KIND OTHER...: only this kind of "ready to receive" is offered.
rtr_initiator() {
	local least=$1 kind=$2 other
	shift 2
	conforms "$least" initiator "rtr=$kind" ENH-21 ENH-22
	grep -q "^pass *ENH-21/$kind@" "$TEST_DIR/weftspec.log" || fail "it does not offer $kind"
	for other; do
		grep -q "^skipped *ENH-21/$other@" "$TEST_DIR/weftspec.log" || fail "it offers $other, too"
	done
}

# start_of_initiator [OPTION]
start_of_initiator() {
	echo "echo exec weft-reflector ${1-} --connect $IP_A:{port} {args} | exec busybox nc $IP_B 7472"
}

# Rows about regions that the peer may invalidate, which are fast registrations here, and about
# Immediate Data.
kernel_consumer() {
	local connect=/sys/module/weft_krefl/parameters/connect
	pair weft:weft 9000
	# shellcheck disable=SC2154 # of /run/weft/env
	on_b insmod "${KO_weft_kmod%/*}/weft_krefl.ko" listen="$IP_B:7473"
	start_starter
	judge --peer "$IP_B:7473" --listen 0 \
		--exec "echo 'echo $IP_A:{port} {args} >$connect' | exec busybox nc $IP_B 7472" \
		RDM-37 RDM-38 RDM-39 RDM-40 RDM-41 SEC-02 EXT-01 EXT-02 EXT-03 EXT-05
	on_b rmmod weft_krefl
	verdict "$1"
}

# What the tester wants started on b, it tells a shell there, several at once.
start_starter() {
	at b listening 7472 || start_b starter starter 7472
	wait_listen_b 7472
}

# verdict LEAST: at least so many cases must have passed and none failed.
verdict() {
	local log=$TEST_DIR/weftspec.log counts passed late
	counts=$(grep '^cases:' "$log") || fail "weftspec did not end; $(tail -n 3 "$log")"
	told "$counts"
	late=$(grep -c '^late ' "$log" || true)
	[[ $counts == *" $late fail, 0 crash"* ]] || fail "$(failures "$log")$counts"
	read -r _ passed _ <<<"$counts"
	passed=$((passed + late))
	[ "$passed" -ge "$1" ] || fail "$counts, but $1 should pass"
}

# Each with what was seen instead.
failures() {
	awk '/^[a-z]+ +[A-Z]+-[0-9]/ { id = $1 == "fail" || $1 == "crash" ? $1 " " $2 : "" }
		/^ +actual: / && id != "" { sub(/^ +actual: +/, ""); printf "%s: %s; ", id, $0; id = "" }' "$1"
}

# Silent for long, a run would be taken for dead.
told() { echo "# $*" >>"$SHARE/job.out"; }

# The debug kernel has one slow processor, an emulated machine two that are slower.
judge() {
	local log=$TEST_DIR/weftspec.log arg options=() id
	ask "$log" --jobs 4 --junit "$TEST_DIR/junit.xml" "$@"
	for arg; do
		[[ $arg =~ ^[A-Z]+-[0-9] ]] || options+=("$arg")
	done
	for id in $(too_late "$log"); do
		again "$log" "$id" "${options[@]}" || break
	done
}

# ask LOG ARG...
ask() {
	local log=$1 pid n=0
	weftspec --strict --allow-destructive --color never --seed 1 --patience 10000 \
		--timeout 20 "${@:2}" >"$log" 2>&1 </dev/null &
	pid=$!
	until is_over $pid; do
		pause 1
		[ $((n += 1)) -lt 60 ] || { n=0 && told "$(grep -cE '^[a-z]+ +[A-Z]+-[0-9]' "$log") cases"; }
	done
	wait $pid || true
}

# The cases of LOG that failed because nothing came in time, if they are one or two.
too_late() {
	awk '/^[a-z]+ +[A-Z]+-[0-9]/ { id = $1 == "fail" ? $2 : "" }
		/^ +actual: +(nothing|none came|no answer|.* is not answered|.* is mute)/ && id != "" { ids = ids " " id; n++ }
		END { if (n <= 2) print ids }' "$1"
}

# again LOG CASE OPTION...: no row of the standard sets a time. What came too late from a machine
# that had four cases at once, and half a processor, must come three times of three to a tester that
# asks for nothing else; then it is "late" in the log, not "fail".
again() {
	local log=$1 id=$2 apart=$TEST_DIR/again.log
	for _ in 1 2 3; do
		ask "$apart" "${@:3}" "$id"
		grep -q "^pass *$id " "$apart" || return
	done
	told "$id came late among others, and passes alone, three times of three"
	sed -i "s|^fail\( *$id \)|late\1|" "$log"
	grep "^pass *$id " "$apart" >>"$log"
}
