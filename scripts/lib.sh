# shellcheck shell=bash
# What every script here shares: where things are, how to talk, how to fill the cache.
# Sourced, never run. The scripts change nothing outside the checkout's build/ and the cache folder.

set -euo pipefail

WEFT_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
WEFT_BUILD=$WEFT_TOP/build
WEFT_CACHE=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}
export WEFT_TOP WEFT_BUILD WEFT_CACHE

# Progress goes past the logs that a caller makes of stderr, if it opened a way (WEFT_SAY).
say() { printf '%s\n' "weft: $*" >&"${WEFT_SAY:-2}"; }

die() {
	say "$*"
	exit 1
}

# need COMMAND...: stop early, with the way out, when a tool is missing.
need() {
	local tool
	for tool; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
			die "$tool is missing; 'make deps' installs it"
	done
}

# with_lock NAME COMMAND...: two runs at once must not fill one cache entry.
with_lock() {
	local name=$1
	shift
	mkdir -p "$WEFT_CACHE/lock"
	(
		flock 9
		# 9>&-: nothing started in here may keep the lock after it.
		"$@" 9>&-
	) 9>"$WEFT_CACHE/lock/$name"
}

# logged FILE COMMAND...: run quietly; on failure show the end of the log.
logged() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		say "failed: $* (whole log: $log)"
		return 1
	}
}
