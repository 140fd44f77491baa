# shellcheck shell=bash
# Does weft conform? weftspec on a judges it on b, in both roles, SHOULDs and destructive cases
# included, then with each of its options. A failed case or a crash fails the test.

# One of these is hundreds of tests: time to it.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=1200

tests() {
	cat <<-'END'
		responder conforms 385 responder
		initiator conforms 325 initiator
		with-markers conforms 73 both markers=1 MPA-5 MPA-7 MPA-06 MPA-09
		peer-to-peer-initiator conforms 50 initiator peer_to_peer=1 ENH DDP-1 RDM-1
		revision-1 conforms 4 both mpa_revision=1 --rev 1 ENH-06 MPA-18 DDP-10
		without-crc conforms 13 both crc=0 --no-crc MPA-11 MPA-12 RDM-17
		kernel-consumer kernel_consumer 20
	END
}

# conforms LEAST ROLE [OPTION=VALUE] [ARG...]
conforms() {
	local least=$1 roles=()
	[ "$2" = initiator ] || roles+=(--peer "$IP_B:7471")
	[ "$2" = responder ] || roles+=(--listen 0 --exec "$(start_of_initiator)")
	shift 2
	pair weft:weft 9000
	case ${1-} in *=*) set_option_b "$1" && shift ;; esac
	start_b reflector weft-reflector --listen "$IP_B:7471"
	wait_listen_b 7471
	start_starter
	judge "${roles[@]}" "$@" || true
	verdict "$least"
}

start_of_initiator() {
	echo "echo exec weft-reflector --connect $IP_A:{port} {args} | exec busybox nc $IP_B 7472"
}

# Rows about regions that the peer may invalidate, which no program has.
kernel_consumer() {
	local connect=/sys/module/weft_krefl/parameters/connect
	pair weft:weft 9000
	# shellcheck disable=SC2154 # of /run/weft/env
	on_b insmod "${KO_weft_kmod%/*}/weft_krefl.ko" listen="$IP_B:7473"
	start_starter
	judge --peer "$IP_B:7473" --listen 0 \
		--exec "echo 'echo $IP_A:{port} {args} >$connect' | exec busybox nc $IP_B 7472" \
		RDM-37 RDM-38 RDM-39 RDM-40 RDM-41 SEC-02 || true
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
	local counts passed
	counts=$(grep '^cases:' "$TEST_DIR/weftspec.log") ||
		fail "weftspec did not end; $(tail -n 3 "$TEST_DIR/weftspec.log")"
	told "$counts"
	[[ $counts == *' 0 fail, 0 crash'* ]] ||
		fail "$(grep -E '^(fail|crash)' "$TEST_DIR/weftspec.log" | awk '{printf "%s ", $2}')$counts"
	read -r _ passed _ <<<"$counts"
	[ "$passed" -ge "$1" ] || fail "$counts, but $1 should pass"
}

set_option_b() { on_b bash -c "echo ${1#*=} >/sys/class/infiniband/$DEV_B/weft/${1%%=*}"; }

# Silent for long, a run would be taken for dead.
told() { echo "# $*" >>"$SHARE/job.out"; }

# The debug kernel has one slow processor, an emulated machine two that are slower.
judge() {
	local log=$TEST_DIR/weftspec.log pid n=0
	weftspec --strict --allow-destructive --color never --seed 1 --jobs 4 --patience 4000 \
		--timeout 20 --junit "$TEST_DIR/junit.xml" "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	until is_over $pid; do
		pause 1
		[ $((n += 1)) -lt 60 ] || { n=0 && told "$(grep -cE '^[a-z]+ +[A-Z]+-[0-9]' "$log") cases"; }
	done
	wait $pid
}
