#!/usr/bin/env bash
# Builds a kernel of the lab in the cache, unless it is there:
#   build-kernel.sh FLAVOUR
# User-mode Linux:
#     6.12-debug  backports' 6.12, KASAN and lockdep, one CPU (make check)
#     7.2-smp     sid's kernel, SMP, no debugging (figures)
#     7.2-debug   sid's kernel, SMP, KASAN (make check-full)
#     7.2-users   7.2-smp with all kernel users of RDMA (make check-full)
#     7.2-users-debug  the same with KASAN and lockdep, one CPU (make check-full)
# For a PC that QEMU emulates, since user mode has neither. No lab runs them yet:
#     6.12-rt     PREEMPT_RT, lockdep, DEBUG_OBJECTS, KMEMLEAK
#     6.12-kcsan  KCSAN
# Prints the build folder: modules/ is what modprobe -d takes, drivers build against the folder itself. The
# kernel is ./linux in user mode, modules/boot/vmlinuz-RELEASE on a PC.
# Environment: WEFT_CACHED_ONLY  if set, fails rather than build or fetch anything
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

flavour=${1:?flavour}
arch=um default=x86_64_defconfig image=linux
case $flavour in
6.12-rt | 6.12-kcsan)
	suite=bookworm-backports package=linux-source-6.12 fragments="base pc tests ${flavour#6.12-}"
	arch=x86_64 default=allnoconfig image=bzImage
	;;
6.12-debug) suite=bookworm-backports package=linux-source-6.12 fragments='base tests debug' ;;
7.2-smp) suite=sid package=linux-source fragments='base smp' ;;
7.2-debug) suite=sid package=linux-source fragments='base smp tests debug smp-debug' ;;
7.2-users) suite=sid package=linux-source fragments='base smp users' ;;
7.2-users-debug) suite=sid package=linux-source fragments='base users debug' ;;
*) die "no kernel called $flavour" ;;
esac
need make gcc flex bison bc xz

fragment_files=()
for fragment in $fragments; do
	fragment_files+=("$WEFT_TOP/scripts/kconfig/$fragment.config")
done

# The options asked for, without their comments: the last word on each.
options() {
	grep -h '^CONFIG_' "${fragment_files[@]}" | tac | awk -F = '!seen[$1]++' | tac
}

# Every option asked for must have been granted: a lab without lockdep proves nothing.
verify_config() {
	local option bad=0
	while read -r option; do
		case $option in
		*=n) ! grep -q "^${option%=n}=" "$1/.config" ;;
		*) grep -qx "$option" "$1/.config" ;;
		esac || {
			say "$flavour: not granted: $option"
			bad=1
		}
	done < <(options)
	return $bad
}

# Linux 6.12 has room for 2696 octets of FPU registers. Processors with AMX have 11008, and ptrace() takes
# all or none.
widen_fpu_registers() {
	sed -i 's/\(HOST_FP_SIZE, \)2696)/\112288)/' "$1/arch/x86/um/user-offsets.c"
}

configure() {
	local tree=$1 out=$2
	make -s -C "$tree" O="$out" ARCH=$arch $default
	(cd "$out" && KCONFIG_CONFIG=.config "$tree/scripts/kconfig/merge_config.sh" -m .config \
		"${fragment_files[@]}")
	make -s -C "$tree" O="$out" ARCH=$arch olddefconfig
	verify_config "$out"
}

compile() {
	[ $arch != um ] || widen_fpu_registers "$1"
	configure "$1" "$2" &&
		nice make -s -C "$1" O="$2" ARCH=$arch -j"$(nproc)" $image modules &&
		make -s -C "$1" O="$2" ARCH=$arch INSTALL_MOD_PATH="$2/modules" modules_install &&
		[ $arch = um ] || install -D -m 644 "$2/arch/x86/boot/bzImage" \
		"$2/modules/boot/vmlinuz-$(make -s -C "$1" O="$2" ARCH=$arch kernelrelease)"
}

pkg=$("$WEFT_TOP/scripts/fetch-packages.sh" "$suite" "$package") ||
	die "the sources of Linux $flavour (Debian $suite) cannot be had now"
out=$WEFT_CACHE/kernel/${flavour}_${pkg##*_}_$(options | sha256sum | cut -c 1-8)

fill() {
	local tree
	# Not "build aside, then rename": a kernel's build folder holds its own path. The stamp
	# is written last instead, and an interrupted build is taken up where it stopped.
	if [ ! -e "$out/.complete" ]; then
		tree=$(unpack_kernel "$pkg")
		mkdir -p "$out"
		say "building Linux $flavour (some 8 minutes, once); log: $out/build.log"
		logged "$out/build.log" compile "$tree" "$out" || {
			say "again, from the beginning"
			find "$out" -mindepth 1 -delete
			logged "$out/build.log" compile "$tree" "$out" || die "$flavour does not build"
		}
		touch "$out/.complete"
	fi
}

if [ ! -e "$out/.complete" ]; then
	[ -z "${WEFT_CACHED_ONLY-}" ] || die "Linux $flavour is not in the cache"
	with_lock "uml-$flavour" fill
fi
echo "$out"
