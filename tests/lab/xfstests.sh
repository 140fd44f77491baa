#!/usr/bin/env bash
# Runs the group quick of xfstests on file systems that go over weft, in user-mode Linux: NFS 4.2 over RDMA,
# and XFS on a disk of NVMe over RDMA.
#   XFSTESTS=DIR tests/lab/xfstests.sh
# DIR is a folder of xfstests that has been built for Debian 13; nothing in it is changed.
# Environment: PAIRS          siw:siw for siw's devices; tcp:tcp for NFS without RDMA, loop:loop for NVMe without
#                             a network, by which a failure is judged
#              TESTS          an extended regular expression for names of parts, as nfs-generic-000
#              XFSTESTS_ONLY  one for the tests themselves, as generic/00. (all of quick)
#              XFSTESTS_LIMIT seconds that one of them may take (600); it is ended then, and the rest goes on
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

[ -x "${XFSTESTS-}/ltp/fsx" ] && [ -s "$XFSTESTS/tests/generic/group.list" ] ||
	die "XFSTESTS is not the folder of an xfstests that has been built"
XFSTESTS=$(realpath "$XFSTESTS")
USERS_ROOT=$("$WEFT_TOP/scripts/fetch-release-root.sh" trixie xfstests)
# xfstests starts programs, most of the time. Its disks are in memory.
export ONE_CPU=1 MEMORY=6G
export USERS_ROOT XFSTESTS PAIRS=${PAIRS:-weft:weft} QUIET_LIMIT=${QUIET_LIMIT:-2000}
# siw is the kernel's own.
drivers=weft
[ "$PAIRS" = weft:weft ] || drivers=
DRIVERS=$drivers exec "$WEFT_TOP/tests/lab/run.sh" 7.2-users xfstests
