# shellcheck shell=bash
# weft-run --control and weft-ctl: what a program has is listed, and breaks on request. weft-control breaks what it has
# itself, case by case, weft-control-races while it changes, and weft-control-byhand before it
# is connected by hand; weft-moments has rules about moments, replaced by weft-ctl. The rest are programs of others, and who may ask.

control_cases='a-list-has-each-qp-once what-is-not-there-is-refused error-ends-both-ends disconnect-ends-both-ends
	fatal-fails-each-qp-of-the-device the-event-of-fatal-finds-qps-in-error traffic-goes-on-after-a-port-flap a-port-that-is-down-goes-down-no-further
	events-of-lids-and-gids gids-change-where-they-are-read connect-over-a-port-that-is-down-is-unreachable
	a-frozen-qp-sends-nothing-until-it-is-thawed
	a-frozen-qp-takes-nothing-until-it-is-thawed a-frozen-qp-is-flushed-by-modify-qp a-frozen-qp-is-destroyed-at-once
	a-process-with-a-frozen-qp-forks a-process-with-a-frozen-qp-exits datagrams-are-lost-while-frozen-or-down
	a-qps-rate-is-within-5-percent
	a-devices-rate-is-within-5-percent a-qps-delay-is-that-of-its-sends a-devices-delay-is-that-of-both-ends
	what-is-under-way-is-bounded what-is-under-way-of-all-qps-is-bounded fault-rules-are-replaced requests-of-all-kinds-are-answered
	a-child-has-its-own-socket a-child-with-a-device-of-its-own-serves
	a-child-breaks-nothing-of-its-parent a-program-after-exec-serves
	programs-that-end-of-a-request-answer'
control_races='qps-break-while-they-live-and-are-destroyed devices-break-while-qps-live qps-break-while-contexts-end
	devices-break-while-contexts-end'
control_byhand='requests-fail-if-the-peer-is-absent requests-fail-if-no-peer-connects requests-fail-if-the-peer-refuses
	requests-fail-if-the-peer-is-not-ready-to-connect requests-fail-if-the-port-is-down-before-this-end-connects
	requests-fail-if-the-port-is-down-before-the-peer-connects
	requests-fail-if-the-port-goes-down-at-the-end-that-connected
	requests-fail-if-the-port-goes-down-at-the-other-end a-qp-that-was-frozen-connects-once-it-is-thawed
	a-qp-that-was-frozen-is-connected-once-it-is-thawed frozen-qps-are-destroyed-at-once
	a-process-with-frozen-qps-by-hand-exits a-process-with-frozen-qps-by-hand-forks a-process-whose-port-is-down-exits'
control_moments='the-latest-completion-arrives-after-a-thousand-polls the-latest-completion-arrives-within-a-second
	the-latest-completion-wakes-a-sleeper a-receive-passes-the-latest-completion-of-a-send
	the-latest-completion-holds-up-its-queue a-full-queues-latest-completions-arrive
	the-latest-completions-of-a-destroyed-qp-are-dropped
	the-median-of-a-delay-is-within-5-percent-or-the-timers-floor
	lost-octets-are-late-and-arrive delayed-octets-arrive-though-their-memory-has-gone
	octets-that-wait-for-a-delay-break-off-if-their-memory-goes
	a-copy-for-later-breaks-off-if-half-its-memory-has-gone what-is-under-way-at-a-fork-arrives-once
	a-fork-changes-no-delay what-is-under-way-at-exit-arrives a-child-sends-after-a-parent-that-exits
	a-childs-connection-ends-if-its-parent-was-killed a-port-flaps-at-a-post
	a-port-is-down-for-the-longer-of-two-times a-port-flaps-after-a-time a-childs-port-comes-up'

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	local name
	for name in $control_cases; do
		echo "$name one_case weft-control $name"
	done
	for name in $control_races; do
		echo "$name one_case weft-control-races $name"
	done
	for name in $control_byhand; do
		echo "$name one_case weft-control-byhand $name"
	done
	for name in $control_moments; do
		echo "$name one_case weft-moments $name"
	done
	cat <<-'END'
		without-control-there-is-no-socket without_control
		weft-ctl-error-ends-both-ends-of-a-pingpong breaks error
		weft-ctl-disconnect-ends-both-ends-of-rping disconnects
		weft-ctl-fatal-is-an-event-of-the-device fatal
		weft-ctl-port-is-two-events-of-the-device port_events
		a-pingpong-survives-a-port-flap flap weft_ctl
		a-pingpong-survives-a-port-flap-by-python flap weft_python
		retries-run-out-while-a-port-is-down dies port weft_lo down
		retries-run-out-at-the-peer-of-a-frozen-qp dies freeze
		weft-ctl-refuses-what-is-not-there refuses
		weft-ctl-fails-if-its-folder-is-anothers strange_folder
		a-socket-of-a-dead-process-is-removed dead
		garbage-is-answered-or-ignored garbage
	END
	case ${AS_USER-} in *--reuid*) echo "another-user-gets-no-answer another_user" ;; esac
}

# As the programs' user, with a folder of its own.
# shellcheck disable=SC2086 # a list
as_user() { PATH=${PATH#*:} $AS_USER env XDG_RUNTIME_DIR="$runtime" "$@"; }

# shellcheck disable=SC2317
ctl() { as_user timeout 10 "${WEFT_RUN%run}ctl" "$@"; }

# A socket's name has room for 107 octets: $TEST_DIR may be longer.
begin_control() {
	runtime=$(mktemp -d)
	trap 'rm -rf "$runtime"' EXIT
	chmod 777 "$runtime"
}

# starts NAME PROGRAM...: under --control
starts() {
	as_user timeout 60 stdbuf -oL "$WEFT_RUN" --control --netdevs=lo "${@:2}" >"$TEST_DIR/$1.log" 2>&1 &
}

lists() { ctl list >"$TEST_DIR/list" && [ "$(grep -cE "$2" "$TEST_DIR/list")" = "$1" ]; }

# one_case PROGRAM NAME
one_case() {
	begin_control
	as_user timeout 100 "$WEFT_RUN" --control --startup-timeout=1000 --netdevs=lo \
		"$WEFT_BUILD/bin/$1" 127.0.0.1 "$2" >"$TEST_DIR/log" 2>&1 ||
		fail "$(tail -n 3 "$TEST_DIR/log")"
	grep -q '^ok' "$TEST_DIR/log" || fail "no such case"
}

without_control() {
	begin_control
	as_user "$WEFT_RUN" --netdevs=lo ibv_devinfo >"$TEST_DIR/out" || fail "$(cat "$TEST_DIR/out")"
	[ ! -e "$runtime/weft" ] || fail "there is a folder"
	[ -z "$(ctl list)" ] || fail "something is listed"
}

# pingpong ROUNDS [DELAY]: both ends run, and sleep while they wait; their processes are in $ends, the client's number and QP in $pid and $qpn.
pingpong() {
	local server
	begin_control
	starts server ibv_rc_pingpong -e -d weft_lo -g 0 -n "$1"
	ends=$!
	wait_for 10 lists 1 'device weft_lo' || fail "no server"
	read -r server _ <"$TEST_DIR/list"
	wait_for 10 eval 'ss -ltn | grep -q :18515' || fail "it does not listen"
	[ -z "${2-}" ] || ctl delay weft_lo "$2" || fail "delay"
	starts client ibv_rc_pingpong -e -d weft_lo -g 0 -n "$1" 127.0.0.1
	ends="$ends $!"
	wait_for 10 lists 2 'qp [0-9]+ weft_lo RC RTS 127\.' || fail "$(cat "$TEST_DIR/list")"
	read -r pid _ qpn _ < <(grep ' qp ' "$TEST_DIR/list" | grep -v "^$server ")
}

# end_badly: neither end hangs, nor ends well.
end_badly() {
	local one rc
	for one in $ends; do
		rc=0
		wait "$one" || rc=$?
		[ $rc != 0 ] || fail "it ended well"
		[ $rc != 124 ] || fail "it hung"
	done
}

# breaks COMMAND: of the client's QP
breaks() {
	local ends pid qpn
	pingpong 100000000
	ctl -p "$pid" "$1" "$qpn" || fail "$1 $qpn"
	end_badly
}

# By rdma_cm: a QP that is connected by hand learns of its peer's end by its own requests alone.
disconnects() {
	local ends pid qpn one rc
	begin_control
	starts server rping -s -a 127.0.0.1 -p 7198
	ends=$!
	wait_for 10 eval 'ss -ltn | grep -q :7198' || fail "it does not listen"
	starts client rping -c -a 127.0.0.1 -p 7198 -C 100000000
	ends="$ends $!"
	wait_for 10 lists 2 'qp [0-9]+ weft_lo RC RTS 127\.' || fail "$(cat "$TEST_DIR/list")"
	read -r pid _ qpn _ < <(grep ' qp ' "$TEST_DIR/list")
	ctl -p "$pid" disconnect "$qpn" || fail "disconnect $qpn"
	for one in $ends; do
		rc=0
		wait "$one" || rc=$?
		[ $rc != 124 ] || fail "it hung"
	done
}

# Both ends of perftest's own connection and of the QPs'.
are_connected() { [ "$(ss -Htn state established | grep -c '127\.0\.0\.1.*127\.0\.0\.1')" -ge 4 ]; }

# dies COMMAND [ARG...]: without ARG, of the QP of a server that is written to. Its client always waits for
# acknowledgements; an end that waits for nothing learns nothing, as on InfiniBand.
dies() {
	local server client qpn rc=0
	begin_control
	starts server ib_write_bw -d weft_lo -x 0 -F -D 50
	wait_for 10 lists 1 'device weft_lo' || fail "no server"
	read -r server _ <"$TEST_DIR/list"
	wait_for 10 eval 'ss -ltn | grep -q :18515' || fail "it does not listen"
	starts client ib_write_bw -d weft_lo -x 0 -F -D 50 127.0.0.1
	client=$!
	wait_for 20 lists 2 'qp [0-9]+ weft_lo RC RT[RS] 127\.' || fail "$(cat "$TEST_DIR/list")"
	wait_for 20 are_connected || fail "the QPs do not connect: $(ss -Htn)"
	read -r _ _ qpn _ < <(grep "^$server qp " "$TEST_DIR/list")
	[ $# -gt 1 ] || set -- "$1" "$qpn"
	ctl "$@" || fail "$*"
	wait $client || rc=$?
	[ $rc != 0 ] && [ $rc != 124 ] || fail "its status is $rc"
	grep -qE 'Failed status 12|retry counter exceeded' "$TEST_DIR/client.log" || fail "$(tail -n 1 "$TEST_DIR/client.log")"
	kill_users
}

weft_ctl() { ctl port weft_lo "$1"; }

weft_python() {
	as_user env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$WEFT_TOP/providers/rootless" timeout 10 python3 -c '
import sys, weft_control
pids = weft_control.processes()
assert len(pids) == 2, pids
for pid in pids:
    assert any(line.split()[:1] == ["qp"] for line in weft_control.ask(pid, "list"))
    weft_control.ask(pid, "port weft_lo " + sys.argv[1])
try:
    weft_control.ask(pids[0], "port nosuch up")
    sys.exit("not refused")
except weft_control.Refused as why:
    assert str(why) == "no device nosuch", why
' "$1"
}

# flap COMMAND: a delay of 10 ms has the pingpong last until the port is up again.
flap() {
	local ends pid qpn one
	pingpong 150 10ms
	"$1" down || fail "down"
	"$1" up || fail "up"
	for one in $ends; do
		wait "$one" || fail "$(tail -n 1 "$TEST_DIR"/server.log "$TEST_DIR"/client.log)"
	done
}

watch_events() {
	begin_control
	starts watcher ibv_asyncwatch -d weft_lo
	wait_for 10 lists 1 'device weft_lo' || fail "no watcher"
}

port_events() {
	watch_events
	ctl port weft_lo down || fail "down"
	wait_for 10 grep -q PORT_ERR "$TEST_DIR/watcher.log" || fail "no event"
	as_user "$WEFT_RUN" --netdevs=lo ibv_devinfo -d weft_lo | grep -q PORT_ACTIVE || fail "in a program without --control"
	ctl port weft_lo up || fail "up"
	wait_for 10 grep -q PORT_ACTIVE "$TEST_DIR/watcher.log" || fail "no second event"
	kill_users
}

fatal() {
	watch_events
	ctl fatal weft_lo || fail "fatal"
	wait_for 10 grep -q DEVICE_FATAL "$TEST_DIR/watcher.log" || fail "no event"
	kill_users
}

refuses() {
	watch_events
	! ctl fatal nosuch || fail "a device"
	! ctl error 99 || fail "a QP"
	! ctl error 99x || fail "a word"
	! ctl list 7 8 || fail "words after list"
	! ctl -p 1 list || fail "a process that does not serve"
	! ctl -p "$(cut -d ' ' -f 1 "$TEST_DIR/list")x" list || fail "a number with a letter"
	! ctl faults "$TEST_DIR/nosuch" || fail "a file that is not there"
	kill_users
}

# A list of nothing and a list that was refused differ.
strange_folder() {
	begin_control
	ctl list || fail "there is nothing to list"
	ln -s /tmp "$runtime/weft"
	! ctl list 2>"$TEST_DIR/err" || fail "a link"
	starts watcher ibv_asyncwatch -d weft_lo
	wait_for 10 grep -q 'control: no socket' "$TEST_DIR/watcher.log" || fail "a link is used"
	kill_users
	rm "$runtime/weft"
	as_user mkdir -m 755 "$runtime/weft"
	! ctl list 2>"$TEST_DIR/err" || fail "others may look into it"
}

# While the dead process is a zombie, its number is not another's, and its socket stays.
gone() { ctl list && [ ! -e "$1" ]; }

dead() {
	local pid
	watch_events
	read -r pid _ <"$TEST_DIR/list"
	[ -S "$runtime/weft/$pid" ] || fail "no socket"
	kill -KILL "$pid"
	wait_for 10 lists 0 . || fail "it is listed"
	wait_for 10 gone "$runtime/weft/$pid" || fail "its socket is there"
}

# sends TEXT: to the socket, by a program that does not look who made the folder
sends() {
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("")
s.settimeout(2)
s.sendto(sys.argv[2].encode(), sys.argv[1])
print(s.recv(65536).decode())' "$@"
}

another_user() {
	local pid
	watch_events
	read -r pid _ <"$TEST_DIR/list"
	! ctl_as_root list 2>"$TEST_DIR/err" || fail "the folder is another's"
	! sends "$runtime/weft/$pid" 'weft-control 1 list 0' >"$TEST_DIR/out" 2>&1 || fail "it was answered"
	grep -qi 'timed out' "$TEST_DIR/out" || fail "$(tail -n 1 "$TEST_DIR/out")"
	kill_users
}

ctl_as_root() { XDG_RUNTIME_DIR="$runtime" "${WEFT_RUN%run}ctl" "$@"; }

garbage() {
	local pid
	watch_events
	read -r pid _ <"$TEST_DIR/list"
	as_user timeout 60 python3 -c '
import random, socket, sys
random.seed(1)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
words = [b"weft-control 1 ", b"weft-control 2 ", b"list", b"error", b" ", b"0", b"16777215", b"99999999999999999999",
         b"faults", b"\n", b"\0", b"reg_mr", b"->", b"ENOMEM", b"port", b"weft_lo", b"up", b"rate", b"1G", b"A" * 300]
for i in range(3000):
    text = b"".join(random.choice(words) for _ in range(random.randint(0, 12)))
    if i % 100 == 0:
        text = random.randbytes(random.randint(0, 70000))
    s.sendto(text, sys.argv[1])
# Descriptors, and a sender that reads no answer.
bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
bound.bind("")
bound.connect(sys.argv[1])
for i in range(300):
    socket.send_fds(bound, [b"weft-control 1 list 0"], [0, 1, 2])
' "$runtime/weft/$pid" >"$TEST_DIR/out" 2>&1 || fail "$(tail -n 1 "$TEST_DIR/out")"
	lists 1 'device weft_lo' || fail "it does not answer"
	[ "$(as_user ls "/proc/$pid/fd" | wc -l)" -lt 40 ] || fail "it has many descriptors"
	kill_users
}
