# shellcheck shell=bash
# Kernel users of RDMA: their programs, their disks and trees, and whether CRC was on. Suites of
# kernel users source it beside lib.sh.
#
# The programs that set them up (mount.nfs, iscsid, ksmbd.mountd, ...) are those of USERS_ROOT, a root
# folder that scripts/fetch-release-root.sh makes. It is entered by chroot; what they write is in memory.
# /run there is the machine's own, so that a path below /run is the same for a program and the kernel.

# there COMMAND [ARG...]: a program of that folder, on the machine it runs on.
there() { chroot "$USERS_ROOT" "$@"; }

# daemon LOG PROGRAM [ARG...]: one that stays, in the background; $! is the program itself.
# Not for iscsid, which takes its whole process group along when it ends.
daemon() { chroot "$USERS_ROOT" "${@:2}" >"$1" 2>&1 </dev/null & }

# Folders that programs there write to.
WRITTEN='tmp mnt var/lib/nfs var/lib/iscsi etc/iscsi etc/ksmbd'

# On the machine it runs on: the folder can be entered, and the kernel finds its modules.
enter_users_root() {
	local dir
	[ -n "${USERS_ROOT-}" ] || fail "no USERS_ROOT"
	[ ! -e /run/users ] || return 0
	mkdir /run/users
	# What is mounted below one is seen below the other.
	mount --make-shared /run
	for dir in dev proc sys run; do
		mount --rbind /$dir "$USERS_ROOT/$dir" || fail "no /$dir in $USERS_ROOT"
	done
	for dir in $WRITTEN; do
		[ -d "$USERS_ROOT/$dir" ] || continue
		rm -rf /run/users/seed
		cp -a "$USERS_ROOT/$dir" /run/users/seed
		mount -t tmpfs -o mode=755 users "$USERS_ROOT/$dir" || fail "no $dir in $USERS_ROOT"
		cp -a /run/users/seed/. "$USERS_ROOT/$dir"
	done
	[ "$WEFT_LINK" = vm ] || kernel_loads
}

# In user mode the root is read-only and has no /lib/modules of that kernel.
kernel_loads() {
	printf '#!/bin/sh\nexec /sbin/modprobe -d %q "$@"\n' "$MODULES" >/run/modprobe
	chmod 755 /run/modprobe
	echo /run/modprobe >/proc/sys/kernel/modprobe
}

# loads MODULE...: of the kernel's own, on the machine it runs on.
loads() {
	local module
	for module; do
		[ -d "/sys/module/$module" ] || modprobe -d "$MODULES" "$module" || fail "no $module"
	done
}

# unloads MODULE...: each is let go in time.
unloads() {
	local module
	for module; do
		[ ! -d "/sys/module/$module" ] || wait_for 60 rmmod "$module" 2>/dev/null ||
			fail "$module cannot be unloaded: $(grep "^$module " /proc/modules)"
	done
}

# Where a kernel user that knows the first namespace alone has its server: in user mode that is a's.
first_namespace() { if [ "$WEFT_LINK" = netns ]; then echo "$IP_A"; else echo "$IP_B"; fi; }

# in_first_namespace COMMAND [ARG...]: where the programs of such a server run.
in_first_namespace() { if [ "$WEFT_LINK" = netns ]; then "$@"; else on_b "$@"; fi; }

# with_siw 'PAIR...' NAME FUNCTION [ARG...]: the lines of a suite's tests() that have siw at one end, of a user that
# knows the first namespace alone. In user mode that has one device, at which both its ends are.
with_siw() {
	local p
	[ "${KERNEL-}" = stock ] || return 0
	for p in $1; do
		[[ $PAIRS != *$p* ]] || echo "$2-${p/:/-} ${*:3} $p"
	done
}

# hwtest_passes STEPS OPTION...: weft-hwtest on a, whose RNIC is b's device. It reaches b by the mailbox, and makes the
# devices of a itself.
hwtest_passes() {
	local out=$TEST_DIR/hwtest.log step steps=$1
	cat >/run/on_b <<-END
		#!/bin/bash
		. "$WEFT_TOP/tests/lab/lib.sh"
		cat >"$SHARE/on_b.in"
		on_b bash -c "exec <$SHARE/on_b.in; \$1"
	END
	chmod 755 /run/on_b
	TMPDIR=/run within 400 "$WEFT_TOP/scripts/weft-hwtest" --on /run/on_b --siw --steps "$steps" "${@:2}" \
		--output "$TEST_DIR/report.tar.xz" "$IP_B" >"$out" 2>&1 || fail "$(words "$out")"
	for step in ${steps//,/ }; do
		grep -qE "^$step +pass" "$out" || fail "no $step: $(words "$out")"
	done
	[ ! -e /sys/class/infiniband/hwtest0 ] || fail "its device is left"
	rm /run/on_b
}

# often FULL ELSE: a number, by CHURN.
often() { if [ "${CHURN:-}" = full ]; then echo "$1"; else echo "$2"; fi; }

# soon COMMAND...: without waiting for a time-out of the disk's, which is 30 s.
soon() { within 25 "$@" || fail "$* did not end soon and well ($?)"; }

# --- what was agreed on ---

# Is this side weft's? siw tells nothing of CRC. $pair is the test's.
# shellcheck disable=SC2154
is_weft() { if [ "$1" = a ]; then [[ $pair = weft:* ]]; else [[ $pair = *:weft ]]; fi; }

# crc_is_on N: there are N connected queue pairs at least, and all of them have agreed on it.
crc_is_on() {
	local log=$TEST_DIR/qps side=a dev=$DEV_A
	is_weft a || side=b dev=$DEV_B
	on $side rdma -dd -j resource show qp link "$dev" >"$log.all" || fail "no QPs are shown"
	sed 's/},{/}\n{/g' "$log.all" | grep '"state":"RTS"' >"$log"
	[ "$(grep -o '"drv_crc":1' "$log" | wc -l)" -ge "$1" ] || fail "no $1 QPs with CRC"
	! grep -q '"drv_crc":0' "$log" || fail "a QP without CRC"
}

no_crc_errors() {
	local side dev
	for side in a b; do
		dev=$DEV_A
		[ $side = a ] || dev=$DEV_B
		is_weft $side || continue
		on $side rdma statistic show link "$dev/1" >"$TEST_DIR/statistic-$side"
		grep -q 'crc_errors 0' "$TEST_DIR/statistic-$side" || fail "CRC errors on $side, or no such counter"
	done
}

# --- trees and octets ---

# Some hundred files, small and large.
write_tree() {
	local i
	cp -r "$WEFT_TOP/kernel" "$WEFT_TOP/tests/lab" "$WEFT_TOP/docs" "$1/" || return
	for i in 1 2 3; do
		head -c $((i * 5000001)) /dev/urandom >"$1/random$i" || return
	done
}

# What a suite has mounted at /run/mnt. Its mount_again() sees to it that nothing is read that has been left here.

# tree_comes_back [ARG...]: for mount_again().
tree_comes_back() {
	mkdir -p /run/tree
	write_tree /run/tree || fail "no tree"
	cp -r /run/tree/. /run/mnt/ || fail "cp"
	mount_again "$@"
	diff -r /run/tree /run/mnt >"$TEST_DIR/diff" 2>&1 || fail "the tree is not what was written"
	rm -rf /run/tree
	rm -r /run/mnt/* || fail "rm"
	[ -z "$(ls -A /run/mnt)" ] || fail "the tree is still there"
}

# small_files_come_back N [ARG...]: of 1 to 4000 octets each; ARG for mount_again().
small_files_come_back() {
	local i before after
	mkdir -p /run/tree
	for ((i = 0; i < $1; i++)); do
		printf '%0*d' $((1 + i * 37 % 4000)) $i >"/run/tree/$i"
	done
	before=${EPOCHREALTIME/./}
	cp -r /run/tree /run/mnt/ || fail "cp"
	after=${EPOCHREALTIME/./}
	echo "$1 files took $(((after - before) / 1000)) ms"
	mount_again "${@:2}"
	diff -r /run/tree /run/mnt/tree >"$TEST_DIR/diff" 2>&1 || fail "the files are not what was written"
	rm -r /run/tree /run/mnt/tree || fail "rm"
}

# mix_is_right DIRECT: what four threads write and read at once, past the page cache if DIRECT is 1.
mix_is_right() {
	run fio --name=mix --directory=/run/mnt --rw=randrw --bsrange=512-256k --size=8M --numjobs=4 \
		--direct="$1" --ioengine=psync --thread --verify=crc32c --verify_fatal=1 --group_reporting
	grep -q 'err= 0' "$TEST_DIR/fio.log" || fail "fio met an error"
	rm /run/mnt/mix.*
}

# direct_octets_read_back SIZE...: with O_DIRECT, in the file system at /run/mnt.
direct_octets_read_back() {
	local size octets
	for size; do
		octets=$((size * 64 < 8388608 ? size * 64 : 8388608))
		head -c $octets /dev/urandom >/run/octets
		dd if=/run/octets of=/run/mnt/direct bs=$size oflag=direct 2>"$TEST_DIR/dd.log" ||
			fail "no direct write of $size"
		dd if=/run/mnt/direct bs=$size iflag=direct 2>"$TEST_DIR/dd.log" | cmp - /run/octets ||
			fail "what was written in blocks of $size is not what is read"
	done
	rm /run/octets
}

sums() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 cksum); }

# --- little memory ---

GROUP=/run/cgroup/small

# A group of processes that may have 24 MB, page cache included.
make_group() {
	mkdir -p /run/cgroup
	mountpoint -q /run/cgroup || mount -t cgroup2 none /run/cgroup || fail "no cgroups"
	echo +memory >/run/cgroup/cgroup.subtree_control || fail "no groups with a memory of their own"
	mkdir -p $GROUP
	echo $((24 << 20)) >$GROUP/memory.max || fail "no limit"
}

# in_group COMMAND [ARG...]: in a process of it.
in_group() {
	(echo "$BASHPID" >$GROUP/cgroup.procs && "$@")
}

# event NAME: how often the group's memory came to that.
event() { awk -v name="$1" '$1 == name {print $2}' $GROUP/memory.events; }

# swap_of_a_small_group FILE: a program of it holds 96 MB in memory that it fills thrice, and finds each time what
# it wrote. The rest is in FILE meanwhile.
swap_of_a_small_group() {
	local before after failure
	make_group
	TIME=60 run mkswap "$1"
	swapon "$1" || fail "no swap on $1: $(dmesg | tail -n 1)"
	before=$(awk '$1 == "pswpin" {print $2}' /proc/vmstat)
	# shellcheck disable=SC2016 # python3's
	failure=$(TIME=300 in_group run python3 -c '
import hashlib, mmap
pages, size = 96 << 8, 4096
memory = mmap.mmap(-1, pages * size)
for time in range(3):
	for page in range(pages):
		memory[page * size:(page + 1) * size] = hashlib.sha512(b"%d %d" % (time, page)).digest() * 64
	for page in range(pages):
		if memory[page * size:(page + 1) * size] != hashlib.sha512(b"%d %d" % (time, page)).digest() * 64:
			raise SystemExit("page %d is not what was written" % page)
print("all pages are right")') || fail "${failure#FAIL: }"
	after=$(awk '$1 == "pswpin" {print $2}' /proc/vmstat)
	echo "pages read from the swap: $((after - before))"
	[ $((after - before)) -gt 20000 ] || fail "only $((after - before)) pages came from the swap"
	[ "$(event oom_kill)" = 0 ] || fail "somebody was killed for want of memory"
	within 60 swapoff "$1" || fail "swapoff"
	rmdir $GROUP
}

# --- a disk, whoever brings it ---
#
# A suite has setup() and take_down(), and between them plug_in(), which sets $disk, and plug_out().
# For disk_comes it has found_disk(), which sets $disk.

# can_be_opened DISK: the kernel names one before it is (ENXIO).
can_be_opened() { { : <"$1"; } 2>/dev/null; }

# disk_comes SECONDS
disk_comes() {
	wait_for "$1" found_disk || fail "no block device"
	wait_for "$1" can_be_opened "$disk" || fail "$disk cannot be opened"
}

# Reads and writes without pause until the disk goes.
# shellcheck disable=SC2154
io() {
	while [ -b "$disk" ] && dd if=/dev/zero of="$disk" bs=64k count=100 oflag=direct conv=nocreat &&
		dd if="$disk" of=/dev/null bs=64k count=100 iflag=direct; do :; done >/dev/null 2>"$TEST_DIR/io.log"
}

start_io() {
	io &
	worker=$!
	pause 0.5
	! is_over "$worker" || fail "no I/O"
}

end_io() {
	soon wait_for 25 is_over "$worker"
	wait "$worker"
}

# Where io() does not come.
write_octets() {
	head -c 4194304 /dev/urandom >/run/octets
	dd if=/run/octets of="$disk" bs=64k seek=1024 oflag=direct conv=nocreat 2>/dev/null ||
		fail "not everything can be written"
}

compare_octets() {
	dd if="$disk" bs=64k skip=1024 count=64 iflag=direct 2>/dev/null | cmp - /run/octets ||
		fail "not what was written before it was disconnected"
}

# The core keeps CQs that its consumers share as long as there is a device: only without it does what is
# left show, which the core then says.
devices_go() {
	echo "the devices go"
	[ ! -e "/sys/class/infiniband/$DEV_A" ] || soon rdma link del "$DEV_A"
	! on_b test -e "/sys/class/infiniband/$DEV_B" || soon at b rdma link del "$DEV_B"
}

# QPs that a disk's initiator has at least; in user mode the target's are on the same device.
least_qps() { if [ "$WEFT_LINK" = netns ]; then echo 2; else echo 1; fi; }

# disk_tree FILESYSTEM [ARG...]: what is written there is read back, when nothing of it is left in memory.
# The other arguments are setup's.
disk_tree() {
	local type=$1
	shift
	setup "$@"
	mkdir -p /run/tree /run/disk
	write_tree /run/tree || fail "no tree"
	sums /run/tree >"$TEST_DIR/sums"
	plug_in
	crc_is_on "$(least_qps)"
	TIME=100 run mkfs -t "$type" -q -F "$disk"
	mount -t "$type" "$disk" /run/disk || fail "mount"
	cp -r /run/tree/. /run/disk/ || fail "cp"
	umount /run/disk || fail "umount"
	plug_out
	plug_in
	TIME=100 run fsck -t "$type" -n -f "$disk"
	mount -t "$type" -o ro "$disk" /run/disk || fail "mount again"
	sums /run/disk >"$TEST_DIR/sums-read" || fail "not everything can be read"
	umount /run/disk
	rm -rf /run/tree
	cmp "$TEST_DIR/sums" "$TEST_DIR/sums-read" || fail "the tree is not what was written"
	no_crc_errors
	take_down
}

# disk_under_io N: it is plugged out while programs read and write, and has what was written before.
disk_under_io() {
	local i worker
	setup
	for ((i = 0; i < $1; i++)); do
		plug_in
		crc_is_on "$(least_qps)"
		[ $i = 0 ] || compare_octets
		start_io
		write_octets
		plug_out
		end_io
	done
	rm /run/octets
	no_crc_errors
	take_down
}

# ramdisk: 192 MB, /dev/ram0, on the machine it runs on.
ramdisk() {
	[ -b /dev/ram0 ] || modprobe -d "$MODULES" brd rd_nr=1 rd_size=$((192 * 1024)) || fail "no ramdisk"
}
