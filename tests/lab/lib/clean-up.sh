# shellcheck shell=bash
# After a test: removes or reports what it left behind, and reads the kernel's log.
# See lib.sh.

# Removes programs, devices and drivers that a test left on the machine it runs on. Fails if one cannot
# be removed, which is how leaked references show.
clean_here() {
	local dev driver bad=0
	stop_faults
	clean_users
	kill_users
	clean_rootless
	[ ! -d /sys/module/weft_krefl ] || within 60 rmmod weft_krefl || stuck "weft_krefl cannot be unloaded"
	for dev in /sys/class/infiniband/*; do
		[ -e "$dev" ] || continue
		dev=${dev##*/}
		no_objects "$dev" || bad=1
		within 60 rdma link del "$dev" || { stuck "$dev cannot be deleted"; bad=1; }
	done
	no_memory || bad=1
	for driver in weft siw; do
		[ -d /sys/module/$driver ] || continue
		within 60 rmmod $driver || { stuck "$driver cannot be unloaded"; bad=1; }
	done
	return $bad
}

# What suite faults may have left on: its test may have ended anywhere.
stop_faults() {
	local knob
	for knob in /sys/kernel/debug/fail{slab,_page_alloc}/probability; do
		[ ! -e "$knob" ] || echo 0 >"$knob"
	done
}

# What a kernel user of a test that failed has left (users.sh) goes by force, or the device would stay in use.
clean_users() {
	local dir pid
	for dir in /run/mnt* /run/disk; do
		! mountpoint -q "$dir" || umount -f -l "$dir" 2>/dev/null
	done
	[ -e /run/users ] || return 0
	[ ! -e "$USERS_ROOT/proc/fs/nfsd/threads" ] || bash "$WEFT_TOP/tests/lab/nfsd.sh" down
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		[ ! "$dir/root" -ef "$USERS_ROOT" ] || kill -9 "$pid" 2>/dev/null
	done
	return 0
}

# stuck REASON: and the kernel's log gets the stacks of all that sleep in it.
stuck() {
	echo "$*"
	echo w >/proc/sysrq-trigger
}

# Whoever has an RDMA file open ends.
kill_users() {
	local fd file pid
	kill_rootless
	for file in /dev/infiniband/*; do
		for fd in /proc/[0-9]*/fd/*; do
			[ "$fd" -ef "$file" ] || continue
			pid=${fd#/proc/}
			kill -9 "${pid%%/*}" 2>/dev/null
		done
	done
}

# Programs are dead: nothing but what the driver itself leaked can still be there.
no_objects() {
	local line end=$((SECONDS + 60))
	while line=$(rdma resource show "$1" 2>/dev/null) && [[ $line =~ (qp|cm_id|mr|pd|cq|srq|ctx)\ [1-9] ]]; do
		[ $SECONDS -lt $end ] || {
			echo "objects left: $line"
			return 1
		}
		pause 0.1
	done
}

# Devices are deleted: nothing that weft allocated may still be there, neither by pages nor, where
# the kernel keeps account (vm.sh), by kmalloc(); weft's own caches it looks at in rmmod. Only while
# the module is loaded has the kernel a name for who did.
no_memory() {
	local end=$((SECONDS + 60))
	while weft_memory >/run/weft_memory; do
		[ $SECONDS -lt $end ] || {
			echo "memory left: $(head -n 1 /run/weft_memory)"
			return 1
		}
		pause 0.1
	done
}

# Fails if there is none.
weft_memory() {
	[ -e /run/not_weft ] || : >/run/not_weft
	named_weft | grep -vFf /run/not_weft
}

# Where another module lay before weft was loaded, what that has leaked has a name of weft's by now.
remember_not_weft() { named_weft | grep -o '[^ ]* \[weft\]' >/run/not_weft || true; }

named_weft() {
	grep -F '[weft]' /proc/vmallocinfo
	weft_slabs
}

# Fails if there are none.
weft_slabs() { grep -hsE '^ *[0-9]+ [^ ]+ \[weft\]' /sys/kernel/debug/slab/kmalloc-*/alloc_traces; }

# --- the kernel's log ---

klog_mark() { echo "weft-lab: begin $1" >/dev/kmsg; }

# klog_since MARK: on the machine it runs on, all that the kernel said after klog_mark MARK. Where
# that has been overwritten it is all that there is, and a line that klog_faults knows.
klog_since() {
	dmesg | awk -v mark="weft-lab: begin $1" '
		seen { print }
		index($0, mark) { seen = 1 }
		{ all = all $0 "\n" }
		END { if (!seen) printf "%sweft-lab: lost what it said since \"%s\"\n", all, mark }'
}

# One smbdirect connection ends as another begins, and their slab caches have the same size: Linux removes the
# first's name from sysfs without the lock, warns that the second's exists, and continues without it.
without_slabs_of_smbdirect() {
	awk '
		function give() { printf "%s", held; held = ""; lines = 0 }
		/sysfs: cannot create duplicate filename .\/kernel\/slab\/:/ { give(); lines = 1 }
		!lines { print; next }
		{ held = held $0 "\n" }
		/SLUB: Unable to add cache smbdirect_/ { held = ""; lines = 0 }
		lines && ++lines > 80 { give() }
		END { give() }'
}

# klog_faults: lines of a kernel log on stdin that no healthy run has. A program's own crash
# ("traps: NAME[") is the program's.
klog_faults() {
	without_slabs_of_smbdirect | grep -vE '\] traps: [^ ]+\[[0-9]+\]' | grep -E 'BUG:|kernel BUG|WARNING:|Oops|Call Trace|KASAN|possible (recursive|circular) locking|inconsistent lock state|suspicious RCU|sleeping function called|blocked for more than|soft lockup|hard LOCKUP|rcu.*(stall|detected)|refcount_t:|list_(add|del) corruption|general protection|unregister_netdevice: waiting|weft-lab: lost|memory leak|restrack:|[Ll]eaked|still held|Bad page|kernel panic'
}
