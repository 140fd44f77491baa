#!/usr/bin/env bash
# Builds a module for one kernel of the lab and prints the path of the .ko:
#   build-module.sh KERNEL MODULE
#     KERNEL  stock or stock-arm64 (Debian's 6.1) or a flavour of build-kernel.sh
#     MODULE  weft; weft_kmod, the kernel consumer of tests/kmod; weft_kunit, proto's and core's tests
#             (tests/kunit); or siw: the peer, which Debian's own kernel leaves out
# Ours are built in copies of their folders, one for each kernel, so that objects never mix.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

kernel=${1:?kernel} driver=${2:?driver}
need make gcc rsync

find_kernel "$kernel"

# What the cached copies are named for: another kernel must not meet old objects.
key=$(printf '%s' "$kernel_tree" | sha256sum | cut -c 1-8)

# sync_sources DIR ARG...: rsync's, without objects; --exclude also keeps those in DIR from --delete.
sync_sources() {
	local dir=$1
	shift
	mkdir -p "$dir"
	rsync -a --delete --exclude-from=- "$@" "$dir/" <<-'END'
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
}

# make_module DIR
make_module() {
	logged "$1/build.log" make -C "$kernel_tree" "${kernel_arch[@]}" M="$1" -j"$(nproc)" modules
	echo "$1/$driver.ko"
}

# build_copy COPY FOLDER [FOLDER...]: builds the first folder, with the others inside its copy
build_copy() {
	local dir=$WEFT_BUILD/module/$1 inside=("${@:3}")
	sync_sources "$dir" "$WEFT_TOP/$2/" "${inside[@]/#/$WEFT_TOP/}"
	make_module "$dir"
}

build_weft() { build_copy "$kernel-$key" kernel; }
build_weft_kmod() { build_copy "$kernel-$key.kmod" tests/kmod tests/weftspec/reflector; }

# The folders lie there as they do here: their sources name each other.
build_weft_kunit() {
	local dir=$WEFT_BUILD/module/$kernel-$key.kunit
	sync_sources "$dir" -R "$WEFT_TOP/./kernel" "$WEFT_TOP"/./tests/{kunit,engine,stacks}
	make_module "$dir/tests/kunit"
}

# siw out of the sources of the same kernel, built once. The MPA revision that it begins with is
# a variable there that nobody can set: it becomes a parameter, by a file beside its own.
build_siw() {
	local dir=$WEFT_CACHE/module/siw-mpa_version-$key src tmp
	if [[ $kernel != stock* ]]; then
		echo "$kernel_tree/drivers/infiniband/sw/siw/siw.ko"
		return
	fi
	if [ ! -d "$dir" ]; then
		src=$("$WEFT_TOP/scripts/fetch-packages.sh" bookworm linux-source-6.1)
		mkdir -p "$WEFT_CACHE/module"
		tmp=$(mktemp -d "$WEFT_CACHE/module/.tmp.XXXXXX")
		say "building siw, the peer, for Debian's kernel"
		tar -C "$tmp" --strip-components=5 --wildcards \
			-xf "$src/usr/src/linux-source-6.1.tar.xz" '*/drivers/infiniband/sw/siw'
		printf '%s\n' '#include <linux/module.h>' 'extern u_char mpa_version;' \
			'module_param(mpa_version, byte, 0644);' >"$tmp/siw_param.c"
		(cd "$tmp" && {
			echo 'obj-m := siw.o'
			echo "siw-y := $(echo siw_*.c | sed 's/\.c/.o/g')"
		} >Kbuild)
		rm "$tmp/Makefile"
		logged "$WEFT_CACHE/module/siw.log" make -C "$kernel_tree" "${kernel_arch[@]}" M="$tmp" modules
		mv "$tmp" "$dir"
	fi
	echo "$dir/siw.ko"
}

case $driver in
weft | weft_kmod | weft_kunit | siw) with_lock "module-$driver-$kernel" "build_$driver" ;;
*) die "no module called $driver" ;;
esac
