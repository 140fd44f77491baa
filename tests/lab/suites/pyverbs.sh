# shellcheck shell=bash
# rdma-core's own tests, written with pyverbs, unchanged from Debian's python3-pyverbs: a test for each
# of their files. A skipped or failed test must be in argued(), with a reason.
# They connect the first address of the netdev below device/net to itself.

PAIRS=${PAIRS:-weft:weft}

# Those of other vendors' providers, mlx5, efa and cuda: not run at all.
tests() {
	local file
	[[ $PAIRS == *weft:weft* ]] || return 0
	for file in addr atomic cq cq_events cqex device flow fork mr odp parent_domain pd qp qpex \
		rdmacm relaxed_ordering rss_traffic shared_pd tag_matching; do
		echo "rdma-core-test_$file go test_$file"
	done
	# What the series for rdma-core adds to them.
	echo "rdma-core-test_weft go test_weft"
}

# skip|WHAT THE TEST SAYS||REASON
# fail|TEST|WHAT IT ENDS WITH|REASON
# leave|TEST||REASON: not run, since it waits long for what cannot come
# Patterns of bash; a TEST is FILE.CLASS.NAME.
argued() {
	cat <<-'END'
		skip|Create U[CD] QP*||iWARP has connections and no datagrams
		skip|Create QP type [348] *||UC, UD and raw packets: iWARP has connections and no datagrams
		skip|Create Raw Packet QP *||iWARP has connections and no datagrams
		skip|Create AH is not supported||addresses of datagrams
		skip|ODP is unavailable - *||of UD
		skip|Multicast is not supported*||datagrams
		skip|*be *run by root on Ethernet*||raw packets are Ethernet adapters', and need root
		skip|*RAW QP must be done by root*||raw packets are Ethernet adapters', and need root
		skip|*supported over Ethernet*||raw packets
		skip|*WQ *||RSS is for raw packets
		skip|Create XRCD is not supported||XRC is InfiniBand's
		skip|Extended CQ is not supported||tag matching is InfiniBand's, and so are its CQ's flags
		skip|Extended QP is not supported on this device||QPs of UD, InfiniBand's atomic Write
		skip|Allocating dmabuf is not supported by*||needs a GPU
		skip|*uge pages*||needs an administrator to set some aside
		skip|All gid indices populated*||a port has one GID
		skip|Create RC QP with* extended attrs*||asked for with creation flags, or a segmentation header
		skip|ODP is not supported*||the driver pins
		skip|Device * doesn't have net interface||where the device has no netdev
		fail|test_*|*Failed to modify QP state to RTS*|brings RC up without rdma_cm: iWARP cannot
		leave|test_rdmacm.CMTestCase.test_rdmacm_async_traffic||asks for InfiniBand's acknowledgement time-out
		leave|test_rdmacm.CMTestCase.test_rdmacm_async_traffic_external_qp||moves its QP to RTS itself: iWARP cannot
	END
	[ "${KERNEL-}${WEFT_DEVICE-roce}" = rootlessroce ] ||
		echo "leave|test_rdmacm.CMTestCase.test_rdmacm_async_udp_traffic||datagrams"
}

# is_argued KIND FIRST [SECOND]: there is a line of argued() for it. (Some machines have no /dev/fd.)
is_argued() {
	local kind first second
	while IFS='|' read -r kind first second _; do
		# shellcheck disable=SC2053 # patterns
		[[ $kind = "$1" && $2 = $first && ${3-} = $second ]] && return
	done <"$TEST_DIR/argued"
	return 1
}

# The package's files, some of which are packed; documentation may have been left out.
unpack() {
	local dir=/usr/share/doc/rdma-core/tests
	mkdir "$TEST_DIR/tests"
	[ -e $dir/run_tests.py ] || fail "python3-pyverbs came without its tests; see $dir"
	cp $dir/* "$TEST_DIR/tests" && gunzip "$TEST_DIR"/tests/*.gz
	cp "$WEFT_TOP"/rdma-core-patch/tests/*.py "$TEST_DIR/tests"
	argued >"$TEST_DIR/argued"
	chmod -R a+rX "$TEST_DIR"
}

# What they look for where a kernel gives it to netdevs of hardware alone: links to all that is there,
# and device/net.
with_parents() {
	cat <<-'END'
		for dev in /sys/class/infiniband/*; do
			new=$1/${dev##*/} && mkdir -p "$new/device/net"
			ln -s "$(realpath "$dev")"/* "$new" && ln -s /sys/class/net/eth0 "$new/device/net"
		done
		mount --bind "$1" /sys/class/infiniband || exit 77
		[ -e /dev/shm ] || { mkdir /dev/shm && mount -t tmpfs none /dev/shm; }
		shift
		exec "$@"
	END
}

# python ARG...: a program that uses RDMA.
python() {
	local -x PYTHONPATH=$TEST_DIR:$TEST_DIR/tests PYTHONDONTWRITEBYTECODE=1
	if [ "$KERNEL" = rootless ]; then
		# shellcheck disable=SC2086 # a list
		PATH=${PATH#*:} $AS_USER "$WEFT_RUN" /usr/bin/python3 "$@"
	else
		with_parents >"$TEST_DIR/with-parents"
		mkdir -p "$TEST_DIR/tmp"
		TMPDIR=$TEST_DIR/tmp unshare -m bash "$TEST_DIR/with-parents" "$TEST_DIR/class" /usr/bin/python3 "$@"
	fi
}

# names FILE: its tests but for those to be left out.
names() {
	local name
	python "$TEST_DIR/tests/run_tests.py" --list-tests 2>/dev/null | sed -n "s/^tests\.\($1\.\)/\1/p" |
		while read -r name; do is_argued leave "$name" || echo "$name"; done
}

# Prints fail|TEST|LAST LINE and skip|WHY.
outcomes() {
	awk '
		function tell() { if (test) print "fail|" test "|" last; test = "" }
		/^(ERROR|FAIL): / { tell(); test = $3; gsub(/^\(tests\.|\)$/, "", test); next }
		/^=+$/ || /^Ran [0-9]+ test/ { tell() }
		test && /^[^ -]/ && !/^Traceback/ { last = $0 }
		match($0, /\.\.\. skipped ./) { print "skip|" substr($0, RSTART + RLENGTH, length($0) - RSTART - RLENGTH) }
	' "$1"
}

go() {
	local log=$TEST_DIR/python.log kind first second list failed=0 skipped=0
	pair weft:weft
	unpack
	names "$1" >"$TEST_DIR/names"
	mapfile -t list <"$TEST_DIR/names"
	[ ${#list[@]} -gt 0 ] || fail "no test in $1"
	python "$TEST_DIR/tests/run_tests.py" -v --dev "$DEV_A" --port 1 --gid 0 "${list[@]}" >"$log" 2>&1 </dev/null
	grep -qx "Ran ${#list[@]} tests\? in .*" "$log" || fail "not all of ${#list[@]} were run; $(tail -n 1 "$log")"
	outcomes "$log" >"$TEST_DIR/outcomes"
	while IFS='|' read -r kind first second; do
		is_argued "$kind" "$first" "$second" || fail "$kind: $first $second"
		if [ "$kind" = fail ]; then failed=$((failed + 1)); else skipped=$((skipped + 1)); fi
	done <"$TEST_DIR/outcomes"
	echo "$1: $((${#list[@]} - failed - skipped)) passed, $failed failed as they must, $skipped skipped"
}
