#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# weft-hwtest against the self-peer in the RNIC's place, with the manners of hardware.
#   hwtest.sh BIN     TAP on stdout
set -u
bin=$(realpath "${1:?folder of the programs}")
hwtest=$(realpath "$(dirname "$0")/../../../scripts/weft-hwtest")
tmp=$(mktemp -d)
peer=
trap 'kill $peer 2>/dev/null; rm -rf "$tmp"' EXIT
n=0 bad=0
cd "$tmp" || exit

verdict() { # verdict RC NAME
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else
		bad=1
		echo "not ok $n - $2"
		tail -n 8 "$tmp/out" | sed 's/^/# /'
	fi
}

# exits CODE TEXT NAME ARG...: exit status and a text in the output
exits() {
	local want=$1 text=$2 name=$3 rc=0
	shift 3
	timeout 600 "$hwtest" "$@" >"$tmp/out" 2>&1 </dev/null || rc=$?
	[ $rc = "$want" ] && grep -qE -- "$text" "$tmp/out"
	verdict $? "$name"
}

unpack() {
	rm -rf report
	tar -xf weft-hwtest.tar.xz
}

# The RNIC's machine: its names, and a program behind the RNIC that tells addresses.
mkdir machine
cat >on <<END
#!/bin/bash
exec env PATH="$tmp/machine:\$PATH" bash -c "\$*"
END
cat >machine/uname <<'END'
#!/bin/sh
[ "$1" = -n ] && echo Sekret-Box || echo Linux 6.1 x86_64
END
printf '#!/bin/sh\necho sekret-box.lab.example\n' >machine/hostname
cat >machine/id <<'END'
#!/bin/sh
[ "$1" = -un ] && echo evelyn || echo 1000
END
cat >machine/ip <<'END'
#!/bin/sh
echo '2: eth0    inet 198.51.100.7/24 scope global eth0'
echo '2: eth0    inet6 2001:db8::beef/64 scope global'
END
cat >machine/talks <<END
#!/bin/sh
echo "evelyn on SEKRET-BOX.lab.example (sekret-box) at 198.51.100.7, 192.0.2.1:7471 and [2001:db8::beef]:7471"
echo "hwaddr 00:07:43:aa:bb:cc guid 0007:43ff:feaa:bbcc gid fe80::207:43ff:feaa:bbcc mac 00-07-43-AA-BB-CC"
exec "$bin/weftspec-self-peer" --startup 6000 "\$@"
END
chmod +x on machine/*
there="--on $tmp/on --path $bin --here 127.0.0.1 --port 0"

exits 2 'weft-hwtest \[OPTION' no-address
exits 2 '--on says how' no-way-to-the-machine 127.0.0.1
exits 2 'no option --nope' unknown-option --nope 1 127.0.0.1
exits 2 'needs a value' option-without-value 127.0.0.1 --on
exits 2 'no profile' unknown-profile --on "$tmp/on" --profile nope 127.0.0.1
exits 2 'starts nothing there' a-machine-that-does-not-answer --on false --here 127.0.0.1 127.0.0.1
exits 0 '--windows' help --help

# What the kernel's users need, one by one. with_programs NAME=FILE...: there are these, and what every machine has.
printf '#!/bin/sh\nexit 1\n' >no-module
printf '#!/bin/sh\necho 0\n' >root
printf '#!/bin/sh\necho 1000\n' >user
printf '#!/bin/sh\necho "link own0/1 state ACTIVE physical_state LINK_UP netdev lo"\n' >held
printf '#!/bin/sh\ntrue\n' >there
chmod +x no-module root user held there
with_programs() {
	local one
	rm -rf tools
	mkdir tools
	for one in bash env sed grep awk find sort realpath dirname ip timeout cut rm mktemp mkdir cat; do
		ln -s "$(PATH=$PATH:/usr/sbin:/sbin command -v $one)" tools/
	done
	for one; do cp "${one#*=}" "tools/${one%=*}"; done
}
refuses() { # refuses TEXT NAME OPTION...
	local rc=0
	PATH=$tmp/tools "$BASH" "$hwtest" --on "$tmp/on" "${@:3}" 127.0.0.1 >"$tmp/out" 2>&1 </dev/null || rc=$?
	[ $rc = 2 ] && grep -qE -- "$1" "$tmp/out"
	verdict $? "$2"
}
with_programs id=user
refuses '--nvme, --nfs and --siw need root' storage-needs-root --nvme nqn.2026-01.x:y=/dev/null
refuses '--siw need root' and-siw-does --siw
with_programs id=root
refuses 'rdma is missing here' no-rdma-is-reported --siw
with_programs id=root rdma=there modprobe=no-module
refuses 'mount.nfs is missing here' no-mount.nfs-is-reported --nfs /=/export
refuses 'no module (weft|nvme_rdma)' no-module-is-reported --nvme nqn.2026-01.x:y=/dev/null
with_programs id=root rdma=held modprobe=there mount.nfs=there
refuses 'lo has an RDMA device, own0: delete it first' a-device-that-is-there-is-reported --nfs /=/export
refuses '--nvme NQN=FILE' nvme-without-its-file --nvme nqn.2026-01.x:y
refuses '--nfs EXPORT=FOLDER' nfs-without-its-folder --nfs export

# The NFS step with programs that stand for the kernel: the mount is the folder itself, or a damaged copy of it.
mkdir kernel export
cp root kernel/id
cp there kernel/modprobe
printf '#!/bin/sh\necho "$*" >>%q\n' "$tmp/links" >kernel/rdma
# shellcheck disable=SC2016 # for the shell of the program
printf '#!/bin/sh\nrm -rf "$1"\n' >kernel/umount
# shellcheck disable=SC2016 # for the shell of the program
printf '#!/bin/sh\nrmdir "$2" && ln -s %q "$2"\n' "$tmp/export" >kernel/mount.nfs
chmod +x kernel/*
stored() { # stored CODE TEXT NAME
	: >links
	PATH=$tmp/kernel:$PATH exits "$1" "$2" "$3" --on "$tmp/on" --here 127.0.0.1 --steps nfs,nfs-siw --siw \
		--nfs "/=$tmp/export" 127.0.0.1
}
stored 0 '^nfs-siw +pass' files-are-compared-both-ways
[ -z "$(ls export)" ] && [ "$(grep -c 'link del hwtest0' links)" = 2 ] &&
	[ "$(grep -oE 'type [a-z]+' links | paste -sd ' ')" = 'type weft type siw' ]
verdict $? and-no-file-and-no-device-is-left
# shellcheck disable=SC2016 # for the shell of the program
printf '#!/bin/sh\ncp -R %q/. "$2" && for f in "$2"/*; do printf x >>"$f"; done\n' "$tmp/export" >kernel/mount.nfs
stored 1 '^nfs +fail +nfs read: what is read is not what was written' other-octets-are-reported
printf '#!/bin/sh\nexit 32\n' >kernel/mount.nfs
stored 1 '^nfs +fail +nfs: no mount' no-mount-is-reported

for manner in cxgb4 irdma; do
	# shellcheck disable=SC2086 # words
	exits 0 "^initiator +pass .*as $manner says" "$manner-does-as-its-profile-says" $there --profile $manner \
		--reflector "talks --manner $manner" --steps responder,initiator --rows MPA-2,ENH- 127.0.0.1
done
# shellcheck disable=SC2086
exits 1 '^responder +deviates' deviations-are-reported $there --reflector 'talks --fault rsvd' \
	--steps responder,initiator --rows DDP-04,DDP-05 127.0.0.1
unpack
grep -q 'DDP Rsvd=1' report/responder.log
verdict $? and-stand-in-the-report
grep -q '^<name> on <name> (<name>) at <name>, <address>:7471 and .<name>.:7471' report/responder.log
verdict $? what-the-program-says-is-there-without-names
! grep -riE 'sekret|evelyn|example|198\.51|192\.0\.2|2001:db8|beef|07.43.[af][af]|127\.0' report >"$tmp/out"
verdict $? no-name-and-no-address-is-in-the-report
! tar -tvf weft-hwtest.tar.xz --numeric-owner | grep -v ' 0/0 ' >"$tmp/out"
verdict $? the-report-has-no-owner

# shellcheck disable=SC2086
exits 1 'setup +fail +no RNIC there has' a-machine-without-an-rnic-is-reported $there --steps setup 127.0.0.1
# shellcheck disable=SC2086
exits 1 'extra +fail' a-step-that-fails-is-reported $there --steps none --also extra='echo at 10.1.2.3; false' 127.0.0.1
unpack
grep -qx 'at <address>' report/extra.log
verdict $? its-words-are-there
# shellcheck disable=SC2016,SC2086 # for the shell of the step
exits 2 'names or addresses' nothing-is-packed-if-an-address-is-left $there --steps none \
	--also extra='touch "$WEFT_HWTEST_REPORT/from-10.1.2.3"' --output left.tar.xz 127.0.0.1
[ ! -e left.tar.xz ]
verdict $? and-there-is-no-report

"$bin/weftspec-self-peer" --manner mpa1 --startup 6000 --listen 127.0.0.1:0 >peer.log 2>&1 &
peer=$!
until grep -q ready peer.log; do sleep 0.05; done
exits 0 '^responder +pass' windows-is-judged-as-responder --windows --port "$(sed -n 's/ready //p' peer.log)" \
	--rows MPA-2,DDP-1 --here 127.0.0.1 127.0.0.1
grep -q '^initiator *skipped *needs --on' "$tmp/out"
verdict $? what-needs-its-machine-is-skipped

echo "1..$n"
exit $bad
