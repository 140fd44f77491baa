#!/usr/bin/env bash
# Generates the series that adds the provider to rdma-core, ready for git send-email, in
# build/rdma-core-series: against the newest release that can be had, or the tree named by
# WEFT_RDMA_CORE. The result is built once.
# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
. "$(dirname "$0")/../scripts/lib.sh"
need git cmake ninja python3

out=$WEFT_BUILD/rdma-core-series
tree=$out/tree
about='a software implementation of the iWARP protocol'

# A clean repository whose only history is the release and the series.
start() {
	rm -rf "$out"
	mkdir -p "$out"
	cp -R "$1" "$tree"
	rm -rf "$tree/.git"
	git -C "$tree" init -q -b series
	commit "rdma-core $(basename "$1")"
}

commit() {
	git -C "$tree" add -A
	# The author is whoever sends it.
	git -C "$tree" -c user.name="$(author name)" -c user.email="$(author email)" \
		commit -q -s -m "$1"
}

author() {
	git -C "$WEFT_TOP" config "user.$1" || echo "weft"
}

# Upstream appends a number of its own to the enum; the private one stays valid beside it.
headers() {
	cp "$WEFT_TOP/kernel/uapi/rdma/weft-abi.h" "$tree/kernel-headers/rdma/"
	sed -i '/^enum rdma_driver_id {/,/^};/ s/^};/\tRDMA_DRIVER_WEFT,\n};/' \
		"$tree/kernel-headers/rdma/ib_user_ioctl_verbs.h"
	commit "Update kernel headers

To the commit that adds weft, $about: its ABI and its driver id."
}

# Only for older releases, so not for this series.
drop_compat() {
	rm "$tree/providers/weft/compat.h"
	sed -i '/^#include "compat.h"$/d' "$tree"/providers/weft/*.c
	sed -i 's/\*weft_qp_comp_mask(&qp->vqp)/qp->vqp.comp_mask/' "$tree/providers/weft/wr.c"
	sed -i 's/^\tVERBS_DRIVER_ID(WEFT_DRIVER_ID),$/\tVERBS_DRIVER_ID(RDMA_DRIVER_WEFT),\n&/' \
		"$tree/providers/weft/main.c"
	grep -q RDMA_DRIVER_WEFT "$tree/providers/weft/main.c" || die "main.c has no match table"
}

provider() {
	mkdir "$tree/providers/weft"
	cp "$WEFT_TOP"/providers/weft/* "$tree/providers/weft/"
	drop_compat
	"$WEFT_TOP/rdma-core-patch/apply.sh" "$tree"
	commit "weft: Add the provider of $about

Rings are shared with the kernel: polling needs no system call, and posting
none while the kernel is at work. The doorbell is a method of the driver on
the ioctl interface, since write() fails for a daemon that has dropped its
privileges."
}

packaging() {
	"$WEFT_TOP/rdma-core-patch/apply.sh" --all "$tree"
	commit "weft: Add to documentation and packaging"
}

# The lab's suite pyverbs runs it, too.
tests() {
	cp "$WEFT_TOP"/rdma-core-patch/tests/test_weft.py "$tree/tests/"
	sed -i 's/^  utils\.py$/  test_weft.py\n&/' "$tree/tests/CMakeLists.txt"
	grep -qx '  test_weft.py' "$tree/tests/CMakeLists.txt" || die "tests/CMakeLists.txt does not name test_weft.py"
	commit "tests: Add tests of weft

Resizing of a shared receive queue by the driver's own method, extended queue
pairs with the operations of RFC 7306, and windows. Most other tests connect queue
pairs without rdma_cm, which iWARP does not have."
}

verify() {
	local pabi
	pabi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)")/\1/p' "$tree/CMakeLists.txt")
	logged "$out/configure.log" cmake -GNinja -S "$tree" -B "$out/build" -DNO_PYVERBS=1 \
		-DNO_MAN_PAGES=1
	logged "$out/build.log" ninja -C "$out/build" "lib/libweft-rdmav$pabi.so"
}

source=$("$WEFT_TOP/scripts/fetch-rdma-core.sh" newest)
start "$source"
headers
provider
packaging
tests
verify
git -C "$tree" format-patch -q --cover-letter --subject-prefix='PATCH rdma-core' \
	-o "$out" HEAD~4
cover="This adds the user side of weft, a software RNIC that speaks iWARP (RFC 5040, 5041,
5044) over the kernel's TCP. The kernel driver is posted separately; the first
patch brings in its ABI header."
COVER=$cover SUBJECT="weft: $about" perl -pi -e \
	's/\*\*\* SUBJECT HERE \*\*\*/$ENV{SUBJECT}/; s/\*\*\* BLURB HERE \*\*\*/$ENV{COVER}/' \
	"$out"/0000-cover-letter.patch
rm -rf "$tree" "$out/build"
say "against rdma-core $(basename "$source"):"
ls "$out"/*.patch
