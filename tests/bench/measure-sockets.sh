#!/bin/bash
# Programs of sockets over TCP, passed through by weft-run --sockets, and over iWARP, by turns (turns.py). Bits a
# second of iperf3, requests of redis-benchmark without pipelining and of ab, and transactions of pgbench, a second.
# MTU 65536.
#   tests/lab/run.sh rootless -x tests/bench/measure-sockets.sh [PAIRS]
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh disable=SC2086 # AS_USER is a list
. "$WEFT_TOP/tests/lab/lib.sh"

unset WEFT_TRACE
TEST_DIR=$SHARE/bench-sockets
declare -A port=([tcp]=7301 [passed]=7302 [weft]=7303)
pg=$(echo /usr/lib/postgresql/*/bin)

# by WAY COMMAND...
by() {
	local way=$1
	shift
	if [ "$way" = tcp ]; then
		${AS_USER%% env LD_PRELOAD=*} "$@"
	else
		$AS_USER "$WEFT_RUN" --sockets="$WORK/$way" "$@"
	fi
}

# serve WAY PORT COMMAND...
serve() {
	by "$1" "${@:3}" >>"$TEST_DIR/server.log" 2>&1 </dev/null &
	wait_for 20 listening "$2" || fail "no server at $2: $(tail -n 2 "$TEST_DIR/server.log")"
}

iperf3_of() {
	local server
	serve "$1" "${port[$1]}" iperf3 -s -1 -p "${port[$1]}"
	server=$!
	by "$1" iperf3 -c 127.0.0.1 -p "${port[$1]}" -t 2 -f m 2>/dev/null | awk '/receiver/ {print $7}'
	wait "$server"
}

redis_of() {
	by "$1" redis-benchmark -p $((port[$1] + 10)) -n 40000 -d 64 -t get --csv 2>/dev/null | awk -F'"' '/GET/ {print $4}'
}

ab_of() {
	by "$1" ab -q -k -n 10000 -c 10 "http://127.0.0.1:$((port[$1] + 20))/file" 2>/dev/null |
		awk '/^Requests per second/ {print $4}'
}

pgbench_of() {
	by "$1" "$pg/pgbench" -h 127.0.0.1 -p $((port[$1] + 30)) -U weft -n -S -c 4 -j 2 -T 2 postgres 2>/dev/null |
		awk '/^tps/ {print $3}'
}

# What a call of its own does for turns.py: of PROGRAM WAY.
if [ "${1-}" = of ]; then
	echo "figure=$("$2_of" "$3")"
	exit
fi

plan() {
	local program
	for program in iperf3 redis ab pgbench; do
		echo "$program over TCP | - | - | - | figure | bash $0 of $program tcp"
		case $program in
		iperf3 | redis) echo "$program, passed through | - | $program over TCP | >= 0.98 | figure | bash $0 of $program passed" ;;
		esac
		echo "$program over iWARP | - | $program over TCP | >= 0.9 | figure | bash $0 of $program weft"
	done
}

WORK=$(mktemp -d /tmp/weft-sockets.XXXXXX)
export WORK
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$WORK"' EXIT
chmod 1777 "$WORK"
mkdir -p "$TEST_DIR"
pair weft:weft 65536
echo 'tcp both *' >"$WORK/passed"
echo 'iwarp both *' >"$WORK/weft"
head -c 4096 /dev/urandom >"$WORK/file"
chmod 644 "$WORK/file"
for way in tcp passed weft; do
	serve $way $((port[$way] + 10)) redis-server --port $((port[$way] + 10)) --bind 127.0.0.1 --save '' --dir "$WORK"
done
for way in tcp weft; do
	p=$((port[$way] + 20))
	mkdir -p "$WORK/nginx.$way" && chmod 1777 "$WORK/nginx.$way"
	cat >"$WORK/nginx.$way.conf" <<-END
		daemon off; pid $WORK/nginx.$way/pid; error_log stderr; worker_processes 1;
		events { worker_connections 256; }
		http {
			access_log off; client_body_temp_path $WORK/nginx.$way/1; proxy_temp_path $WORK/nginx.$way/2;
			fastcgi_temp_path $WORK/nginx.$way/3; uwsgi_temp_path $WORK/nginx.$way/4; scgi_temp_path $WORK/nginx.$way/5;
			server { listen 127.0.0.1:$p; root $WORK; }
		}
	END
	serve $way $p nginx -c "$WORK/nginx.$way.conf"
	p=$((port[$way] + 30))
	install -d -o 65534 -g 65534 "$WORK/db.$way"
	by tcp "$pg/initdb" -D "$WORK/db.$way" -A trust -U weft -N >"$TEST_DIR/initdb.$way" 2>&1
	serve $way $p "$pg/postgres" -D "$WORK/db.$way" -p $p -h 127.0.0.1 -k "$WORK" -F
	wait_for 20 by tcp "$pg/pg_isready" -q -h "$WORK" -p $p
	by tcp "$pg/pgbench" -h "$WORK" -p $p -U weft -i -s 1 -q postgres >"$TEST_DIR/init.$way" 2>&1 || fail "pgbench -i"
done

plan >"$TEST_DIR/plan"
"$WEFT_TOP/tests/bench/turns.py" --pairs "${1:-9}" --limit 60 "$TEST_DIR/plan" "$TEST_DIR/figures.csv"
