#!/usr/bin/env bash
# Runs a command in a root folder of fetch-release-root.sh, as its root:
#   in-root.sh ROOT [--at FOLDER:PLACE]... COMMAND [ARG...]
# FOLDER of the host stands at PLACE. What the command writes elsewhere is gone afterwards; there is no
# network but lo.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$1" != --inside ]; then
	map=()
	[ "$(id -u)" = 0 ] || map=(--map-root-user --map-auto)
	# However this ends, nothing of it goes on.
	exec unshare "${map[@]}" --mount --net --ipc --uts --pid --fork --kill-child bash "$0" --inside "$@"
fi

root=$2
shift 2
top=/mnt
mount -t tmpfs -o mode=755 none $top
mkdir $top/upper $top/work $top/root
mount -t overlay -o "lowerdir=$root,upperdir=$top/upper,workdir=$top/work" none $top/root
while [ "$1" = --at ]; do
	mkdir -p "$top/root${2#*:}"
	mount --bind "${2%%:*}" "$top/root${2#*:}"
	shift 2
done
mount --rbind /dev $top/root/dev
mount -t proc none $top/root/proc
mount -t tmpfs none $top/root/run
mount -t tmpfs -o mode=1777 none $top/root/tmp
ip link set lo up
hostname root 2>/dev/null || true
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
	chroot $top/root "$@" </dev/null
