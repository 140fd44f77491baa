#!/usr/bin/env bash
# Makes a folder in the cache with Debian 12's libraries, headers and RDMA programs of another architecture, and prints
# it. A cross compiler has it as --sysroot, qemu-user as -L. Nothing of it is installed: the machine's own
# architectures stay as they are.
#   fetch-sysroot.sh ARCHITECTURE           arm64, s390x or i386
#   fetch-sysroot.sh ARCHITECTURE machine   what an emulated machine of the lab has as its root
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$(dirname "$0")/apt.sh"

arch=${1:?architecture} kind=${2-}
need mmdebstrap
root=$WEFT_CACHE/root/bookworm-$arch${kind:+-$kind} hooks=()
if [ "$kind" = machine ]; then
	packages="base-passwd,bash,coreutils,util-linux,mount,kmod,procps,grep,sed,mawk,findutils,diffutils,busybox-static"
	packages+=,iproute2,iputils-ping,ibverbs-providers,ibverbs-utils,rdmacm-utils,perftest
	# What the packages' scripts would have made.
	# shellcheck disable=SC2016 # the hook's
	hooks=(--extract-hook='ln -sf mawk "$1/usr/bin/awk"'
		--extract-hook='cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"'
		--extract-hook='cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"')
else
	packages=libc6-dev,libcmocka-dev,libasan8,libubsan1
	# Where the provider and weft-run are built and run, too.
	[ "$arch" = s390x ] ||
		packages+=,libibverbs-dev,librdmacm-dev,libnl-route-3-dev,libudev-dev,ibverbs-utils,rdmacm-utils,perftest
fi
stamp="$packages"

make_root() {
	local new=$root.new
	[ "$(cat "$root.made" 2>/dev/null)" != "$stamp" ] || return 0
	rm -rf "$new"
	mkdir -p "$WEFT_CACHE/root"
	say "fetching libraries of bookworm for $arch (once; a minute)"
	# Unpacked and not configured: nothing of the other architecture is run.
	logged "$root.log" mmdebstrap --variant=extract --architectures="$arch" --include="$packages" "${hooks[@]}" \
		bookworm "$new" "$(base_mirror)"
	rm -rf "$root"
	mv "$new" "$root"
	echo "$stamp" >"$root.made"
}

with_lock "sysroot-$arch$kind" make_root
echo "$root"
