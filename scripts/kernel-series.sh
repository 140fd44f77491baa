#!/usr/bin/env bash
# Generates the series that adds the driver to Linux, ready for git send-email, in build/kernel-series:
# against the newest source that Debian has. Each patch is built, and checkpatch judges it.
# What each patch has stands below; how the driver is adapted, in kernel-series/adapt.py.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need git make gcc flex bison bc perl python3 rsync sparse

parts=$WEFT_TOP/scripts/kernel-series
out=$WEFT_BUILD/kernel-series
repo=$out/repo     # the files that the series touches, and no others
tree=$out/tree     # all of Linux, with the series so far
driver=drivers/infiniband/sw/weft

# --- what is in which patch: files of the driver ---

protocol='proto/bytes proto/ddp proto/err proto/mpa proto/rdmap proto/stream'
queues='core/atomic core/cq core/place core/qp core/qp_types core/region core/region_types core/ring core/rq core/rqq core/rx
	core/shape core/sq core/srq core/tx core/verbs core/wqe'
links='core/alive core/backlog core/batch core/end core/linger core/link core/link_rx core/link_types core/rtr core/send core/start'
sockets='access conn conn_life conn_limits conn_qp conn_run conn_rx conn_tx linger netns sock softirq startup_queue
	tcp trace'
setup='cm cm_active cm_ask cm_passive startup_turns'
verbs='cq cq_verbs dmabuf host mr post qp qp_events ring_mem srq tables ucontext'
device='device main options restrack'

author() { git -C "$WEFT_TOP" config "user.$1" || echo weft; }

commit() {
	git -C "$repo" add -A
	git -C "$repo" -c user.name="$(author name)" -c user.email="$(author email)" commit -q -s -F - < <(fmt -w 72 <<<"$1")
}

# --- the source of Linux ---

start() {
	local source=$1 file
	rm -rf "$out"
	mkdir -p "$repo"
	# Links, not copies: what is changed below is a new file.
	cp -al "$source" "$tree"
	for file in MAINTAINERS include/uapi/rdma/ib_user_ioctl_verbs.h drivers/infiniband/Kconfig \
		drivers/infiniband/sw/Makefile Documentation/infiniband/index.rst \
		tools/testing/selftests/rdma/Makefile tools/testing/selftests/rdma/config $("$parts/net.py" files); do
		install -D -m 644 "$source/$file" "$repo/$file"
	done
	git -C "$repo" init -q -b series
	commit "Linux $(basename "$source")"
	"$parts/adapt.py" "$WEFT_TOP" "$out/adapted"
}

# Objects of the driver alone are built: what they need of the kernel is made once.
prepare() {
	make -s -C "$tree" O="$out/objects" ARCH=um x86_64_defconfig
	(cd "$out/objects" && KCONFIG_CONFIG=.config "$tree/scripts/kconfig/merge_config.sh" -m .config \
		"$WEFT_TOP/scripts/kconfig/base.config" <(printf 'CONFIG_%s=y\n' KUNIT IPV6 MPTCP MPTCP_IPV6))
	make -s -C "$tree" O="$out/objects" ARCH=um olddefconfig
	make -s -C "$tree" O="$out/objects" ARCH=um -j"$(nproc)" prepare modules_prepare
}

# --- the patches ---

# add PART...: the sources and headers of these names, and their objects in the Makefile.
add() {
	local part makefile=$repo/$driver/Makefile
	for part; do
		mkdir -p "$(dirname "$repo/$driver/$part")"
		for file in "$out/adapted/$driver/$part".[ch]; do
			[ ! -e "$file" ] || cp "$file" "$repo/$driver/$(dirname "$part")/"
		done
	done
	# shellcheck disable=SC2016 # make's own
	[ -e "$makefile" ] || printf '%s\n' '# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause' \
		'ccflags-y := -I$(src)' '' 'obj-$(CONFIG_RDMA_WEFT) += weft.o' '' >"$makefile"
	for part; do
		[ ! -e "$repo/$driver/$part.c" ] || echo "weft-y += $part.o"
	done >>"$makefile"
}

# headers NAME...: ahead of their sources, since what comes now needs them.
headers() {
	local name
	for name; do install -D -m 644 "$out/adapted/$driver/$name.h" "$repo/$driver/$name.h"; done
}

# insert FILE ANCHOR TEXT: before the first line that begins with ANCHOR.
insert() {
	ANCHOR=$2 TEXT=$3 awk 'index($0, ENVIRON["ANCHOR"]) == 1 && !n++ { print ENVIRON["TEXT"] } { print }
		END { exit n == 0 }' "$repo/$1" >"$repo/$1.new" || die "$1 has no line '$2'"
	mv "$repo/$1.new" "$repo/$1"
}

abi() {
	mkdir -p "$repo/include/uapi/rdma"
	cp "$out/adapted/include/uapi/rdma/weft-abi.h" "$repo/include/uapi/rdma/"
	sed -i '/^enum rdma_driver_id {/,/^};/ s/^};/\tRDMA_DRIVER_WEFT,\n};/' \
		"$repo/include/uapi/rdma/ib_user_ioctl_verbs.h"
	insert MAINTAINERS 'WI' "WEFT SOFT IWARP DRIVER
M:	$(author name) <$(author email)>
L:	linux-rdma@vger.kernel.org
S:	Maintained
F:	Documentation/infiniband/weft.rst
F:	drivers/infiniband/sw/weft/
F:	include/uapi/rdma/weft-abi.h
F:	tools/testing/selftests/rdma/weft_*
"
	commit 'RDMA/weft: Add the interface with programs

Rings are shared with the program: polling needs no system call, and posting
none while the kernel is at work. The doorbell is a method of the driver, since
write() fails for a daemon that has dropped its privileges.

Structs have explicit reserved fields, and features are announced both ways.'
}

hook_up() {
	cp "$parts/Kconfig" "$repo/$driver/Kconfig"
	insert drivers/infiniband/Kconfig 'source "drivers/infiniband/sw/siw/Kconfig"' \
		'source "drivers/infiniband/sw/weft/Kconfig"'
	# shellcheck disable=SC2016 # make's own
	echo 'obj-$(CONFIG_RDMA_WEFT)			+= weft/' >>"$repo/drivers/infiniband/sw/Makefile"
}

unit_tests() {
	cp -r "$out/adapted/$driver/tests" "$repo/$driver/"
	cp "$parts/kunitconfig" "$repo/$driver/tests/kunit/.kunitconfig"
	cat "$parts/Kconfig.kunit" >>"$repo/$driver/Kconfig"
	# shellcheck disable=SC2016 # make's own
	printf '%s\n' '' 'obj-$(CONFIG_RDMA_WEFT_KUNIT_TEST) += tests/kunit/' >>"$repo/$driver/Makefile"
	# shellcheck disable=SC2016
	echo 'obj-$(CONFIG_RDMA_WEFT_KUNIT_TEST)	+= weft/' >>"$repo/drivers/infiniband/sw/Makefile"
	commit 'RDMA/weft: Add KUnit tests of the protocol and the queues

The vectors run whole, one octet at a time, split at each point and against a
page that faults. A stack meets a peer made of octets, with an encoder of its
own, that sends what the RFCs forbid: nothing may be placed.

The tests are written for cmocka, which runs them in user space under sanitizers,
too; tests/kunit/include has what they use of it. To run them:

./tools/testing/kunit/kunit.py run --kunitconfig=drivers/infiniband/sw/weft/tests/kunit'
}

# The tests need another configuration than the driver: theirs is given by hand.
built_tests() {
	local log=$out/build-tests.log
	rsync -rc --exclude=.git "$repo/" "$tree/"
	make -C "$tree" O="$out/objects" ARCH=um -j"$(nproc)" CONFIG_RDMA_WEFT= CONFIG_RDMA_WEFT_KUNIT_TEST=m \
		"$driver/" >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		die "the KUnit tests do not build (whole log: $log)"
	}
	! grep -A 5 -E 'warning:' "$log" >&2 || die "the KUnit tests have warnings"
	[ -e "$out/objects/$driver/tests/kunit/weft_kunit.o" ] || die "weft_kunit.o was not built"
}

# It joins the tests of rxe. The lab runs it, too (tests/lab/suites/device.sh).
selftests() {
	local folder=tools/testing/selftests/rdma
	cp "$parts"/selftests/*.sh "$repo/$folder/"
	insert "$folder/Makefile" 'include ../lib.mk' $'TEST_PROGS += weft_rping_between_netns.sh\n'
	echo CONFIG_RDMA_WEFT >>"$repo/$folder/config"
	commit 'selftests: RDMA: Add a test of weft between two namespaces

Devices are made, rping compares what it receives over IPv4 and IPv6, and the
devices end by "rdma link del" and with their namespace. Each step has a
minute.'
}

documentation() {
	cp "$parts/weft.rst" "$repo/Documentation/infiniband/"
	sed -i 's/^\( *\)user_verbs$/&\n\1weft/' "$repo/Documentation/infiniband/index.rst"
	grep -q weft "$repo/Documentation/infiniband/index.rst" || die 'index.rst has no user_verbs'
	commit 'RDMA/weft: Add documentation

What the layers are, which locks there are and in which order, and the options
of a device.'
}

# What the driver needs of net/, each with the users that are there.
net_patches() {
	local n message log=$out/build-net.log
	for n in 1 2 3 4 5; do
		message=$("$parts/net.py" "$WEFT_TOP" "$repo" $n)
		commit "$message"
		rsync -rc --exclude=.git "$repo/" "$tree/"
		make -C "$tree" O="$out/objects" ARCH=um -j"$(nproc)" W=1 net/core/sock.o net/ipv4/{icmp,tcp_output}.o \
			net/ipv6/icmp.o net/mptcp/protocol.o >"$log" 2>&1 || {
			tail -n 30 "$log" >&2
			die "patch $n does not build (whole log: $log)"
		}
		! grep -A 5 -E '(net/core/sock|net/ipv[46]/|net/mptcp|include/net)[^ ]*: (warning|error):' "$log" >&2 ||
			die "patch $n: gcc objects (whole log: $log)"
	done
	# Others' comments lack things.
	(cd "$tree" && scripts/kernel-doc -none -Wall include/net/sock.h include/net/tcp.h net/ipv4/tcp_output.c) >"$log" 2>&1 ||
		die "kernel-doc fails: $log"
	! grep -wF "$(sed -n 's/^ \* \([a-z_]*\) - .*/\1/p' "$WEFT_TOP/kernel/compat/net.h")" "$log" >&2 ||
		die "kernel-doc objects: $log"
}

# Sparse of Debian 12 does not know the word, which the newest kernels use.
checks=(W=1 C=1 'CHECK=sparse -D__typeof_unqual__=__typeof__')

# remarks LOG: of gcc with W=1, sparse and kernel-doc, on files of the driver. MODULE_LICENSE() and the like are more
# than that sparse can reckon.
remarks() {
	grep -A 5 -E "^([^ ]*/)?$driver/[^ ]*(warning|error):|^(Warning|Error): [^ ]*$driver/|^[^ ]+: warning: .*$driver/" "$1" |
		grep -vE 'main\.c:[0-9]*:1: error: bad constant expression$'
}

# built: the tree as it is now makes the driver's objects, and nothing is said. Before the last of the
# driver's patches Kconfig does not offer it: make is told that it was chosen.
built() {
	local number log object
	number=$(($(git -C "$repo" rev-list --count HEAD) - 1))
	log=$out/build-$number.log
	rsync -rc --exclude=.git "$repo/" "$tree/"
	[ -e "$repo/$driver/Makefile" ] || return 0
	# A new file (sed): rsync leaves alone what is the same, and that is a link to the cache's.
	grep -q weft "$tree/drivers/infiniband/sw/Makefile" ||
		sed -i '$ a obj-m += weft/' "$tree/drivers/infiniband/sw/Makefile"
	make -C "$tree" O="$out/objects" ARCH=um -j"$(nproc)" "${checks[@]}" CONFIG_RDMA_WEFT=m "$driver/" >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		die "patch $number does not build (whole log: $log)"
	}
	! remarks "$log" >&2 || die "patch $number: gcc with W=1, sparse or kernel-doc objects (whole log: $log)"
	# It must have looked at each file.
	while read -r object; do
		[ -e "$out/objects/$driver/$object" ] || die "patch $number: $object was not built"
	done < <(sed -n 's/^weft-y += //p' "$repo/$driver/Makefile")
}

# shellcheck disable=SC2086 # the parts are lists
patches() {
	net_patches
	abi
	built
	headers proto/port
	add $protocol
	commit 'RDMA/weft: Add MPA, DDP and RDMAP

All knowledge of the wire: codecs, and the state machine of received octets
(stream.c). Nothing here allocates, takes a lock or reads a clock, and nothing
acts on an FPDU before it is whole and its CRC is right.'
	built
	headers core/host
	add $queues
	commit 'RDMA/weft: Add the logic of queues

What a QP decides, under the lock of its connection: work requests are copied
and judged, the next FPDU is chosen, receives are matched, STags are checked,
queues are flushed in order. core/host.h is what this asks of the driver.'
	built
	add $links
	commit 'RDMA/weft: Add the logic of connections

A connection from its first octet to its last: octets, FINs, time and the ULP'\''s
answers come in, actions go out. Start-up of both roles with the fall-back to
MPA revision 1, batches that end with segments, and the ways to end.'
	built
	headers weft verbs dmabuf cm inject
	add $sockets
	commit 'RDMA/weft: Add sockets and who runs what

The lock of a connection is its socket'\''s. TCP'\''s callbacks receive, the doorbell
sends in the caller'\''s context, and what arises in softirq is sent by a BH work
whose time is bounded. tcp.c has what is asked of TCP.'
	built
	add $setup
	commit 'RDMA/weft: Add connection management

The calls of the iwarp connection manager, both roles, and the order in which
connections in start-up are served.'
	built
	add $verbs
	commit 'RDMA/weft: Add verbs

Queues, regions, windows and shared receive queues, for programs and for
kernel consumers. A ring is never read twice.'
	built
	add $device
	hook_up
	commit 'RDMA/weft: Add the device

Devices are made by "rdma link add". They follow their netdev: its state, its
address, its namespace and its end. Counters, dumps and options are here.'
	sed -n 's/^CONFIG_RDMA_WEFT=//p' "$out/objects/.config" | grep -q . ||
		echo CONFIG_RDMA_WEFT=m >>"$out/objects/.config"
	built
	unit_tests
	built_tests
	selftests
	documentation
	built
}

# Nothing of the driver is left behind.
complete() {
	diff -r -q -x Makefile -x Kconfig -x .kunitconfig "$out/adapted/$driver" "$repo/$driver" || die "a patch lacks something"
	make -s -C "$tree" O="$out/objects" ARCH=um olddefconfig
	grep -qx CONFIG_RDMA_WEFT=m "$out/objects/.config" || die "Kconfig does not offer the driver"
}

letter() {
	local first
	first=$(git -C "$repo" rev-list --max-parents=0 HEAD)
	git -C "$repo" format-patch -q --cover-letter -o "$out" "$first"
	SUBJECT=$(head -n 1 "$parts/cover") COVER=$(tail -n +3 "$parts/cover") perl -pi -e \
		's/\*\*\* SUBJECT HERE \*\*\*/$ENV{SUBJECT}/; s/\*\*\* BLURB HERE \*\*\*/$ENV{COVER}/' \
		"$out"/0000-cover-letter.patch
}

# Comments that say they are kernel-doc.
documented() {
	local log=$out/kernel-doc.log
	(cd "$tree" && find "$driver" include/uapi/rdma/weft-abi.h -name '*.[ch]' ! -path '*/tests/*' -print0 |
		xargs -0 scripts/kernel-doc -none -Wall) >"$log" 2>&1 || die "kernel-doc fails: $log"
	! grep -iE 'warning|error' "$log" >&2 || die "kernel-doc objects: $log"
}

of_user_space=STRING_FRAGMENTS,MEMORY_BARRIER,NEW_TYPEDEFS,MACRO_ARG_UNUSED,CONSIDER_KSTRTO,TRAILING_SEMICOLON
# The last is for a function whose name has "for_each" in it.
of_user_space+=,PREFER_DEFINED_ATTRIBUTE_MACRO,PREFER_PR_LEVEL,COMPLEX_MACRO,OPEN_BRACE

# Each patch adds files; the first one has the lines of MAINTAINERS for all of them. The checks that
# --strict adds are counted, and stand in the log. The tests are written for cmocka and a C library, and
# what stands for those in the kernel is not the kernel's style.
judge() {
	local patch ignored
	for patch in "$out"/00*.patch; do
		case $patch in
		*/0000-*) continue ;;
		*KUnit*) ignored=FILE_PATH_CHANGES,$of_user_space ;;
		# inject.h has an attribute of two words.
		*sockets*) ignored=FILE_PATH_CHANGES,COMPLEX_MACRO ;;
		*) ignored=FILE_PATH_CHANGES ;;
		esac
		(cd "$tree" && perl scripts/checkpatch.pl --strict --ignore "$ignored" "$patch") || true
	done >"$out/checkpatch.log" 2>&1
	grep -A 3 -E '^(ERROR|WARNING):' "$out/checkpatch.log" >&2 && die "checkpatch objects: $out/checkpatch.log"
	say "checkpatch --strict: $(grep -c '^total: 0 errors, 0 warnings' "$out/checkpatch.log") patches," \
		"$(grep -c '^ERROR:' "$out/checkpatch.log") errors, $(grep -c '^WARNING:' "$out/checkpatch.log") warnings," \
		"$(grep -c '^CHECK:' "$out/checkpatch.log") checks ($out/checkpatch.log)"
}

source=$(unpack_kernel "$("$WEFT_TOP/scripts/fetch-packages.sh" sid linux-source)")
start "$source"
say "preparing $(basename "$source") (some minutes)"
logged "$out/prepare.log" prepare
patches
complete
documented
letter
judge
! grep -q weft "$source/drivers/infiniband/sw/Makefile" || die "the source in the cache was changed"
rm -rf "$tree" "$out/objects" "$out/adapted"
say "against $(basename "$source"):"
ls "$out"/*.patch
