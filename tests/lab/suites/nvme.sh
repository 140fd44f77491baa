# shellcheck shell=bash
# NVMe over RDMA, nvmet-rdma of the kernel on machine b and nvme-rdma on a: what a storage user
# does. CRC is on, so a page that changes on its way shows (mkfs.ext3 over siw, 2020-03-16).
# Environment: CHURN  full: 50 connects and disconnects under I/O, else 3; 20 resets, else 8

PAIRS=${PAIRS:-weft:weft}

tests() {
	local p
	# The host's fast registrations, and the target's Sends with Invalidate, against siw's.
	for p in weft:siw siw:weft; do
		[[ $PAIRS != *$p* ]] || echo "file-tree-reads-back-${p/:/-} file_tree ext4 $p"
	done
	[[ $PAIRS == *weft:weft* ]] || return 0
	cat <<-END
		file-tree-on-ext4-reads-back file_tree ext4 weft:weft
		file-tree-on-ext3-reads-back file_tree ext3 weft:weft
		connect-and-disconnect-under-io-$(often 50 3)-times under_io $(often 50 3)
		link-del-under-nvme link_del
		dirty-pages-of-a-small-group-get-through-$(often 20 8)-resets small_group $(often 20 8)
	END
	# In user mode the target's device is the client's, too.
	[[ ${KERNEL-} != stock ]] || echo "link-del-under-nvmet target_link_del"
}

often() { if [ "${CHURN:-}" = full ]; then echo "$1"; else echo "$2"; fi; }

NQN=nqn.2026-01.weft:test

# soon COMMAND...
soon() { within 10 "$@" || fail "$* did not end soon and well ($?)"; }

target() { on_b bash "$WEFT_TOP/tests/lab/nvmet.sh" "$@" || fail "the target: $*"; }

# setup [PAIR]
setup() {
	pair=${1:-weft:weft}
	# The kernel's own target listens in the first namespace: user mode has both ends there.
	addr=$IP_B
	[ "$WEFT_LINK" != netns ] || addr=$IP_A
	pair "$pair"
	target up "$addr"
	load nvme_rdma || fail "no nvme_rdma"
}

# $disk: the block device, $ctrl: its controller.
found_disk() {
	local dev
	disk=
	for dev in /sys/class/nvme-subsystem/nvme-subsys*/nvme*n1 /sys/class/nvme/nvme*/nvme*n1; do
		[ -b "/dev/${dev##*/}" ] && disk=/dev/${dev##*/} && return
	done
	return 1
}

plug_in() {
	echo "transport=rdma,traddr=$addr,trsvcid=4420,nqn=$NQN,nr_io_queues=2" >/dev/nvme-fabrics ||
		fail "no connection: $(dmesg | tail -n 2)"
	wait_for 10 found_disk || fail "no block device"
}

plug_out() {
	local ctrl
	for ctrl in /sys/class/nvme/nvme*; do
		[ -e "$ctrl" ] && soon unplug "$ctrl"
	done
}

unplug() { echo 1 >"$1/delete_controller"; }

# Is this side weft's? siw tells nothing of CRC.
is_weft() { if [ "$1" = a ]; then [[ $pair = weft:* ]]; else [[ $pair = *:weft ]]; fi; }

# Both sides of each connection have agreed on it: an admin queue and one for I/O at least.
crc_is_on() {
	local log=$TEST_DIR/qps side=a dev=$DEV_A
	is_weft a || side=b dev=$DEV_B
	on $side rdma -dd -j resource show qp link "$dev" >"$log" || fail "no QPs are shown"
	[ "$(grep -o '"drv_crc":1' "$log" | wc -l)" -ge 2 ] || fail "no two QPs with CRC"
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

take_down() {
	plug_out
	echo "unplugged"
	rmmod nvme_rdma || fail "nvme_rdma cannot be unloaded"
	echo "the target goes"
	target down
	# The core keeps CQs that its consumers share as long as there is a device: only without
	# it does what is left show, which the core then says.
	echo "the devices go"
	[ ! -e "/sys/class/infiniband/$DEV_A" ] || soon rdma link del "$DEV_A"
	! on_b test -e "/sys/class/infiniband/$DEV_B" || soon at b rdma link del "$DEV_B"
}

write_tree() {
	local i
	cp -r "$WEFT_TOP/kernel" "$WEFT_TOP/tests/lab" "$WEFT_TOP/docs" "$1/" || return
	for i in 1 2 3; do
		head -c $((i * 5000001)) /dev/urandom >"$1/random$i" || return
	done
}

sums() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 cksum); }

# file_tree FILESYSTEM PAIR
file_tree() {
	setup "$2"
	mkdir -p /run/tree /run/mnt
	write_tree /run/tree || fail "no tree"
	sums /run/tree >"$TEST_DIR/sums"
	plug_in
	crc_is_on
	TIME=100 run mkfs -t "$1" -q -F "$disk"
	mount -t "$1" "$disk" /run/mnt || fail "mount"
	cp -r /run/tree/. /run/mnt/ || fail "cp"
	umount /run/mnt || fail "umount"
	# Nothing that a read finds is left here.
	plug_out
	plug_in
	TIME=100 run fsck -t "$1" -n -f "$disk"
	mount -t "$1" -o ro "$disk" /run/mnt || fail "mount again"
	rm -rf /run/mnt/lost+found 2>/dev/null
	sums /run/mnt >"$TEST_DIR/sums-read" || fail "not everything can be read"
	umount /run/mnt
	rm -rf /run/tree
	cmp "$TEST_DIR/sums" "$TEST_DIR/sums-read" || fail "the tree is not what was written"
	no_crc_errors
	take_down
}

# Reads and writes without pause until the disk goes.
io() {
	while [ -b "$disk" ] && dd if=/dev/zero of="$disk" bs=64k count=100 oflag=direct conv=nocreat &&
		dd if="$disk" of=/dev/null bs=64k count=100 iflag=direct; do :; done >/dev/null 2>&1
}

start_io() {
	io &
	worker=$!
	pause 0.5
	! is_over "$worker" || fail "no I/O"
}

end_io() {
	soon wait_for 10 is_over "$worker"
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

under_io() {
	local i worker
	setup
	for ((i = 0; i < $1; i++)); do
		plug_in
		crc_is_on
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

# The target's, while it serves. The client would try again for minutes, and is told to give up.
target_link_del() {
	local worker
	setup
	plug_in
	start_io
	soon at b rdma link del "$DEV_B"
	plug_out
	end_io
	take_down
}

# The device goes, and the disk with it: nobody waits for anybody.
link_del() {
	local worker
	setup
	plug_in
	start_io
	soon rdma link del "$DEV_A"
	end_io
	take_down
}

# --- little memory ---

GROUP=/run/cgroup/small
DISCOVERY=nqn.2014-08.org.nvmexpress.discovery

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

# fill PATTERN: 48 MB through the page cache, all of it on the disk in the end.
fill() { dd if="/run/pattern.$1" of="$disk" bs=1M conv=nocreat,notrunc,fsync 2>/dev/null; }

# Now one pattern, now the other; the last is b.
write_dirty() {
	while [ ! -e /run/enough ]; do fill a && fill b || return; done
}

# The controller that has NQN: its name.
controller_of() {
	local c
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn")" != "$1" ] || { echo "${c##*/}"; return; }
	done
	return 1
}

# A second controller comes and goes, whose connections are the small group's, too.
second_controller() {
	local c
	in_group connect_to $DISCOVERY || fail "no second controller"
	c=$(controller_of $DISCOVERY) || fail "the second controller is not there"
	within 20 unplug "/sys/class/nvme/$c" || fail "the second controller does not go"
}

connect_to() { echo "transport=rdma,traddr=$addr,trsvcid=4420,nqn=$1,nr_io_queues=2" >/dev/nvme-fabrics; }

# Writeback needs the connection, the connection memory, and memory the writeback. Nobody may wait
# for that for 20 s, which the kernel's log would tell.
small_group() {
	local i writer ctrl before
	setup
	make_group
	before=$(cat /proc/sys/kernel/hung_task_timeout_secs)
	echo 20 >/proc/sys/kernel/hung_task_timeout_secs
	for i in a b; do head -c $((48 << 20)) /dev/urandom >/run/pattern.$i; done
	rm -f /run/enough
	in_group plug_in
	wait_for 10 found_disk || fail "no block device"
	ctrl=$(controller_of $NQN) || fail "no controller"
	crc_is_on
	in_group write_dirty &
	writer=$!
	for ((i = 0; i < $1; i++)); do
		wait_for 20 has_dirty || fail "no dirty pages"
		within 20 bash -c "echo 1 >/sys/class/nvme/$ctrl/reset_controller" || fail "reset $i is not over"
		second_controller
		! is_over $writer || fail "the writer ended early"
	done
	touch /run/enough
	wait_for 100 is_over $writer || fail "the writer does not end"
	wait $writer || fail "not everything can be written"
	echo "the group's memory was full $(event max) times"
	[ "$(event max)" -gt 0 ] || fail "the group always had memory"
	[ "$(event oom_kill)" = 0 ] || fail "somebody was killed for want of memory"
	# Nothing that a read finds is left here.
	plug_out
	plug_in
	dd if="$disk" bs=1M count=48 iflag=direct 2>/dev/null | cmp - /run/pattern.b ||
		fail "the disk has not what was written"
	no_crc_errors
	rm /run/pattern.a /run/pattern.b /run/enough
	take_down
	rmdir $GROUP
	echo "$before" >/proc/sys/kernel/hung_task_timeout_secs
}

has_dirty() {
	local name n
	while read -r name n; do
		[ "$name" != file_dirty ] && [ "$name" != file_writeback ] || [ "$n" -lt 1048576 ] || return 0
	done <$GROUP/memory.stat
	return 1
}
