#!/usr/bin/env bash
# Fetches Debian packages by name and unpacks them in the cache, without installing anything:
#   fetch.sh SUITE PACKAGE...    SUITE: bookworm, bookworm-backports or sid
# The linux-* packages that these depend on come along (linux-image-amd64, say, only names
# the current image; headers come in three parts). Prints the folder that holds the unpacked packages. The folder's name has the first
# package's version, so a new release is a new entry and an old one stays usable offline.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

suite=$1
shift
need apt-get dpkg flock

# A private list of sources with its own state: the machine's own apt stays as it is.
# The mirror, its proxy and its keys are the machine's own.
state=$WEFT_CACHE/apt/$suite

apt_private() {
	local tool=$1
	shift
	"$tool" -qq -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$state/lists" -o Dir::Cache="$state/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}

# The machine's own Debian mirrors of the base release, one line per repository:
# "URI CODENAME".
machine_mirrors() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' \
		'Created-By: Packages' | awk '$3 == "Debian" && !seen[$0]++ {print $1, $2}'
}

write_sources() {
	local mirrors base keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mirrors=$(machine_mirrors)
	base=$(awk '$2 !~ /-/ {print $1; exit}' <<<"$mirrors")
	[ -n "$base" ] || die "apt knows no Debian mirror yet; run 'make deps' (or apt-get update) first"
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	if [ "$suite" = bookworm ]; then
		# With the updates and security repositories that the machine has.
		awk -v k="$keyring" '{print "deb [signed-by=" k "]", $1, $2, "main"}' <<<"$mirrors"
	else
		echo "deb [signed-by=$keyring] $base $suite main"
	fi >"$state/sources.list"
}

update() {
	write_sources
	say "apt: reading the package lists of $suite"
	apt_private apt-get update >&2 || return 1
	touch "$state/updated"
}

# Lists older than a week are read again; when that fails, the old ones serve.
refresh() {
	if [ ! -e "$state/updated" ]; then
		update || die "cannot read the package lists of $suite"
	elif [ -n "$(find "$state/updated" -mtime +6)" ]; then
		update || say "going on with the old package lists of $suite"
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

download() {
	(cd "$1" && shift && apt_private apt-get download "$@" >&2)
}

fill() {
	local version dir tmp deb all
	refresh
	version=$(version_of "$1")
	[ -n "$version" ] || die "$suite has no package $1"
	dir=$WEFT_CACHE/pkg/${1}_$version
	if [ ! -d "$dir" ]; then
		mkdir -p "$WEFT_CACHE/pkg"
		tmp=$(mktemp -d "$WEFT_CACHE/pkg/.tmp.XXXXXX")
		# shellcheck disable=SC2064 # tmp's value of now
		trap "rm -rf '$tmp'" EXIT
		say "fetching $* ($version)"
		read -ra all <<<"$(with_kernel_parts "$@")"
		# A version that has left the mirror: read the lists again.
		download "$tmp" "${all[@]}" || { update && download "$tmp" "${all[@]}"; } ||
			die "cannot download $* of $suite"
		for deb in "$tmp"/*.deb; do
			dpkg -x "$deb" "$tmp/root"
			rm "$deb"
		done
		chmod 755 "$tmp/root"
		mv "$tmp/root" "$dir"
	fi
	echo "$dir"
}

with_lock "fetch-$suite" fill "$@"
