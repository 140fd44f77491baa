#!/usr/bin/env bash
# Builds a user-mode Linux of the lab in the cache, unless it is there:
#   build-uml.sh FLAVOUR
#     6.12-debug  backports' 6.12, KASAN and lockdep, one CPU (make check)
#     7.2-smp     sid's kernel, SMP, no debugging (figures)
#     7.2-debug   sid's kernel, SMP, KASAN (make check-full)
#     7.2-users   7.2-smp with all kernel users of RDMA (make check-full)
#     7.2-users-debug  the same with KASAN and lockdep, one CPU (make check-full)
# Prints the build folder: ./linux is the kernel, modules/ what modprobe -d takes, and
# drivers build against the folder itself.
# Environment: WEFT_CACHED_ONLY  if set, fails rather than build or fetch anything
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

flavour=${1:?flavour}
case $flavour in
6.12-debug) suite=bookworm-backports package=linux-source-6.12 fragments='base tests debug' ;;
7.2-smp) suite=sid package=linux-source fragments='base smp' ;;
7.2-debug) suite=sid package=linux-source fragments='base smp tests debug smp-debug' ;;
7.2-users) suite=sid package=linux-source fragments='base smp users' ;;
7.2-users-debug) suite=sid package=linux-source fragments='base users debug' ;;
*) die "no user-mode kernel called $flavour" ;;
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

configure() {
	local tree=$1 out=$2
	make -s -C "$tree" O="$out" ARCH=um x86_64_defconfig
	(cd "$out" && KCONFIG_CONFIG=.config "$tree/scripts/kconfig/merge_config.sh" -m .config \
		"${fragment_files[@]}")
	make -s -C "$tree" O="$out" ARCH=um olddefconfig
	verify_config "$out"
}

compile() {
	configure "$1" "$2" &&
		nice make -s -C "$1" O="$2" ARCH=um -j"$(nproc)" linux modules &&
		make -s -C "$1" O="$2" ARCH=um INSTALL_MOD_PATH="$2/modules" modules_install
}

pkg=$("$WEFT_TOP/scripts/fetch-packages.sh" "$suite" "$package") ||
	die "the sources of user-mode $flavour (Debian $suite) cannot be had now"
out=$WEFT_CACHE/kernel/${flavour}_${pkg##*_}_$(options | sha256sum | cut -c 1-8)

fill() {
	local tree
	# Not "build aside, then rename": a kernel's build folder holds its own path. The stamp
	# is written last instead, and an interrupted build is taken up where it stopped.
	if [ ! -e "$out/.complete" ]; then
		tree=$(unpack_kernel "$pkg")
		mkdir -p "$out"
		say "building user-mode Linux $flavour (some 8 minutes, once); log: $out/build.log"
		logged "$out/build.log" compile "$tree" "$out" || {
			say "again, from the beginning"
			find "$out" -mindepth 1 -delete
			logged "$out/build.log" compile "$tree" "$out" || die "$flavour does not build"
		}
		touch "$out/.complete"
	fi
}

if [ ! -e "$out/.complete" ]; then
	[ -z "${WEFT_CACHED_ONLY-}" ] || die "user-mode $flavour is not in the cache"
	with_lock "uml-$flavour" fill
fi
echo "$out"
