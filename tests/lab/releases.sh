#!/usr/bin/env bash
# weft-run with the rdma-core of later releases of Debian: their own programs, in a root folder of each,
# among themselves and with this host's; TAP.
#   releases.sh RELEASE...      trixie, sid
#   releases.sh --driver RELEASE   the suite release: those programs over the driver, in user-mode Linux
# The provider is built from each release's source, beside this host's: build/releases/RELEASE.
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

# prepare RELEASE ROOT: fills /weft in the root.
prepare() {
	local out=$WEFT_BUILD/releases/$1 version source
	# shellcheck disable=SC2016 # dpkg-query's own
	version=$(dpkg-query --admindir="$2/var/lib/dpkg" -W -f '${source:Version}' libibverbs1)
	source=$("$WEFT_TOP/scripts/fetch-rdma-core.sh" version "$version")
	WEFT_RDMA_CORE=$source "$WEFT_TOP/scripts/build-provider.sh" "$out"
	mkdir -p "$out/bin"
	cp "$WEFT_BUILD/bin/weft-run" "$out/bin/"
	cp "$WEFT_BUILD"/lib/libweft-{rootless,sockets}.so "$out/lib/"
}

# In namespaces of their own: no port meets the host's, and nothing outlives the tests.
enter() {
	local map=()
	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	unshare "${map[@]}" --mount --net --pid --fork --kill-child bash "$0" --inside "$@"
}

# --- inside ---

n=0

# check NAME COMMAND...: one test.
check() {
	local name=$1 log=$logs/$1.log
	shift
	n=$((n + 1))
	if "$@" >"$log" 2>&1 </dev/null; then
		echo "ok $n - $release/$name"
	else
		echo "not ok $n - $release/$name # FAIL: $(tail -n 2 "$log" | paste -sd '|')"
	fi
}

# Each runs as user 65534, if possible.
as_nobody=(setpriv --no-new-privs)
there() { timeout -k 2 30 chroot "$root" "${as_nobody[@]}" /weft/bin/weft-run "$@"; }
here() { timeout -k 2 30 "${as_nobody[@]}" "$WEFT_BUILD/bin/weft-run" "$@"; }

# shellcheck source-path=SCRIPTDIR source=pairs.sh
. "$WEFT_TOP/tests/lab/pairs.sh"

run_all() {
	local pair program
	check ibv_devinfo there ibv_devinfo
	check weft-run-check there --check
	for pair in 'there there' 'there here' 'here there'; do
		# shellcheck disable=SC2086 # two words
		set -- $pair
		check "rping-$1-$2" rping "$1" "$2" 7174 rping -a 127.0.0.1 -C 20 -S 4000 -V -- -s -- -c
		check "ucmatose-$1-$2" both "$1" "$2" 7471 ucmatose -c 4 -C 30 -S 4000 -- -- -s 127.0.0.1
		for program in ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_send_lat; do
			check "$program-$1-$2" perftest "$1" "$2" "$program"
		done
	done
	# perftest of Debian 12 cannot do this yet.
	check ib_write_bw-with-immediate perftest there there ib_write_bw --write_with_imm
	echo "1..$n"
}

if [ "$1" = --inside ]; then
	release=$2 root=$3 logs=$4
	ip link set lo up
	mount -t proc none /proc
	mkdir -p "$root/weft"
	mount --bind "$WEFT_BUILD/releases/$release" "$root/weft"
	mount --rbind /dev "$root/dev"
	mount -t proc none "$root/proc"
	if setpriv --reuid=65534 --clear-groups true 2>/dev/null; then
		as_nobody+=(--reuid=65534 --regid=65534 --clear-groups)
	fi
	set +e
	run_all
	exit
fi

make -s -C "$WEFT_TOP/providers/rootless" >&2
if [ "$1" = --driver ]; then
	root=$("$WEFT_TOP/scripts/fetch-release-root.sh" "$2")
	prepare "$2" "$root"
	export RELEASE_ROOT=$root DRIVERS=weft PAIRS=weft:weft
	exec "$WEFT_TOP/tests/lab/run.sh" 7.2-smp release
fi
for release; do
	root=$("$WEFT_TOP/scripts/fetch-release-root.sh" "$release")
	prepare "$release" "$root"
	logs=$WEFT_BUILD/releases/$release/logs
	rm -rf "$logs"
	mkdir -p "$logs"
	enter "$release" "$root" "$logs"
done
