#!/usr/bin/env bash
# Programs under an older weft-run against this one's, TAP: what docs/stability.md says of ends of different versions.
#   upgrade.sh REVISION=BYHAND...    a commit, and its version of the wire of QPs connected by hand
# Each is built in a clone, in the cache.
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lab/pairs.sh
. "$WEFT_TOP/tests/lab/pairs.sh"
need git unshare ip

build_old() {
	local tree=$WEFT_CACHE/old/$1
	[ ! -e "$tree/build/bin/weft-run" ] || return 0
	rm -rf "$tree"
	mkdir -p "$WEFT_CACHE/old"
	git -C "$WEFT_TOP" rev-parse -q --verify "$1^{commit}" >/dev/null || die "no commit $1: is this clone complete?"
	git clone -q "$WEFT_TOP" "$tree"
	git -C "$tree" checkout -q "$1"
	say "building weft-run of $1"
	logged "$WEFT_CACHE/old/$1.log" make -C "$tree" rootless
}

if [ "$1" != --inside ]; then
	make -C "$WEFT_TOP" -s rootless >&2
	for old; do with_lock old build_old "${old%=*}"; done
	map=()
	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	# Ports of a namespace of its own.
	exec unshare "${map[@]}" --net --pid --fork --kill-child --mount-proc bash "$0" --inside "$@"
fi

shift
ip link set lo up
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck source-path=SCRIPTDIR source=tap.sh
. "$WEFT_TOP/tests/packages/tap.sh"
set +e

old_end() { timeout -k 2 60 "$WEFT_CACHE/old/$revision/build/bin/weft-run" "$@"; }
new_end() { timeout -k 2 60 "$WEFT_BUILD/bin/weft-run" "$@"; }

rpings() { rping "$1" "$2" 7174 rping -a 127.0.0.1 -C 20 -S 4000 -V -- -s -- -c; }
writes() { perftest "$1" "$2" ib_write_bw && perftest "$1" "$2" ib_send_lat; }

# The GID table of each: before 28 November the IPv4 address was first, and a link-local one was not known.
gid_of() { "$1" ibv_devinfo -v -d weft_lo | sed -n 's/.*GID\[ *\([0-9]*\)\]:.*ffff:127.0.0.1.*/\1/p' | head -n 1; }
pingpong() { both "$1" "$2" 18515 "${@:3}" -d weft_lo -n 200 -- -g "$(gid_of "$1")" -- -g "$(gid_of "$2")" 127.0.0.1; }
by_hand() { pingpong "$1" "$2" ibv_rc_pingpong; }
datagrams() { pingpong "$1" "$2" ibv_ud_pingpong -s 500; }

# As if no peer were there, and at once enough for a test.
by_hand_is_refused() {
	local said
	said=$(by_hand "$@" 2>&1) && return 1
	echo "$said"
	grep 'Failed status transport retry counter exceeded' <<<"$said"
}

# An end without that option is a plain program of TCP, as which it may call one that has it, and not be called.
has_sockets() { "$1" --help | grep -q -e --sockets; }
of_sockets() {
	local option=
	! has_sockets "$1" || option=--sockets
	# shellcheck disable=SC2086 # one, or none
	"$1" $option "${@:2}"
}
of_sockets_old_end() { of_sockets old_end "$@"; }
of_sockets_new_end() { of_sockets new_end "$@"; }
sockets() { both "of_sockets_$1" "of_sockets_$2" 5201 iperf3 -- -s -1 -- -c 127.0.0.1 -n 20M; }

now=$(sed -n 's/^#define RL_BYHAND_VERSION \([0-9]*\)/\1/p' "$WEFT_TOP/providers/rootless/roce/byhand.h")
for old; do
	revision=${old%=*}
	for ends in 'old_end new_end' 'new_end old_end'; do
		where=$revision/${ends%%_*}-server
		# shellcheck disable=SC2086 # two words
		{
			check rping rpings $ends
			check perftest writes $ends
			if [ "$now" = "${old#*=}" ]; then
				check by-hand by_hand $ends
			else
				check by-hand-is-refused by_hand_is_refused $ends
			fi
			check datagrams datagrams $ends
			! has_sockets "${ends% *}" || check sockets sockets $ends
		}
	done
done
echo "1..$n"
