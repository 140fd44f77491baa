#!/bin/bash
# An NVMe target over RDMA, on the machine it runs on: nvmet.sh up ADDRESS [DISKS MB] | down
# With `loop` for the address there is no network: the NVMe host on the same machine finds it.
# Its namespaces are ramdisks: one of 192 MB, or DISKS of MB each.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/users.sh
. "$(dirname "$0")/lib/users.sh"

nqn=nqn.2026-01.weft:test
cfg=/sys/kernel/config/nvmet
subsystem=$cfg/subsystems/$nqn
port=$cfg/ports/1

up() {
	local i module=nvmet_rdma
	[ "$1" != loop ] || module=nvme_loop
	load $module || fail "no $module"
	modprobe -d "$MODULES" brd rd_nr="${2:-1}" rd_size=$((${3:-192} * 1024)) || fail "no ramdisk"
	mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
	mkdir $subsystem $port || fail "no subsystem"
	echo 1 >$subsystem/attr_allow_any_host
	for ((i = 1; i <= ${2:-1}; i++)); do
		mkdir $subsystem/namespaces/$i || fail "no namespace"
		echo -n /dev/ram$((i - 1)) >$subsystem/namespaces/$i/device_path
		echo 1 >$subsystem/namespaces/$i/enable || fail "no namespace"
	done
	if [ "$1" = loop ]; then
		echo loop >$port/addr_trtype
	else
		echo rdma >$port/addr_trtype
		echo ipv4 >$port/addr_adrfam
		echo "$1" >$port/addr_traddr
		echo 4420 >$port/addr_trsvcid
	fi
	ln -s $subsystem $port/subsystems/ || fail "the port cannot be opened: $(dmesg | tail -n 1)"
}

down() {
	local namespace
	rm -f $port/subsystems/$nqn
	rmdir $port
	for namespace in $subsystem/namespaces/*; do
		echo 0 >"$namespace/enable"
		rmdir "$namespace"
	done
	rmdir $subsystem
	# Queues end by work of their own.
	unloads nvme_loop nvmet_rdma
	rmmod nvmet brd
}

# How far it came, for a run that hangs.
exec 2>>$SHARE/nvmet.log
set -x
"$@"
