# shellcheck shell=bash
# SMB Direct, the kernel's server (ksmbd, with the tools of USERS_ROOT) on machine b and its client (cifs)
# on a. CRC is on.
# Environment: USERS_ROOT  see lib/users.sh
#              CHURN       full: 1200 small files, else 200

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS == *weft:weft* ]] || return 0
	cat <<-END
		file-tree-over-smb-direct file_tree
		$(often 1200 200)-small-files-over-smb-direct small_files $(often 1200 200)
		direct-io-over-smb-direct direct_io
		link-del-while-smb-writes link_del
	END
}

# The server knows the first namespace alone, and so does what it asks for users and shares.
server() { in_first_namespace bash "$WEFT_TOP/tests/lab/ksmbd.sh" "$@" || fail "the server: $*"; }

setup() {
	pair=weft:weft
	addr=$(first_namespace)
	pair "$pair"
	server up
	enter_users_root
	loads cifs
}

mount_smb() {
	mkdir -p /run/mnt
	within 40 there mount.cifs "//$addr/share" /run/mnt -o rdma,vers=3.1.1,username=root,password=secret ||
		fail "no mount: $(dmesg | tail -n 2)"
}

unmount() { within 20 umount -i /run/mnt || fail "umount ($?)"; }

# Nothing that is read afterwards has been left here.
mount_again() {
	unmount
	mount_smb
}

take_down() {
	unmount
	no_crc_errors
	unloads cifs
	server down
	unloads smbdirect
}

file_tree() {
	setup
	mount_smb
	crc_is_on 1
	tree_comes_back
	take_down
}

# small_files N: of 1 to 4000 octets, which go by Sends. Their number takes the time. A file is three exchanges:
# create, write, close. Where nothing else wanted the host's CPUs, an exchange over weft took 0.07 to 0.2 ms and
# a file 1 ms. None waits for a timer: TCP's delayed acknowledgement, 60 ms later, holds nothing up, and neither do
# credits. A quarter of the messages are empty and grant credits. But each exchange wakes threads at both
# ends, and on a busy host (16 that want two CPUs) each of them waits for its turn: a file then took 40 to
# 180 ms over weft, 70 to 140 over siw and 25 by SMB over TCP.
small_files() {
	setup
	mount_smb
	small_files_come_back "$1"
	take_down
}

direct_io() {
	setup
	mount_smb
	direct_octets_read_back 4096 61440 1048576 3145728
	take_down
}

# The device goes while a client writes, and comes again: so does the session, by new connections.
link_del() {
	local i
	setup
	mount_smb
	head -c 1M /dev/urandom >/run/octets
	cp /run/octets /run/mnt/before || fail "cp"
	write_on &
	worker=$!
	wait_for 20 [ -s /run/mnt/during ] || fail "nothing is written"
	within 30 rdma link del "$DEV_A" || fail "the device does not go"
	at a bring_up weft "$DEV_A" 1500 || fail "the device does not come again"
	touch /run/enough
	wait_for 60 is_over $worker || fail "the writer does not end"
	wait_for 60 same_again || fail "what was written before is not there"
	cp /run/octets /run/mnt/after || fail "nothing can be written afterwards"
	mount_again
	for i in before after; do cmp /run/octets "/run/mnt/$i" || fail "$i is not what was written"; done
	rm /run/octets /run/enough
	take_down
}

# It may meet an error when the device goes.
write_on() {
	while [ ! -e /run/enough ] && cat /run/octets >>/run/mnt/during; do :; done
	return 0
}

same_again() { cmp /run/octets /run/mnt/before; }
