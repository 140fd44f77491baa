#!/bin/bash
# The kernel's SMB server on the machine it runs on, with the share "share", /run/share, in memory:
#   ksmbd.sh up | down
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/users.sh
. "$(dirname "$0")/lib/users.sh"

control=/sys/class/ksmbd-control

up() {
	enter_users_root
	mkdir -p /run/share
	mount -t tmpfs -o size=400m share /run/share || fail "no folder to share"
	loads ksmbd
	cat >"$USERS_ROOT/etc/ksmbd/ksmbd.conf" <<-END
		[global]
		netbios name = WEFT
		[share]
		path = /run/share
		read only = no
	END
	rm -f "$USERS_ROOT/etc/ksmbd/ksmbdpwd.db"
	there ksmbd.adduser -a -p secret root || fail "no user"
	daemon "$SHARE/ksmbd.mountd.log" ksmbd.mountd -n
	echo $! >/run/ksmbd.pid
	wait_for 20 listening 5445 || fail "ksmbd does not listen: $(dmesg | tail -n 3)"
}

down() {
	local pid
	read -r pid </run/ksmbd.pid
	echo hard >$control/kill_server
	kill "$pid" && wait_for 10 is_over "$pid"
	unloads ksmbd
	wait_for 5 umount /run/share || fail "the shared folder stays in use"
}

# How far it came, for a run that hangs.
exec 2>>"$SHARE/ksmbd.log"
set -x
"$@"
