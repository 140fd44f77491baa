# shellcheck shell=bash
# The groups nvme (over rdma), srp and rnbd of blktests, the tests of Linux's block layer: target and host on
# machine a, with one device. BLKTESTS is a checkout that knows USE_WEFT (tests/lab/blktests.sh makes it),
# USERS_ROOT has the programs. PAIRS siw:siw runs them on siw's device.

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=900
WRITTEN='tmp mnt etc var usr/lib/modules'

tests() {
	local file name
	[ -n "${BLKTESTS-}" ] || return 0
	for file in "$BLKTESTS"/tests/{nvme,srp,rnbd}/[0-9][0-9][0-9]; do
		name=${file#"$BLKTESTS/tests/"}
		left_out | grep -q "^$name " || echo "${name/\//-} blktest $name"
	done
}

# NAME REASON: what is not run.
left_out() {
	cat <<-END
		nvme/002 is of the loop transport alone
		nvme/016 is of the loop transport alone
		nvme/017 is of the loop transport alone
		nvme/029 wants huge pages, which user mode has not
		nvme/032 wants an NVMe disk
		nvme/033 wants an NVMe disk
		nvme/034 wants an NVMe disk
		nvme/035 wants an NVMe disk
		nvme/036 wants an NVMe disk
		nvme/037 wants an NVMe disk
		nvme/039 wants an NVMe disk
		nvme/046 wants an NVMe disk
		nvme/049 wants an NVMe disk
		nvme/050 wants an NVMe disk
		nvme/052 is of the loop transport alone
		nvme/053 wants an NVMe disk
		nvme/055 is of the loop transport alone
		nvme/056 is of TCP alone
		nvme/059 wants an NVMe disk
		nvme/062 is of TCP alone
		nvme/063 is of TCP alone
		nvme/064 wants an NVMe disk
		nvme/066 wants an NVMe disk
		nvme/067 wants an NVMe disk
		srp/003 wants a kernel older than 4.20
		srp/004 wants a kernel older than 4.20
		$([[ ${KERNEL-} == *debug ]] || echo "nvme/069 wants a kernel with KASAN")
	END
}

DIR=/run/blktests

# Once a machine: blktests' own folder, and modules where modprobe looks for them.
set_up() {
	local modules=$USERS_ROOT/usr/lib/modules
	[ ! -e $DIR ] || return 0
	mount -t configfs none /sys/kernel/config || fail "no configfs"
	# What bash substitutes a process by.
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	enter_users_root
	cp -r "$MODULES/lib/modules/." "$modules" || fail "no modules"
	# shellcheck disable=SC2154 # run.sh's
	[[ $PAIRS != *weft* ]] || cp "$KO_weft" "$modules/$(uname -r)/kernel/drivers/infiniband/sw/" || fail "no weft"
	there depmod || fail "no depmod"
	# Some tests count on it.
	loads loop
	cp -r "$BLKTESTS" $DIR || fail "no blktests"
}

# blktest GROUP/NUMBER: in each form that blktests has of it. All of them pass, or none is run.
blktest() {
	local weft='' size=64m state
	set_up
	# The smallest that its XFS wants.
	[ "$1" != nvme/012 ] || size=350m
	rm -rf $DIR/results
	[[ $PAIRS != *weft* ]] || weft=1
	# What ends with the test: clean_users.
	there /usr/lib/systemd/systemd-udevd --daemon || fail "no udev"
	there env -i --chdir=$DIR PATH=/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8 SYSTEMD_IGNORE_CHROOT=1 \
		USE_WEFT=$weft NVMET_TRTYPES=rdma NVME_IMG_SIZE=$size ./check "$1" >"$TEST_DIR/check.log" 2>&1 </dev/null
	cp -r $DIR/results "$TEST_DIR/" 2>/dev/null
	state=$(cat $DIR/results/*/"$1" 2>/dev/null | sed -n 's/^status\t//p' | sort -u)
	[ -n "$state" ] || ! grep -q '\[not run\]' "$TEST_DIR/check.log" || state='not run'
	case $state in
	pass) ;;
	'not run') skip "$(excerpt 'not run')" ;;
	*fail*) fail "$(excerpt failed)" ;;
	*) fail "$state, as blktests says: $(tail -n 4 "$TEST_DIR/check.log")" ;;
	esac
}

# What blktests says of it, from its first line with these words on.
excerpt() { sed -n "/\[$1\]/,\$p" "$TEST_DIR/check.log" | sed 's/  */ /g' | head -n 12; }
