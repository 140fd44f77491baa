# shellcheck shell=bash
# What every script here shares: where things are, how to talk, how to fill the cache.
# Sourced, never run. The scripts change nothing outside the checkout's build/ and the cache folder.

set -euo pipefail

WEFT_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
WEFT_BUILD=$WEFT_TOP/build
WEFT_CACHE=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}
export WEFT_TOP WEFT_BUILD WEFT_CACHE

# Progress goes past the logs that a caller makes of stderr, if it opened a way (WEFT_SAY).
say() { printf '%s\n' "weft: $*" >&"${WEFT_SAY:-2}"; }

die() {
	say "$*"
	exit 1
}

# need COMMAND...: stop early, with the way out, when a tool is missing.
need() {
	local tool
	for tool; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
			die "$tool is missing; 'make deps' installs it"
	done
}

# with_lock NAME COMMAND...: two runs at once must not fill one cache entry.
with_lock() {
	local name=$1
	shift
	mkdir -p "$WEFT_CACHE/lock"
	(
		flock 9
		# 9>&-: nothing started in here may keep the lock after it.
		"$@" 9>&-
	) 9>"$WEFT_CACHE/lock/$name"
}

# logged FILE COMMAND...: run quietly; on failure show the end of the log.
logged() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		say "failed: $* (whole log: $log)"
		return 1
	}
}

# weft's version: of packages, of files to download, of weft-run.
weft_version() { cat "$WEFT_TOP/VERSION"; }

# The file that every provider is linked against.
installed_libibverbs() {
	local lib
	lib=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk '$1 == "libibverbs.so.1" && !n++ {print $NF}')
	[ -n "$lib" ] || die "libibverbs is not installed; 'make deps' installs it"
	echo "$lib"
}

# source_pabi FOLDER: the private ABI of a source of rdma-core, which providers have in their names.
source_pabi() {
	sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)")/\1/p' "$1/CMakeLists.txt"
}

# find_kernel KERNEL: of stock or stock-arm64 (Debian's 6.1) or a flavour of build-kernel.sh, which is built if it is
# not there: kernel_tree is the folder that modules are built against, kernel_arch what make needs
# beside it.
find_kernel() {
	kernel_arch=()
	case $1 in
	stock)
		kernel_tree=$("$WEFT_TOP/scripts/fetch-stock-kernel.sh") || return
		kernel_tree=$(echo "$kernel_tree"/usr/src/linux-headers-*-amd64)
		;;
	stock-arm64)
		need aarch64-linux-gnu-gcc
		kernel_tree=$("$WEFT_TOP/scripts/fetch-stock-kernel.sh" arm64) || return
		kernel_tree=$(echo "$kernel_tree"/usr/src/linux-headers-*-arm64)
		kernel_arch=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
		;;
	*)
		kernel_tree=$("$WEFT_TOP/scripts/build-kernel.sh" "$1") || return
		# shellcheck disable=SC2034 # who calls reads it
		case $1 in 6.12-rt | 6.12-kcsan) ;; *) kernel_arch=(ARCH=um) ;; esac
		;;
	esac
}

# unpack_kernel PACKAGE_DIR: prints the source tree of a linux-source package (fetch-packages.sh), unpacked in
# the cache once for all that are built from it.
unpack_kernel() {
	local tree tmp
	tree=$WEFT_CACHE/src/$(basename "$1")
	if [ ! -d "$tree" ]; then
		mkdir -p "$WEFT_CACHE/src"
		tmp=$(mktemp -d "$WEFT_CACHE/src/.tmp.XXXXXX")
		say "unpacking $(basename "$tree")"
		tar -C "$tmp" --strip-components=1 -xf "$(echo "$1"/usr/src/linux-source-*.tar.xz)" || {
			rm -rf "$tmp"
			die "cannot unpack $(basename "$tree")"
		}
		mv "$tmp" "$tree"
	fi
	echo "$tree"
}
