# shellcheck shell=bash
# weft-run --record and weft-trace, with programs of others: what the records have, and what is made of them.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		rping-is-recorded recorded 7174 40 rping -s -a @ -C 10 -- rping -c -a @ -C 10
		rping-over-ipv6-is-recorded six
		sends-are-recorded measured ib_send_bw
		writes-are-recorded measured ib_write_bw -s 65536
		reads-are-recorded measured ib_read_bw -s 65536
		atomics-are-recorded measured ib_atomic_bw
		ping-pong-with-events-is-recorded measured ib_send_lat -e
		by-hand-is-recorded by_hand
		srq-is-recorded by_hand_srq
		without-crc-is-recorded without crc
		with-markers-is-recorded with markers
		large-fpdus-are-recorded with large_fpdus
		extended-cq-and-builders-are-recorded extended
		a-ring-that-went-round-is-read wrapped
		a-killed-program-leaves-a-record killed KILL
		an-aborted-program-leaves-a-record killed ABRT
		each-process-has-its-own-record children
		a-program-that-is-executed-has-its-own-record executed
		errors-are-on-the-page errors
		the-trace-is-in-the-record notes
		judge-and-record-go-together judged
		faults-and-record-go-together faulty
		without-the-option-there-is-no-record none
		wrong-folders-are-refused refused
	END
	local rule
	for rule in $end_rules; do
		echo "$rule-is-reported-of-both-ends reported_ends $rule"
		echo "no-$rule-is-not-reported silent_ends $rule"
	done
	cat <<-'END'
		rping-is-silent-at-both-ends quiet 7174 rping -s -a @ -C 50 -- rping -c -a @ -C 50
		ucmatose-is-silent-at-both-ends quiet 7471 ucmatose -b @ -c 4 -C 30 -- ucmatose -s @ -c 4 -C 30
		rstream-is-silent-at-both-ends quiet 7471 rstream -S 65537 -C 20 -I 5 -b @ -- rstream -S 65537 -C 20 -I 5 -s @
		ib_write_lat-is-silent-at-both-ends quiet 18515 ib_write_lat -d weft_lo -x 2 -F -n 500 -- ib_write_lat -d weft_lo -x 2 -F -n 500 @
		ibv_rc_pingpong-is-silent-at-both-ends quiet 18515 ibv_rc_pingpong -d weft_lo -g 2 -- ibv_rc_pingpong -d weft_lo -g 2 @
		ibv_srq_pingpong-is-silent-at-both-ends quiet 18515 ibv_srq_pingpong -d weft_lo -g 2 -q 4 -- ibv_srq_pingpong -d weft_lo -g 2 -q 4 @
		ib_send_bw-is-reported-at-both-ends argued receive-too-late ib_send_bw
	END
}

end_rules=$(sed -nE 's/^    "J[0-9]+", "([a-z0-9-]+)".*/\1/p' "$WEFT_TOP/providers/rootless/weft_trace/judge.py")

# says and run_says are of this suite.
# shellcheck source-path=SCRIPTDIR source=rootless.sh
. <(sed -n '/^# says STATUS/,/^# --- what a program sees/p' "$WEFT_TOP/tests/lab/suites/rootless.sh")

trace=$WEFT_BUILD/bin/weft-trace
# tshark takes Sends for these protocols by their first octets, which are the program's.
not_those=(--disable-protocol rpcordma --disable-protocol smb_direct)

# records: both sides' go to a new folder, in memory if it can be: a disk that has much to write holds up each entry that is
# the first of its page.
records() {
	folder=$TEST_DIR/records
	rm -rf "$folder"
	if [ -w /dev/shm ]; then
		folder=$(mktemp -d /dev/shm/weft-records.XXXXXX)
		trap 'mv "$folder" "$TEST_DIR/records"' EXIT
		chmod 777 "$folder"
	else
		mkdir -m 777 "$folder"
	fi
	option "$DEV_A" record "$folder"
	on_b option "$DEV_B" record "$folder"
}

# shown: all that weft-trace makes of the records, judged by its readers.
shown() {
	says '0:' "$trace" --pcapng="$TEST_DIR/pcapng" --chrome="$TEST_DIR/json" --html="$TEST_DIR/html" --text "$folder"
	cp "$TEST_DIR/said" "$TEST_DIR/text"
	reads -V >"$TEST_DIR/frames"
	! grep -qE 'Bad CRC32|bad CRC' "$TEST_DIR/frames" || fail "$(grep -m 1 -iE 'bad CRC' "$TEST_DIR/frames")"
	reads -Y '_ws.malformed or _ws.short or _ws.expert.severity == error or not iwarp_mpa' >"$TEST_DIR/others"
	[ ! -s "$TEST_DIR/others" ] || fail "malformed, or no FPDU: $(head -n 3 "$TEST_DIR/others")"
	python3 "$WEFT_TOP/tests/trace/timeline_rules.py" "$TEST_DIR/json" >"$TEST_DIR/counts" 2>"$TEST_DIR/rules.log" ||
		fail "the time line: $(tail -n 1 "$TEST_DIR/rules.log")"
}

# reads OPTION...: tshark, of the packets.
reads() {
	timeout -k 2 100 tshark -r "$TEST_DIR/pcapng" "${not_those[@]}" "$@" 2>"$TEST_DIR/tshark.log" ||
		fail "tshark ended with $?: $(words "$TEST_DIR/tshark.log")"
}

# number NAME: of the time line.
number() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$TEST_DIR/counts" "$1"; }

# at_least N NAME
at_least() { [ "$(number "$2")" -ge "$1" ] || fail "$(number "$2") $2, at least $1 are due: $(cat "$TEST_DIR/counts")"; }

# joined N: two processes, and so many arrows from one to the other, none of them back in time.
joined() {
	[ "$(number processes)" = 2 ] || fail "$(number processes) processes"
	at_least "$1" 'arrows between processes'
	[ "$(number 'arrows back in time')" = 0 ] || fail "arrows lead back in time: $(cat "$TEST_DIR/counts")"
	grep -qE ' of QP 0x[0-9a-f]+ in .*, wr_id 0x' "$TEST_DIR/frames" || fail "no comment names a request"
	grep -q 'at the other end: ' "$TEST_DIR/frames" || [ "${one_sided-}" ] || fail "no comment names the peer's request"
}

# recorded PORT ARROWS SERVER... -- CLIENT...: @ is b's address.
recorded() {
	local port=$1 arrows=$2
	shift 2
	pair weft:weft
	options
	records
	together "$port" "${@/#@/$IP_B}"
	shown
	joined "$arrows"
}

# What a test sets on both sides beside the record.
options() { :; }

six() {
	IP_B=$IP6_B
	recorded 7174 40 rping -s -a @ -C 10 -- rping -c -a @ -C 10
}

# measured PROGRAM [OPTION...]
measured() {
	[[ $1 =~ send ]] || local one_sided=yes
	recorded 18515 100 "$1" -d weft_lo -x 2 -F -n 200 "${@:2}" -- "$1" -d weft_lo -x 2 -F -n 200 "${@:2}" @
	! grep -q 'requests": 0' "$TEST_DIR/counts" || fail "no request: $(cat "$TEST_DIR/counts")"
}

# with OPTION, without OPTION: on both sides.
with() {
	value=$([ "${FUNCNAME[1]}" = without ] && echo 0 || echo 1) name=$1
	options() { option "$DEV_A" "$name" "$value"; on_b option "$DEV_B" "$name" "$value"; }
	recorded 18515 100 ib_send_bw -d weft_lo -R -F -n 200 -s 9000 -- ib_send_bw -d weft_lo -R -F -n 200 -s 9000 @
}
without() { with "$1"; }

by_hand() {
	recorded 18515 200 ibv_rc_pingpong -d weft_lo -g 2 -n 100 -s 70000 -- ibv_rc_pingpong -d weft_lo -g 2 -n 100 -s 70000 @
}

by_hand_srq() {
	recorded 18515 200 ibv_srq_pingpong -d weft_lo -g 2 -n 200 -q 4 -- ibv_srq_pingpong -d weft_lo -g 2 -n 200 -q 4 @
}

# One process with both ends, by ibv_wr_*() and extended CQs.
extended() {
	pair weft:weft
	records
	tap_run weft-extended "$IP_A"
	shown
	[ "$(number processes)" -ge 1 ] || fail 'no process'
	at_least 10 requests
}

# The client's record holds a part of the run: the newest.
wrapped() {
	one_sided=yes
	options() { option "$DEV_A" record_mib 1; on_b option "$DEV_B" record_mib 1; }
	recorded 18515 100 ib_send_lat -d weft_lo -x 2 -F -n 3000 -- ib_send_lat -d weft_lo -x 2 -F -n 3000 @
	[ "$(grep -c '^# .*older ones gave way' "$TEST_DIR/text")" = 2 ] || fail "$(head -n 2 "$TEST_DIR/text")"
	grep -q "made up: the record no longer has this connection's start-up" "$TEST_DIR/frames" || fail 'no start-up'
	tail -n 5 "$TEST_DIR/text" | grep -qE 'dealloc_pd|protection domain' || fail "the end: $(tail -n 5 "$TEST_DIR/text")"
	# shellcheck disable=SC2012 # names of no surprise
	[ "$(stat -c %s "$folder"/*.weft | sort -u)" = $((4096 + 128 * 256 + (1 << 20))) ] || fail "$(ls -l "$folder")"
}

# killed SIGNAL: in the middle of its work, without a handler.
killed() {
	pair weft:weft
	records
	option "$DEV_A" record_mib 1
	on_b option "$DEV_B" record_mib 1
	start_b server ib_send_bw -d weft_lo -x 2 -F -s 4096 -D 60
	wait_listen_b 18515
	run_apart "$TEST_DIR/client" ib_send_bw -d weft_lo -x 2 -F -s 4096 -D 60 "$IP_B"
	wait_for 30 busy || fail "nothing is recorded: $(ls -l "$folder")"
	local pids
	signal_programs "$1" ib_send_bw -d weft_lo -x 2 -F -s 4096 -D 60
	wait_for 20 are_dead "${pids[@]}" || fail "a program does not end: ${pids[*]}"
	wait_for 20 [ -s "$TEST_DIR/client.rc" ] && wait_for 20 [ -s "$TEST_DIR/server.rc" ]
	# They were meant to.
	rm "$TEST_DIR"/{client,server}.rc
	shown
	at_least 100 requests
	joined 100
	says '0:' "$trace" --tail=50 "$folder"
	[ "$(wc -l <"$TEST_DIR/said")" = 52 ] || fail "$(wc -l <"$TEST_DIR/said") lines"
}

# Both have posted, and polled.
busy() {
	local file n=0
	for file in "$folder"/*.weft; do
		[ ! -e "$file" ] || [ "$("$trace" --no-lines "$file" | grep -c ' polled ')" -lt 10 ] || n=$((n + 1))
	done
	[ $n = 2 ]
}

own_run() { PATH=${PATH#*:} says "$1" $AS_USER "$WEFT_RUN" --record="$folder" "${@:2}"; }

# A shell that opens no device has none.
children() {
	pair weft:weft
	records
	own_run '0:' sh -c 'ibv_devinfo & ibv_devinfo & wait; true'
	set -- "$folder"/*
	[ $# = 2 ] || fail "records: $*"
	[ "$(stat -c %a "$1")" = 600 ] || fail "others may read it: $(stat -c %a "$1")"
	own_run '0:' python3 -c 'import os, pyverbs.device as d
c = d.Context(name="weft_lo")
pid = os.fork()
c.query_port(1)
if pid: os.wait()'
	set -- "$folder"/*python3*
	[ $# = 2 ] || fail "records: $*"
	shown
}

executed() {
	pair weft:weft
	records
	own_run '0:' python3 -c 'import os, pyverbs.device as d
if "again" not in os.environ:
    os.environ["again"] = "yes"
    c = d.Context(name="weft_lo")
    c.query_port(1)
    os.execvp("python3", ["python3", "-c", "import pyverbs.device as d; d.Context(name=\"weft_lo\").query_port(1)"])'
	set -- "$folder"/*
	[ $# = 2 ] && [ "${2%.*.weft}" = "${1%.2.weft}" ] || [ "${1%.2.weft}" = "${2%.weft}" ] || fail "records: $*"
	shown
}

# The server's QP fails by a wrong key of the client's.
errors() {
	pair weft:weft
	records
	tap_run weft-verbs "$IP_A" a-read-beyond-its-end-is-refused
	shown
	grep -q 'REM_ACCESS_ERR' "$TEST_DIR/text" || fail 'no error in the text'
	grep -q 'REM_ACCESS_ERR' "$TEST_DIR/html" || fail 'no error on the page'
	grep -q '"cat":"error"' "$TEST_DIR/json" || fail 'no error on the time line'
}

# Each Terminate is a line of the trace.
notes() {
	pair weft:weft
	records
	tap_run weft-verbs "$IP_A" a-write-that-wraps-is-refused
	shown
	local said kept
	said=$(grep -cE '^weft: Terminate (sent|received): ' "$TEST_DIR/weft-verbs.log")
	kept=$(grep -cE ' Terminate (sent|received): layer ' "$TEST_DIR/text")
	[ "$said" -gt 0 ] && [ "$said" = "$kept" ] || fail "$said lines of the trace, $kept notes"
}

judged() {
	pair weft:weft
	records
	own_run '99:J201 changed-under-way' --judge="changed-under-way" "$WEFT_BUILD/bin/weft-judged" 127.0.0.1 changed-under-way wrong
	own_run '0:' --judge=all "$WEFT_BUILD/bin/weft-judged" 127.0.0.1 changed-under-way right
	shown
	grep -q 'post Send.*send_from weft-judged.c:[0-9]' "$TEST_DIR/text" || fail "no line: $(grep -m 2 'post Send' "$TEST_DIR/text")"
}

# --- both ends ---

# judge_ends STATUS WORDS CASE wrong|right
judge_ends() {
	pair weft:weft
	records
	own_run 0: "$WEFT_BUILD/bin/weft-ends" 127.0.0.1 "$3" "$4"
	says "$1:$2" "$trace" judge --rules=all "$folder"
}

# Each line is that of the function that broke the rule, or of the request in the way.
reported_ends() {
	judge_ends 99 "weft-trace: J[0-9]* $1: " "$1" wrong
	[ "$(grep -c '^weft-trace: J' "$TEST_DIR/said")" = 1 ] || fail "several reports: $(words "$TEST_DIR/said")"
	[ "$(grep -cE '^      [a-z_]+ (weft-ends|byhand)\.c:[0-9]+$' "$TEST_DIR/said")" = 2 ] || fail "no lines: $(words "$TEST_DIR/said")"
}

silent_ends() { judge_ends 0 '' "$1" right; ! grep J "$TEST_DIR/said" || fail "reported: $(words "$TEST_DIR/said")"; }

# quiet PORT SERVER... -- CLIENT...: @ is b's address.
quiet() {
	local port=$1
	shift
	pair weft:weft
	records
	together "$port" "${@/#@/$IP_B}"
	says '0:' "$trace" judge --rules=all "$folder"
}

# argued RULE PROGRAM: docs/findings.md says why. Its server has fewer receives than its client has Sends under way.
argued() {
	pair weft:weft
	records
	together 18515 "$2" -d weft_lo -x 2 -F -n 500 -r 4 -- "$2" -d weft_lo -x 2 -F -n 500 -r 4 "$IP_B"
	says "99:weft-trace: J[0-9]* $1: " "$trace" judge --rules=all "$folder"
	[ "$(grep -c '^weft-trace: J' "$TEST_DIR/said")" = 1 ] || fail "several reports: $(words "$TEST_DIR/said")"
	sed -n "/^## $2\$/,/^## /p" "$WEFT_TOP/docs/findings.md" | grep -q "$1" || fail "docs/findings.md does not argue $1 of $2"
}

faulty() {
	pair weft:weft
	records
	echo 'reg_mr -> ENOMEM' >"$TEST_DIR/faults"
	own_run '[1-9][0-9]*:' --faults="$TEST_DIR/faults" ibv_rc_pingpong -d weft_lo -g 2
	shown
	grep -q 'ibv_reg_mr: ENOMEM' "$TEST_DIR/text" || fail "$(words "$TEST_DIR/text")"
}

none() {
	pair weft:weft
	records
	rm -f "$TEST_DIR"/options-[ab]
	together 7174 rping -s -a "$IP_B" -C 2 -- rping -c -a "$IP_B" -C 2
	[ -z "$(ls "$folder")" ] || fail "$(ls "$folder")"
}

refused() {
	folder=$TEST_DIR
	run_says '125:--record=/proc/nowhere: ' --record=/proc/nowhere true
	run_says '125:--record=/etc/passwd: ' --record=/etc/passwd true
	run_says '125:' --record= true
	run_says '125:' --record-size=0 --record="$TEST_DIR" true
	run_says '125:' --record-size=many --record="$TEST_DIR" true
}
