# shellcheck shell=bash
# SRP by rdma_cm, the kernel's target (LIO) on machine b and the kernel's initiator on a. CRC is on.
# Environment: CHURN  full: 20 connects and disconnects under I/O, else 3

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

tests() {
	# Not with siw's target, which listens at all addresses of IPv6: siw refuses each connection that comes by IPv4.
	with_siw siw:weft file-tree-on-ext4-over-srp disk_tree ext4
	[[ $PAIRS == *weft:weft* ]] || return 0
	cat <<-END
		file-tree-on-ext4-over-srp disk_tree ext4
		connect-and-disconnect-under-srp-io-$(often 20 3)-times disk_under_io $(often 20 3)
		link-del-under-srp link_del
	END
}

target() { on_b bash "$WEFT_TOP/tests/lab/lio.sh" "$@" || fail "the target: $*"; }

# setup [PAIR]
setup() {
	local dev
	pair=${1:-weft:weft}
	# The target knows the first namespace alone.
	addr=$(first_namespace)
	pair "$pair"
	dev=$DEV_B
	[ "$addr" = "$IP_B" ] || dev=$DEV_A
	target srp "$dev"
	guid=$(on_b cat /sys/module/ib_srpt/parameters/srpt_service_guid)
	guid=${guid#0x}
	loads ib_srp sd_mod
}

# $disk: the only disk of SCSI here.
found_disk() {
	local dir
	for dir in /sys/block/sd*; do
		[ -b "/dev/${dir##*/}" ] && disk=/dev/${dir##*/} && return
	done
	return 1
}

# It is refused as long as the initiator has not forgotten the last connection.
connect() {
	echo "id_ext=$guid,ioc_guid=$guid,dest=$addr:5555" >"/sys/class/infiniband_srp/srp-$DEV_A-1/add_target"
}

plug_in() {
	wait_for 20 connect || fail "no connection: $(dmesg | tail -n 2)"
	disk_comes 20
}

has_no_port() { [ -z "$(ls /sys/class/srp_remote_ports)" ]; }

plug_out() {
	local port
	for port in /sys/class/srp_remote_ports/port-*; do
		[ ! -e "$port" ] || echo 1 >"$port/delete"
	done
	wait_for 30 has_no_port || fail "the port stays"
}

take_down() {
	plug_out
	unloads ib_srp
	target down
	devices_go
}

# The device is removed, and the disk with it: nothing hangs.
link_del() {
	local worker
	setup
	plug_in
	start_io
	within 30 rdma link del "$DEV_A" || fail "the device does not go"
	end_io
	take_down
}
