#!/usr/bin/env bash
# Fetches an rdma-core source in the cache and prints its folder:
#   fetch-rdma-core.sh installed   the release of the installed libibverbs; if its source cannot
#                                  be had, another release with the same private ABI
#   fetch-rdma-core.sh newest      the newest release that Debian has
# WEFT_RDMA_CORE=FOLDER: a source tree of your own, which is printed as it is.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

want=${1:?installed or newest}
if [ -n "${WEFT_RDMA_CORE:-}" ]; then
	[ -e "$WEFT_RDMA_CORE/libibverbs/driver.h" ] || die "$WEFT_RDMA_CORE is no rdma-core source"
	realpath "$WEFT_RDMA_CORE"
	exit
fi
need apt-get dpkg-query dpkg-source tar nm flock

state=$WEFT_CACHE/apt/rdma-core
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Lists and downloads of our own; mirror, proxy and keys are the machine's.
apt_private() {
	local tool=$1
	shift
	"$tool" -qq -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$state/lists" -o Dir::Cache="$state/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=1 "$@"
}

machine_mirrors() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' \
		'Created-By: Packages' | awk '$3 == "Debian" && !seen[$0]++ {print $1, $2}'
}

# The machine's own suites, and the later ones on the same mirror.
write_sources() {
	local mirrors base suite
	mirrors=$(machine_mirrors)
	base=$(awk '$2 !~ /-/ {print $1; exit}' <<<"$mirrors")
	[ -n "$base" ] || die "apt knows no Debian mirror yet; run 'make deps' (or apt-get update) first"
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	{
		awk -v k="$keyring" '{print "deb-src [signed-by=" k "]", $1, $2, "main"}' <<<"$mirrors"
		for suite in trixie sid; do
			grep -q " $suite\$" <<<"$mirrors" ||
				echo "deb-src [signed-by=$keyring] $base $suite main"
		done
	} >"$state/sources.list"
}

update() {
	[ -n "$(find "$state/updated" -mtime -6 2>/dev/null)" ] && return
	write_sources
	say "apt: reading the lists of sources"
	if apt_private apt-get update >&2; then
		touch "$state/updated"
	else
		[ -e "$state/updated" ] || die "cannot read the lists of Debian's sources"
		say "going on with the old lists of sources"
	fi
}

# The file that every provider is linked against.
installed_library() {
	local lib
	lib=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk '$1 == "libibverbs.so.1" && !n++ {print $NF}')
	[ -n "$lib" ] || die "libibverbs is not installed; 'make deps' installs it"
	echo "$lib"
}

# The private ABI stands in the name of the function that providers register with.
installed_pabi() {
	local pabi
	pabi=$(nm -D "$(installed_library)" | sed -n 's/.* verbs_register_driver_\([0-9]*\).*/\1/p')
	[ -n "$pabi" ] || die "cannot tell the private ABI of $(installed_library)"
	echo "$pabi"
}

source_pabi() {
	sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)")/\1/p' "$1/CMakeLists.txt"
}

# The whole source package, Debian's patches applied.
fetch_package() (
	cd "$2"
	apt_private apt-get source --download-only "rdma-core=$1" &&
		dpkg-source -q --no-check -x ./*.dsc tree
)

# A mirror may lack some of a package's files: the upstream tarball alone will do. apt does not
# name a file that lies in the current folder, so this begins in an empty one.
fetch_tarball() (
	rm -rf "$2/tree"
	mkdir "$2/tree" "$2/orig"
	cd "$2/orig"
	read -r uri name hash < <(apt_private apt-get source --print-uris "rdma-core=$1" |
		sed -nE "s/^'([^']*)' ([^ ]*\.orig\.tar\.[a-z0-9]*) [0-9]* (.*)/\1 \2 \3/p")
	apt_private /usr/lib/apt/apt-helper download-file "$uri" "$name" "$hash" &&
		tar -C ../tree --strip-components=1 -xf "$name"
)

# fetch VERSION: prints the folder, fails if that version cannot be had.
fetch() {
	local dir=$WEFT_CACHE/rdma-core/$1 tmp
	if [ ! -d "$dir" ]; then
		mkdir -p "$WEFT_CACHE/rdma-core"
		tmp=$(mktemp -d "$WEFT_CACHE/rdma-core/.tmp.XXXXXX")
		say "fetching the source of rdma-core $1"
		fetch_package "$1" "$tmp" >"$tmp/log" 2>&1 ||
			fetch_tarball "$1" "$tmp" >>"$tmp/log" 2>&1 || {
			grep '^E: ' "$tmp/log" | head -n 1 >&2
			rm -rf "$tmp"
			return 1
		}
		# A folder appears under its name only when it is whole.
		mv "$tmp/tree" "$dir"
		rm -rf "$tmp"
	fi
	echo "$dir"
}

# Versions on the mirror, oldest first.
versions() {
	apt_private apt-cache showsrc --only-source rdma-core | sed -n 's/^Version: //p' |
		sort -u -V
}

# What was found for this libibverbs is remembered, so that the next call needs no mirror.
fetch_installed() {
	local installed version pabi note dir
	installed=$(dpkg-query -W -f '${source:Version}' libibverbs1)
	pabi=$(installed_pabi)
	note=$WEFT_CACHE/rdma-core/for-$installed
	if [ -e "$note" ] && [ -d "$(cat "$note")" ]; then
		cat "$note"
		return
	fi
	update
	for version in "$installed" $(versions | grep -vxF "$installed"); do
		dir=$(fetch "$version") || continue
		[ "$(source_pabi "$dir")" = "$pabi" ] || continue
		[ "$version" = "$installed" ] ||
			say "taking rdma-core $version, which has the private ABI of $installed ($pabi)"
		echo "$dir" >"$note"
		echo "$dir"
		return
	done
	die "no source of rdma-core with private ABI $pabi can be had; see WEFT_RDMA_CORE in $0"
}

fetch_newest() {
	local version dir
	update
	for version in $(versions | tac); do
		dir=$(fetch "$version") || continue
		echo "$dir"
		return
	done
	die "no source of rdma-core can be had"
}

with_lock rdma-core "fetch_$want"
