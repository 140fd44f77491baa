#!/usr/bin/env bash
# Makes a folder in the cache with Debian 12's libraries, headers and RDMA programs of another architecture, and prints
# it. A cross compiler has it as --sysroot, qemu-user as -L. Nothing of it is installed: the machine's own
# architectures stay as they are.
#   fetch-sysroot.sh ARCHITECTURE    arm64 or s390x
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$(dirname "$0")/apt.sh"

arch=${1:?architecture}
need mmdebstrap
packages=libcmocka-dev,libasan8,libubsan1
# Where the provider and weft-run are built and run, too.
[ "$arch" != arm64 ] ||
	packages+=,libibverbs-dev,librdmacm-dev,libnl-route-3-dev,libudev-dev,ibverbs-utils,rdmacm-utils,perftest
root=$WEFT_CACHE/root/bookworm-$arch
stamp="$packages"

make_root() {
	local new=$root.new
	[ "$(cat "$root.made" 2>/dev/null)" != "$stamp" ] || return 0
	rm -rf "$new"
	mkdir -p "$WEFT_CACHE/root"
	say "fetching libraries of bookworm for $arch (once; a minute)"
	# Unpacked and not configured: nothing of the other architecture is run.
	logged "$root.log" mmdebstrap --variant=extract --architectures="$arch" --include="$packages" \
		bookworm "$new" "$(base_mirror)"
	rm -rf "$root"
	mv "$new" "$root"
	echo "$stamp" >"$root.made"
}

with_lock "sysroot-$arch" make_root
echo "$root"
