# shellcheck shell=bash
# A machine whose "driver" is rootless: none is loaded, and its programs run under weft-run as an
# unprivileged user. They are found in $ROOTLESS first, a folder in every machine's PATH that exists
# as long as such a pair(). See lib.sh.

ROOTLESS=/run/rootless

is_rootless() { [ -d $ROOTLESS ]; }

# An unprivileged user: 65534 if that user can read the checkout, else root without capabilities.
user_without_rights() {
	local nobody='setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs'
	if $nobody test -r "$WEFT_TOP/build/lib/libweft-rootless.so"; then
		echo "$nobody"
	else
		echo 'setpriv --no-new-privs --inh-caps=-all --bounding-set=-all'
	fi
}

bring_up_rootless() {
	local name
	mkdir -p $ROOTLESS
	# The provider is weft-run's to find.
	cat >$ROOTLESS/begin <<-END
		#!/bin/bash
		PATH=\${PATH#*:}
		unset IBV_DRIVERS
		[ ! -e $ROOTLESS/options ] || . $ROOTLESS/options
		exec $(user_without_rights) env WEFT_TRACE=1 "$WEFT_TOP/build/bin/weft-run" "\${0##*/}" "\$@"
	END
	chmod 755 $ROOTLESS/begin
	for name in rping ib_{send,write,read}_bw weft-verify; do ln -sf begin "$ROOTLESS/$name"; done
}

# Programs that began so end. One grep looks at all: an emulated machine has a hundred threads of the
# kernel's, and takes half a minute to start as many greps.
kill_rootless() {
	local maps
	is_rootless || return 0
	for maps in $(grep -ls libweft-rootless /proc/[0-9]*/maps); do
		maps=${maps#/proc/}
		kill -9 "${maps%/maps}" 2>/dev/null
	done
}

# From now on programs begin as ever.
clean_rootless() { rm -rf $ROOTLESS; }

# option DEVICE NAME VALUE: what a program reads when it begins.
option_rootless() { echo "export WEFT_${2^^}='$3'" >>$ROOTLESS/options; }
