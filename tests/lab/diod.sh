#!/bin/bash
# diod, a 9P server in user space that takes connections of rdma_cm, on the machine it runs on:
#   diod.sh up [rootless] | down
# DIOD is the program. It exports /run/export, a folder in memory. rootless runs it under weft-run as an
# unprivileged user; it then serves only that user, whose name is in $SHARE/diod.user.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

export=/run/export
log=$SHARE/diod.server.log

# diod always serves TCP, too: at a port without clients.
options=(-f -n -e "$export" -l 127.0.0.1:5641 -L "$log" -c /dev/null)

up() {
	mkdir -p $export
	mount -t tmpfs -o size=400m,mode=777 export $export || fail "no folder to export"
	: >"$log"
	chmod 666 "$log"
	if [ "${1-}" = rootless ]; then
		$(user_without_rights) id -un >"$SHARE/diod.user"
		$(user_without_rights) env -u IBV_DRIVERS "$WEFT_TOP/build/bin/weft-run" "$DIOD" "${options[@]}" \
			>"$SHARE/diod.out" 2>&1 </dev/null &
	else
		id -un >"$SHARE/diod.user"
		"$DIOD" "${options[@]}" >"$SHARE/diod.out" 2>&1 </dev/null &
	fi
	echo $! >/run/diod.pid
	wait_for 30 grep -q 'Listening on rdma' "$log" || fail "diod does not listen: $(tail -n 2 "$log" "$SHARE/diod.out")"
}

down() {
	local pid
	read -r pid </run/diod.pid
	kill -9 "$pid"
	wait_for 20 is_over "$pid" || fail "diod stays"
	wait_for 5 umount $export || fail "the exported folder stays in use"
}

# How far it came, for a run that hangs.
exec 2>>"$SHARE/diod.log"
set -x
"$@"
