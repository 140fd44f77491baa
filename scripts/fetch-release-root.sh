#!/usr/bin/env bash
# Makes a root folder of a Debian release in the cache, with the release's RDMA programs, and prints it:
#   fetch-release-root.sh trixie|sid
# No root is needed where user namespaces can be had. It is made anew after a month.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$(dirname "$0")/apt.sh"

release=${1:?a release of Debian}
need mmdebstrap
packages=ibverbs-utils,rdmacm-utils,perftest,iproute2
root=$WEFT_CACHE/root/$release

make_root() {
	local new=$root.new
	rm -rf "$new"
	mkdir -p "$WEFT_CACHE/root"
	say "making a root folder of $release (a minute, once)"
	# A mirror may stand still for longer than sid's word is good for.
	logged "$WEFT_CACHE/root/$release.log" mmdebstrap --variant=essential --include="$packages" \
		--aptopt='Acquire::Check-Valid-Until "false"' "$release" "$new" "$(base_mirror)"
	rm -rf "$root"
	mv "$new" "$root"
	touch "$root.made"
}

[ -n "$(find "$root.made" -mtime -30 2>/dev/null)" ] || with_lock "root-$release" make_root
echo "$root"
