#!/usr/bin/env bash
# Runs blktests on devices of weft, in user-mode Linux: the groups nvme (rdma), srp and rnbd.
#   BLKTESTS=DIR tests/lab/blktests.sh
# DIR is a checkout of blktests, which is copied and not changed.
# Environment: PAIRS  siw:siw for siw's device instead
#              LAB    7.2-users-debug for a kernel with KASAN and lockdep (7.2-users)
#              TESTS  an extended regular expression for names, as nvme-010
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

[ -d "${BLKTESTS-}" ] || die "BLKTESTS is not the folder of a checkout of blktests"
copy=$WEFT_BUILD/blktests

prepare() {
	rm -rf "$copy"
	mkdir -p "$copy"
	cp -r "$BLKTESTS/check" "$BLKTESTS/common" "$BLKTESTS/src" "$BLKTESTS/tests" "$copy/"
	"$WEFT_TOP/scripts/blktests-use-weft.sh" "$copy"
	# The programs of these groups that do not want an NVMe disk.
	make -C "$copy/src" discontiguous-io nvme-delay-ioctl
}

logged "$WEFT_BUILD/blktests.log" prepare
USERS_ROOT=$("$WEFT_TOP/scripts/fetch-release-root.sh" trixie blktests)
export USERS_ROOT BLKTESTS=$copy PAIRS=${PAIRS:-weft:weft} QUIET_LIMIT=${QUIET_LIMIT:-1000}
# nvme/012 takes a quarter of an hour there.
[ "${LAB-}" != 7.2-users-debug ] || export TEST_TIMEOUT=2400 QUIET_LIMIT=2500
# siw is the kernel's own.
drivers=weft
[ "$PAIRS" = weft:weft ] || drivers=
DRIVERS=$drivers exec "$WEFT_TOP/tests/lab/run.sh" "${LAB:-7.2-users}" blktests
