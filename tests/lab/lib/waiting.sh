# shellcheck shell=bash
# Waiting, without a process where bash can do it. See lib.sh.

# pause SECONDS: reading where nothing comes is a sleep without a process.
[ -p "$HERE/tick" ] || mkfifo "$HERE/tick"
exec 8<>"$HERE/tick"
pause() { read -rt "$1" <&8 || true; }

# wait_for SECONDS COMMAND [ARG...]: until the command succeeds; fails after that time. A suite that keeps its
# machine busy sets PATIENCE, a factor of that time.
wait_for() {
	local end=$((SECONDS + $1 * ${PATIENCE:-1}))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		pause 0.05
	done
}

# A process that has ended may stay a zombie until bash finds the time to look at it.
is_over() {
	local stat
	! read -r stat 2>/dev/null </proc/"$1"/stat || [[ $stat == *") Z "* ]]
}

# Their files are closed once they are dead, all threads of them.
are_dead() {
	local pid stat threads
	for pid; do
		read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
		threads=("/proc/$pid/task"/*)
		[[ ${stat##*) } = [ZX]* && ${#threads[@]} = 1 ]] || return 1
	done
}

# within SECONDS COMMAND [ARG...]: as timeout(1), but also gives up on a command that sleeps in
# the kernel where no signal reaches it.
within() {
	local seconds=$1 pid rc=0
	shift
	"$@" &
	pid=$!
	wait_for "$seconds" is_over "$pid" || {
		kill -9 $pid
		return 124
	}
	wait $pid || rc=$?
	return $rc
}
