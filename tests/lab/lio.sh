#!/bin/bash
# The kernel's SCSI target on the machine it runs on, for iSER or SRP; its disk is the ramdisk.
#   lio.sh iser ADDRESS | srp DEVICE | down
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/users.sh
. "$(dirname "$0")/lib/users.sh"

cfg=/sys/kernel/config/target
backstore=$cfg/core/fileio_0/disk
iqn=iqn.2026-01.weft:test

disk() {
	loads target_core_mod target_core_file
	ramdisk
	mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
	mkdir -p $backstore || fail "no disk"
	echo -n "fd_dev_name=/dev/ram0,fd_dev_size=$((192 << 20))" >$backstore/control
	echo 1 >$backstore/enable || fail "the ramdisk is no disk of the target"
}

# lun TPG: the disk is its unit 0.
lun() {
	{ mkdir "$1/lun/lun_0" && ln -s $backstore "$1/lun/lun_0/disk"; } || fail "no unit 0"
}

# The target listens at the same address and port for iSCSI on TCP, too, and first; both are TCP's.
# That listener is put in a namespace of its own, which only the driver's socket keeps.
iser() {
	local tpg=$cfg/iscsi/$iqn/tpgt_1
	loads iscsi_target_mod ib_isert
	disk
	mkdir -p $cfg/iscsi/$iqn/tpgt_1 || fail "no target"
	lun $tpg
	echo 0 >$tpg/attrib/authentication
	echo 1 >$tpg/attrib/generate_node_acls
	echo 1 >$tpg/attrib/cache_dynamic_acls
	echo 0 >$tpg/attrib/demo_mode_write_protect
	unshare --net mkdir "$tpg/np/$1:3260" || fail "no portal"
	echo 1 >"$tpg/np/$1:3260/iser" || fail "the portal is not iSER's: $(dmesg | tail -n 3)"
	echo 1 >$tpg/enable || fail "the target is not enabled"
}

# The name of a port is its GID. The initiator's is the interface identifier in its own, which is 0: the GID
# of an RNIC is a MAC address and zeros.
srp() {
	local gid tpg acl
	loads ib_srpt
	disk
	read -r gid <"/sys/class/infiniband/$1/ports/1/gids/0"
	gid=0x${gid//:/}
	tpg=$cfg/srpt/$gid/$gid acl=$cfg/srpt/$gid/$gid/acls/0x00000000000000000000000000000000
	mkdir -p "$tpg" || fail "no target"
	lun "$tpg"
	{ mkdir "$acl" "$acl/lun_0" && ln -s "$tpg/lun/lun_0" "$acl/lun_0/disk"; } || fail "no rights"
	echo 5555 >$cfg/srpt/discovery_auth/rdma_cm_port || fail "the target does not listen: $(dmesg | tail -n 3)"
	echo 1 >"$tpg/enable" || fail "the target is not enabled"
}

down() {
	local fabric tpg
	for fabric in $cfg/iscsi $cfg/srpt; do
		[ -d "$fabric" ] || continue
		for tpg in "$fabric"/*/tpgt_1 "$fabric"/0x*/0x*; do
			[ -d "$tpg" ] || continue
			echo 0 >"$tpg/enable"
			for acl in "$tpg"/acls/*; do
				[ ! -d "$acl" ] || { rm -f "$acl"/lun_0/disk && rmdir "$acl/lun_0" "$acl"; }
			done
			rm -f "$tpg/lun/lun_0/disk"
			rmdir "$tpg"/np/* "$tpg/lun/lun_0" "$tpg" "${tpg%/*}"
		done
		[ ! -e "$fabric/discovery_auth/rdma_cm_port" ] || echo 0 >"$fabric/discovery_auth/rdma_cm_port"
		rmdir "$fabric"
	done
	rmdir $backstore ${backstore%/*}
	unloads ib_isert ib_srpt iscsi_target_mod target_core_file
	rmmod brd
}

# How far it came, for a run that hangs.
exec 2>>"$SHARE/lio.log"
set -x
"$@"
