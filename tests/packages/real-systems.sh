#!/usr/bin/env bash
# The packages on a Debian 12 and a Debian 13, each in a virtual machine with its own stock kernel and systemd
# (machine a: bookworm, b: trixie): TAP.
#
# Most of the driver is built natively beforehand, since an emulated compiler is slow; once dkms builds it in
# the machine, when a is upgraded.
# What is in single quotes is for a machine's shell:
# shellcheck disable=SC2016
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lab/vm.sh
. "$WEFT_TOP/tests/lab/vm.sh"
need qemu-system-x86_64 busybox cpio

declare -A release=([a]=bookworm [b]=trixie) address=([a]=192.0.2.1 [b]=192.0.2.2) machine=()
run=$WEFT_BUILD/real-systems
socket=

finish() {
	[ ${#machine[@]} = 0 ] || kill "${machine[@]}" 2>/dev/null || true
	[ -z "$socket" ] || rm -rf "$socket"
	rm -f "$run"/[ab]/disk
}
trap finish EXIT

# --- the machines ---

# image SIDE PACKAGE...: its disk, these packages installed already.
image() {
	local side=$1 root
	shift
	mkdir -p "$run/$side/share"
	say "machine $side: a disk with ${release[$side]} and ${*:-nothing of ours}"
	root=$("$WEFT_TOP/scripts/fetch-release-root.sh" "${release[$side]}" system)
	logged "$run/$side/image.log" "$WEFT_TOP/scripts/in-root.sh" "$root" \
		--at "$WEFT_BUILD/deb/${release[$side]}:/debs" --at "$WEFT_TOP/tests/packages:/tests" \
		--at "$run/$side:/out" bash /tests/image.sh "${address[$side]}" "$@"
	# What is installed later, where the machine finds it.
	mkdir -p "$run/$side/share/debs" "$run/$side/share/next"
	cp "$WEFT_BUILD/deb/${release[$side]}"/*.deb "$run/$side/share/debs/"
	cp "$WEFT_BUILD/deb/${release[$side]}-next"/*.deb "$run/$side/share/next/" 2>/dev/null || true
}

# boot SIDE NETDEV
boot() {
	# An emulated CPU that waits for one of the host's is no lockup for two minutes, and no stall of RCU for five.
	local accel=(-accel "tcg,thread=multi" -cpu max)
	local patience='watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=300'
	[ "$(vm_accel)" != kvm ] || accel=(-accel kvm -cpu host) patience=
	qemu-system-x86_64 "${accel[@]}" -smp 2 -m 1536 -nodefaults -display none \
		-kernel "$run/$1/vmlinuz" -initrd "$run/$1/initrd" \
		-append 'root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet panic=-1 '"$patience" \
		-serial "file:$run/$1/console" -drive "file=$run/$1/disk,if=virtio,format=raw,cache=unsafe" \
		-fsdev "local,id=share,path=$run/$1/share,security_model=none" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share \
		-netdev "$2" -device "virtio-net-pci,netdev=link,mac=02:77:65:66:74:0$1" \
		-device virtio-rng-pci </dev/null >"$run/$1/qemu.log" 2>&1 &
	machine[$1]=$!
}

boots() { find "$run/$1/share" -name 'up-*' | wc -l; }

# within SECONDS SIDE COMMAND...: until it succeeds, or the machine has gone.
within() {
	local end=$((SECONDS + $1)) side=$2
	shift 2
	until "$@"; do
		kill -0 "${machine[$side]}" || { echo "machine $side has gone" && return 1; }
		[ $SECONDS -lt $end ] || { echo "machine $side: not in time: $*" && return 1; }
		sleep 0.2
	done
}

is_up() { [ "$(boots "$1")" -ge "$2" ]; }

done_with() { [ -e "$1.rc" ]; }

# begin SIDE SCRIPT: in the machine, with set -e; $call is where its answer comes. To set -e, "! COMMAND" is no
# failure, and "no COMMAND" is one. A call's name is its moment, which no subshell gives twice.
begin() {
	call=$run/$1/share/${EPOCHREALTIME/./}
	printf 'no() { ! "$@"; }\nset -x\n%s\n' "$2" >"$call.new-script"
	mv "$call.new-script" "$call.sh"
}

# on SIDE SCRIPT [SECONDS]: what it prints, its status.
on() {
	local call
	begin "$1" "$2"
	within "${3:-300}" "$1" done_with "$call" || return
	cat "$call.out"
	return "$(cat "$call.rc")"
}

reboot_both() {
	local before_a before_b
	before_a=$(boots a) before_b=$(boots b)
	on a 'systemd-run --on-active=1 systemctl reboot'
	on b 'systemd-run --on-active=1 systemctl reboot'
	within 900 a is_up a $((before_a + 1))
	within 900 b is_up b $((before_b + 1))
}

# --- the tests: each is a sequence that its first failure ends ---

n=0
check() {
	local name=$1 rc
	shift
	n=$((n + 1))
	say "real-systems: $name"
	set +e
	(
		set -e
		"$@"
	) >"$run/$name.log" 2>&1
	rc=$?
	set -e
	if [ $rc = 0 ]; then
		echo "ok $n - $name"
	else
		tail -n 40 "$run/$name.log" | sed 's/^/# /'
		echo "not ok $n - $name"
	fi
}

both_boot() {
	within 900 b is_up b 1
	within 900 a is_up a 1
	on a 'grep bookworm /etc/os-release; uname -r | grep -v deb12; uname -v | grep Debian; systemctl is-active multi-user.target'
	on b 'grep trixie /etc/os-release; uname -r; uname -v | grep Debian; systemctl is-active multi-user.target'
}

# What an administrator types.
apt_installs() {
	on b 'export DEBIAN_FRONTEND=noninteractive
		apt-get install -y --no-install-recommends /mnt/debs/weft_*.deb /mnt/debs/weftspec_*.deb' 900
}

service_makes_the_device() {
	on a 'systemctl enable --now weft@eth0'
	on b 'mkdir -p /etc/weft; echo close_timeout_ms = 4000 >/etc/weft/eth0.conf; systemctl enable --now weft@eth0'
	device_is_up
}

# And it has kept its name.
device_is_up() {
	local side
	for side in a b; do
		on $side 'for n in $(seq 600); do rdma link show weft_eth0/1 | grep "state ACTIVE" && break; sleep 0.2; done
			rdma link show
			rdma link show weft_eth0/1 | grep -w "netdev eth0"
			systemctl is-active weft@eth0
			ibv_devinfo -d weft_eth0 | grep PORT_ACTIVE'
	done
	on b 'grep -x 4000 /sys/class/infiniband/weft_eth0/weft/close_timeout_ms'
}

device_is_there_after_a_reboot() {
	reboot_both
	device_is_up
}

# listening SIDE PORT: waits in the machine.
listening() {
	local hex
	printf -v hex '%04X' "$2"
	on "$1" "for n in \$(seq 600); do grep -qE ' [0-9A-F]+:$hex [0-9A-F:]+ 0A ' /proc/net/tcp /proc/net/tcp6 && exit; sleep 0.1; done; exit 1"
}

# pair SERVER_SIDE CLIENT_SIDE PORT SERVER CLIENT: the server's own word counts, too.
pair() {
	on "$1" "systemd-run --unit=server --property=LimitMEMLOCK=infinity --remain-after-exit $4"
	listening "$1" "$3"
	on "$2" "timeout 200 $5"
	on "$1" 'for n in $(seq 300); do systemctl show -p SubState server | grep -x SubState=exited && break; sleep 0.2; done
		systemctl show -p Result server | grep -x Result=success
		systemctl stop server'
}

rping_between() {
	pair b a 7174 "rping -s -a ${address[b]} -C 50 -S 4000 -V" "rping -c -a ${address[b]} -C 50 -S 4000 -V"
	pair a b 7174 "rping -s -a ${address[a]} -C 50 -S 4000 -V" "rping -c -a ${address[a]} -C 50 -S 4000 -V"
}

# perftest's server listens anew for a second connection; a client that comes before is refused: again, then.
perftest_between() {
	local program
	for program in ib_write_bw ib_read_bw ib_send_bw; do
		for _ in 1 2 3; do
			if pair b a 18515 "$program -R -n 500 -s 65536" "$program -R -n 500 -s 65536 ${address[b]}"; then
				continue 2
			fi
			on b 'systemctl stop server; systemctl reset-failed server' || true
		done
		return 1
	done
}

device_follows_its_interface() {
	on b 'systemctl enable weft@dummy7
		for round in 1 2; do
			ip link add dummy7 type dummy
			for n in $(seq 300); do rdma link show | grep -w "netdev dummy7" && break; sleep 0.1; done
			rdma link show weft_dummy7/1
			ip link del dummy7
			for n in $(seq 300); do systemctl is-active -q weft@dummy7 || break; sleep 0.1; done
			no rdma link show weft_dummy7/1
			no systemctl is-failed weft@dummy7
			no systemctl is-active weft@dummy7
		done
		systemctl disable weft@dummy7'
}

stop_removes_the_device() {
	on b 'systemctl stop weft@eth0; no rdma link show weft_eth0/1; systemctl start weft@eth0; rdma link show weft_eth0/1'
}

# pings: how many the client has done. What the shell says of its commands stands in front.
pings() { on a 'journalctl -u client --no-pager | grep -c "ping data"' | tail -n 1; }

has_pinged() { [ "$(pings)" -gt "$1" ]; }

# A connection lives through it; dkms builds the new driver in the machine, and the old one goes on. The client
# rests meanwhile: an emulated compiler needs all there is.
upgrade_with_an_open_device() {
	local before client=/sys/fs/cgroup/system.slice/client.service
	on a 'systemctl reset-failed server 2>/dev/null || true'
	on b "systemd-run --unit=server --property=LimitMEMLOCK=infinity --remain-after-exit rping -s -a ${address[b]} -S 400 -V"
	listening b 7174
	on a "systemd-run --unit=client --property=LimitMEMLOCK=infinity --property=LogRateLimitIntervalSec=0 \
		--remain-after-exit rping -c -a ${address[b]} -S 400 -V -v"
	within 60 a has_pinged 10
	on a "echo 1 >$client/cgroup.freeze"
	on a 'id=/sys/module/weft/notes/.note.gnu.build-id
		cp $id /root/id
		export DEBIAN_FRONTEND=noninteractive
		apt-get install -y --no-install-recommends /mnt/next/weft_*.deb /mnt/next/weft-dkms_*.deb
		dpkg-query -W weft weft-dkms | grep -c 0.1.1 | grep -x 2
		dkms status
		dkms status -k $(uname -r) | grep "weft/0.1.1.*installed"
		test "$(dkms status | grep -c "weft/0.1~")" = 0
		cmp $id /root/id
		systemctl is-active weft@eth0
		systemctl show -p SubState client | grep -x SubState=running
		rdma resource show qp | grep weft_eth0' 4500
	before=$(pings)
	on a "echo 0 >$client/cgroup.freeze"
	within 60 a has_pinged $((before + 10))
	on a 'systemctl stop client; systemctl reset-failed client 2>/dev/null || true'
	on b 'systemctl stop server; systemctl reset-failed server 2>/dev/null || true'
}

new_driver_is_loaded_after_a_reboot() {
	reboot_both
	device_is_up
	on a 'no cmp /sys/module/weft/notes/.note.gnu.build-id /root/id'
	pair b a 7174 "rping -s -a ${address[b]} -C 10" "rping -c -a ${address[b]} -C 10"
}

purge_leaves_nothing() {
	local side
	for side in a b; do
		on $side 'apt-get purge -y weft weft-dkms
			test -z "$(rdma link show)"
			no test -e /sys/module/weft
			no test -e /etc/weft
			no test -e /run/weft
			test -z "$(systemctl list-units --all --no-legend "weft@*")"
			find / -xdev \( -path /proc -o -path /var/lib/dpkg -o -path /var/log -o -path /usr/share/doc \
				-o -path /var/cache -o -path /usr/share/weftspec \) -prune -o -name "*weft*" -print |
				grep -vE "weft-agent|weftspec|weft-reflector|initramfs-tools" >/root/left || true
			cat /root/left
			test ! -s /root/left' 900
	done
}

kernels_have_not_complained() {
	local side
	for side in a b; do
		on $side 'dmesg >/mnt/kernel.log; no grep -E "WARNING|BUG:|Oops|general protection|Call Trace|hung task" /mnt/kernel.log'
	done
}

rm -rf "$run"
mkdir -p "$run"
"$WEFT_TOP/scripts/build-deb.sh" bookworm trixie >&2
"$WEFT_TOP/scripts/build-deb.sh" --next bookworm >&2
image a weft weft-dkms
image b weft-dkms
modules=$("$WEFT_TOP/scripts/fetch-stock-kernel.sh")
vm_accel >/dev/null

# Not in $run: the path of a socket must be short.
socket=$(mktemp -d)
link=stream,id=link,addr.type=unix,addr.path=$socket/link
boot b "$link,server=on"
until [ -S "$socket/link" ]; do
	kill -0 "${machine[b]}"
	sleep 0.05
done
boot a "$link,server=off"

check both-boot both_boot
check apt-installs-the-packages apt_installs
check service-makes-the-device service_makes_the_device
check device-is-there-after-a-reboot device_is_there_after_a_reboot
check rping-between-the-releases rping_between
check perftest-between-the-releases perftest_between
check device-follows-its-interface device_follows_its_interface
check stop-removes-the-device stop_removes_the_device
check connection-lives-through-an-upgrade upgrade_with_an_open_device
check new-driver-is-loaded-after-a-reboot new_driver_is_loaded_after_a_reboot
check kernels-have-not-complained kernels_have_not_complained
check purge-leaves-nothing purge_leaves_nothing
echo "1..$n"
