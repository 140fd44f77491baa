#!/usr/bin/env bash
# make demo: two virtual machines with Debian's stock kernel, a weft device on each, and the
# usual RDMA programs between them.
# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
. "$(dirname "$0")/../scripts/lib.sh"

start=$SECONDS
rc=0
DRIVERS=weft "$WEFT_TOP/tests/lab/run.sh" vm -x "$WEFT_TOP/tests/lab/demo.sh" || rc=$?
accel=tcg
[ ! -w /dev/kvm ] || accel=$(cat "$WEFT_CACHE/accel-$(uname -r)")
echo
[ "$accel" = kvm ] || echo "The machines are emulated (no usable KVM here): the figures show that it works, not how fast."
if [ $rc = 0 ]; then
	echo "weft works: RDMA programs ran unchanged between two machines ($((SECONDS - start)) s)."
else
	echo "weft does NOT work here; what was said is in build/lab/vm.demo.sh/."
fi
exit $rc
