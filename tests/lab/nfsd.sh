#!/bin/bash
# The kernel's NFS server over RDMA, on the machine it runs on: nfsd.sh up | disks MB NAME... | tcp | stop | start | down
# It exports /run/export, a folder in memory: as / to version 4, and to version 3 by its name. After `disks`
# it exports folders of these names there, too, each an XFS on a ramdisk; after `tcp` it serves TCP as well.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/users.sh
. "$(dirname "$0")/lib/users.sh"

proc=$USERS_ROOT/proc/fs/nfsd
export=/run/export

# stays PROGRAM [ARG...]
stays() {
	daemon "$SHARE/$1.log" "$@"
	echo $! >>/run/nfsd.pids
}

# Version 3 looks for its partners by way of rpcbind; nfsdcld remembers clients across restarts.
up() {
	enter_users_root
	loads nfsd rpcrdma
	mkdir -p $export /run/rpc_pipefs
	mount -t tmpfs -o size=400m,mode=777 export $export || fail "no folder to export"
	mount -t nfsd nfsd "$proc" || fail "no $proc"
	mount -t rpc_pipefs pipefs /run/rpc_pipefs || fail "no pipes"
	: >/run/nfsd.pids
	stays rpcbind -f -w
	wait_for 10 listening 111 || fail "no rpcbind"
	stays nfsdcld -F
	wait_for 10 [ -s "$USERS_ROOT/var/lib/nfs/nfsdcld/main.sqlite" ] || fail "no nfsdcld"
	there exportfs -o rw,no_root_squash,insecure,no_subtree_check,async,fsid=0 "*:$export" || fail "no export"
	stays rpc.mountd -F -p 20048
	wait_for 10 listening 20048 || fail "no mountd"
	start
}

start() {
	echo 10 >"$proc/nfsv4gracetime"
	echo rdma 20049 >"$proc/portlist" || fail "nfsd does not listen: $(dmesg | tail -n 2)"
	echo 4 >"$proc/threads" || fail "no threads of nfsd: $(dmesg | tail -n 2)"
}

# disks MB NAME...
disks() {
	local mb=$1 i=0 name
	shift
	loads xfs
	modprobe -d "$MODULES" brd rd_nr=$# rd_size=$((mb * 1024)) || fail "no ramdisks"
	touch /run/nfsd.disks
	for name; do
		mkdir -p "$export/$name"
		there mkfs.xfs -q -f /dev/ram$i && mount -t xfs /dev/ram$i "$export/$name" || fail "no XFS for $name"
		chmod 777 "$export/$name"
		there exportfs -o rw,no_root_squash,insecure,no_subtree_check,async "*:$export/$name" || fail "no export of $name"
		i=$((i + 1))
	done
}

tcp() { echo tcp 2049 >"$proc/portlist" || fail "nfsd does not listen to TCP: $(dmesg | tail -n 2)"; }

stop() { echo 0 >"$proc/threads"; }

down() {
	local pid
	[ ! -e "$proc/threads" ] || stop
	there exportfs -ua
	while read -r pid; do
		kill "$pid" 2>/dev/null && wait_for 5 is_over "$pid"
	done </run/nfsd.pids
	there exportfs -f
	umount /run/rpc_pipefs "$proc"
	wait_for 5 umount -R $export || fail "the exported folder stays in use"
	[ ! -e /run/nfsd.disks ] || unloads brd
	rm -f /run/nfsd.disks
	unloads rpcrdma
}

# How far it came, for a run that hangs.
exec 2>>"$SHARE/nfsd.log"
set -x
"$@"
