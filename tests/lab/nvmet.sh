#!/bin/bash
# An NVMe target over RDMA, on the machine it runs on: nvmet.sh up ADDRESS | down
# Its one namespace is a ramdisk of 192 MB.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

nqn=nqn.2026-01.weft:test
cfg=/sys/kernel/config/nvmet
subsystem=$cfg/subsystems/$nqn
port=$cfg/ports/1

up() {
	load nvmet_rdma || fail "no nvmet_rdma"
	modprobe -d "$MODULES" brd rd_nr=1 rd_size=$((192 * 1024)) || fail "no ramdisk"
	mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
	mkdir $subsystem $subsystem/namespaces/1 $port || fail "no subsystem"
	echo 1 >$subsystem/attr_allow_any_host
	echo -n /dev/ram0 >$subsystem/namespaces/1/device_path
	echo 1 >$subsystem/namespaces/1/enable || fail "no namespace"
	echo rdma >$port/addr_trtype
	echo ipv4 >$port/addr_adrfam
	echo "$1" >$port/addr_traddr
	echo 4420 >$port/addr_trsvcid
	ln -s $subsystem $port/subsystems/ || fail "the port cannot be opened: $(dmesg | tail -n 1)"
}

down() {
	rm -f $port/subsystems/$nqn
	rmdir $port
	echo 0 >$subsystem/namespaces/1/enable
	rmdir $subsystem/namespaces/1 $subsystem
	# Queues end by work of their own.
	wait_for 5 rmmod nvmet_rdma || fail "nvmet_rdma cannot be unloaded"
	rmmod nvmet brd
}

# How far it came, for a run that hangs.
exec 2>>$SHARE/nvmet.log
set -x
"$@"
