#!/usr/bin/env bash
# Makes a root folder of a Debian release in the cache, and prints it:
#   fetch-release-root.sh RELEASE           with the release's RDMA programs
#   fetch-release-root.sh RELEASE portable  with those, pyverbs, and what recipes of CIs call
#   fetch-release-root.sh RELEASE users     with what kernel users of RDMA are set up by: NFS, iSCSI, SMB
#   fetch-release-root.sh RELEASE blktests  with what blktests' groups nvme, srp and rnbd run
#   fetch-release-root.sh RELEASE xfstests  with what xfstests runs on NFS and XFS, and its users
#   fetch-release-root.sh RELEASE system    a whole system beside them: kernel, headers (bookworm: the
#                                           backports', too), systemd, what packages are built and judged with
# RELEASE is trixie or sid; bullseye or bookworm, too, for portable; trixie for users, blktests and xfstests; bookworm or trixie for a system.
# No root is needed where user namespaces can be had. It is made anew after a month.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$(dirname "$0")/apt.sh"

# mmdebstrap calls this script, too, at two moments in the making of a system.
case $1 in
--before)
	# The initial file system holds what a machine of tests/packages has, and no more.
	mkdir -p "$2/etc/initramfs-tools/conf.d" "$2/usr/share/initramfs-tools/modules.d"
	echo MODULES=list >"$2/etc/initramfs-tools/conf.d/weft"
	printf '%s\n' virtio_pci virtio_blk ext4 >"$2/usr/share/initramfs-tools/modules.d/weft"
	exit
	;;
--after)
	mapfile -t headers < <(chroot "$2" apt-cache depends linux-headers-amd64/bookworm-backports |
		sed -n 's/.*Depends: \(linux-headers-[0-9].*\)/\1/p')
	[ ${#headers[@]} -gt 0 ] || die "no headers in the backports"
	chroot "$2" apt-get install -y -qq --no-install-recommends "${headers[@]}"
	exit
	;;
esac

release=$1 kind=${2:-programs}
need mmdebstrap
self=$(realpath "$0")
packages=ibverbs-utils,rdmacm-utils,perftest,iproute2
name=$release options=(--variant=essential) mirrors=("$(base_mirror)")
if [ "$kind" = portable ]; then
	name=$release-portable
	packages+=,python3-pyverbs,curl,xz-utils
elif [ "$kind" = users ]; then
	name=$release-users
	packages=nfs-kernel-server,nfs-common,rpcbind,open-iscsi,cifs-utils,ksmbd-tools,kmod,iproute2,udev
elif [ "$kind" = blktests ]; then
	name=$release-blktests
	packages=bsdextrautils,mount,kmod,iproute2,udev,dmsetup,procps,psmisc,lsof,uuid-runtime,gawk,bc,jq,libstdc++6
	packages+=,fio,nvme-cli,multipath-tools,sg3-utils,e2fsprogs,xfsprogs
	# The kernel's modules are mounted there.
	options+=(--customize-hook="mkdir -p \"\$1/usr/lib/modules\"")
elif [ "$kind" = xfstests ]; then
	name=$release-xfstests
	packages=nfs-kernel-server,nfs-common,rpcbind,kmod,iproute2,udev,mount,bsdextrautils,hostname,procps,psmisc,lsof
	packages+=,acl,attr,bc,dbench,e2fsprogs,file,fio,gawk,jq,libcap2-bin,passwd,perl,python3,quota,uuid-runtime,xfsprogs
	packages+=,libaio1t64,libgdbm6t64,libgdbm-compat4t64,liburing2
	# Who owns what there, and the folders of what is mounted.
	options+=(--customize-hook="mkdir -p \"\$1/usr/lib/modules\" \"\$1/opt/xfstests\"")
	options+=(--customize-hook="for user in fsgqa fsgqa2 123456-fsgqa; do chroot \"\$1\" useradd --badname -m \$user; done")
elif [ "$kind" = system ]; then
	name=$release-system
	packages+=,rdma-core,linux-image-amd64,linux-headers-amd64,systemd-sysv,udev,kmod,initramfs-tools,iputils-ping,e2fsprogs
	packages+=,build-essential,git,debhelper,dh-dkms,dkms,lintian,cmake,ninja-build,rsync,pkg-config,python3
	packages+=,libibverbs-dev,librdmacm-dev,libnl-3-dev,libnl-route-3-dev,libudev-dev,libcmocka-dev
	options=(--variant=apt --essential-hook="'$self' --before \"\$1\"")
	if [ "$release" = bookworm ]; then
		options+=(--customize-hook="'$self' --after \"\$1\"")
		mirrors=("deb ${mirrors[0]} bookworm main" "deb ${mirrors[0]} bookworm-backports main")
	fi
fi
root=$WEFT_CACHE/root/$name

is_fresh() { [ -n "$(find "$root.made" -mtime -30 2>/dev/null)" ]; }

make_root() {
	local new=$root.new
	# Another may have made it meanwhile, and use it.
	! is_fresh || return 0
	rm -rf "$new"
	mkdir -p "$WEFT_CACHE/root"
	say "making a root folder of $release (once; a minute, a whole system ten)"
	# A mirror may stand still for longer than sid's word is good for.
	logged "$WEFT_CACHE/root/$name.log" mmdebstrap "${options[@]}" --include="$packages" \
		--aptopt='Acquire::Check-Valid-Until "false"' "$release" "$new" "${mirrors[@]}"
	rm -rf "$root"
	mv "$new" "$root"
	touch "$root.made"
}

is_fresh || with_lock "root-$name" make_root
echo "$root"
