#!/usr/bin/env bash
# Builds the rdma-core provider for the libibverbs of this machine:
#   build/lib/libweft-rdmav<PABI>.so   IBV_DRIVERS=$PWD/build/lib/libweft makes programs load it
#   build/etc/weft.driver              what an installation puts in /etc/libibverbs.d
# The source of rdma-core comes from fetch-rdma-core.sh; a copy of it in build/provider gets
# the touch-points and providers/weft, is configured once, and only the provider is built.
#   build-provider.sh [FOLDER]   FOLDER in the place of build: there the provider is for the libibverbs
#                                of the source that WEFT_RDMA_CORE names, and not for the installed one
# Under scripts/cross.sh it is for the libibverbs of that architecture, in build/ARCHITECTURE.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
nm=${NM:-nm}
need cmake ninja rsync "$nm" pkg-config python3

target=${1:-$WEFT_BUILD}
sysroot=${WEFT_SYSROOT-} RUN=${RUN-}
work=$target/provider
tree=$work/rdma-core
out=$work/build

# A copy of our own: the cache is shared with other checkouts. Made anew when the source, the
# touch-points or this script change.
prepare_tree() {
	local source=$1 key
	key="$source $(cat "$WEFT_TOP/rdma-core-patch/apply.sh" "$0" | sha256sum)"
	[ "$(cat "$work/key" 2>/dev/null)" != "$key" ] || return 0
	rm -rf "$work"
	mkdir -p "$work"
	say "preparing $(basename "$source") of rdma-core"
	cp -R "$source" "$tree"
	"$WEFT_TOP/rdma-core-patch/apply.sh" "$tree"
	sync_sources
	configure "$source"
	echo "$key" >"$work/key"
}

# By content, and with the time of copying, so that ninja sees what changed and nothing else.
sync_sources() {
	rsync -rc --delete "$WEFT_TOP/providers/weft/" "$tree/providers/weft/"
	rsync -c "$WEFT_TOP/kernel/uapi/rdma/weft-abi.h" "$tree/kernel-headers/rdma/"
}

# Not that of WEFT_RDMA_CORE.
is_for_installed() { [ "$target" = "$WEFT_BUILD" ] || [ -n "$sysroot" ]; }

# layout CC_OPTION...: sizes of what libibverbs and a provider share, by the verbs.h found with
# these options: first of struct ibv_qp_ex, then of all that must be the same.
layout() {
	${CC:-cc} "$@" -x c -o "$work/layout" - <<-'END'
		#include <stdio.h>
		#include <infiniband/verbs.h>
		int main(void)
		{
			printf("%zu %zu %zu %zu %zu %zu %zu\n", sizeof(struct ibv_qp_ex),
			       sizeof(struct verbs_context), sizeof(struct ibv_qp), sizeof(struct ibv_cq),
			       sizeof(struct ibv_srq), sizeof(struct ibv_mr), sizeof(struct ibv_wc));
			return 0;
		}
	END
	$RUN "$work/layout"
}

# The source may be of another release than the installed libibverbs, see compat.h.
layout_flag() {
	local here there inc=$work/include
	mkdir -p "$inc/infiniband"
	ln -sf "$tree"/libibverbs/*.h "$tree/kernel-headers/rdma/ib_user_ioctl_verbs.h" \
		"$inc/infiniband/"
	here=$(layout) || die "verbs.h does not compile; 'make deps' installs libibverbs-dev"
	there=$(layout -I"$inc")
	[ "${here#* }" = "${there#* }" ] ||
		die "verbs.h of libibverbs-dev and of $(basename "$1") do not agree"
	[ "${here%% *}" = "${there%% *}" ] || echo "-DWEFT_QP_EX_SIZE=${here%% *}"
}

configure() {
	local flags= cross=()
	[ -z "$sysroot" ] || cross=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=${WEFT_TRIPLET%%-*}"
		"-DCMAKE_C_COMPILER=${CC%% *}" "-DCMAKE_SYSROOT=$sysroot" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER)
	! is_for_installed || flags=$(layout_flag "$1")
	# See providers/weft/compat.h.
	grep -q 'struct ibv_fd_arr' "$tree/libibverbs/driver.h" ||
		flags+=' -DWEFT_GET_CONTEXT_WITHOUT_FDS'
	grep -q 'struct verbs_create_cq_prov_attr' "$tree/libibverbs/driver.h" ||
		flags+=' -DWEFT_CREATE_CQ_EX_WITHOUT_PROV'
	# No path to the libibverbs of this build: whoever loads the provider has its own.
	logged "$work/configure.log" cmake -GNinja -S "$tree" -B "$out" -DCMAKE_C_FLAGS="$flags" \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DCMAKE_SKIP_RPATH=1 "${cross[@]}"
}

# The provider may have been built in another release than the one it will be loaded by: what
# it takes from libibverbs must be there.
check_symbols() {
	local lib needed offered missing
	is_for_installed || return 0
	if [ -n "$sysroot" ]; then lib=$(echo "$sysroot"/usr/lib/*/libibverbs.so.1); else lib=$(installed_libibverbs); fi
	needed=$("$nm" -D --with-symbol-versions "$1" | awk '$1 == "U" && /@IBVERBS_/ {print $2}' | sort)
	offered=$("$nm" -D --with-symbol-versions "$lib" | awk '{print $NF}' | sed 's/@@/@/' | sort)
	[ -n "$needed" ] || die "$1 needs nothing of libibverbs"
	missing=$(comm -23 <(echo "$needed") <(echo "$offered"))
	[ -z "$missing" ] || die "$lib lacks what the provider needs: ${missing//$'\n'/ }"
}

# Programs may be running with the old file: put a new one in its place, whole.
place() {
	cmp -s "$1" "$2" && return
	mkdir -p "$(dirname "$2")"
	cp "$1" "$2.new"
	mv "$2.new" "$2"
}

build() {
	local pabi name
	prepare_tree "$1"
	sync_sources
	pabi=$(source_pabi "$tree")
	name=libweft-rdmav$pabi.so
	logged "$work/build.log" ninja -C "$out" "lib/$name"
	! grep -A 5 'providers/weft.*warning:' "$work/build.log" >&2 || die "the provider has warnings"
	check_symbols "$out/lib/$name"
	place "$out/lib/$name" "$target/lib/$name"
	echo 'driver weft' >"$work/weft.driver"
	place "$work/weft.driver" "$target/etc/weft.driver"
	say "provider: ${target#"$WEFT_TOP"/}/lib/$name"
}

source=$("$WEFT_TOP/scripts/fetch-rdma-core.sh" installed)
mkdir -p "$target"
(
	# Two runs in one checkout wait for each other.
	flock 9
	build "$source" 9>&-
) 9>"$target/.provider.lock"
