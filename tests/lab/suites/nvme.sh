# shellcheck shell=bash
# NVMe over RDMA, nvmet-rdma of the kernel on machine b and nvme-rdma on a: what a storage user
# does. CRC is on, so a page that changes on its way shows (mkfs.ext3 over siw, 2020-03-16).
# Environment: CHURN  full: 50 connects and disconnects under I/O, else 3; 20 resets, else 8

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=300

tests() {
	local p
	# The host's fast registrations, and the target's Sends with Invalidate, against siw's.
	for p in weft:siw siw:weft; do
		[[ $PAIRS != *$p* ]] || echo "file-tree-reads-back-${p/:/-} disk_tree ext4 $p"
	done
	[[ $PAIRS == *weft:weft* ]] || return 0
	cat <<-END
		file-tree-on-ext4-reads-back disk_tree ext4 weft:weft
		file-tree-on-ext3-reads-back disk_tree ext3 weft:weft
		connect-and-disconnect-under-io-$(often 50 3)-times disk_under_io $(often 50 3)
		link-del-under-nvme link_del
		dirty-pages-of-a-small-group-get-through-$(often 20 8)-resets small_group $(often 20 8)
	END
	[[ ${KERNEL-} != *users ]] || echo "what-is-swapped-to-nvme-is-right swap"
	# In user mode the target's device is the client's, too.
	[[ ${KERNEL-} != stock ]] || echo "link-del-under-nvmet target_link_del"
	[[ ${KERNEL-} != stock ]] || echo "weft-hwtest-reads-a-namespace hwtest"
}

NQN=nqn.2026-01.weft:test

target() { on_b bash "$WEFT_TOP/tests/lab/nvmet.sh" "$@" || fail "the target: $*"; }

# setup [PAIR]
setup() {
	pair=${1:-weft:weft}
	addr=$(first_namespace)
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

# A machine that a busy host keeps for five seconds, the usual time, is not to lose its controller.
plug_in() {
	echo "transport=rdma,traddr=$addr,trsvcid=4420,nqn=$NQN,nr_io_queues=2,keep_alive_tmo=60" >/dev/nvme-fabrics ||
		fail "no connection: $(dmesg | tail -n 2)"
	disk_comes 60
}

plug_out() {
	local ctrl
	for ctrl in /sys/class/nvme/nvme*; do
		[ -e "$ctrl" ] && soon unplug "$ctrl"
	done
}

unplug() { echo 1 >"$1/delete_controller"; }

take_down() {
	plug_out
	echo "unplugged"
	unloads nvme_rdma
	echo "the target goes"
	target down
	devices_go
}

# The target's device, while it serves. The client, which would retry for minutes, is disconnected.
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

# The device is removed, and the disk with it: nothing hangs.
link_del() {
	local worker
	setup
	plug_in
	start_io
	soon rdma link del "$DEV_A"
	end_io
	take_down
}

# What somebody with an RNIC runs: by weft, then by siw. Without data there is nothing to compare.
hwtest() {
	addr=$IP_B
	load weft && load siw || fail "no drivers on a"
	DEV_A=hwtest0 DEV_B=weft1
	at b bring_up weft "$DEV_B" 1500 || fail "no weft on b"
	wait_active b "$DEV_B"
	target up "$addr"
	! (hwtest_passes nvme --nvme "$NQN=/dev/ram0") || fail "a namespace of zeros will do"
	grep -q 'nvme *fail *there is nothing but zeros' "$TEST_DIR/hwtest.log" || fail "$(words "$TEST_DIR/hwtest.log")"
	on_b dd if=/dev/urandom of=/dev/ram0 bs=1M count=40 conv=fsync || fail "no octets"
	hwtest_passes nvme,nvme-siw --nvme "$NQN=/dev/ram0"
	unloads nvme_rdma
	target down
	devices_go
}

# --- little memory ---

DISCOVERY=nqn.2014-08.org.nvmexpress.discovery

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
	within 25 unplug "/sys/class/nvme/$c" || fail "the second controller does not go"
}

connect_to() { echo "transport=rdma,traddr=$addr,trsvcid=4420,nqn=$1,nr_io_queues=2" >/dev/nvme-fabrics; }

# Writeback needs the connection, the connection memory, and memory the writeback. No task may wait
# for that for 20 s; the kernel's log would report it.
small_group() {
	local i writer ctrl before
	setup
	make_group
	before=$(cat /proc/sys/kernel/hung_task_timeout_secs)
	echo 20 >/proc/sys/kernel/hung_task_timeout_secs
	for i in a b; do head -c $((48 << 20)) /dev/urandom >/run/pattern.$i; done
	rm -f /run/enough
	in_group plug_in
	disk_comes 60
	ctrl=$(controller_of $NQN) || fail "no controller"
	crc_is_on 2
	in_group write_dirty &
	writer=$!
	# Where each takes long fewer will do.
	for ((i = 0; i < $1 && (i < 4 || SECONDS < TEST_TIMEOUT / 3); i++)); do
		wait_for 60 has_dirty || fail "no dirty pages"
		within 25 bash -c "echo 1 >/sys/class/nvme/$ctrl/reset_controller" || fail "reset $i is not over"
		second_controller
		! is_over $writer || fail "the writer ended early"
	done
	echo "$i resets"
	touch /run/enough
	wait_for 150 is_over $writer || fail "the writer does not end"
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

# A disk that holds what does not fit into memory: what brings it back must not wait for memory.
swap() {
	setup
	plug_in
	crc_is_on 2
	swap_of_a_small_group "$disk"
	no_crc_errors
	take_down
}
