# shellcheck shell=bash
# iSER, the kernel's target (LIO) on machine b and open-iscsi of USERS_ROOT on a. CRC is on.
# Environment: USERS_ROOT  see lib/users.sh
#              CHURN       full: 20 logins and logouts under I/O, else 3

# shellcheck source-path=SCRIPTDIR source=../lib/users.sh
. "${BASH_SOURCE[0]%/*}/../lib/users.sh"
PAIRS=${PAIRS:-weft:weft}

tests() {
	with_siw 'weft:siw siw:weft' file-tree-on-ext4-over-iser disk_tree ext4
	[[ $PAIRS == *weft:weft* ]] || return 0
	cat <<-END
		file-tree-on-ext4-over-iser disk_tree ext4
		file-tree-on-ext3-over-iser disk_tree ext3
		login-and-logout-under-io-$(often 20 3)-times disk_under_io $(often 20 3)
		link-del-under-iser link_del
	END
	# In user mode the target's device is the client's, too, and its portal does not come again.
	[[ ${KERNEL-} != stock ]] || echo "link-del-under-iser-and-it-comes-again link_del again"
}

IQN=iqn.2026-01.weft:test

target() { on_b bash "$WEFT_TOP/tests/lab/lio.sh" "$@" || fail "the target: $*"; }

# setup [PAIR]
setup() {
	pair=${1:-weft:weft}
	# Both know the first namespace alone.
	addr=$(first_namespace)
	pair "$pair"
	target iser "$addr"
	enter_users_root
	loads ib_iser sd_mod
	mkdir -p /run/lock
	echo InitiatorName=iqn.2026-01.weft:a >"$USERS_ROOT/etc/iscsi/initiatorname.iscsi"
	there iscsid -f >"$TEST_DIR/iscsid.log" 2>&1 </dev/null &
	iscsid=$!
	wait_for 20 grep -q @ISCSIADM_ABSTRACT_NAMESPACE /proc/net/unix || fail "no iscsid"
	admin -m node -T $IQN -p "$addr:3260,1" -I iser -o new || fail "no node"
	# A connection that is lost has half a minute to come again.
	admin -m node -T $IQN -o update -n node.session.timeo.replacement_timeout -v 30 || fail "no time-out"
}

admin() { there iscsiadm "$@" >>"$TEST_DIR/iscsiadm.log" 2>&1; }

# $disk: the only disk of SCSI here.
found_disk() {
	local dir
	for dir in /sys/block/sd*; do
		[ -b "/dev/${dir##*/}" ] && disk=/dev/${dir##*/} && return
	done
	return 1
}

plug_in() {
	within 40 admin -m node -T $IQN --login || fail "no login: $(tail -n 2 "$TEST_DIR/iscsiadm.log")"
	disk_comes 20
}

plug_out() {
	[ -n "$(ls /sys/class/iscsi_session)" ] || return 0
	within 40 admin -m node -T $IQN --logout || fail "no logout: $(tail -n 2 "$TEST_DIR/iscsiadm.log")"
}

take_down() {
	plug_out
	kill "$iscsid"
	wait_for 10 is_over "$iscsid" || fail "iscsid does not end"
	unloads ib_iser
	target down
	devices_go
}

# link_del [again]: the device goes while programs read and write. If it comes again, they wait, and have
# lost nothing. Else the session can be ended, and nothing hangs.
link_del() {
	local worker
	setup
	plug_in
	start_io
	soon rdma link del "$DEV_A"
	if [ -n "${1-}" ]; then
		at a bring_up weft "$DEV_A" 1500 || fail "the device does not come again"
		write_octets
		compare_octets
		rm /run/octets
		! is_over "$worker" || fail "the programs met an error"
	fi
	take_down
	end_io
}
