#!/usr/bin/env bash
# Debian's stock kernel, as a user of bookworm has it: image, modules, headers, unpacked in
# the cache and not installed. Prints the folder:
#   boot/vmlinuz-*, lib/modules/*, usr/src/linux-headers-*-amd64 (a KDIR)
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need depmod

dir=$("$WEFT_TOP/scripts/fetch-packages.sh" bookworm linux-image-amd64 linux-headers-amd64)
if [ ! -e "$dir/.prepared" ]; then
	release=$(basename "$dir"/lib/modules/*)
	depmod -b "$dir" "$release"
	# The headers expect to stand in /usr/src; point them at their neighbour.
	printf 'include %s/usr/src/linux-headers-%s-common/Makefile\n' "$dir" "${release%-amd64}" \
		>"$dir/usr/src/linux-headers-$release/Makefile"
	touch "$dir/.prepared"
fi
echo "$dir"
