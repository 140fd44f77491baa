#!/usr/bin/env bash
# Runs a command whose compiler builds for another architecture, and whose programs qemu-user runs:
#   cross.sh ARCHITECTURE COMMAND [ARG...]    arm64, s390x or i386
# It sets, for Makefiles of tests, of providers/rootless, and for build-provider.sh:
#   CC            the compiler, with libraries and headers of scripts/fetch-sysroot.sh
#   NM            lists symbols
#   RUN           what runs a program of that architecture
#   WEFT_SYSROOT, WEFT_TRIPLET
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

arch=${1:?architecture}
shift
case $arch in
arm64) machine=aarch64 compiler=aarch64-linux-gnu-gcc ;;
s390x) machine=s390x compiler=s390x-linux-gnu-gcc ;;
i386) machine=i386 compiler=i686-linux-gnu-gcc ;;
*) die "no tests for $arch" ;;
esac
WEFT_TRIPLET=$machine-linux-gnu
need "$compiler" "qemu-$machine"
WEFT_SYSROOT=$("$WEFT_TOP/scripts/fetch-sysroot.sh" "$arch")
CC="$compiler --sysroot=$WEFT_SYSROOT"
NM=${compiler%gcc}nm
RUN="qemu-$machine -L $WEFT_SYSROOT"
PKG_CONFIG_SYSROOT_DIR=$WEFT_SYSROOT
PKG_CONFIG_LIBDIR=$WEFT_SYSROOT/usr/lib/$WEFT_TRIPLET/pkgconfig:$WEFT_SYSROOT/usr/share/pkgconfig
export WEFT_TRIPLET WEFT_SYSROOT CC NM RUN PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
exec "$@"
