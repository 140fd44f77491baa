# shellcheck shell=bash
# The driver and the programs of a later release of Debian: features that Debian 12's perftest lacks, and
# the two releases with each other. `tests/lab/releases.sh --driver RELEASE` prepares it.
# Environment: RELEASE_ROOT  a root folder of that release

PAIRS=${PAIRS:-weft:weft}

tests() {
	local release=${RELEASE_ROOT##*/} program
	[[ $PAIRS = *weft:weft* && -n $release ]] || return 0
	echo "rping-$release-$release rping_between there there"
	echo "rping-$release-here rping_between there here"
	echo "rping-here-$release rping_between here there"
	for program in ib_write_bw ib_write_lat; do
		echo "$release-$program-with-immediate with_immediate 1 $program -n 500"
		echo "$release-$program-with-immediate-all-sizes with_immediate 23 $program -a -n 20"
	done
	echo "$release-ib_write_bw-with-immediate-16-qps with_immediate 1 ib_write_bw -q 16 -n 100"
}

# How a program begins in either release. The machine lives for this suite alone, and so do the mounts.
# shellcheck disable=SC2034 # by its name
here=(env)
there=(chroot "$RELEASE_ROOT" env IBV_DRIVERS=/mnt/lib/libweft)

enter_release() {
	local dir
	pair weft:weft
	mountpoint -q "$RELEASE_ROOT/mnt" && return
	mount --bind "$WEFT_TOP/build/releases/${RELEASE_ROOT##*/}" "$RELEASE_ROOT/mnt" || fail "no provider"
	for dir in dev proc sys; do
		mount --rbind /$dir "$RELEASE_ROOT/$dir" || fail "no /$dir in $RELEASE_ROOT"
	done
}

# rping_between here|there here|there: the server's release, and the client's.
rping_between() {
	local -n server=$1 client=$2
	local rping=(rping -a "$IP_B" -C 20 -S 4000 -V)
	enter_release
	together 7174 "${server[@]}" "${rping[@]}" -s -- "${client[@]}" "${rping[@]}" -c -v
	[ "$(grep -hc 'ping data' "$TEST_DIR/${client[0]}.log")" = 20 ] || fail "not 20 pings came back"
}

# with_immediate N PROGRAM [OPT...]: the receiver takes a completion for each Write, and it prints N
# lines of figures.
with_immediate() {
	local n command=("${there[@]}" "$2" -R -F --write_with_imm "${@:3}")
	enter_release
	together 18515 "${command[@]}" -d "$DEV_B" -- "${command[@]}" -d "$DEV_A" "$IP_B"
	n=$(grep -cE '^ *[0-9]+ +[0-9]+ ' "$TEST_DIR/chroot.log")
	[ "$n" = "$1" ] || fail "$n lines of figures, not $1"
}
