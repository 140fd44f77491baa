#!/usr/bin/env bash
# Builds a driver for one kernel of the lab and prints the path of the .ko:
#   build-module.sh KERNEL DRIVER
#     KERNEL  stock (Debian's 6.1) or a flavour of build-uml.sh
#     DRIVER  weft, or siw: the peer, which Debian's own kernel leaves out
# weft is built in a copy of kernel/, one for each kernel, so that objects never mix.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

kernel=${1:?kernel} driver=${2:?driver}
need make gcc rsync

if [ "$kernel" = stock ]; then
	stock=$("$WEFT_TOP/scripts/stock-kernel.sh")
	tree=$(echo "$stock"/usr/src/linux-headers-*-amd64)
	arch=()
else
	tree=$("$WEFT_TOP/scripts/build-uml.sh" "$kernel")
	arch=(ARCH=um)
fi

# What the cached copies are named for: another kernel must not meet old objects.
key=$(printf '%s' "$tree" | sha256sum | cut -c 1-8)

build_weft() {
	local dir=$WEFT_BUILD/module/$kernel-$key
	[ -e "$WEFT_TOP/kernel/Kbuild" ] || die "kernel/Kbuild does not exist yet"
	mkdir -p "$dir"
	# --exclude also keeps the objects there from --delete.
	rsync -a --delete --exclude-from=- "$WEFT_TOP/kernel/" "$dir/" <<-'END'
		*.o
		*.ko
		*.mod
		*.mod.c
		.*.cmd
		*.symvers
		modules.order
		build.log
		/compat/have.h
	END
	logged "$dir/build.log" make -C "$tree" "${arch[@]}" M="$dir" -j"$(nproc)" modules
	echo "$dir/weft.ko"
}

# siw out of the sources of the same kernel, built once.
build_siw() {
	local dir=$WEFT_CACHE/module/siw-$key src tmp
	if [ "$kernel" != stock ]; then
		echo "$tree/drivers/infiniband/sw/siw/siw.ko"
		return
	fi
	if [ ! -d "$dir" ]; then
		src=$("$WEFT_TOP/scripts/fetch.sh" bookworm linux-source-6.1)
		mkdir -p "$WEFT_CACHE/module"
		tmp=$(mktemp -d "$WEFT_CACHE/module/.tmp.XXXXXX")
		say "building siw, the peer, for Debian's kernel"
		tar -C "$tmp" --strip-components=5 --wildcards \
			-xf "$src/usr/src/linux-source-6.1.tar.xz" '*/drivers/infiniband/sw/siw'
		(cd "$tmp" && {
			echo 'obj-m := siw.o'
			echo "siw-y := $(echo siw_*.c | sed 's/\.c/.o/g')"
		} >Kbuild)
		rm "$tmp/Makefile"
		logged "$WEFT_CACHE/module/siw.log" make -C "$tree" M="$tmp" modules
		mv "$tmp" "$dir"
	fi
	echo "$dir/siw.ko"
}

case $driver in
weft | siw) with_lock "module-$driver-$kernel" "build_$driver" ;;
*) die "no driver called $driver" ;;
esac
