#!/usr/bin/env bash
# scripts/system/weft-link with an rdma of its own: in a mount namespace, with a /sys of this test. TAP.
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

if [ "${1-}" != --inside ]; then
	map=()
	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	exec unshare "${map[@]}" --mount bash "$0" --inside
fi

# --- the machine: what rdma and modprobe do is in $m, devices stand in /sys/class/infiniband ---

m=$(mktemp -d)
trap 'rm -rf "$m"' EXIT
mount -t tmpfs none /sys
mount -t tmpfs none /run
mkdir -p "$m/bin" "$m/etc" "$m/work" "$m/weft" /sys/class/infiniband
mount -t overlay -o "lowerdir=/etc,upperdir=$m/etc,workdir=$m/work" none /etc 2>/dev/null ||
	mount -t tmpfs none /etc # where none can be laid over
mkdir -p /etc/weft
export PATH=$m/bin:$PATH M=$m

# An rdma that knows `link add`, `link del` and `dev show`, as iproute2's does: $m/devices has INDEX NAME NETDEV.
cat >"$m/bin/rdma" <<'RDMA'
#!/bin/sh
echo "rdma $*" >>"$M/calls"
case "$1 $2" in
'link add')
	[ "$4 $5 $6" = 'type weft netdev' ] || exit 2
	[ -e "$M/netdev-$7" ] || { echo 'error: No such device' >&2; exit 255; }
	! grep -q " $7$" "$M/devices" || { echo 'error: File exists' >&2; exit 255; }
	read -r last <"$M/last"
	echo $((last + 1)) >"$M/last"
	echo "$((last + 1)) $3 $7" >>"$M/devices"
	mkdir -p "/sys/class/infiniband/$3/weft"
	echo 1 >"/sys/class/infiniband/$3/weft/crc"
	echo all >"/sys/class/infiniband/$3/weft/rtr"
	mkdir "/sys/class/infiniband/$3/weft/mpa_revision" # nothing can be written there
	[ ! -e "$M/stopped" ] || kill -TERM 0
	;;
'link del')
	[ ! -e "$M/vanishes" ] || sed -i "/ $3 /d" "$M/devices"
	[ ! -e "$M/stays" ] || exit 255
	grep -q " $3 " "$M/devices" || exit 255
	sed -i "/ $3 /d" "$M/devices"
	rm -r "/sys/class/infiniband/$3"
	;;
'dev show')
	awk -v want="${3-}" 'want == "" || $2 == want {
		printf "%s: %s: node_type rnic fw 0.0.0 node_guid 0 sys_image_guid 0\n", $1, $2; n++ }
		END { exit want != "" && !n }' "$M/devices"
	;;
*) exit 2 ;;
esac
RDMA
# shellcheck disable=SC2016 # the script's own
printf '#!/bin/sh\necho "modprobe $*" >>"$M/calls"\n[ ! -e "$M/no-module" ]\n' >"$m/bin/modprobe"
chmod 755 "$m/bin/rdma" "$m/bin/modprobe"

weft_link() { sh "$WEFT_TOP/scripts/system/weft-link" "$@"; }
names() { awk '{print $2}' "$m/devices"; }
option() { cat "/sys/class/infiniband/$1/weft/$2"; }
# rename OLD NEW: as `rdma dev set OLD name NEW`
rename() {
	sed -i "s/ $1 / $2 /" "$m/devices"
	mv "/sys/class/infiniband/$1" "/sys/class/infiniband/$2"
}
is() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'" && false; }; }
# says_no TEXT ARG...: it fails, and its message has TEXT.
says_no() {
	local said text=$1
	shift
	said=$(weft_link "$@" 2>&1) && echo 'it did not fail' && false
	grep -F -e "$text" <<<"$said" || { echo "it said: $said" && false; }
}

n=0
check() {
	local rc
	n=$((n + 1))
	rm -rf "$m"/{devices,calls,vanishes,stays,stopped,no-module,netdev-*} /run/weft /etc/weft/* /sys/class/infiniband/*
	: >"$m/devices"
	: >"$m/calls"
	echo 0 >"$m/last"
	: >"$m/netdev-eth0"
	set +e
	(
		set -e
		"$1"
	) >"$m/said" 2>&1
	rc=$?
	set -e
	if [ $rc = 0 ]; then
		echo "ok $n - ${1//_/-}"
	else
		sed 's/^/# /' "$m/said"
		echo "not ok $n - ${1//_/-}"
	fi
}

helpers=$(declare -F)

# --- tests ---

add_loads_the_driver_and_names_the_device_for_its_interface() {
	weft_link add eth0
	is "$(head -n 1 "$m/calls")" 'modprobe -a weft ib_uverbs rdma_ucm'
	is "$(names)" weft_eth0
}

# As systemd does it: all that has been started gets the signal.
a_stop_while_it_starts_leaves_nothing_and_is_no_failure() {
	: >"$m/stopped"
	setsid -w sh "$WEFT_TOP/scripts/system/weft-link" add eth0
	is "$(grep -c 'rdma link add' "$m/calls")" 1
	is "$(names)" ''
	is "$(ls /run/weft)" ''
}

del_removes_what_add_made() {
	weft_link add eth0
	weft_link del eth0
	is "$(names)" ''
	is "$(ls /run/weft)" ''
}

options_are_applied() {
	printf '# mine\n\n crc=0 \nrtr = send  read ; not write\nname\t=\trdma0\n' >/etc/weft/eth0.conf
	weft_link add eth0
	is "$(names)" rdma0
	is "$(option rdma0 crc)" 0
	is "$(option rdma0 rtr)" 'send  read'
}

a_file_is_for_its_interface_alone() {
	: >"$m/netdev-eth1"
	echo crc=0 >/etc/weft/eth1.conf
	weft_link add eth0
	is "$(option weft_eth0 crc)" 1
}

an_unknown_option_fails_and_leaves_no_device() {
	echo crcs=0 >/etc/weft/eth0.conf
	says_no '/etc/weft/eth0.conf: crcs is no option' add eth0
	is "$(names)" ''
}

an_option_is_no_path() {
	: >/sys/class/infiniband/elsewhere
	echo ../../elsewhere=0 >/etc/weft/eth0.conf
	says_no 'is no option' add eth0
	is "$(cat /sys/class/infiniband/elsewhere)" ''
}

a_value_that_is_refused_fails_and_leaves_no_device() {
	echo mpa_revision=9 >/etc/weft/eth0.conf
	says_no "mpa_revision cannot be '9'" add eth0
	is "$(names)" ''
	is "$(ls /run/weft)" ''
}

without_the_interface_add_fails() {
	says_no 'No such device' add eth7
	is "$(ls /run/weft 2>/dev/null)" ''
}

without_the_driver_add_fails() {
	: >"$m/no-module"
	says_no '' add eth0
	is "$(grep -c 'rdma link add' "$m/calls")" 0
}

a_device_made_by_hand_is_not_taken_over() {
	rdma link add mine type weft netdev eth0
	says_no 'File exists' add eth0
	weft_link del eth0
	is "$(names)" mine
}

a_renamed_device_is_removed() {
	weft_link add eth0
	rename weft_eth0 rocep0s3
	weft_link del eth0
	is "$(names)" ''
}

another_device_of_the_old_name_is_not_removed() {
	weft_link add eth0
	rename weft_eth0 moved
	: >"$m/netdev-eth1"
	rdma link add weft_eth0 type weft netdev eth1
	weft_link del eth0
	is "$(names)" weft_eth0
}

# The interface took the device with it.
a_device_that_has_gone_is_no_error() {
	weft_link add eth0
	: >"$m/devices"
	weft_link del eth0
	is "$(ls /run/weft)" ''
}

a_device_that_goes_at_this_moment_is_no_error() {
	weft_link add eth0
	: >"$m/vanishes"
	weft_link del eth0
}

a_device_that_stays_is_an_error() {
	weft_link add eth0
	: >"$m/stays"
	says_no 'weft_eth0 does not go' del eth0
}

del_of_nothing_is_no_error() { weft_link del eth0; }

names_that_are_no_interface_are_refused() {
	says_no 'no name of a network interface' add ../eth0
	says_no 'no name of a network interface' del ..
	says_no 'no name of a network interface' add ''
	says_no usage add
	says_no usage remove eth0
	is "$(wc -l <"$m/calls")" 0
}

for test in $(comm -13 <(echo "$helpers") <(declare -F) | awk '{print $3}'); do
	check "$test"
done
echo "1..$n"
