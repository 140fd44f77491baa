#!/usr/bin/env bash
# Fetches an rdma-core source in the cache and prints its folder:
#   fetch-rdma-core.sh installed [ROOT]   the release of the libibverbs that is installed here, or in a
#                                  root folder; if its source cannot be had, another release with the
#                                  same private ABI
#   fetch-rdma-core.sh pabi N      the newest release that Debian has with this private ABI
#   fetch-rdma-core.sh newest      the newest release that Debian has
#   fetch-rdma-core.sh version V   this one, as Debian calls it
# WEFT_RDMA_CORE=FOLDER: a source tree of your own, which is printed as it is.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$(dirname "$0")/apt.sh"

want=${1:?installed, pabi, newest or version} version=${2-} root=${2-}
if [ -n "${WEFT_RDMA_CORE:-}" ]; then
	[ -e "$WEFT_RDMA_CORE/libibverbs/driver.h" ] || die "$WEFT_RDMA_CORE is no rdma-core source"
	realpath "$WEFT_RDMA_CORE"
	exit
fi
need apt-get dpkg-query dpkg-source tar nm flock

apt_state=$WEFT_CACHE/apt/rdma-core apt_retries=1

# The machine's own suites, and the later ones on the same mirror.
print_sources() {
	local mirrors base suite
	base=$(base_mirror) || exit
	mirrors=$(machine_mirrors)
	awk -v k="$apt_keyring" '{print "deb-src [signed-by=" k "]", $1, $2, "main"}' <<<"$mirrors"
	for suite in trixie sid; do
		grep -q " $suite\$" <<<"$mirrors" ||
			echo "deb-src [signed-by=$apt_keyring] $base $suite main"
	done
}

# The private ABI stands in the name of the function that providers register with.
installed_pabi() {
	local lib pabi
	if [ -n "$root" ]; then
		lib=$(echo "$root"/usr/lib/*/libibverbs.so.1)
	else
		lib=$(installed_libibverbs)
	fi
	pabi=$(nm -D "$lib" | sed -n 's/.* verbs_register_driver_\([0-9]*\).*/\1/p')
	[ -n "$pabi" ] || die "cannot tell the private ABI of $lib"
	echo "$pabi"
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

# Why releases cannot be had. Nothing of that is worth a word if another one serves.
refusals=$WEFT_CACHE/rdma-core/.refusals

# fetch VERSION: prints the folder; if that version cannot be had, notes why and fails.
fetch() {
	local dir=$WEFT_CACHE/rdma-core/$1 tmp
	if [ ! -d "$dir" ]; then
		tmp=$(mktemp -d "$WEFT_CACHE/rdma-core/.tmp.XXXXXX")
		say "fetching the source of rdma-core $1"
		fetch_package "$1" "$tmp" >"$tmp/log" 2>&1 ||
			fetch_tarball "$1" "$tmp" >>"$tmp/log" 2>&1 || {
			{ grep '^E: ' "$tmp/log" || tail -n 1 "$tmp/log"; } | sed "s/^/rdma-core $1: /" >>"$refusals"
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
	local installed version pabi has note dir
	# shellcheck disable=SC2016 # dpkg-query's own
	installed=$(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${source:Version}' libibverbs1)
	pabi=$(installed_pabi)
	note=$WEFT_CACHE/rdma-core/for-$installed
	if [ -e "$note" ] && [ -d "$(cat "$note")" ]; then
		cat "$note"
		return
	fi
	refresh_lists 'the sources of rdma-core'
	for version in "$installed" $(versions | grep -vxF "$installed"); do
		dir=$(fetch "$version") || continue
		has=$(source_pabi "$dir")
		[ "$has" = "$pabi" ] || {
			echo "rdma-core $version: its private ABI is $has" >>"$refusals"
			continue
		}
		[ "$version" = "$installed" ] ||
			say "taking rdma-core $version, which has the private ABI of $installed ($pabi)"
		echo "$dir" >"$note"
		echo "$dir"
		return
	done
	die_refused "no source of rdma-core with private ABI $pabi can be had; see WEFT_RDMA_CORE in $0"
}

# What is in the cache will do.
fetch_pabi() {
	local want=$version version dir
	for dir in $(printf '%s\n' "$WEFT_CACHE"/rdma-core/[0-9]* | sort -V -r); do
		[ "$(source_pabi "$dir")" != "$want" ] || { echo "$dir" && return; }
	done
	refresh_lists 'the sources of rdma-core'
	for version in $(versions | tac); do
		dir=$(fetch "$version") || continue
		[ "$(source_pabi "$dir")" != "$want" ] || { echo "$dir" && return; }
	done
	die_refused "no source of rdma-core with private ABI $want can be had"
}

fetch_newest() {
	local version dir
	refresh_lists 'the sources of rdma-core'
	for version in $(versions | tac); do
		dir=$(fetch "$version") || continue
		echo "$dir"
		return
	done
	die_refused "no source of rdma-core can be had"
}

fetch_version() {
	refresh_lists 'the sources of rdma-core'
	fetch "$version" || die_refused "rdma-core $version cannot be had"
}

die_refused() {
	cat "$refusals" >&2
	die "$*"
}

fetch_any() {
	mkdir -p "$WEFT_CACHE/rdma-core"
	: >"$refusals"
	"fetch_$want"
}

with_lock rdma-core fetch_any
