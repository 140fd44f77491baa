#!/bin/busybox sh
# shellcheck shell=dash
# First process of a QEMU machine. Makes the host's files, or those in WEFT_ROOT, read-only under a tmpfs, the root
# and hands over to tests/lab/machine.sh. Runs from an initramfs that holds only busybox and
# /modules, the modules in the order of their dependencies (tests/lab/vm.sh packs it).
mount() { /bin/busybox mount "$@"; }
mkdir() { /bin/busybox mkdir "$@"; }

mkdir -p /proc /sys /dev /host /over /new
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev

while read -r module; do
	/bin/busybox insmod "/lib/$module" || echo "initramfs: $module does not load"
done </modules

# cache=loose: nothing but this machine changes what it sees, for as long as it lives.
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /host
mount -t tmpfs -o mode=755 over /over
mkdir /over/upper /over/work
# These variables come from the kernel's command line.
mount -t overlay -o "lowerdir=/host$WEFT_ROOT,upperdir=/over/upper,workdir=/over/work" over /new
# Another architecture's root lacks what tests come from.
[ -z "$WEFT_ROOT" ] || for dir in "$WEFT_TOP" "$WEFT_CACHE"; do
	mkdir -p "/new$dir"
	mount -o bind "/host$dir" "/new$dir"
done

for dir in proc sys dev; do
	mount -o move "/$dir" "/new/$dir"
done
exec /bin/busybox switch_root /new /bin/bash "$WEFT_TOP/tests/lab/machine.sh"
