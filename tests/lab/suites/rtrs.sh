# shellcheck shell=bash
# RNBD over RTRS, a block device of machine b on a: RTRS moves everything by Writes with immediate data. Only
# the user-mode kernels have it, Debian's do not. CRC is on.
# Environment: CHURN  full: 20 maps and unmaps under I/O, else 3

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS == *weft:weft* ]] || return 0
	cat <<-END
		file-tree-on-ext4-over-rnbd disk_tree ext4
		fio-verifies-a-mix-over-rnbd verified_mix
		map-and-unmap-under-io-$(often 20 3)-times disk_under_io $(often 20 3)
		link-del-under-rnbd-and-it-comes-again link_del
		server-of-rnbd-goes-and-comes-back server_goes
	END
}

setup() {
	pair=weft:weft
	# Both know the first namespace alone.
	addr=$(first_namespace)
	pair "$pair"
	ramdisk
	loads rtrs_server rnbd_server rtrs_client rnbd_client
}

map() {
	echo "sessname=weft path=ip:$addr device_path=/dev/ram0 access_mode=rw" \
		>/sys/devices/virtual/rnbd-client/ctl/map_device
}

# $disk: the block device.
found_disk() {
	local dir
	for dir in /sys/block/rnbd*; do
		[ -b "/dev/${dir##*/}" ] && disk=/dev/${dir##*/} && return
	done
	return 1
}

plug_in() {
	within 40 map || fail "no session: $(dmesg | tail -n 3)"
	disk_comes 20
}

unmap() { echo force >"/sys/block/${disk##*/}/rnbd/unmap_device"; }

plug_out() { ! found_disk || within 60 unmap || fail "the device is not unmapped"; }

take_down() {
	plug_out
	unloads rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core
	rmmod brd
	devices_go
}

# A job a CPU, and so a connection each, and more: what one has registered, a peer writes to over others.
verified_mix() {
	setup
	plug_in
	crc_is_on 2
	TIME=100 run fio --name=mix --filename="$disk" --rw=randrw --bsrange=512-256k --size=8M --numjobs=4 \
		--offset_increment=8M --direct=1 --ioengine=psync --thread --verify=crc32c --verify_fatal=1 \
		--group_reporting
	grep -q 'err= 0' "$TEST_DIR/fio.log" || fail "fio met an error"
	no_crc_errors
	take_down
}

# The device goes under programs that write, and their requests fail. RTRS lets its connections go after
# 30 seconds: it waits for events that rdma_cm does not bring from a device that goes, and counts them as
# missing ever after. When the device has come again, the session is connected anew as its sysfs says.
link_del() {
	local worker
	setup
	plug_in
	start_io
	within 60 rdma link del "$DEV_A" || fail "the device does not go"
	end_io
	at a bring_up weft "$DEV_A" 1500 || fail "the device does not come again"
	wait_for 20 reconnect || fail "the session does not come again"
	write_octets
	compare_octets
	rm /run/octets
	take_down
}

# Its requests fail, and it knows what it had when it is there again.
server_goes() {
	local worker
	setup
	plug_in
	write_octets
	start_io
	unloads rnbd_server rtrs_server
	end_io
	loads rtrs_server rnbd_server
	wait_for 20 reconnect || fail "the session does not come again"
	compare_octets
	write_octets
	compare_octets
	rm /run/octets
	no_crc_errors
	take_down
}

reconnect() {
	echo 1 >"$(echo /sys/devices/virtual/rtrs-client/weft/paths/*/reconnect)" && wait_for 5 is_connected
}

# The session, and then the device of it.
is_connected() {
	grep -qsx connected /sys/devices/virtual/rtrs-client/weft/paths/*/state &&
		grep -qsx open "/sys/block/${disk##*/}/rnbd/state"
}
