#!/usr/bin/env bash
# Teaches a checkout of blktests USE_WEFT=1: its tests over RDMA then run on devices of weft.
#   blktests-use-weft.sh DIR
# The files of DIR are changed where they know siw and rxe, each once: a second run changes nothing. It says
# which place it has not found, changes no file then, and fails.
# shellcheck disable=SC2016 # the expressions are perl's
set -euo pipefail

dir=${1:?the folder of a checkout of blktests}
if [ ! -x "$dir/check" ] || [ ! -d "$dir/tests/nvme" ]; then
	echo "$dir is no checkout of blktests" >&2
	exit 1
fi
cd "$dir"

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
missing=0

# edit FILE WHAT PERL: what the expression changes in FILE; it has not been found if nothing changed.
edit() {
	local file=$1 now=$new/$1
	mkdir -p "${now%/*}"
	[ -e "$now" ] || cp "$file" "$now"
	perl -0777 -pe "$3" "$now" >"$now.edited"
	if cmp -s "$now" "$now.edited"; then
		echo "not found in $file: $2" >&2
		missing=1
	fi
	mv "$now.edited" "$now"
}

# driver_of FILE: where FILE asks whether there is the driver.
driver_of() {
	edit "$1" 'the driver that is asked for' \
		's/if (\[ -n "\$USE_RXE" \]; then\s+(_have_\w+) rdma_rxe\b)/if [ -n "\$USE_WEFT" ]; then $2 weft; elif $1/'
}

if grep -q USE_WEFT common/multipath-over-rdma; then
	echo "$dir knows USE_WEFT"
	exit
fi
edit common/multipath-over-rdma 'which driver start_soft_rdma loads' \
	's/if (\[ -z "\$USE_RXE" \]; then\s+modprobe siw\b)/if [ -n "\$USE_WEFT" ]; then\n\t\tmodprobe weft || return \$?\n\t\ttype=weft\n\telif $1/'
edit common/multipath-over-rdma 'where stop_soft_rdma unloads drivers' \
	's/^(stop_soft_rdma\(\) .*?\n)(\s*)(if ! |)(_\w+) rdma_rxe\b( \d+|)/$1$2$4 weft$5 || return 1\n$2$3$4 rdma_rxe$5/ms'
# Before August 2025 it stood in tests/nvme/rc.
nvme=common/nvme
grep -qs rdma_rxe $nvme || nvme=tests/nvme/rc
driver_of $nvme
driver_of tests/srp/rc
edit tests/rnbd/rc 'that it wants rxe' \
	's/\[\[ "\$USE_RXE" != 1 \]\]/[[ "\$USE_RXE" != 1 \&\& "\$USE_WEFT" != 1 ]]/'
edit tests/rnbd/rc 'the driver that is asked for' \
	's/(_have_driver) rdma_rxe\b/if [[ "\$USE_WEFT" == 1 ]]; then $1 weft; else $1 rdma_rxe; fi/'

[ $missing = 0 ] || exit 1
# The files keep their modes.
(cd "$new" && find . -type f) | while read -r file; do cat "$new/$file" >"$file"; done
echo "$dir: USE_WEFT=1 is understood"
