#!/bin/bash
# First process of every machine of the lab once the host's files are its root: in QEMU after
# initramfs.sh, in user-mode Linux at once. Mounts what a test needs, then serves machine a
# (role b) or does the job (role a), and powers off.
#
# From the kernel's command line: WEFT_TOP (the checkout), WEFT_ROLE (a or b), WEFT_LINK
# (vm: the peer is another machine; netns: it is a namespace of this one), WEFT_ACCEL (vm only: kvm,
# or tcg if the machine is emulated), WEFT_RUN (netns only: the host's folder for this run). That folder is /run/weft in here, the only place
# that is shared with the host, and holds:
#   env      from the host: paths of modules and provider, which tests; envb: of machine b in QEMU
#   job      the command that role a runs
#   req/ ..  the mailbox of on_b (lib/mailbox.sh)
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8
unset TMPDIR

mountpoint -q /proc || mount -t proc proc /proc
mountpoint -q /sys || mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
[ -d /sys/kernel/debug ] && mount -t debugfs debugfs /sys/kernel/debug
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mkdir /run/weft
if [ "$WEFT_LINK" = vm ]; then
	mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=512000 share /run/weft
else
	mount -t hostfs -o "$WEFT_RUN" none /run/weft
	# perftest computes with the "cpu MHz" of cpuinfo, which user mode lacks.
	mount --bind /run/weft/cpuinfo /proc/cpuinfo
fi

export WEFT_TOP WEFT_ROLE WEFT_LINK WEFT_ACCEL
set -a
# shellcheck disable=SC1090 # written by tests/lab/run.sh
. "/run/weft/env${WEFT_ROLE/a/}"
set +a

# modprobe of the kernel itself looks in /lib/modules; in user mode, whose root is read-only,
# everything that the kernel may ask for is built in.
[ "$WEFT_LINK" = vm ] && mkdir -p /lib/modules && mount --bind "$MODULES/lib/modules" /lib/modules

ulimit -l unlimited # siw minds it even for root
ip link set lo up
# A kernel that went wrong ends the run here and now; the host reads the console.
echo 1 >/proc/sys/kernel/panic_on_oops
dmesg -n 5

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"
link_here
if [ "$WEFT_ROLE" = b ]; then
	touch /run/weft/b.ready
	serve_a
else
	link_peer && bash /run/weft/job >>/run/weft/job.out 2>&1 </dev/null
	echo $? >/run/weft/job.rc
fi
dmesg >"/run/weft/klog-$WEFT_ROLE"
sync
busybox poweroff -f
