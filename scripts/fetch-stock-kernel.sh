#!/usr/bin/env bash
# Debian's stock kernel, as a user of bookworm has it: image, modules, headers, unpacked in
# the cache and not installed. Prints the folder:
#   fetch-stock-kernel.sh [ARCHITECTURE]    amd64, or arm64: for this machine's cross compiler
#   boot/vmlinuz-*, lib/modules/*, usr/src/linux-headers-*-ARCHITECTURE (a KDIR)
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need depmod

arch=${1:-amd64}
suite=bookworm
[ "$arch" = amd64 ] || suite+=/$arch
dir=$("$WEFT_TOP/scripts/fetch-packages.sh" "$suite" "linux-image-$arch" "linux-headers-$arch")
if [ ! -e "$dir/.prepared" ]; then
	release=$(basename "$dir"/lib/modules/*)
	depmod -b "$dir" "$release"
	# The headers expect to stand in /usr/src; point them at their neighbour.
	printf 'include %s/usr/src/linux-headers-%s-common/Makefile\n' "$dir" "${release%-"$arch"}" \
		>"$dir/usr/src/linux-headers-$release/Makefile"
	# Its programs are of its architecture; those of the other have to have the same version.
	if [ "$arch" != amd64 ]; then
		here=$("$WEFT_TOP/scripts/fetch-packages.sh" bookworm linux-image-amd64 linux-headers-amd64)
		kbuild=$(basename "$dir"/usr/lib/linux-kbuild-*)
		rm -r "$dir/usr/lib/$kbuild"
		cp -R "$here/usr/lib/$kbuild" "$dir/usr/lib/"
	fi
	touch "$dir/.prepared"
fi
echo "$dir"
