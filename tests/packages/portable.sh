#!/usr/bin/env bash
# The portable file, TAP:
#   portable.sh --file             what is in it, what it needs, and that it runs here from any place
#   portable.sh --foreign          that for arm64: the same, and that its library runs in an emulator of the processor
#   portable.sh RELEASE...         in a root folder of bullseye, bookworm, trixie, sid
#   portable.sh --sources FOLDER   with the rdma-core that each source tree in FOLDER builds: FOLDER/v39.0

# shellcheck source-path=SCRIPTDIR source=tap.sh
. "$(dirname "$0")/tap.sh"

# --- in a root, or here ---

# As user 65534, without a way to privileges.
unprivileged() { timeout -k 2 60 setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"; }
one() { unprivileged "$run" "$@"; }

finds_devices() {
	one ibv_devinfo
	one ibv_devinfo -d weft_lo | grep -E 'state:.*ACTIVE'
}

# names PATTERN: of all that it reports, nothing is a problem.
check_names() {
	local said
	said=$(one --check)
	echo "$said"
	! grep -q PROBLEM <<<"$said" || return 1
	grep -E -e "$1" <<<"$said"
}

pingpong() { both one one 18515 ibv_rc_pingpong -d weft_lo -g 0 -n 200 -- -- 127.0.0.1; }
rpings() { rping one one 7174 rping -a 127.0.0.1 -C 20 -S 4000 -V -- -s -- -c; }
perftests() { perftest one one ib_write_bw && perftest one one ib_send_lat; }

pyverbs() {
	cat >/tmp/try.py <<-'END'
		from pyverbs.cq import CQ
		from pyverbs.device import Context
		from pyverbs.mr import MR
		from pyverbs.pd import PD
		from pyverbs.qp import QP, QPCap, QPInitAttr

		# IBV_ACCESS_LOCAL_WRITE, IBV_QPT_RC: rdma-core 65 has them elsewhere.
		LOCAL_WRITE, RC = 1, 2

		ctx = Context(name='weft_lo')
		print(ctx.query_device())
		pd = PD(ctx)
		mr = MR(pd, 4096, LOCAL_WRITE)
		mr.write('weft', 4)
		assert mr.read(4, 0) == b'weft'
		cq = CQ(ctx, 16)
		qp = QP(pd, QPInitAttr(qp_type=RC, scq=cq, rcq=cq, cap=QPCap()))
		assert qp.qp_num
		assert cq.poll() == (0, [])
	END
	one python3 /tmp/try.py
}

inside() {
	where=$1 run=/opt/weft-run/bin/weft-run log=/tmp/log
	check check-names-the-system check_names "^ok +Debian .*glibc"
	check discovery finds_devices
	check rping rpings
	check ibv_rc_pingpong pingpong
	check perftest perftests
	check pyverbs pyverbs
}

if [ "$1" = --inside ]; then
	. /tests/lab/pairs.sh
	inside "$2"
	exit
fi

. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lab/pairs.sh
. "$WEFT_TOP/tests/lab/pairs.sh"
dist=$WEFT_BUILD/portable
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
processor=$(uname -m) tools=
file() { echo "$dist/weft-run-$(weft_version)-$processor.tar.xz"; }

# --- the file ---

sums_agree() { (cd "$dist" && sha256sum -c "$(basename "$(file)").sha256"); }
is_small() { [ "$(stat -c %s "$(file)")" -le $((3 << 20)) ]; }

list_is_whole() {
	python3 - "$scratch/weft-run" "$(file | sed 's/tar.xz$/spdx.json/')" <<-'END'
		import hashlib, json, pathlib, sys
		tree = pathlib.Path(sys.argv[1])
		spdx = json.load(open(sys.argv[2]))
		assert spdx['spdxVersion'] == 'SPDX-2.3'
		listed = {f['fileName']: f['checksums'][1]['checksumValue'] for f in spdx['files']}
		there = {'./' + str(f.relative_to(tree.parent)): hashlib.sha256(f.read_bytes()).hexdigest()
		         for f in tree.rglob('*') if f.is_file()}
		assert listed == there, set(listed.items()) ^ set(there.items())
	END
}

# needs_only PATTERN OBJDUMP_OPTION: what objdump says of each binary that PATTERN does not know.
old_glibc_serves() {
	local binary newest
	while read -r binary; do
		newest=$("${tools}objdump" -T "$binary" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
		echo "$binary: $newest"
		[ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ]
		if "${tools}objdump" -p "$binary" | awk '$1 == "NEEDED" {print $2}' |
			grep -vE '^(libc|libdl|libpthread|libgcc_s|libibverbs|librdmacm|libweft-rootless)\.so'; then
			return 1
		fi
		# It has no path of where it was built.
		if grep -F -e "$WEFT_TOP" -e "$WEFT_CACHE" "$binary"; then return 1; fi
	done < <(find "$scratch/weft-run/bin" "$scratch/weft-run/lib" -type f ! -name '*.a' -exec grep -lP '^\x7fELF' {} +)
}

runs_from_another_place() {
	mkdir -p "$scratch/a,b/é"
	cp -R "$scratch/weft-run" "$scratch/a,b/é/other-name"
	run="$scratch/a,b/é/other-name/bin/weft-run" finds_devices
	run="$scratch/a,b/é/other-name/bin/weft-run" rpings
	(cd / && unprivileged "$scratch/a,b/é/other-name/bin/weft-run" --profile=mlx5 ibv_devices) | grep mlx5_0
	"$scratch/a,b/é/other-name/bin/weftspec" --check-table
}

refuses_a_place_that_the_loader_cannot_name() {
	local said
	mkdir "$scratch/a b"
	cp -R "$scratch/weft-run" "$scratch/a b"
	said=$("$scratch/a b/weft-run/bin/weft-run" true 2>&1) && return 1
	grep 'semicolon or space' <<<"$said"
}

# The release that a libibverbs is of stands in its file's name; what is wrong is said.
tells_what_is_missing() {
	local said
	cp -R "$scratch/weft-run" "$scratch/less"
	rm -r "$scratch/less/lib/weft/rdma-core"
	mkdir "$scratch/less/lib/weft/rdma-core"
	said=$("$scratch/less/bin/weft-run" --check) && return 1
	grep 'PROBLEM libibverbs has the private ABI' <<<"$said"
}

# provider_of NAME: which provider is chosen if this machine's libibverbs has that file name.
provider_of() {
	rm -rf "$scratch/verbs"
	mkdir "$scratch/verbs"
	cp "$(realpath "$(installed_libibverbs)")" "$scratch/verbs/$1"
	ln -s "$1" "$scratch/verbs/libibverbs.so.1"
	LD_LIBRARY_PATH=$scratch/verbs unprivileged "$run" --check | sed -n 's,^ok *provider .*/rdma-core/,,p'
}

# What has changed within the private ABI 34; an unknown release counts as the newest.
chooses_by_release() {
	[ "$(provider_of libibverbs.so.1.11.34.1)" = 34/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1.12.35.0)" = 35/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1.13.36.2)" = 36/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1.14.39.0)" = 37/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1.14.44.1)" = 44/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1.14.50.0)" = 45/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1.14.56.1)" = 45/libweft-rdmav34.so ]
	[ "$(provider_of libibverbs.so.1)" = 45/libweft-rdmav34.so ]
}

is_reproducible() {
	"$WEFT_TOP/scripts/build-portable.sh" "$scratch/again/in/a/deeper/folder"
	cmp "$(file)" "$scratch/again/in/a/deeper/folder/$(basename "$(file)")"
	cmp "$(file | sed 's/tar.xz$/spdx.json/')" "$scratch"/again/in/a/deeper/folder/*.spdx.json
}

of_the_file() {
	where=portable log=$scratch/log
	tar -C "$scratch" -xf "$(file)"
	run=$scratch/weft-run/bin/weft-run
	check sums-agree sums_agree
	check is-at-most-3-MB is_small
	check list-of-its-content-is-whole list_is_whole
	check glibc-2.28-serves old_glibc_serves
	check check-names-the-system check_names '^ok +rdma-core [0-9]+\.[0-9]+, private ABI [0-9]+: /'
	check runs-from-another-place runs_from_another_place
	check refuses-a-place-that-the-loader-cannot-name refuses_a_place_that_the_loader_cannot_name
	check tells-what-is-missing tells_what_is_missing
	check chooses-the-provider-by-release chooses_by_release
	check is-reproducible is_reproducible
	echo "1..$n"
}

# --- for another processor ---

# What weft-run would do: exec() in an emulator is this host's.
emulated() {
	timeout -k 2 60 qemu-aarch64 -L "$sysroot" -E LD_PRELOAD="$scratch/weft-run/lib/weft/libweft-rootless.so" \
		-E IBV_DRIVERS="$scratch/weft-run/lib/weft/rdma-core/44/libweft" "$sysroot/usr/bin/$1" "${@:2}"
}

emulated_check() { timeout -k 2 60 qemu-aarch64 -L "$sysroot" "$run" --check; }
checks_itself() {
	local said
	said=$(emulated_check)
	echo "$said"
	! grep -q PROBLEM <<<"$said" || return 1
	grep 'provider .*/rdma-core/44/libweft-rdmav34.so' <<<"$said"
}
emulated_devices() { emulated ibv_devinfo -d weft_lo | grep -E 'state:.*ACTIVE'; }
emulated_rping() { rping emulated emulated 7174 rping -a 127.0.0.1 -C 20 -S 4000 -V -- -s -- -c; }
meets_this_host() {
	rping emulated this_host 7174 rping -a 127.0.0.1 -C 20 -S 4000 -V -- -s -- -c
	rping this_host emulated 7174 rping -a 127.0.0.1 -C 20 -S 4000 -V -- -s -- -c
}
this_host() { unprivileged "$WEFT_BUILD/portable/weft-run/bin/weft-run" "$@"; }
weftspec_runs() { timeout -k 2 60 qemu-aarch64 -L "$sysroot" "$scratch/weft-run/bin/weftspec" --check-table; }

of_foreign() {
	processor=aarch64 tools=aarch64-linux-gnu- dist=$WEFT_BUILD/portable/aarch64
	where=$processor log=$scratch/log
	need qemu-aarch64 "${tools}objdump"
	# And this host's.
	ARCH='' "$WEFT_TOP/scripts/build-portable.sh" >&2
	sysroot=$("$WEFT_TOP/scripts/fetch-sysroot.sh" arm64)
	tar -C "$scratch" -xf "$(file)"
	run=$scratch/weft-run/bin/weft-run
	check sums-agree sums_agree
	check is-at-most-3-MB is_small
	check list-of-its-content-is-whole list_is_whole
	check glibc-2.28-serves old_glibc_serves
	check check-chooses-the-provider checks_itself
	check discovery emulated_devices
	check rping emulated_rping
	check rping-with-this-host meets_this_host
	check weftspec-runs weftspec_runs
	echo "1..$n"
}

# --- other releases of rdma-core ---

# build_verbs TREE: its libraries and small programs; prints the folder.
build_verbs() {
	local out
	out=$WEFT_CACHE/rdma-core-built/$(basename "$1")
	if [ ! -e "$out/done" ]; then
		say "building $(basename "$1") of rdma-core"
		logged "$out.configure.log" cmake -GNinja -S "$1" -B "$out" -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 \
			-DCMAKE_BUILD_TYPE=Debug
		logged "$out.build.log" ninja -C "$out" lib/libibverbs.so.1 lib/librdmacm.so.1 bin/rping bin/ibv_devinfo \
			bin/ibv_rc_pingpong bin/ucmatose
		touch "$out/done"
	fi
	echo "$out"
}

# shellcheck disable=SC2317 # called by check
names_release() { check_names "^ok +rdma-core ${where%.*}\."; }

of_source() {
	local built
	where=$(basename "$1" | sed 's/^v//')
	# Where every user may read it.
	built=$scratch/$where
	mkdir "$built"
	cp -R "$(build_verbs "$1")"/{bin,lib} "$built"
	export LD_LIBRARY_PATH=$built/lib PATH=$built/bin:$PATH
	check check-names-the-release names_release
	check discovery finds_devices
	check rping rpings
	check ibv_rc_pingpong pingpong
	check ucmatose both one one 7471 ucmatose -c 4 -C 30 -S 4000 -- -- -s 127.0.0.1
}

of_sources() {
	local tree
	log=$scratch/log
	tar -C "$scratch" -xf "$(file)"
	run=$scratch/weft-run/bin/weft-run
	for tree in "$1"/*/; do
		(n=0 && of_source "${tree%/}" && echo "1..$n")
	done
}

[ "$1" != --foreign ] || export ARCH=aarch64
"$WEFT_TOP/scripts/build-portable.sh" >&2
set +e
case $1 in
--file) of_the_file ;;
--foreign) of_foreign ;;
--sources) of_sources "$2" ;;
*)
	for release; do
		root=$("$WEFT_TOP/scripts/fetch-release-root.sh" "$release" portable) || die "no root of $release"
		"$WEFT_TOP/scripts/in-root.sh" "$root" --at "$dist/weft-run:/opt/weft-run" --at "$WEFT_TOP/tests:/tests" \
			bash /tests/packages/portable.sh --inside "$release"
	done
	echo "1..$((6 * $#))"
	;;
esac
