#!/bin/bash
# What weft-run --sockets and rsockets (librspreload of rdma-core, over weft-run's device) make of the same programs:
# a line each, PROGRAM: rsockets VERDICT; weft VERDICT. VERDICT: works (every octet was compared), over TCP (as well,
# but not over RDMA), hangs, wrong, crashes, or fails, and the program's last words. Then iperf by turns, which runs
# over both: Mbit/s. docs/socket-programs.md has what it printed, with the reasons.
#   tests/lab/run.sh rootless -x tests/bench/rsockets.sh [PAIRS]
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh disable=SC2086 # AS_USER is a list
. "$WEFT_TOP/tests/lab/lib.sh"

unset WEFT_TRACE
TEST_DIR=$SHARE/rsockets
WORK=${WORK:-$(mktemp -d /tmp/weft-rsockets.XXXXXX)}
export WORK
mkdir -p "$TEST_DIR"
pair weft:weft 65536
echo 'iwarp both *' >"$WORK/weft"
fork=
preload=$(echo /usr/lib/*/rsocket/librspreload.so)
[ -e "$preload" ] || fail "librdmacm has no librspreload.so"
pg=$(echo /usr/lib/postgresql/*/bin)

# by WAY COMMAND...: timeout runs without the preloaded library.
by() {
	local way=$1
	shift
	case $way in
	tcp) timeout -k 2 20 $AS_USER "$@" ;;
	weft) timeout -k 2 20 $AS_USER env WEFT_TRACE=1 "$WEFT_RUN" --sockets="$WORK/weft" "$@" ;;
	rsockets) timeout -k 2 20 $AS_USER env $fork LD_PRELOAD="$preload" "$WEFT_RUN" "$@" ;;
	esac
}

# serve COMMAND...: by $way, in the background, at $port. A server that does not listen is killed.
serve() {
	local rc=0 job
	by "$way" "$@" >"$log.server" 2>&1 </dev/null &
	job=$!
	wait_for 5 listening "$port" && return
	why="no server: $(tail -n 1 "$log.server")"
	kill "$job" 2>/dev/null || true
	wait "$job" 2>/dev/null || rc=$?
	[ $rc != 139 ] || return $rc
	return 1
}

# ask COMMAND...: its output is $log.
ask() { by "$way" "$@" >"$log" 2>"$log.err"; }
same() { cmp -s "$1" "$WORK/file" || { why=wrong && return 1; }; }

# --- the programs: each with $way, $port and $log ---

iperf3_() { serve iperf3 -s -1 -p "$port" && ask iperf3 -c 127.0.0.1 -p "$port" -n 8M && grep -q receiver "$log"; }
iperf_() { serve iperf -s -P 1 -p "$port" && ask iperf -c 127.0.0.1 -p "$port" -n 8M && grep -q bits/sec "$log"; }

# netcat PROGRAM ARG...: to a server whose input goes on.
netcat() {
	sleep 15 | by "$way" "$1" -l ${2-} "$port" >"$log.server" 2>"$log.server.err" &
	wait_for 5 listening "$port" || { why="no server" && return 1; }
	by "$way" "$1" $3 127.0.0.1 "$port" <"$WORK/file" >"$log" 2>"$log.err" || return
	wait_for 5 cmp -s "$log.server" "$WORK/file" || { why="the server has $(wc -c <"$log.server") of it; $(tail -n 1 "$log.server.err")" && return 1; }
}
nc_openbsd() { netcat nc.openbsd '' -N; }
nc_traditional() { netcat nc.traditional -p '-q 1'; }

nuttcp_() { serve nuttcp -S -1 -P "$port" -p $((port + 1)) && ask nuttcp -P "$port" -p $((port + 1)) -n 8m 127.0.0.1 && grep -q Mbps "$log"; }

http_server() {
	serve python3 -m http.server --bind 127.0.0.1 --directory "$WORK" "$port" && ask curl -sS "http://127.0.0.1:$port/file" && same "$log"
}

# One process, for rsockets know no fork().
start_nginx() {
	mkdir -p "$WORK/nginx" && chmod 1777 "$WORK/nginx"
	cat >"$WORK/nginx.conf" <<-NGINX
		daemon off; master_process off; pid $WORK/nginx/pid; error_log stderr; events { worker_connections 256; }
		http {
			access_log off; client_body_temp_path $WORK/nginx/1; proxy_temp_path $WORK/nginx/2;
			fastcgi_temp_path $WORK/nginx/3; uwsgi_temp_path $WORK/nginx/4; scgi_temp_path $WORK/nginx/5;
			server { listen 127.0.0.1:$port; root $WORK; }
		}
	NGINX
	serve nginx -c "$WORK/nginx.conf"
}
curl_nginx() { start_nginx && ask curl -sS "http://127.0.0.1:$port/file" && same "$log"; }
ab_nginx() {
	start_nginx && ask ab -q -k -n 500 -c 10 "http://127.0.0.1:$port/nginx.conf" && grep -q '^Failed requests: *0$' "$log"
}

redis_() {
	serve redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$WORK" &&
		ask redis-benchmark -p "$port" -n 2000 -c 10 -d 3000 -t set,get --csv && grep -q '^"GET"' "$log"
}

postgresql() {
	local db=$WORK/db.$way fork=RDMAV_FORK_SAFE=1
	install -d -o 65534 -g 65534 "$db"
	by tcp "$pg/initdb" -D "$db" -A trust -U weft -N >"$log.initdb" 2>&1 || return
	serve "$pg/postgres" -D "$db" -p "$port" -h 127.0.0.1 -k "$WORK" -F &&
		ask "$pg/pgbench" -h 127.0.0.1 -p "$port" -U weft -i -s 1 -q postgres &&
		ask "$pg/pgbench" -h 127.0.0.1 -p "$port" -U weft -n -c 2 -t 50 postgres &&
		grep -q 'actually processed: 100/100' "$log"
}

# As who runs this: a session needs a shell.
ssh_() {
	local AS_USER='' fork=RDMAV_FORK_SAFE=1
	[ -e "$WORK/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$WORK/key"
	mkdir -p /run/sshd
	cp "$WORK/key.pub" "$WORK/authorized"
	chmod 600 "$WORK/authorized"
	serve /usr/sbin/sshd -D -e -p "$port" -h "$WORK/key" -f /dev/null -o "AuthorizedKeysFile=$WORK/authorized" -o StrictModes=no -o LogLevel=DEBUG1 \
		-o ListenAddress=127.0.0.1 && ask ssh -F /dev/null -i "$WORK/key" -p "$port" -o StrictHostKeyChecking=no \
		-o UserKnownHostsFile=/dev/null -o BatchMode=yes 127.0.0.1 "cat $WORK/file" && same "$log"
}

asyncio() {
	cat >"$WORK/both.py" <<-'PYTHON'
		import asyncio, os, sys
		async def serve(r, w):
		    while d := await r.read(65536):
		        w.write(d)
		        await w.drain()
		    w.close()
		async def main(port):
		    await asyncio.start_server(serve, "127.0.0.1", port)
		    r, w = await asyncio.open_connection("127.0.0.1", port)
		    print(os.readlink("/proc/self/fd/%d" % w.get_extra_info("socket").fileno()))
		    data = os.urandom(300000)
		    w.write(data)
		    w.write_eof()
		    assert await r.read(-1) == data
		asyncio.run(main(int(sys.argv[1])))
	PYTHON
	ask python3 "$WORK/both.py" "$port" || return
	# What rsockets have is no socket for the kernel.
	[ "$way" = weft ] || ! grep -q socket: "$log" || { why=TCP && return 1; }
}

# --- the table ---

# verdict STATUS
verdict() {
	case $1:$why in
	0:)
		if [ "$way" = weft ] && ! grep -qa 'goes over iWARP' "$log.err"; then
			echo over TCP
		else
			echo works
		fi
		;;
	*:TCP) echo over TCP ;;
	*:wrong) echo wrong ;;
	124:* | 137:*) echo hangs ;;
	13[0-9]:*) echo crashes ;;
	*:?*) echo "fails: $why" ;;
	*) echo "fails: $(cat "$log.err" "$log" 2>/dev/null | grep . | tail -n 1)" ;;
	esac
}

# try PROGRAM: the servers end with it.
try() {
	local rc=0 job
	port=$((port + 2)) log=$TEST_DIR/$1.$way why=
	$1 || rc=$?
	verdict $rc >"$log.verdict"
	for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
	wait
}

iperf_rate() {
	way=$1 port=$((20000 + RANDOM % 12000)) log=$TEST_DIR/rate.$1
	serve iperf -s -P 1 -p "$port" || fail "$why"
	by "$way" iperf -c 127.0.0.1 -p "$port" -t 2 -f m 2>/dev/null | awk '/bits\/sec/ {print $(NF - 1)}'
	wait
}

# What a call of its own does for turns.py: rate WAY.
if [ "${1-}" = rate ]; then
	echo "Mbit/s=$(iperf_rate "$2")"
	exit
fi

trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$WORK"' EXIT
chmod 1777 "$WORK"
head -c 3000001 /dev/urandom >"$WORK/file"
chmod 644 "$WORK/file"
port=7400
for program in iperf3_ iperf_ nc_openbsd nc_traditional nuttcp_ http_server curl_nginx ab_nginx redis_ postgresql ssh_ asyncio; do
	for way in rsockets weft; do try $program; done
	echo "$program: rsockets $(cat "$TEST_DIR/$program.rsockets.verdict"); weft $(cat "$TEST_DIR/$program.weft.verdict")"
done
cat >"$TEST_DIR/plan" <<-END
	rsockets | - | - | - | Mbit/s | bash $0 rate rsockets
	iperf over weft-run --sockets | - | rsockets | - | Mbit/s | bash $0 rate weft
	iperf over TCP | - | rsockets | - | Mbit/s | bash $0 rate tcp
END
"$WEFT_TOP/tests/bench/turns.py" --pairs "${1:-9}" --limit 60 "$TEST_DIR/plan" "$TEST_DIR/figures.csv"
