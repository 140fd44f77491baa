# shellcheck shell=bash
# NFS over RDMA, nfsd of the kernel on machine b and the kernel's client on a, as a user mounts it:
# by the programs of USERS_ROOT. CRC is on.
# Environment: USERS_ROOT  see lib/users.sh
#              CHURN       full: 50 mounts and 2400 small files, else 10 and 600

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

tests() {
	local version p
	# The client's fast registrations, and the server's Reads and Writes, against siw's.
	for p in weft:siw siw:weft; do
		[[ $PAIRS != *$p* ]] || echo "file-tree-over-nfs-4.2-${p/:/-} file_tree 4.2 $p"
	done
	[[ $PAIRS == *weft:weft* ]] || return 0
	for version in 3 4.1 4.2; do
		echo "file-tree-over-nfs-$version file_tree $version weft:weft"
	done
	[[ ${KERNEL-} != stock ]] || echo "weft-hwtest-reads-and-writes-an-export hwtest"
	cat <<-END
		$(often 2400 600)-small-files-over-nfs small_files $(often 2400 600)
		direct-io-over-nfs-3 direct_io 3
		direct-io-over-nfs-4.2 direct_io 4.2
		verified-mix-over-nfs verified_mix
		what-is-swapped-to-nfs-is-right swap
		copy-and-holes-over-nfs-4.2 copy_and_holes
		$(often 50 10)-mounts-over-nfs many_mounts $(often 50 10)
		server-restart-while-nfs-3-writes server_restart 3
		server-restart-while-nfs-4.1-writes server_restart 4.1
		link-del-while-nfs-3-writes link_del 3 a
		link-del-while-nfs-4.1-writes link_del 4.1 a
		link-del-of-the-server-while-nfs-4.1-writes link_del 4.1 b
	END
}

server() { on_b bash "$WEFT_TOP/tests/lab/nfsd.sh" "$@" || fail "the server: $*"; }

# setup [PAIR]
setup() {
	pair=${1:-weft:weft}
	pair "$pair"
	server up
	enter_users_root
	loads nfs rpcrdma
}

# mount_nfs VERSION [PLACE [ADDRESS]]: all that is written goes to the server before close() returns.
mount_nfs() {
	local place=${2:-/run/mnt} from=/ options=vers=$1,proto=rdma,port=20049
	[ "$1" != 3 ] || from=/run/export options+=,mountproto=tcp,mountport=20048,nolock
	mkdir -p "$place"
	within 40 there mount.nfs "${3:-$IP_B}:$from" "$place" -o "$options" || fail "no mount by $options"
}

unmount() { within 20 umount -i "${1:-/run/mnt}" || fail "umount $1 ($?)"; }

# Nothing that is read afterwards has been left here.
mount_again() {
	unmount
	mount_nfs "$1"
}

take_down() {
	! mountpoint -q /run/mnt || unmount
	no_crc_errors
	server down
	unloads rpcrdma
}

# file_tree VERSION PAIR
file_tree() {
	setup "$2"
	mount_nfs "$1"
	crc_is_on 1
	tree_comes_back "$1"
	take_down
}

# small_files N: each of 1 to 4000 octets, some of whose contents travel inline, some by Reads.
small_files() {
	setup
	mount_nfs 4.2
	small_files_come_back "$1" 4.2
	take_down
}

# direct_io VERSION: from pages of a program, without the page cache, in blocks of odd sizes.
direct_io() {
	setup
	mount_nfs "$1"
	direct_octets_read_back 512 4096 61440 1048576 3145728
	take_down
}

# Four jobs of fio write blocks of many sizes at random, by the page cache and past it, and read them back.
verified_mix() {
	setup
	mount_nfs 4.2
	mix_is_right 0
	mix_is_right 1
	take_down
}

# What version 4.2 has beside: a copy that the server makes, holes that are no octets on the wire.
copy_and_holes() {
	setup
	mount_nfs 4.2
	head -c 5M /dev/urandom >/run/octets
	cp /run/octets /run/mnt/first || fail "cp"
	mount_again 4.2
	cp /run/mnt/first /run/mnt/second || fail "cp on the server"
	truncate -s 64M /run/mnt/second || fail "truncate"
	dd if=/run/octets of=/run/mnt/second bs=1M seek=40 conv=notrunc 2>/dev/null || fail "no write behind the hole"
	mount_again 4.2
	head -c 5M /run/mnt/second | cmp - /run/octets || fail "the copy differs"
	dd if=/run/mnt/second bs=1M skip=40 count=5 2>/dev/null | cmp - /run/octets || fail "what is behind the hole differs"
	dd if=/run/mnt/second bs=1M skip=5 count=35 2>/dev/null | cmp -n 36700160 - /dev/zero || fail "the hole is not empty"
	rm /run/octets
	take_down
}

# What somebody with an RNIC runs: by weft, then by siw.
hwtest() {
	load weft && load siw || fail "no drivers on a"
	DEV_A=hwtest0 DEV_B=weft1
	at b bring_up weft "$DEV_B" 1500 || fail "no weft on b"
	wait_active b "$DEV_B"
	server up
	enter_users_root
	loads nfs rpcrdma
	mkdir -p /run/programs
	printf '#!/bin/sh\nexec chroot %q mount.nfs "$@"\n' "$USERS_ROOT" >/run/programs/mount.nfs
	chmod 755 /run/programs/mount.nfs
	PATH=/run/programs:$PATH hwtest_passes nfs,nfs-siw --nfs /=/run/export
	[ -z "$(on_b ls /run/export)" ] || fail "its files are left"
	rm -r /run/programs
	unloads rpcrdma
	server down
}

# A file of the server's that holds what does not fit into memory.
swap() {
	setup
	mount_nfs 3
	crc_is_on 1
	head -c 160M /dev/zero >/run/mnt/swap && chmod 600 /run/mnt/swap || fail "no file"
	swap_of_a_small_group /run/mnt/swap
	rm /run/mnt/swap
	take_down
}

# many_mounts N: as many connections, since each is to another address of the server.
many_mounts() {
	local i n
	setup
	for ((i = 1; i <= $1; i++)); do
		on_b ip addr add "10.7.1.$i/16" dev eth0 || fail "no address"
	done
	ip addr add 10.7.2.1/16 dev eth0 || fail "no address"
	for ((i = 1; i <= $1; i++)); do mount_nfs 3 "/run/mnt$i" "10.7.1.$i"; done
	crc_is_on "$1"
	n=$(in_rts)
	[ "$n" -ge "$1" ] || fail "$n connections for $1 mounts"
	head -c 1M /dev/urandom >/run/octets
	for ((i = 1; i <= $1; i++)); do
		(cat /run/octets && echo "$i") >"/run/mnt$i/file$i" &
	done
	for ((i = 1; i <= $1; i++)); do wait -n || fail "not everything can be written"; done
	# By another connection than it was written.
	for ((i = 1; i <= $1; i++)); do
		(cat /run/octets && echo "$i") | cmp - "/run/mnt$(($1 + 1 - i))/file$i" || fail "file $i differs"
	done
	for ((i = 1; i <= $1; i++)); do unmount "/run/mnt$i"; done
	rm /run/octets
	ip addr del 10.7.2.1/16 dev eth0
	for ((i = 1; i <= $1; i++)); do on_b ip addr del "10.7.1.$i/16" dev eth0; done
	take_down
}

# --- what ends under a writer ---

# A file that grows until /run/enough exists; a local copy of the expected content grows with it.
start_writer() {
	rm -f /run/enough
	head -c 256k /dev/urandom >/run/block
	write_blocks &
	worker=$!
	wait_for 20 has_written 8 || fail "nothing is written"
}

write_blocks() {
	local n=0
	exec 7>/run/mnt/file
	while [ ! -e /run/enough ]; do
		[ ! -e /run/hold ] || { echo >/run/held && wait_for 60 [ ! -e /run/hold ]; }
		cat /run/block >&7 && n=$((n + 1)) || return
		# What is in memory alone proves nothing.
		[ $((n % 4)) != 0 ] || sync -d /run/mnt/file || return
		echo $n >/run/written.new && mv /run/written.new /run/written
	done
	exec 7>&-
}

written() {
	local n=0
	[ ! -e /run/written ] || read -r n </run/written
	echo "$n"
}

has_written() { [ "$(written)" -ge "$1" ]; }

# goes_on VERSION: the writer comes on as before, ends well, and the server has all of it.
goes_on() {
	local i n
	n=$(written)
	wait_for 60 has_written $((n + 8)) || fail "the writer does not go on"
	touch /run/enough
	wait_for 60 is_over "$worker" || fail "the writer does not end"
	wait "$worker" || fail "the writer met an error"
	n=$(written)
	mount_again "$1"
	[ "$(stat -c %s /run/mnt/file)" = $((n * 262144)) ] || fail "the file has not $n blocks"
	for ((i = 0; i < n; i++)); do cat /run/block; done | cmp - /run/mnt/file || fail "the file is not what was written"
	rm /run/mnt/file /run/block /run/enough /run/written
}

# server_restart VERSION: it goes while a client has the file open, which writes on while there is no server.
# It says nothing while the server goes: nfsd forgets a connection that it has been asked for and not
# accepted when its listener ends, and its rdma_cm id stays for ever (Linux 7.2, sc_accept_q).
server_restart() {
	local worker
	setup
	mount_nfs "$1"
	start_writer
	rm -f /run/held
	touch /run/hold
	wait_for 20 [ -e /run/held ] || fail "the writer does not wait"
	sync -d /run/mnt/file
	server stop
	wait_for 20 has_in_rts 0 || fail "the connection of a server that has gone"
	rm /run/hold
	pause 2
	server start
	goes_on "$1"
	crc_is_on 0
	take_down
}

# link_del VERSION a|b: the device goes while a client writes, and comes again.
link_del() {
	local worker dev=$DEV_A
	setup
	dev=$DEV_A
	[ "$2" = a ] || dev=$DEV_B
	mount_nfs "$1"
	start_writer
	soon at "$2" rdma link del "$dev"
	at "$2" rdma link add "$dev" type weft netdev eth0 || fail "the device does not come again"
	goes_on "$1"
	take_down
}
