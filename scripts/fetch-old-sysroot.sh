#!/usr/bin/env bash
# Prints a folder of headers and libraries of glibc 2.31 and rdma-core 33 (Debian 11) and of headers of
# Linux 6.1, for what is to run on older systems than this one. They are in the cache.
#   fetch-old-sysroot.sh [ARCHITECTURE]    as Debian calls it; without: this machine's
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

arch=${1:+/$1}
packages=$("$WEFT_TOP/scripts/fetch-packages.sh" "bullseye$arch" libc6-dev libc6 libibverbs-dev libibverbs1 \
	librdmacm-dev librdmacm1)
linux=$("$WEFT_TOP/scripts/fetch-packages.sh" "bookworm$arch" linux-libc-dev)
root=$WEFT_CACHE/sysroot/$(basename "$packages")_$(basename "$linux")

# Links of packages are those of a root folder: here they lead to the same file from where they are.
make_root() {
	local tmp link to
	[ ! -d "$root" ] || return 0
	mkdir -p "$WEFT_CACHE/sysroot"
	tmp=$(mktemp -d "$WEFT_CACHE/sysroot/.tmp.XXXXXX")
	cp -a "$packages/." "$linux/." "$tmp"
	find "$tmp" -type l -lname '/*' | while read -r link; do
		to=$(readlink "$link")
		ln -sfnr "$tmp$to" "$link"
	done
	chmod 755 "$tmp"
	mv "$tmp" "$root"
}

with_lock sysroot make_root
echo "$root"
