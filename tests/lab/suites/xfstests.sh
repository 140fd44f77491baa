# shellcheck shell=bash
# The group quick of xfstests, the tests of Linux's file systems: on NFS 4.2 over RDMA, weft to weft, and on XFS on
# a disk over RDMA. XFSTESTS is a built folder of xfstests, USERS_ROOT has the programs (tests/lab/xfstests.sh). A
# test here is a range of their numbers, in one run of xfstests' check. It fails if one of them fails that is not in
# known(), by the kernel's log, and by what is left.
# After all of them there is a line for each of xfstests' tests that passed. Tests that were not run are reported, and
# not counted.
# PAIRS tcp:tcp and loop:loop run the same without RDMA, siw:siw on siw's devices.
# Environment: XFSTESTS_ONLY  an extended regular expression for some of quick, as generic/00. (all)
#              XFSTESTS_LIMIT seconds that one of them may take (600)

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=7200
WRITTEN='tmp mnt etc var'

# Of each of the two disks. Some of quick's files have a gigabyte.
DISK_MB=2560

# How many numbers a part has.
RANGE=50

# Seconds that one of xfstests' tests may take.
LIMIT=${XFSTESTS_LIMIT:-600}

tests() {
	local place group first
	[ -n "${XFSTESTS-}" ] || return 0
	places | while read -r place group; do
		for first in $(chosen "$place" "$group" | sed 's,.*/0*\(.\),\1,' | awk '{print int($1 / '$RANGE') * '$RANGE'}' | uniq); do
			printf '%s-%s-%03d part %s %s %d\n' "$place" "$group" "$first" "$place" "$group" "$first"
		done
	done
}

# PLACE GROUP
places() {
	[[ $PAIRS == loop* ]] || printf 'nfs generic\n'
	[[ $PAIRS == tcp* ]] || printf 'nvme generic\n'
}

# quick GROUP: xfstests' tests of it that are run.
quick() {
	awk -v group="$1" '/^[0-9].* quick( |$)/ { print group "/" $1 }' "$XFSTESTS/tests/$1/group.list" |
		grep -xE "${XFSTESTS_ONLY:-.*}"
}

# chosen PLACE GROUP: those of them that are run there.
chosen() { quick "$2" | grep -vxF "$(left_out | sed -n "s/^$1 \([^ ]*\) .*/\1/p")"; }

# PLACE NAME REASON
left_out() {
	cat <<-END
		nfs generic/154 writes six gigabytes, more than a disk has
		nfs generic/155 writes six gigabytes, more than a disk has
	END
}

# PLACE NAME REASON: what fails without RDMA, too.
known() {
	cat <<-END
		nfs generic/151 counts free blocks sooner than the server does
		nfs generic/258 has a time before 1970, which is the present after an unmount
	END
}

HERE_OF_IT=/opt/xfstests

# Once a machine.
set_up() {
	[ ! -e /run/xfstests ] || return 0
	# What bash substitutes a process by: xfstests does.
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	# Programs of tests have / as a mount of their own.
	mount --bind "$USERS_ROOT" "$USERS_ROOT" || fail "no root"
	enter_users_root
	mount --bind "$XFSTESTS" "$USERS_ROOT$HERE_OF_IT" || fail "no xfstests"
	# generic/035 and 050 choose by a link there what is expected of them.
	mount -t tmpfs -o mode=755 tests "$USERS_ROOT$HERE_OF_IT/tests/generic" &&
		cp -a "$XFSTESTS/tests/generic/." "$USERS_ROOT$HERE_OF_IT/tests/generic" || fail "no tests of xfstests"
	loads loop
	mkdir -p /run/xfstests
}

# Each leaves $config, the configuration of xfstests' check.
up_nfs() {
	local options=vers=4.2,proto=rdma,port=20049
	[ "$PAIRS" != tcp:tcp ] || options=vers=4.2,proto=tcp
	server up
	server disks $DISK_MB test scratch
	[ "$PAIRS" != tcp:tcp ] || server tcp
	loads nfs rpcrdma
	config="FSTYP=nfs TEST_DEV=$IP_B:/test SCRATCH_DEV=$IP_B:/scratch"
	config+=$'\n'"export NFS_MOUNT_OPTIONS='-o $options' TEST_FS_MOUNT_OPTS='-o $options'"
}

down_nfs() {
	server down
}

server() { on_b bash "$WEFT_TOP/tests/lab/nfsd.sh" "$@" || fail "the server: $*"; }

NQN=nqn.2026-01.weft:test
target() { on_b bash "$WEFT_TOP/tests/lab/nvmet.sh" "$@" || fail "the target: $*"; }

up_nvme() {
	local addr way
	addr=$(first_namespace)
	way=transport=rdma,traddr=$addr,trsvcid=4420
	[ "$PAIRS" != loop:loop ] || addr=loop way=transport=loop
	target up "$addr" 2 $DISK_MB
	[ "$PAIRS" = loop:loop ] || load nvme_rdma || fail "no nvme_rdma"
	loads xfs dm_flakey dm_snapshot dm_thin_pool dm_log_writes
	# xfstests waits for it when it makes a disk of device-mapper's. What ends with the test: clean_users.
	there /usr/lib/systemd/systemd-udevd --daemon || fail "no udev"
	echo "$way,nqn=$NQN,nr_io_queues=2" >/dev/nvme-fabrics ||
		fail "no connection: $(dmesg | tail -n 2)"
	wait_for 10 can_be_opened /dev/nvme0n1 && wait_for 10 can_be_opened /dev/nvme0n2 || fail "no disks"
	there mkfs.xfs -q -f /dev/nvme0n1 || fail "no XFS"
	config="FSTYP=xfs TEST_DEV=/dev/nvme0n1 SCRATCH_DEV=/dev/nvme0n2"
}

down_nvme() {
	soon unplug /sys/class/nvme/nvme0
	unloads nvme_rdma
	target down
	[ "$PAIRS" = loop:loop ] || devices_go
}

unplug() { echo 1 >"$1/delete_controller"; }

# part PLACE GROUP FIRST
part() {
	local config names stuck
	names=$(chosen "$1" "$2" | awk -F / '{n = $2 + 0} n >= '"$3"' && n < '"$3 + $RANGE")
	[ -n "$names" ] || fail "no such tests"
	[ "$PAIRS" = tcp:tcp ] || [ "$PAIRS" = loop:loop ] || pair "$PAIRS"
	set_up
	"up_$1"
	mkdir -p /run/mnt /run/mnt-scratch
	{
		echo "export $config" && echo "export TEST_DIR=/run/mnt SCRATCH_MNT=/run/mnt-scratch"
		echo "export RESULT_BASE=$TEST_DIR/results DIFF_LENGTH=20"
	} >/run/xfstests/config
	# shellcheck disable=SC2086 # a list
	there env -i --chdir=$HERE_OF_IT PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb SYSTEMD_IGNORE_CHROOT=1 \
		HOST_OPTIONS=/run/xfstests/config ./check $names >"$TEST_DIR/check.log" 2>&1 </dev/null &
	stuck=$(follow $! "$1")
	# shellcheck disable=SC2086 # a list
	verdicts "$1" $names >"$TEST_DIR/verdicts"
	[ -z "$stuck" ] || fail "$stuck"
	grep -q '^Ran: ' "$TEST_DIR/check.log" && ! grep -q '^Interrupted!' "$TEST_DIR/check.log" ||
		fail "check did not come to its end: $(tail -n 2 "$TEST_DIR/check.log")"
	! mountpoint -q /run/mnt-scratch || umount /run/mnt-scratch || fail "the scratch stays in use"
	! mountpoint -q /run/mnt || umount /run/mnt || fail "the file system stays in use"
	"down_$1"
	! grep -q '^failed' "$TEST_DIR/verdicts" || fail "$(grep '^failed' "$TEST_DIR/verdicts" | cut -d ' ' -f 2- | paste -sd ,)"
	grep -q '^passed' "$TEST_DIR/verdicts" || skip "none is run"
}

# follow CHECK PLACE: until xfstests' check is over. A test that takes longer than LIMIT is killed, and check continues
# with the next; one that cannot be killed is reported. The run's log has a line for each test that begins.
follow() {
	local lines name='' since=$SECONDS ended=''
	: >"$TEST_DIR/ended"
	while ! is_over "$1"; do
		pause 1
		mapfile -t lines <"$TEST_DIR/check.log"
		[ ${#lines[@]} -gt 0 ] && [[ ${lines[-1]} =~ ^[a-z]+/[0-9]+ ]] || continue
		if [ "${BASH_REMATCH[0]}" != "$name" ]; then
			name=${BASH_REMATCH[0]} since=$SECONDS
			echo "# $2/$name begins" >>"$SHARE/job.out"
		elif [ "$ended" != "$name" ] && [ $((SECONDS - since)) -gt "$LIMIT" ]; then
			ended=$name
			echo "$name" >>"$TEST_DIR/ended"
			end "$name"
		elif [ $((SECONDS - since)) -gt $((LIMIT * 5)) ]; then
			echo "$name cannot be ended: $(places_in "$name")"
			return
		fi
	done
}

# end NAME: all that it has started, and what else is in its file systems; a frozen one goes on.
end() {
	there ps -eo pid=,ppid=,stat=,wchan=,args= >"$TEST_DIR/ps-${1/\//-}"
	# Some end by themselves meanwhile.
	processes_of "$1" | xargs -r kill -9 2>/dev/null
	! mountpoint -q /run/mnt-scratch || within 10 there fsfreeze -u /run/mnt-scratch 2>/dev/null
	within 10 there fuser -k -M -m /run/mnt /run/mnt-scratch >/dev/null 2>&1
}

processes_of() {
	there ps -eo pid=,ppid=,args= | awk -v name="$1" '
		{ parent[$1] = $2; if (index($0, "/tests/" name)) of[$1] = 1 }
		END {
			do {
				more = 0
				for (i in parent) if (!(i in of) && (parent[i] in of)) more = of[i] = 1
			} while (more)
			for (i in of) print i
		}'
}

# Where in the kernel it and check are.
places_in() {
	there ps -eo comm=,stat=,wchan:30=,args= | awk -v name="$1" '
		$2 ~ /^D/ || index($0, "/tests/" name) || / \.\/check / { print $1, $2, $3 }' | paste -sd ,
}

# verdicts PLACE NAME...: a line for each, passed|failed|known|not-run NAME [REASON], by what check's log has of it.
verdicts() {
	local place=$1 name word
	shift
	for name; do
		word=$(verdict "$name")
		[ "$word" != failed ] || ! known | grep -q "^$place $name " || word=known
		echo "$word $name $(reason "$word" "$place" "$name")"
	done | sed 's/ $//'
}

# Passed is what has a time at the end of its line and is not among the failures at the end.
verdict() {
	local line
	line=$(grep -a -m 1 "^$1 " "$TEST_DIR/check.log")
	if [[ $line == *'[not run]'* ]]; then
		echo not-run
	elif [[ $line =~ \ [0-9]+s$ ]] && ! sed -n 's/^Failures: //p' "$TEST_DIR/check.log" | tr ' ' '\n' | grep -qxF "$1"; then
		echo passed
	else
		echo failed
	fi
}

# reason WORD PLACE NAME
reason() {
	case $1 in
	not-run) cat "$TEST_DIR/results/$3.notrun" ;;
	known) known | sed -n "s,^$2 $3 ,,p" ;;
	failed)
		if ! grep -qa "^$3 " "$TEST_DIR/check.log"; then
			echo "not begun"
		elif grep -qxF "$3" "$TEST_DIR/ended"; then
			echo "took more than $LIMIT s"
		fi
		;;
	esac
}

# after FOLDER: of all parts.
after() {
	local file words place
	words=$(for file in "$1"/*/verdicts; do
		place=${file%/verdicts}
		place=${place##*/}
		sed "s/ / ${place%%-*}\//" "$file"
	done)
	echo "1..$(grep -c '^passed' <<<"$words")"
	left_out | grep -wF "$(quick generic)" | sed 's,^\([a-z]*\) ,# left out: \1/,'
	sed -n 's,^passed ,ok xfstests/,p; s/^known /# fails without RDMA, too: /p; s/^not-run /# not run: /p; s/^failed /# failed: /p' <<<"$words"
}
