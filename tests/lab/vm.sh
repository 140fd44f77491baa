# shellcheck shell=bash
# Two QEMU machines with Debian's stock kernel, the host's files as their read-only root, and
# a virtio link between them. Sourced by run.sh; uses its $run and $modules.
# Environment: ARCH_A, ARCH_B  architecture of that machine: arm64, emulated; or of its programs: i386, on this host's
#                              kernel; else this host's
# shellcheck disable=SC2154,SC2034

# Modules for initramfs.sh to reach its root and the link.
vm_modules='virtio_pci 9pnet_virtio 9p overlay virtio_net'

# vm_arch a|b
vm_arch() { if [ "$1" = a ]; then echo "${ARCH_A-}"; else echo "${ARCH_B-}"; fi; }

# vm_kernel_arch [ARCHITECTURE]: the kernel's: nothing if that is this host's.
vm_kernel_arch() { [ "${1-}" != arm64 ] || echo arm64; }

# Of a and b: the folder of its kernel and modules, and what it has as its root, nothing if that is the host's.
declare -A vm_kernels=() vm_roots=()
vm_prepare() {
	local role arch
	for role in a b; do
		arch=$(vm_arch $role)
		if [ $role = b ] && [ "$arch" = "${ARCH_A-}" ]; then
			vm_kernels[b]=${vm_kernels[a]} vm_roots[b]=${vm_roots[a]}
			return
		fi
		# shellcheck disable=SC2046 # one word, or none
		vm_kernels[$role]=$("$WEFT_TOP/scripts/fetch-stock-kernel.sh" $(vm_kernel_arch "$arch")) || return
		vm_roots[$role]=
		[ -z "$arch" ] || vm_roots[$role]=$("$WEFT_TOP/scripts/fetch-sysroot.sh" "$arch" machine) || return
	done
}

# In the order of their dependencies, as modprobe itself would load them.
vm_module_files() {
	local release module
	release=$(basename "$1"/lib/modules/*)
	for module in $vm_modules; do
		/sbin/modprobe -d "$1" -S "$release" --show-depends "$module" || return
	done | awk '$1 == "insmod" && !seen[$2]++ {print $2}'
}

# vm_initramfs a|b: in $run/initramfs-ROLE.cpio
vm_initramfs() {
	local dir=$run/initramfs file busybox=${vm_roots[$1]}/bin/busybox
	[ -n "${vm_roots[$1]}" ] || busybox=$(command -v busybox)
	mkdir -p "$dir/bin" "$dir/lib"
	cp "$busybox" "$dir/bin/busybox"
	install -m 755 "$WEFT_TOP/tests/lab/initramfs.sh" "$dir/init"
	vm_module_files "${vm_kernels[$1]}" >"$run/initramfs.list" || return
	while read -r file; do
		cp "$file" "$dir/lib/"
		basename "$file"
	done <"$run/initramfs.list" >"$dir/modules"
	(cd "$dir" && find . | cpio --quiet -o -H newc) >"$run/initramfs-$1.cpio"
	rm -rf "$dir"
}

# Does a stock kernel boot under KVM here? /dev/kvm may open and still run nothing, so one
# machine is tried for 20 s at most, and the verdict kept for this host kernel.
vm_accel() {
	local verdict
	[ -w /dev/kvm ] || { echo tcg && return; }
	verdict=$WEFT_CACHE/accel-$(uname -r)
	if [ ! -s "$verdict" ]; then
		mkdir -p "$WEFT_CACHE"
		if vm_probe_kvm; then echo kvm; else echo tcg; fi >"$verdict.$$"
		mv "$verdict.$$" "$verdict"
	fi
	cat "$verdict"
}

# An initramfs that only powers off: a kernel that gets there boots.
vm_probe_kvm() {
	local dir=$run/probe
	mkdir -p "$dir/bin"
	cp "$(command -v busybox)" "$dir/bin/busybox"
	printf '#!/bin/busybox sh\n/bin/busybox poweroff -f\n' >"$dir/init"
	chmod 755 "$dir/init"
	(cd "$dir" && find . | cpio --quiet -o -H newc) >"$run/probe.cpio"
	# In a shell of its own, whose words about an aborted child are not wanted.
	(timeout 20 qemu-system-x86_64 -accel kvm -cpu host -m 512 -nodefaults -display none \
		-no-reboot -kernel "$(echo "$modules"/boot/vmlinuz-*)" -initrd "$run/probe.cpio" \
		-append panic=-1 </dev/null; exit $?) >/dev/null 2>&1
}

# vm_machine ROLE NETDEV; its monitor is $socket/monitor-ROLE
vm_machine() {
	local by=tcg places console=ttyS0 timer='' mac=02:77:65:66:74:0$1 modules=${vm_kernels[$1]}
	local qemu=(qemu-system-x86_64 -accel "tcg,thread=multi" -cpu max)
	if [ "$(vm_arch "$1")" = arm64 ]; then
		# Signed pointers by a hash that is quick to emulate.
		qemu=(qemu-system-aarch64 -M virt -accel "tcg,thread=multi" -cpu "max,pauth-impdef=on") console=ttyAMA0
	else
		by=$(vm_accel)
		# An emulated machine of a busy host has no tick while the kernel looks for one, and would panic.
		[ "$by" = kvm ] || timer=no_timer_check
		[ "$by" != kvm ] || qemu=(qemu-system-x86_64 -accel kvm -cpu host)
	fi
	places="WEFT_LINK=vm WEFT_ACCEL=$by WEFT_ROLE=$1 WEFT_TOP=$WEFT_TOP WEFT_ROOT=${vm_roots[$1]} WEFT_CACHE=$WEFT_CACHE"
	# slub_debug: who allocated what has not been freed, for no_memory() in lib/clean-up.sh.
	exec setsid "${qemu[@]}" -smp 2 -m 1024 -nodefaults -display none -no-reboot \
		-kernel "$(echo "$modules"/boot/vmlinuz-*)" -initrd "$run/initramfs-$1.cpio" \
		-append "console=$console quiet panic=-1 nokaslr sysrq_always_enabled log_buf_len=4M slub_debug=U,kmalloc-* $timer $places" \
		-serial "file:$run/console-$1.$boots" \
		-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=host,mount_tag=host \
		-fsdev "local,id=share,path=$run,security_model=none" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share \
		-netdev "$2" -device "virtio-net-pci,netdev=link,mac=$mac,romfile=" \
		-monitor "unix:$socket/monitor-$1,server=on,wait=off" \
		-device virtio-rng-pci </dev/null >"$run/qemu-$1.log" 2>&1
}

# The machines say nothing any more: what their CPUs do, into $run/registers-ROLE and, with who
# sleeps, on their consoles.
vm_silent() {
	local role
	for role in a b; do
		python3 - "$socket/monitor-$role" >"$run/registers-$role.$boots" 2>&1 <<-'END' || true
			import socket, sys, time
			s = socket.socket(socket.AF_UNIX)
			s.settimeout(2)
			s.connect(sys.argv[1])
			for line in ["info registers -a"] + ["sendkey alt-sysrq-" + k for k in "9lw"]:
			    s.send(line.encode() + b"\n")
			    time.sleep(2)
			sys.stdout.write(s.recv(1 << 20).decode(errors="replace"))
		END
	done
}

# is_listening PATH: somebody accepts at that Unix socket. Its flags are __SO_ACCEPTCON.
is_listening() { awk -v path="$1" '$4 == "00010000" && $8 == path {found = 1} END {exit !found}' /proc/net/unix; }

vm_boot() {
	local link a b socket role
	need busybox cpio modprobe
	for role in a b; do
		if [ "$(vm_arch $role)" = arm64 ]; then need qemu-system-aarch64; else need qemu-system-x86_64; fi
		vm_initramfs $role || die "no initial file system for $role"
	done
	# Before both ask at once.
	[[ ${ARCH_A-} = arm64 && ${ARCH_B-} = arm64 ]] || vm_accel >/dev/null
	# Not in $run: the path of a socket must be short.
	socket=$(mktemp -d)
	link=stream,id=link,addr.type=unix,addr.path=$socket/link
	vm_machine b "$link,server=on" &
	b=$!
	machines=("$b")
	# Its file is there before b listens, and a would have no link for good.
	until is_listening "$socket/link" || ! kill -0 $b 2>/dev/null; do sleep 0.05; done
	vm_machine a "$link,server=off" &
	a=$!
	follow $a $b
	rm -rf "$socket"
}
