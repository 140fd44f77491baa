#!/usr/bin/env bash
# Installs the packages of scripts/packages that are missing, the only step that needs root.
#   install-packages.sh [PACKAGE...]   and these
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need apt-get dpkg-query

missing=()
while read -r package; do
	case $package in '' | '#'*) continue ;; esac
	dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
		missing+=("$package")
done < <(cat "$WEFT_TOP/scripts/packages" && printf '%s\n' "$@")
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
[ "$(id -u)" = 0 ] || need sudo
say "installing ${missing[*]}"
# Servers that come with it are for tests to start, not for the machine: neither now nor at boot. What was
# there before stays as it was.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap '"${sudo[@]}" rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" install -m 755 /dev/stdin $policy
fi
"${sudo[@]}" apt-get -o DPkg::Lock::Timeout=600 update
# tshark asks a question otherwise.
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
	install -y --no-install-recommends "${missing[@]}"
for unit in redis-server nginx postgresql; do
	# nginx is nginx-light's.
	[[ " ${missing[*]} " != *" $unit"* ]] || [ ! -d /run/systemd/system ] ||
		"${sudo[@]}" systemctl -q disable "$unit"
done
