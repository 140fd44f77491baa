# shellcheck shell=bash
# Unmodified socket programs over iWARP: weft-run --sockets. Their data is compared with the same over TCP,
# octet by octet, and their traces show that it went over iWARP.
# Environment: SOCKETS_TIMES  factor of the data and requests of each program (1)
# shellcheck disable=SC2086 # AS_USER is a list

MUCH=${SOCKETS_TIMES:-1}

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		calls-over-tcp calls plain
		calls-over-iwarp calls iwarp
		calls-passed-through calls passed
		edges-over-tcp edges plain
		edges-over-iwarp edges iwarp
		numbers-over-tcp numbers plain
		numbers-over-iwarp numbers iwarp
		waits-over-tcp waits plain
		waits-over-iwarp waits iwarp
		signals-over-tcp signals plain
		signals-over-iwarp signals iwarp
		turns-take-no-more-calls-than-over-tcp few_calls
		idle-connections-keep-16-kib idle_memory
		a-peer-that-is-not-read-costs-the-window unread_memory
		rules-that-make-no-sense bad_rules
		first-rule-that-matches-decides rules_decide
		server-speaks-first speaks_first
		server-speaks-first-and-a-segment-is-lost-twice lost_twice
		only-refuses-plain-clients only_refuses
		only-gives-a-silent-client-up only_gives_up
		option-upgrades-a-connection option_upgrades
		posted-operations operations
		posted-operations-without-weft operations without
		used-in-two-processes two_processes
		weftspec-judges-a-server judged 95 listen
		weftspec-judges-a-client judged 27 connect
		python-http-urllib-and-curl python_http
		python-asyncio python_asyncio
		redis redis_goes
		iperf3 iperf3_goes
		nginx-curl-and-ab nginx_goes
		git-over-http git_goes
		ssh-and-rsync ssh_goes
		rsync-shares-a-connection rsync_shares
		postgresql-and-pgbench postgresql_goes
	END
	# A minute each, both ways.
	[ "${PYTHON_TESTS-}" != full ] || cat <<-'END'
		pythons-test_socket pythons_tests test_socket
		pythons-test_selectors pythons_tests test_selectors
		pythons-test_asyncio pythons_tests test_asyncio
	END
}

# A folder that the programs' user may write to.
workshop() {
	[ -z "${WORK-}" ] || return 0
	WORK=$(mktemp -d /tmp/weft-sockets.XXXXXX)
	chmod 1777 "$WORK"
	trap 'rm -rf "$WORK"' EXIT
}

# over PORT...: connections of these ports go over iWARP.
over() {
	local port
	workshop
	for port in "$@"; do echo "iwarp both $port${WAIT:+ wait=$WAIT}"; done >"$WORK/rules"
}

# The same where a server speaks first: a client that was slow because the host is busy must not be taken for a
# plain one. Plain clients speak at once there.
over_and_waits() { WAIT=20000 over "$@"; }

# Without what sanitizers want, which not every program of Debian's bears.
plain() { timeout -k 2 150 ${AS_USER%% env LD_PRELOAD=*} "$@"; }
iwarp() { timeout -k 2 150 $AS_USER "$WEFT_RUN" --sockets="$WORK/rules" "$@"; }
# both NAME COMMAND...: by either, output in NAME.plain and NAME.iwarp; traces in NAME.iwarp.err.
both() {
	plain "${@:2}" >"$TEST_DIR/$1.plain" 2>"$TEST_DIR/$1.plain.err" || fail "$1 over TCP; $(words "$TEST_DIR/$1.plain.err")"
	iwarp "${@:2}" >"$TEST_DIR/$1.iwarp" 2>"$TEST_DIR/$1.iwarp.err" || fail "$1 over iWARP; $(tail -n 3 "$TEST_DIR/$1.iwarp.err")"
	goes_over "$TEST_DIR/$1.iwarp.err"
}

# goes_over FILE: what has this trace went over iWARP.
goes_over() { grep -qa 'weft: sockets: descriptor .* goes over iWARP' "$1" || fail "${1##*/}: nothing went over iWARP"; }

# serve NAME PORT COMMAND...: a server whose connections go over iWARP.
serve() {
	local name=$1 port=$2
	shift 2
	start_b "$name" $AS_USER "$WEFT_RUN" --sockets="$WORK/rules" "$@"
	wait_listen_b "$port"
}

same() { cmp "$1" "$2" || fail "${1##*/} is not ${2##*/}"; }

random_file() {
	head -c "$2" /dev/urandom >"$1"
	chmod 644 "$1"
}

# --- what weftspec says ---

# judged LEAST listen|connect: a program that knows TCP alone, taken over. What does not apply the profile says;
# without a reflector behind the peer most cases are skipped. The words are a stream's, of 1 MiB.
judged() {
	local log=$TEST_DIR/weftspec.log where counts passed
	workshop
	if [ "$2" = listen ]; then
		echo 'iwarp accept 7197 only' >"$WORK/rules"
		serve echo 7197 python3 "$WEFT_TOP/tests/progs/sockets/echo.py" listen 7197
		where=(--peer 127.0.0.1:7197)
	else
		echo 'iwarp connect *' >"$WORK/rules"
		where=(--listen 0 --exec "exec $AS_USER $WEFT_RUN --sockets=$WORK/rules python3 \
			$WEFT_TOP/tests/progs/sockets/echo.py connect {port}")
	fi
	"$WEFT_TOP/build/bin/weftspec" --strict --allow-destructive --color never --seed 1 --jobs 4 --patience 4000 --timeout 12 \
		--private-data 776566530100000000100000 --profile "$WEFT_TOP/tests/weftspec/profiles/socket" \
		"${where[@]}" >"$log" 2>&1 </dev/null || true
	counts=$(grep '^cases:' "$log") || fail "weftspec did not end; $(tail -n 3 "$log")"
	! grep -q '^surprise' "$log" || fail "$(grep -m 3 '^surprise' "$log")"
	read -r _ passed _ <<<"$counts"
	[ "$passed" -ge "$1" ] || fail "$counts, but $1 should pass"
}

# --- calls ---

calls() {
	local how=(plain)
	over_and_waits 7190
	[ "$1" != iwarp ] || how=(iwarp)
	[ "$1" != passed ] || { echo 'tcp both *' >"$WORK/rules" && how=(iwarp); }
	"${how[@]}" "$WEFT_TOP/build/bin/socket-calls" 7190 >"$TEST_DIR/calls.log" 2>"$TEST_DIR/calls.err" ||
		fail "$(grep -m 1 '^not ok' "$TEST_DIR/calls.log"); $(grep -m 3 '^# line' "$TEST_DIR/calls.log")"
	[ "$1" != iwarp ] || goes_over "$TEST_DIR/calls.err"
	[ "$1" = iwarp ] || ! grep -qa 'goes over iWARP' "$TEST_DIR/calls.err" || fail "it went over iWARP"
}

# Threads at one socket, numbers that are closed, ends of processes. A reader behind close() takes twice the time
# that a process waits that ends.
edges() {
	over 7198
	"$1" "$WEFT_TOP/build/bin/socket-edges" 7198 >"$TEST_DIR/edges.log" 2>"$TEST_DIR/edges.err" ||
		fail "$(grep -m 1 '^not ok' "$TEST_DIR/edges.log"); $(grep -m 3 '^# line' "$TEST_DIR/edges.log"); $(tail -n 1 "$TEST_DIR/edges.log")"
	[ "$1" = iwarp ] || return 0
	goes_over "$TEST_DIR/edges.err"
	WEFT_CLOSE_TIMEOUT_MS=700 iwarp "$WEFT_TOP/build/bin/socket-edges" 7198 a-slow-reader-after-close \
		>"$TEST_DIR/slow.log" 2>"$TEST_DIR/slow.err" || fail "$(cat "$TEST_DIR/slow.log")"
}

# Calls, names, flags and epolls beside those of octets.
numbers() {
	over 7187
	"$1" "$WEFT_TOP/build/bin/socket-numbers" 7187 >"$TEST_DIR/numbers.log" 2>"$TEST_DIR/numbers.err" ||
		fail "$(grep -m 1 '^not ok' "$TEST_DIR/numbers.log"); $(grep -m 3 '^# line' "$TEST_DIR/numbers.log")"
	[ "$1" = iwarp ] || return 0
	goes_over "$TEST_DIR/numbers.err"
	printf 'iwarp connect 7186\niwarp accept 7186 only\n' >"$WORK/rules"
	iwarp "$WEFT_TOP/build/bin/socket-numbers" 7186 a-refused-client-is-no-other-connection \
		>"$TEST_DIR/refused.log" 2>&1 || fail "$(grep -m 3 '^# line' "$TEST_DIR/refused.log")"
}

# What waits, and what does not.
waits() {
	over 7189
	"$1" "$WEFT_TOP/build/bin/socket-waits" 7189 >"$TEST_DIR/waits.log" 2>"$TEST_DIR/waits.err" ||
		fail "$(grep -m 1 '^not ok' "$TEST_DIR/waits.log"); $(grep -m 3 '^# line' "$TEST_DIR/waits.log")"
	[ "$1" != iwarp ] || goes_over "$TEST_DIR/waits.err"
}

# Handlers that use sockets, leave calls, or end them.
signals() {
	over 7188
	"$1" "$WEFT_TOP/build/bin/socket-signals" 7188 >"$TEST_DIR/signals.log" 2>"$TEST_DIR/signals.err" ||
		fail "$(grep -m 1 '^not ok' "$TEST_DIR/signals.log"); $(grep -m 3 '^# line' "$TEST_DIR/signals.log"); $(tail -n 1 "$TEST_DIR/signals.log")"
	[ "$1" != iwarp ] || goes_over "$TEST_DIR/signals.err"
}

# calls_of WAY HOW TURNS: system calls of all its processes, as strace counts them, into WAY.TURNS; what they have
# asked for themselves into WAY.TURNS.asked.
calls_of() {
	local how= out=$TEST_DIR/$1.$3
	[ "$1" = tcp ] || how="$WEFT_RUN --sockets=$WORK/rules"
	touch "$out"
	chmod 666 "$out"
	timeout -k 2 150 $AS_USER strace -qfc -o "$out" $how "$WEFT_TOP/build/bin/socket-waits" 7189 "$2" "$3" \
		>"$TEST_DIR/turns.log" 2>"$TEST_DIR/turns.err" || fail "$1: $(tail -n 2 "$TEST_DIR/turns.log")"
	awk '$1 == "asked" {n += $2} END {print n + 0}' "$TEST_DIR/turns.log" >"$out.asked"
	[ "$1" = tcp ] || goes_over "$TEST_DIR/turns.err"
}

# of_calls FILE NAME
of_calls() { awk -v name="$2" '$NF == name {n = $4} END {print n + 0}' "$1"; }

# A message costs one call to send, and one that finds nothing more. No call reads the socket's options, and a
# waiter does not wake itself. So the kernel sees as many calls over iWARP as over TCP. Their number depends on the
# scheduler: one wait may report two messages, or one.
few_calls() {
	local way calls asked sleeps
	over 7189
	for way in tcp iwarp; do
		calls_of $way turns 100
		calls_of $way turns 1100
		calls=$(($(of_calls "$TEST_DIR/$way.1100" total) - $(of_calls "$TEST_DIR/$way.100" total)))
		asked=$(($(cat "$TEST_DIR/$way.1100.asked") - $(cat "$TEST_DIR/$way.100.asked")))
		[ "$asked" -gt 10000 ] || fail "$asked calls were asked for"
		[ "$calls" -ge $((asked / 2)) ] && [ "$calls" -le $((asked * 21 / 20)) ] ||
			fail "$calls calls over $way, of $asked that were asked for"
	done
	calls_of iwarp sleeping-turns 1000
	# The answer may be there before the client sleeps: where the CPUs are fast, six times of ten.
	sleeps=$(of_calls "$TEST_DIR/iwarp.1000" ppoll)
	[ "$sleeps" -gt 100 ] || fail "$sleeps of 1000 turns slept"
	[ "$(of_calls "$TEST_DIR/iwarp.1000" read)" -lt $((sleeps * 2 / 5)) ] || fail "a bell is silenced that did not ring"
}

# memory HOW N SIZE: KiB that a connection costs a server that has received SIZE octets on each of N, and reads them
# (HOW is read) or leaves all but the first unread. It waits until the figure is that of 16 KiB, or 10 s.
MEMORY='
import fcntl, os, signal, socket, sys, termios, time
how, n, size, fine = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
def rss():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
l = socket.create_server(("127.0.0.1", 7191), backlog=n)
pid = os.fork()
if not pid:
    l.close()
    ends = [socket.create_connection(("127.0.0.1", 7191)) for i in range(n)]
    data = bytes(size)
    for s in ends:
        s.sendall(b"h")
        assert s.recv(1) == b"H"
    for i in range(100 if how == "unread" else 0):
        for s in ends:
            s.setblocking(False)
            try:
                s.send(data)
            except BlockingIOError:
                pass
        time.sleep(.02)
    for s in ends if how == "read" else []:
        s.sendall(data)
    time.sleep(20)
    os._exit(0)
ends = []
for i in range(n):
    ends.append(l.accept()[0])
for c in ends:
    assert c.recv(1) == b"h"
    c.sendall(b"H")
before = rss()
if how == "read":
    for c in ends:
        time.sleep(.002)
        left = size
        while left:
            left -= len(c.recv(min(left, 10000)))
else:
    until = time.time() + 3
    while time.time() < until:
        for c in ends:
            fcntl.ioctl(c, termios.FIONREAD, b"    ")
        time.sleep(.02)
until = time.time() + 10
while (rss() - before) / n > fine and time.time() < until:
    time.sleep(.05)
os.kill(pid, signal.SIGKILL)
print("%.1f KiB a connection" % ((rss() - before) / n))
sys.exit((rss() - before) / n > fine)'

# A queue of received octets gives its pages back.
idle_memory() {
	over 7191
	iwarp python3 -c "$MEMORY" read 50 1000000 16 >"$TEST_DIR/idle" 2>"$TEST_DIR/idle.err" || fail "$(cat "$TEST_DIR/idle")"
	goes_over "$TEST_DIR/idle.err"
}

# What a peer sends and the program does not read: the window of the rule, and 64 KiB.
unread_memory() {
	workshop
	echo 'iwarp both 7191 window=64' >"$WORK/rules"
	iwarp python3 -c "$MEMORY" unread 50 400000 144 >"$TEST_DIR/unread" 2>"$TEST_DIR/unread.err" || fail "$(cat "$TEST_DIR/unread")"
	goes_over "$TEST_DIR/unread.err"
}

# refused LINES: weft-run says where.
refused() {
	local rc=0
	printf '%b\n' "$1" >"$WORK/rules"
	iwarp true >"$TEST_DIR/refused" 2>&1 || rc=$?
	[ $rc = 125 ] && grep -q "line $2: " "$TEST_DIR/refused" || fail "$1: $rc; $(cat "$TEST_DIR/refused")"
}

bad_rules() {
	workshop
	refused 'udp both 80' 1
	refused '# fine\niwarp neither 80' 2
	refused 'iwarp both' 1
	refused 'iwarp both 0' 1
	refused 'iwarp both 90-80' 1
	refused 'iwarp both 80 10.0.0.0/33' 1
	refused 'iwarp both 80 10.0.0.1 10.0.0.2' 1
	refused 'iwarp accept 80 wait=ever' 1
	refused 'iwarp accept 80 window=15' 1
	rm "$WORK/rules"
	! iwarp true 2>"$TEST_DIR/none" || fail "rules that are not there"
	printf '\n# none\niwarp both 1-80 ::1/64 only wait=10 window=16 # fine\ntcp connect *\n' >"$WORK/rules"
	iwarp true
}

DIAL='
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"hello")
print(s.recv(5))'
ANSWER='
import socket, sys
listeners = [socket.create_server(("127.0.0.1", int(p))) for p in sys.argv[1:]]
for l in listeners:
    c = l.accept()[0]
    assert c.recv(5) == b"hello"
    c.sendall(b"HELLO")'

rules_decide() {
	over 7191
	printf 'tcp both 7192 127.0.0.0/8\niwarp both 7190-7193\n' >"$WORK/rules"
	serve answers 7192 python3 -c "$ANSWER" 7191 7192
	iwarp python3 -c "$DIAL" 7191 >"$TEST_DIR/one" 2>&1 || fail "$(cat "$TEST_DIR/one")"
	iwarp python3 -c "$DIAL" 7192 >"$TEST_DIR/two" 2>&1 || fail "$(cat "$TEST_DIR/two")"
	finish_b answers
	goes_over "$TEST_DIR/one"
	! grep -qa 'goes over iWARP' "$TEST_DIR/two" || fail "a rule that does not match decided"
	[ "$(grep -ca 'goes over iWARP' "$TEST_DIR/answers.log")" = 1 ] || fail "$(cat "$TEST_DIR/answers.log")"
}

# To one that waits for a greeting: of either kind, over either. A plain client, of 127.0.0.1, hears it when the
# server has waited as long as it does by default; one of iWARP's, of 127.0.0.2, is found on a busy host, too.
speaks_first() {
	local greet='
import select, socket, sys
l = socket.create_server(("127.0.0.1", 7191))
for i in range(4):
    c = l.accept()[0]
    if i >= 2:
        c.setblocking(False)
        assert select.select([], [c], [], 10)[1] == [c]
        c.setblocking(True)
    c.sendall(b"220 hello\n")
    assert c.recv(100) == b"QUIT\n"
    c.close()'
	local hear='
import os, socket
own = "127.0.0.2" if "WEFT_SOCKETS" in os.environ else "127.0.0.1"
s = socket.create_connection(("127.0.0.1", 7191), source_address=(own, 0))
print(s.recv(100))
s.sendall(b"QUIT\n")
assert not s.recv(1)'
	workshop
	printf 'iwarp accept 7191 127.0.0.2 wait=20000\niwarp both 7191\n' >"$WORK/rules"
	serve greets 7191 python3 -c "$greet"
	both heard python3 -c "$hear"
	same "$TEST_DIR/heard.plain" "$TEST_DIR/heard.iwarp"
	both again python3 -c "$hear"
	same "$TEST_DIR/again.plain" "$TEST_DIR/again.iwarp"
	finish_b greets
}

# As root: some hosts let an administrator alone filter a socket.
lost_twice() {
	local sanitized=''
	over 7198
	[[ $AS_USER != *' env LD_PRELOAD='* ]] || sanitized="env LD_PRELOAD=${AS_USER##* env LD_PRELOAD=}"
	# shellcheck disable=SC2086 # a list
	timeout -k 2 60 $sanitized "$WEFT_RUN" --sockets="$WORK/rules" "$WEFT_TOP/build/bin/socket-edges" 7198 \
		server-speaks-first-and-the-clients-first-segment-is-lost-twice >"$TEST_DIR/edges.log" 2>&1 ||
		fail "$(words "$TEST_DIR/edges.log")"
}

only_refuses() {
	workshop
	echo 'iwarp both 7191 only' >"$WORK/rules"
	serve answers-only 7191 python3 -c '
import socket
l = socket.create_server(("127.0.0.1", 7191))
c = l.accept()[0]
try:
    c.recv(5)
    raise SystemExit("served")
except ConnectionResetError:
    c.close()
c = l.accept()[0]
assert c.recv(5) == b"hello"
c.sendall(b"HELLO")'
	plain python3 -c "$DIAL" 7191 >"$TEST_DIR/plain" 2>&1 || true
	! grep -q HELLO "$TEST_DIR/plain" || fail "a plain client was served"
	iwarp python3 -c "$DIAL" 7191 >"$TEST_DIR/dialled" 2>&1 || fail "$(cat "$TEST_DIR/dialled")"
	finish_b answers-only
}

# It neither waits for the client nor serves it.
only_gives_up() {
	workshop
	echo 'iwarp accept 7199 only' >"$WORK/rules"
	serve gives-up 7199 python3 -c '
import socket
c = socket.create_server(("127.0.0.1", 7199)).accept()[0]
c.shutdown(socket.SHUT_RDWR)
try:
    assert not c.recv(1)
except OSError:
    pass'
	plain python3 -c '
import socket
assert not socket.create_connection(("127.0.0.1", 7199)).recv(1)' || fail "the client waits"
	finish_b gives-up
}

# Both switch to iWARP after plain octets: a socket without a rule, and one whose rule defers to its first use.
option_upgrades() {
	local common='
import select, socket, struct
WEFT, MODE = 0x77656674, 1
def upgrade(s, role):
    s.setsockopt(WEFT, MODE, struct.pack("<IBBHII", 16, role, 0, 0, 0, 0))
def state(s):
    return struct.unpack("i", s.getsockopt(WEFT, MODE, 4))[0]
def fails(f):
    try:
        f()
    except OSError as e:
        return e.errno
data = bytes(range(256)) * 4000'
	workshop
	echo 'iwarp accept 7193' >"$WORK/rules"
	start_b upgrades $AS_USER "$WEFT_RUN" --sockets="$WORK/rules" python3 -c "$common
for port in 7191, 7193:
    l = socket.create_server(('127.0.0.1', port))
    c = l.accept()[0]
    if port == 7191:
        assert c.recv(8) == b'STARTTLS'
        c.sendall(b'GO')
    assert state(c) == 0
    upgrade(c, 1)
    assert fails(lambda: upgrade(c, 1)) == 114
    assert select.select([c], [], [], 10)[0]
    assert c.recv(len(data), socket.MSG_WAITALL) == data
    c.sendall(b'thanks')
    assert c.recv(1) == b'' and state(c) == 3
    c.close()"
	wait_listen_b 7191
	iwarp python3 -c "$common
import time
def dial(port):
    while True:
        try:
            return socket.create_connection(('127.0.0.1', port))
        except ConnectionRefusedError:
            time.sleep(0.05)
for port in 7191, 7193:
    s = dial(port)
    if port == 7191:
        s.sendall(b'STARTTLS')
        assert s.recv(2) == b'GO'
    assert fails(lambda: upgrade(s, 9)) == 22
    upgrade(s, 0)
    s.sendall(data)
    assert s.recv(6, socket.MSG_WAITALL) == b'thanks'
    s.close()
assert fails(lambda: upgrade(socket.socket(), 0)) == 107
" >"$TEST_DIR/asks" 2>&1 || fail "$(tail -n 3 "$TEST_DIR/asks"); $(tail -n 3 "$TEST_DIR/upgrades.log")"
	finish_b upgrades
	[ "$(grep -ca 'goes over iWARP, asked for' "$TEST_DIR/asks")" = 2 ] || fail "$(cat "$TEST_DIR/asks")"
	! $AS_USER "$WEFT_RUN" python3 -c "$common
upgrade(socket.create_server(('127.0.0.1', 7194)), 0)" 2>"$TEST_DIR/without" || fail "without --sockets"
	grep -q 'Errno 92' "$TEST_DIR/without" || fail "$(tail -n 1 "$TEST_DIR/without")"
}

# operations [without]: posted operations go over iWARP; without weft the program gets an error.
operations() {
	local how=(iwarp)
	workshop
	echo 'tcp both *' >"$WORK/rules"
	[ "${1-}" != without ] || how=(plain)
	"${how[@]}" "$WEFT_TOP/build/bin/socket-operations" 7195 ${1-} >"$TEST_DIR/calls.log" 2>"$TEST_DIR/calls.err" ||
		fail "$(grep -m 1 '^not ok' "$TEST_DIR/calls.log"); $(grep -m 3 '^# line' "$TEST_DIR/calls.log")"
	[ "${1-}" = without ] || goes_over "$TEST_DIR/calls.err"
}

# A stream that has moved octets belongs to one process: another gets an error, and a program that is
# executed finds no descriptor.
two_processes() {
	local server='
import os, socket, subprocess, sys
l = socket.create_server(("127.0.0.1", 7200))
c = l.accept()[0]
assert c.recv(5) == b"hello"
r, w = os.pipe()
pid = os.fork()
if not pid:
    try:
        c.send(b"wrong")
        os._exit(1)
    except OSError as e:
        os._exit(0 if os.strerror(e.errno) else 1)
assert os.waitpid(pid, 0)[1] == 0
os.set_inheritable(c.fileno(), True)
rc = subprocess.call(["/bin/sh", "-c", "echo wrong >&%d" % c.fileno()], close_fds=False)
assert rc != 0
a, b = socket.socketpair()
try:
    socket.send_fds(a, [b"x"], [c.fileno()])
    sys.exit("handed over")
except OSError:
    pass
c.sendall(b"HELLO")'
	over 7200
	serve server-of-two 7200 python3 -c "$server"
	iwarp python3 -c "$DIAL" 7200 >"$TEST_DIR/dialled" 2>&1 || fail "$(cat "$TEST_DIR/dialled")"
	finish_b server-of-two
	goes_over "$TEST_DIR/dialled"
	grep -qa "HELLO" "$TEST_DIR/dialled" || fail "$(cat "$TEST_DIR/dialled")"
}

# --- programs ---

python_http() {
	local url=http://127.0.0.1:7210/file
	over 7210
	random_file "$WORK/file" $((MUCH * 3000001))
	serve http-server 7210 python3 -m http.server --bind 127.0.0.1 --directory "$WORK" 7210
	both curl curl -sS $url
	same "$TEST_DIR/curl.iwarp" "$WORK/file"
	same "$TEST_DIR/curl.plain" "$WORK/file"
	both urllib python3 -c "
import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen('$url').read())"
	same "$TEST_DIR/urllib.iwarp" "$WORK/file"
	same "$TEST_DIR/urllib.plain" "$WORK/file"
	goes_over "$TEST_DIR/http-server.log"
}

# python's own tests of a module have the same results over iWARP. Not those of VSOCK, which wait for ever without a peer.
pythons_tests() {
	local how
	[ -d "$(/usr/bin/python3 -c 'import test; print(test.__path__[0])')/test_asyncio" ] || skip "no tests of python's"
	workshop
	echo 'iwarp both *' >"$WORK/rules"
	cd "$WORK" || fail "no folder"
	for how in plain iwarp; do
		WEFT_TRACE=0 TMPDIR=$WORK "$how" /usr/bin/python3 -m test -v -i '*VSOCK*' "$1" >"$TEST_DIR/$1.$how" 2>&1 ||
			fail "$how: $(grep -E '^(ERROR|FAIL):' "$TEST_DIR/$1.$how" | head -n 3)"
		grep -oE '^test.* \.\.\. (ok|skipped)' "$TEST_DIR/$1.$how" | sort >"$TEST_DIR/$1.$how.results"
	done
	[ "$(wc -l <"$TEST_DIR/$1.plain.results")" -gt 100 ] || fail "few tests ran"
	same "$TEST_DIR/$1.plain.results" "$TEST_DIR/$1.iwarp.results"
	echo "$(grep -c 'ok$' "$TEST_DIR/$1.iwarp.results") tests"
}

python_asyncio() {
	over 7220
	export MUCH
	both asyncio python3 -c '
import asyncio, os
async def serve(r, w):
    while d := await r.read(65536):
        w.write(d)
        await w.drain()
    w.close()
async def one(i):
    r, w = await asyncio.open_connection("127.0.0.1", 7220)
    data = os.urandom(int(os.environ["MUCH"]) * 300000 + i)
    async def send():
        w.write(data)
        await w.drain()
        w.write_eof()
    sender = asyncio.create_task(send())
    assert await r.read(-1) == data
    await sender
    w.close()
async def main():
    await asyncio.start_server(serve, "127.0.0.1", 7220)
    await asyncio.gather(*[one(i) for i in range(30)])
asyncio.run(main())'
}

redis_goes() {
	local op
	over 7230
	serve redis-server 7230 redis-server --port 7230 --bind 127.0.0.1 --save '' --dir "$WORK"
	for op in plain iwarp; do
		$op redis-benchmark -p 7230 -n $((MUCH * 5000)) -c 20 -d 3000 -t set,get,lpush --csv \
			>"$TEST_DIR/benchmark.$op" 2>"$TEST_DIR/benchmark.$op.err" || fail "redis-benchmark, $op"
		# Answers of 300 KB.
		$op redis-benchmark -p 7230 -n 5000 -c 20 -d 3000 -t lrange_100 --csv \
			>>"$TEST_DIR/benchmark.$op" 2>>"$TEST_DIR/benchmark.$op.err" || fail "redis-benchmark, $op"
		[ "$(grep -c '^"' "$TEST_DIR/benchmark.$op")" = 7 ] || fail "$(cat "$TEST_DIR/benchmark.$op")"
	done
	goes_over "$TEST_DIR/benchmark.iwarp.err"
	random_file "$WORK/value" 2000000
	iwarp redis-cli -p 7230 -x set key <"$WORK/value" >"$TEST_DIR/cli" 2>&1
	for op in plain iwarp; do
		$op redis-cli -p 7230 get key 2>/dev/null | head -c 2000000 >"$TEST_DIR/value.$op"
		same "$TEST_DIR/value.$op" "$WORK/value"
	done
	plain redis-cli -p 7230 shutdown nosave
	finish_b redis-server
}

iperf3_goes() {
	local way
	over 7240
	for way in '' -R --bidir; do
		serve "iperf3-server$way" 7240 iperf3 -s -1 -p 7240
		iwarp iperf3 -c 127.0.0.1 -p 7240 -n $((MUCH * 64))M -P 2 $way >"$TEST_DIR/iperf3$way" 2>&1 || fail "$(tail -n 3 "$TEST_DIR/iperf3$way")"
		finish_b "iperf3-server$way"
		goes_over "$TEST_DIR/iperf3$way"
	done
	serve iperf3-for-tcp 7240 iperf3 -s -1 -p 7240
	plain iperf3 -c 127.0.0.1 -p 7240 -n 16M >"$TEST_DIR/iperf3-tcp" 2>&1 || fail "$(tail -n 3 "$TEST_DIR/iperf3-tcp")"
	finish_b iperf3-for-tcp
}

nginx_goes() {
	local op
	over 7250 7251
	random_file "$WORK/file" $((MUCH * 3000001))
	cat >"$WORK/nginx.conf" <<-END
		daemon off; pid $WORK/pid; error_log stderr; worker_processes 2;
		events { worker_connections 256; }
		http {
			access_log off; sendfile on;
			client_body_temp_path $WORK/1; proxy_temp_path $WORK/2; fastcgi_temp_path $WORK/3;
			uwsgi_temp_path $WORK/4; scgi_temp_path $WORK/5;
			server { listen 127.0.0.1:7250; root $WORK; }
			server { listen 127.0.0.1:7251; location / { proxy_pass http://127.0.0.1:7250; } }
		}
	END
	serve nginx 7251 nginx -c "$WORK/nginx.conf"
	for op in 7250 7251; do
		both curl-$op curl -sS http://127.0.0.1:$op/file
		same "$TEST_DIR/curl-$op.iwarp" "$WORK/file"
		same "$TEST_DIR/curl-$op.plain" "$WORK/file"
	done
	for op in plain iwarp; do
		$op ab -q -k -n $((MUCH * 500)) -c 10 http://127.0.0.1:7250/nginx.conf >"$TEST_DIR/ab.$op" 2>"$TEST_DIR/ab.$op.err" ||
			fail "ab, $op; $(tail -n 2 "$TEST_DIR/ab.$op.err")"
		grep -q "^Complete requests: *$((MUCH * 500))$" "$TEST_DIR/ab.$op" && grep -q '^Failed requests: *0$' "$TEST_DIR/ab.$op" ||
			fail "$(cat "$TEST_DIR/ab.$op")"
	done
	goes_over "$TEST_DIR/ab.iwarp.err"
	goes_over "$TEST_DIR/nginx.log"
	plain nginx -c "$WORK/nginx.conf" -s quit 2>"$TEST_DIR/quit"
	finish_b nginx
}

# A repository of this test's own, and a clone of it by either.
git_goes() {
	local op
	over 7260
	export HOME=$WORK GIT_CONFIG_NOSYSTEM=1
	random_file "$WORK/file" $((MUCH * 2000001))
	git init -q "$WORK/repository"
	cp "$WORK/file" "$WORK/repository"
	git -C "$WORK/repository" -c user.name=weft -c user.email=weft@localhost add file
	git -C "$WORK/repository" -c user.name=weft -c user.email=weft@localhost commit -qm file
	git -C "$WORK/repository" update-server-info
	chmod -R a+rX "$WORK/repository"
	serve git-server 7260 python3 -m http.server --bind 127.0.0.1 --directory "$WORK" 7260
	for op in plain iwarp; do
		$op git clone -q http://127.0.0.1:7260/repository/.git "$WORK/clone.$op" 2>"$TEST_DIR/clone.$op.err" ||
			fail "$(tail -n 3 "$TEST_DIR/clone.$op.err")"
		same "$WORK/clone.$op/file" "$WORK/file"
	done
	goes_over "$TEST_DIR/clone.iwarp.err"
}

# OpenSSH's client and dropbear's server, one process a connection, and rsync through them. The server's only user
# has a shell and a home in this test.
ssh_goes() {
	local op user home ssh
	over_and_waits 7290
	user=$(plain id -un) home=$WORK/home
	mkdir -p "$home/.ssh" "$home/tree/deep"
	random_file "$home/file" $((MUCH * 5000001))
	random_file "$home/tree/file" $((MUCH * 3000001))
	random_file "$home/tree/deep/small" 17
	seq 300 | while read -r op; do echo "$op" >"$home/tree/deep/$op"; done
	awk -F : -v OFS=: -v user="$user" -v home="$home" '$1 == user {$6 = home; $7 = "/bin/sh"} 1' /etc/passwd >"$WORK/passwd"
	mount --bind "$WORK/passwd" /etc/passwd || skip "no namespace of mounts"
	dropbearkey -t ed25519 -f "$WORK/host-key" >"$TEST_DIR/keys" 2>&1 && ssh-keygen -q -t ed25519 -N '' -f "$home/key" ||
		fail "no keys"
	cp "$home/key.pub" "$home/.ssh/authorized_keys"
	chown -R "$user" "$home" "$WORK/host-key"
	chmod 700 "$home" "$home/.ssh"
	ssh="ssh -F none -p 7290 -i $home/key -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no"
	ssh+=" -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
	serve dropbear 7290 dropbear -F -E -s -p 127.0.0.1:7290 -P '' -r "$WORK/host-key"
	both ssh $ssh "$user@127.0.0.1" cat file
	same "$TEST_DIR/ssh.iwarp" "$home/file"
	same "$TEST_DIR/ssh.plain" "$home/file"
	iwarp $ssh "$user@127.0.0.1" 'cat >sent' <"$home/file" 2>"$TEST_DIR/sent.err" || fail "$(tail -n 3 "$TEST_DIR/sent.err")"
	goes_over "$TEST_DIR/sent.err"
	same "$home/sent" "$home/file"
	for op in "$home/tree/ $user@127.0.0.1:there/" "$user@127.0.0.1:there/ $home/back/"; do
		plain rsync -a -e "$WEFT_RUN --sockets=$WORK/rules $ssh" $op >"$TEST_DIR/rsync.log" 2>&1 ||
			fail "rsync $op: $(tail -n 3 "$TEST_DIR/rsync.log")"
		goes_over "$TEST_DIR/rsync.log"
	done
	diff -r "$home/tree" "$home/back" || fail "another tree came back"
	goes_over "$TEST_DIR/dropbear.log"
}

# rsync's receiver is two processes, which both use the connection. By a rule it goes over TCP; over iWARP it ends
# with an error and leaves no damaged file.
rsync_shares() {
	local op
	over 7270
	echo 'tcp both 7271' >>"$WORK/rules"
	mkdir -p "$WORK/tree/deep"
	random_file "$WORK/tree/file" 3000001
	random_file "$WORK/tree/deep/small" 17
	printf 'use chroot = no\n[tree]\npath = %s\n' "$WORK/tree" >"$WORK/rsyncd.conf"
	for op in 7270 7271; do
		serve rsync-at-$op $op rsync --daemon --no-detach --address=127.0.0.1 --port=$op --config="$WORK/rsyncd.conf"
	done
	iwarp rsync -a rsync://127.0.0.1:7271/tree/ "$WORK/copy" >"$TEST_DIR/rsync-tcp" 2>&1 ||
		fail "$(tail -n 3 "$TEST_DIR/rsync-tcp")"
	diff -r "$WORK/copy" "$WORK/tree" || fail "another tree over TCP"
	! iwarp rsync -a rsync://127.0.0.1:7270/tree/ "$WORK/part" >"$TEST_DIR/rsync-shared" 2>&1 || fail "it went well"
	goes_over "$TEST_DIR/rsync-shared"
	[ ! -e "$WORK/part/file" ] || same "$WORK/part/file" "$WORK/tree/file"
}

postgresql_goes() {
	local bin op
	over 7280
	bin=$(echo /usr/lib/postgresql/*/bin)
	install -d -o 65534 -g 65534 "$WORK/db"
	plain "$bin/initdb" -D "$WORK/db" -A trust -U weft -N >"$TEST_DIR/initdb" 2>&1 || fail "$(tail -n 3 "$TEST_DIR/initdb")"
	serve postgres 7280 "$bin/postgres" -D "$WORK/db" -p 7280 -h 127.0.0.1 -k "$WORK" -F
	wait_for 60 plain "$bin/pg_isready" -q -h 127.0.0.1 -p 7280 || fail "$(tail -n 3 "$TEST_DIR/postgres.log")"
	iwarp "$bin/pgbench" -h 127.0.0.1 -p 7280 -U weft -i -s 1 -q postgres >"$TEST_DIR/init" 2>&1 || fail "$(tail -n 3 "$TEST_DIR/init")"
	goes_over "$TEST_DIR/init"
	for op in plain iwarp; do
		$op "$bin/pgbench" -h 127.0.0.1 -p 7280 -U weft -n -c 4 -j 2 -t $((MUCH * 100)) postgres >"$TEST_DIR/pgbench.$op" 2>&1 ||
			fail "$(tail -n 3 "$TEST_DIR/pgbench.$op")"
		grep -q "actually processed: $((MUCH * 400))/$((MUCH * 400))" "$TEST_DIR/pgbench.$op" || fail "$(cat "$TEST_DIR/pgbench.$op")"
	done
	for op in plain iwarp; do
		$op "$bin/psql" -h 127.0.0.1 -p 7280 -U weft -c 'select * from pgbench_accounts order by aid' postgres \
			>"$TEST_DIR/accounts.$op" 2>/dev/null
	done
	same "$TEST_DIR/accounts.plain" "$TEST_DIR/accounts.iwarp"
	[ "$(wc -l <"$TEST_DIR/accounts.iwarp")" -gt 100000 ] || fail "accounts are missing"
	plain "$bin/pg_ctl" stop -D "$WORK/db" -m fast >"$TEST_DIR/stop" 2>&1
	finish_b postgres
}
