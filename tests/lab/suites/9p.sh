# shellcheck shell=bash
# 9P over RDMA: the kernel's client on machine a, and diod, a server in user space, on b. CRC is on.
# Debian's diod is built without RDMA; DIOD names one that has it (docs/foreign-suites.md).
# On two machines siw may be at either end, and the server may run under weft-run.

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

tests() {
	local p to
	[ -n "${DIOD-}" ] || return 0
	with_siw 'weft:siw siw:weft weft:rootless siw:rootless' file-tree-over-9p file_tree
	# siw's own tell whose a failure is.
	for p in weft:weft siw:siw; do
		[[ $PAIRS == *$p* ]] || continue
		to=
		[ $p = weft:weft ] || to=-${p/:/-}
		cat <<-END
			file-tree-over-9p$to file_tree $p
			600-small-files-over-9p$to small_files $p 600
			verified-mix-over-9p$to verified_mix $p
		END
	done
}

# The client knows the first namespace alone.
server() { in_first_namespace bash "$WEFT_TOP/tests/lab/diod.sh" "$@" || fail "the server: $*"; }

# setup PAIR
setup() {
	pair=$1
	addr=$(first_namespace)
	pair "$pair"
	server up "${pair#*:}"
	[ "$WEFT_LINK" = vm ] || kernel_loads
	loads 9pnet_rdma 9p
}

# Only the module tells of CRC.
tells_crc() { [[ $pair = *weft* ]]; }

mount_9p() {
	local user
	read -r user <"$SHARE/diod.user"
	mkdir -p /run/mnt
	within 40 mount -t 9p "$addr" /run/mnt \
		-o "trans=rdma,port=5640,version=9p2000.L,aname=/run/export,uname=$user,access=any,msize=65536" ||
		fail "no mount: $(dmesg | tail -n 2)"
}

unmount() { within 20 umount -i /run/mnt || fail "umount ($?)"; }

# Nothing that is read afterwards has been left here.
mount_again() {
	unmount
	mount_9p
}

take_down() {
	unmount
	! tells_crc || no_crc_errors
	server down
	# Machines that are emulated have their files by 9P: the rest of it stays.
	unloads 9pnet_rdma
}

# file_tree PAIR
file_tree() {
	setup "$1"
	mount_9p
	! tells_crc || crc_is_on 1
	tree_comes_back
	take_down
}

# small_files PAIR N: of 1 to 4000 octets.
small_files() {
	setup "$1"
	mount_9p
	small_files_come_back "$2"
	take_down
}

# verified_mix PAIR: four jobs of fio write blocks of many sizes at random, and read them back: many requests are under way.
verified_mix() {
	setup "$1"
	mount_9p
	mix_is_right 0
	take_down
}
