#!/usr/bin/env bash
# Builds the Debian packages, each release's in a root folder of that release:
#   build-deb.sh [--next] [RELEASE...]     bookworm and trixie
#     --next    as a later version, for those who try an upgrade
# Leaves build/deb/RELEASE/*.deb (with --next build/deb/RELEASE-next/*.deb) and, in the folder weft beside
# them, what they were built in. The packages' versions have the release, so that those of a later
# release are later versions.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need git rsync mmdebstrap unshare

next=
if [ "${1-}" = --next ]; then
	next=-next
	shift
fi
[ $# -gt 0 ] || set -- bookworm trixie

author() { git -C "$WEFT_TOP" config "user.$1" || echo "$2"; }
maintainer="$(author name 'The weft developers') <$(author email weft@localhost.localdomain)>"

# version ROOT: bookworm's is 0.1~deb12
version() {
	echo "$(weft_version)${next:+.1}~deb$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' "$1/etc/os-release")"
}

# sources FOLDER VERSION: the checkout with debian/, as it is now, but with the commit's time: dpkg keeps what is older.
sources() {
	local date
	rm -rf "$1"
	mkdir -p "$1"
	(cd "$WEFT_TOP" && git ls-files -z --cached --others --exclude-standard) |
		rsync -a --from0 --files-from=- --ignore-missing-args "$WEFT_TOP" "$1"
	cp -R "$1/scripts/debian" "$1/debian"
	date=$(git -C "$WEFT_TOP" log -1 --format=%cD)
	sed -i "s/@MAINTAINER@/$maintainer/" "$1/debian/control"
	sed -i -e "1s/(.*) UNRELEASED/($2) unstable/" -e "s/^ -- .*/ -- $maintainer  $date/" "$1/debian/changelog"
	find "$1" -exec touch -h -d "$date" {} +
}

# What the packages are made of: of the same nothing is built again.
key() {
	(cd "$WEFT_TOP" && git ls-files -z --cached --others --exclude-standard Makefile README.md VERSION docs kernel providers \
		rdma-core-patch scripts tests/stacks tests/weftspec | xargs -0 sha256sum 2>/dev/null | sha256sum)
	echo "$maintainer $(version "$1") $(stat -c %Y "$1.made")"
}

build() {
	local release=$1 root dir source key
	root=$("$WEFT_TOP/scripts/fetch-release-root.sh" "$release" system)
	dir=$WEFT_BUILD/deb/$release$next
	key=$(key "$root")
	if [ "$(cat "$dir/key" 2>/dev/null)" = "$key" ]; then
		ls "$dir"/*.deb
		return
	fi
	# The provider is built in it.
	source=$("$WEFT_TOP/scripts/fetch-rdma-core.sh" installed "$root")
	sources "$dir/weft" "$(version "$root")"
	rm -f "$dir"/*.deb "$dir/key"
	say "building packages for $release"
	logged "$dir/build.log" "$WEFT_TOP/scripts/in-root.sh" "$root" --at "$dir:/build" --at "$source:/rdma-core" \
		env WEFT_RDMA_CORE=/rdma-core DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)" \
		sh -c 'cd /build/weft && dpkg-buildpackage -b -uc -us'
	echo "$key" >"$dir/key"
	ls "$dir"/*.deb
}

for release; do build "$release"; done
