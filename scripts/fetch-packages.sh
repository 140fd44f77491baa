#!/usr/bin/env bash
# Fetches Debian packages by name and unpacks them in the cache, without installing anything:
#   fetch-packages.sh SUITE[/ARCHITECTURE] PACKAGE...    SUITE: bookworm, bookworm-backports, sid, or another of the
#                                                        mirror's; ARCHITECTURE as Debian calls it: arm64
# The linux-* packages that these depend on come along (linux-image-amd64, say, only names
# the current image; headers come in three parts). Prints the folder that holds the unpacked
# packages. The folder's name has the first package's version, so a new release is a new entry
# and an old one stays usable offline.
# Environment: WEFT_CACHED_ONLY  if set, fails rather than fetch anything
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$(dirname "$0")/apt.sh"

suite=${1%/*} arch=
[ "$suite" = "$1" ] || arch=${1#*/}
shift
need apt-get dpkg flock
apt_state=$WEFT_CACHE/apt/$suite${arch:+-$arch} apt_retries=3
[ -z "$arch" ] || apt_options=(-o APT::Architecture="$arch" -o APT::Architectures="$arch")

print_sources() {
	local base
	base=$(base_mirror) || exit
	if [ "$suite" = bookworm ]; then
		# With the updates and security repositories that the machine has.
		machine_mirrors | awk -v k="$apt_keyring" '{print "deb [signed-by=" k "]", $1, $2, "main"}'
	else
		echo "deb [signed-by=$apt_keyring] $base $suite main"
	fi
}

version_of() {
	apt_private apt-cache show --no-all-versions "$1" | sed -n 's/^Version: //p' | head -n 1
}

# The packages named and, of what they depend on, the parts of a kernel.
with_kernel_parts() {
	local todo=("$@") seen=' ' pkg dep
	while [ ${#todo[@]} -gt 0 ]; do
		pkg=${todo[0]}
		todo=("${todo[@]:1}")
		case $seen in *" $pkg "*) continue ;; esac
		seen+="$pkg "
		for dep in $(apt_private apt-cache depends --important "$pkg" |
			sed -nE 's/^ *\|?(Pre)?Depends: (linux-(image|headers|kbuild|source)-.*)/\2/p'); do
			todo+=("$dep")
		done
	done
	echo "$seen"
}

# download FOLDER PACKAGE...
download() {
	(cd "$1" && shift && apt_private apt-get download "$@") >>"$apt_state/log" 2>&1
}

# Of a version that has left the mirror, once more with new lists. apt's words about the first time
# are no error, if the second succeeds.
download_or_refresh() {
	download "$@" && return
	read_lists "$suite" && download "$@" && return
	cat "$apt_state/log" >&2
	die "cannot download ${*:2} of $suite"
}

fill() {
	local version dir tmp deb all
	[ -n "${WEFT_CACHED_ONLY-}" ] || refresh_lists "the packages of $suite"
	version=$(version_of "$1")
	[ -n "$version" ] || die "$suite has no package $1"
	dir=$WEFT_CACHE/pkg/${1}_$version${arch:+_$arch}
	if [ ! -d "$dir" ]; then
		[ -z "${WEFT_CACHED_ONLY-}" ] || die "$1 ($version) is not in the cache"
		mkdir -p "$WEFT_CACHE/pkg"
		tmp=$(mktemp -d "$WEFT_CACHE/pkg/.tmp.XXXXXX")
		# shellcheck disable=SC2064 # tmp's value of now
		trap "rm -rf '$tmp'" EXIT
		say "fetching $* ($version)"
		read -ra all <<<"$(with_kernel_parts "$@")"
		download_or_refresh "$tmp" "${all[@]}"
		for deb in "$tmp"/*.deb; do
			dpkg -x "$deb" "$tmp/root"
			rm "$deb"
		done
		chmod 755 "$tmp/root"
		mv "$tmp/root" "$dir"
	fi
	echo "$dir"
}

with_lock "fetch-$suite${arch:+-$arch}" fill "$@"
