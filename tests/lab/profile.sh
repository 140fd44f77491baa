#!/bin/bash
# What tests/bench/profile.sh looks at, inside the lab: a program of perftest over lo, or weft-rate -K.
#   profile.sh DRIVER[+crc] MTU PROGRAM [ARG...]      profile.sh tcp MTU weft-rate -K [ARG...]
# shellcheck disable=SC2154 # KO_weft_kmod is in the environment
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"
driver=${1%+crc} here=10.7.9.1
crc=0
[ "$driver" = "$1" ] || crc=1
# siw on lo needs a link-layer address for its GID, and does not resolve 127.0.0.1.
ip link set lo address 02:77:65:66:74:01 mtu "$2"
ip addr add $here/32 dev lo
shift 2
if [ "$driver" = tcp ]; then
	insmod "${KO_weft_kmod%/*}/weft_kping.ko" || exit
	serving=
	"$@" &
else
	load "$driver" && rdma link add "${driver}0" type "$driver" netdev lo &&
		wait_for 5 port_is_active "${driver}0" || exit
	[ "$driver" != weft ] || option weft0 crc $crc
	"$@" -R -F >/run/server.log 2>&1 &
	serving=$!
	pause 0.5
	"$@" -R -F $here &
fi
calling=$!
# Connected, and at it.
pause 1.5
cat /proc/kallsyms >$SHARE/kallsyms.new
mv $SHARE/kallsyms.new $SHARE/kallsyms
wait $calling && { [ -z "$serving" ] || wait "$serving"; }
