# shellcheck shell=bash
# The lab without a machine: a and b are this host, and devices belong to a process
# (providers/rootless). Has the functions of mailbox.sh, devices.sh and clean-up.sh. See lib.sh.
#
# Programs that use RDMA are found in $HERE/bin first (tests/lab/rootless.sh), which runs each as an
# unprivileged user under weft-run, with the options of its side: $PLACE, a or b.

export PLACE=${PLACE:-a}
IP_A=127.0.0.1 IP_B=127.0.0.2
IP6_A=::1 IP6_B=::1

on_b() { PLACE=b "$@" </dev/null; }

# b knows the functions of lib.sh, and not those of a suite.
at() {
	local where=$1
	shift
	if [ "$where" = a ]; then
		"$@"
	else
		on_b bash -c ". '$WEFT_TOP/tests/lab/lib.sh'; \"\$@\"" at "$@"
	fi
}

# pair A:B [MTU]: weft has the one driver here, and both sides the one device of lo.
pair() {
	DEV_A=weft_lo DEV_B=weft_lo
	rm -f "$TEST_DIR"/options-[ab]
	# Not where lo is the host's own: then its MTU is what it is.
	[ "$OWN_NET" = no ] || ip link set lo mtu "${2:-1500}" || fail "lo takes no MTU"
}

# What a program reads when it begins.
option() { echo "export WEFT_${2^^}='$3'" >>"$TEST_DIR/options-$PLACE"; }

# Sockets stand for queue pairs: of each connection one end is counted.
in_rts() { grep -cE '^ *[0-9]+: [0-9A-F]+:[0-9A-F]+ 0200007F:[0-9A-F]+ 01 ' /proc/net/tcp || true; }

# There are thousands of sockets at times, of all that there were, and bash reads slowly.
listening() {
	local hex
	printf -v hex '%04X' "${1#udp:}"
	[[ $1 != udp:* ]] ||
		{ grep -qE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 07 " /proc/net/udp /proc/net/udp6; return; }
	grep -qE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# Prints a port where nothing listens.
free_port() {
	local port
	for _ in {1..50}; do
		port=$((20000 + RANDOM % 12000))
		listening $port || break
	done
	echo $port
}

# The logs of what start_b started tell what b did.
start_b() {
	echo "$1" >>"$TEST_DIR/of-b"
	at b run_apart "$TEST_DIR/$1" "${@:2}"
}

logs_here() {
	local log name
	for log in "$TEST_DIR"/*.log; do
		name=${log##*/}
		if grep -qsx "${name%.log}" "$TEST_DIR/of-b"; then
			[ "$PLACE" = a ] || echo "$log"
		else
			[ "$PLACE" = b ] || echo "$log"
		fi
	done
}

# Layer, type and code of a Terminate that has a counter.
declare -A TERMS=(
	[mpa_crc]='2, etype 0, code 0x2' [ddp_stag]='1, etype 1, code 0' [ddp_bounds]='1, etype 1, code 0x1'
	[ddp_tagged_version]='1, etype 1, code 0x4' [ddp_qn]='1, etype 2, code 0x1'
	[ddp_no_buffer]='1, etype 2, code 0x2' [ddp_msn]='1, etype 2, code 0x3'
	[ddp_mo]='1, etype 2, code 0x4' [ddp_too_long]='1, etype 2, code 0x5'
	[ddp_untagged_version]='1, etype 2, code 0x6' [rdmap_stag]='0, etype 1, code 0'
	[rdmap_bounds]='0, etype 1, code 0x1' [rdmap_access]='0, etype 1, code 0x2'
	[rdmap_version]='0, etype 2, code 0x5' [rdmap_opcode]='0, etype 2, code 0x6'
)

# count DEVICE term_in_NAME|term_out_NAME: from the traces of this side's programs; other processes
# cannot see their counters.
count() {
	local way=received name=${2#term_in_} logs
	[[ $2 != term_out_* ]] || { way=sent && name=${2#term_out_}; }
	[ "$name" != crc_errors ] || { way=sent && name=mpa_crc; }
	[ -n "${TERMS[$name]-}" ] || return
	mapfile -t logs < <(logs_here)
	cat /dev/null "${logs[@]}" | grep -cxF "weft: Terminate $way: layer ${TERMS[$name]}" || true
}

# Rings are memory files.
weft_memory() { grep -lsF 'memfd:uverbs' /proc/[0-9]*/maps; }

# is_of_test PID
is_of_test() { grep -qzxsF "TEST_DIR=$TEST_DIR" "/proc/$1/environ" 2>/dev/null; }

# signal_those SIGNAL FILE PATTERN: processes of this test with the pattern in that file of theirs; in $signalled.
signal_those() {
	local dir pid
	signalled=()
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		[ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && is_of_test "$pid" || continue
		grep -qsaE "$3" "$dir/$2" && kill -s "$1" "$pid" 2>/dev/null && signalled+=("$pid")
	done
	return 0
}

# scripts/coverage.sh: what ends by SIGTERM writes what it counted (tests/lab/coverage.c).
end_covered() {
	local late=$((SECONDS + 3))
	[ -n "${COVERED-}" ] || return 0
	signal_those TERM maps 'libweft-rootless'
	until are_dead "${signalled[@]}" || [ $SECONDS -gt $late ]; do sleep 0.1; done
}

kill_users() {
	end_covered
	signal_those KILL maps 'libweft-rootless'
}

# A server that is about to die has its port still, and the next test wants it.
clean_here() {
	end_covered
	signal_those KILL cmdline .
	wait_for 60 are_dead "${signalled[@]}" || { echo "a process that was killed does not end: ${signalled[*]}" && return 1; }
}

# --- what stands for the kernel's log: sanitizers' reports, and programs that died ---

klog_mark() { rm -f "$HERE"/san/*; }
# A program crashed as it is known to: no frame of ours is in the report.
forget_their_crashes() { grep -LsF libweft "$HERE"/san/* | xargs -r rm -f; }

klog_since() {
	local rc status
	cat /dev/null "$HERE"/san/* 2>/dev/null
	for rc in "$TEST_DIR"/*.rc; do
		[ -s "$rc" ] && read -r status <"$rc" || continue
		case $status in 132 | 134 | 135 | 136 | 139) echo "crashed: ${rc##*/}, status $status" ;; esac
	done
	return 0
}

klog_faults() { grep -E '(ERROR|WARNING): (Address|Thread)Sanitizer|runtime error:|^crashed:'; }
