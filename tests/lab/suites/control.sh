# shellcheck shell=bash
# weft-run --control and weft-ctl: what a program has is listed, and breaks when it is told to.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		without-control-there-is-no-socket without_control
		weft-ctl-error-ends-both-ends-of-a-pingpong breaks error
		weft-ctl-disconnect-ends-both-ends-of-a-pingpong breaks disconnect
		weft-ctl-fatal-is-an-event-of-the-device fatal
		weft-ctl-refuses-what-is-not-there refuses
	END
}

# As the programs' user, with a folder of its own.
# shellcheck disable=SC2086 # a list
as_user() { PATH=${PATH#*:} $AS_USER env XDG_RUNTIME_DIR="$TEST_DIR/runtime" "$@"; }

# shellcheck disable=SC2317
ctl() { as_user timeout 10 "${WEFT_RUN%run}ctl" "$@"; }

begin_control() {
	mkdir -p "$TEST_DIR/runtime"
	chmod 777 "$TEST_DIR/runtime"
}

# starts NAME PROGRAM...: under --control
starts() {
	as_user timeout 60 stdbuf -oL "$WEFT_RUN" --control --netdevs=lo "${@:2}" >"$TEST_DIR/$1.log" 2>&1 &
}

lists() { ctl list >"$TEST_DIR/list" && [ "$(grep -cE "$2" "$TEST_DIR/list")" = "$1" ]; }

without_control() {
	begin_control
	as_user "$WEFT_RUN" --netdevs=lo ibv_devinfo >"$TEST_DIR/out" || fail "$(cat "$TEST_DIR/out")"
	[ ! -e "$TEST_DIR/runtime/weft" ] || fail "there is a folder"
	[ -z "$(ctl list)" ] || fail "something is listed"
}

# breaks COMMAND: of the QP that is listed first
breaks() {
	local pid qpn ends
	begin_control
	starts server ibv_rc_pingpong -d weft_lo -g 0 -n 100000000
	ends=$!
	wait_for 10 lists 1 'device weft_lo' || fail "no server"
	wait_for 10 eval 'ss -ltn | grep -q :18515' || fail "it does not listen"
	starts client ibv_rc_pingpong -d weft_lo -g 0 -n 100000000 127.0.0.1
	ends="$ends $!"
	wait_for 10 lists 2 'qp [0-9]+ weft_lo RC RTS 127\.' || fail "$(cat "$TEST_DIR/list")"
	read -r pid _ qpn _ < <(grep ' qp ' "$TEST_DIR/list")
	ctl -p "$pid" "$1" "$qpn" || fail "$1 $qpn"
	for pid in $ends; do
		wait "$pid" && fail "it ended well"
		[ $? != 124 ] || fail "it hung"
	done
	return 0
}

fatal() {
	begin_control
	starts watcher ibv_asyncwatch -d weft_lo
	wait_for 10 lists 1 'device weft_lo' || fail "no watcher"
	ctl fatal weft_lo || fail "fatal"
	wait_for 10 grep -q DEVICE_FATAL "$TEST_DIR/watcher.log" || fail "no event"
	kill_users
}

refuses() {
	begin_control
	starts watcher ibv_asyncwatch -d weft_lo
	wait_for 10 lists 1 'device weft_lo' || fail "no watcher"
	! ctl fatal nosuch || fail "a device"
	! ctl error 99 || fail "a QP"
	! ctl error 99x || fail "a word"
	! ctl -p 1 list || fail "a process that does not serve"
	kill_users
}
