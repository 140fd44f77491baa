#!/usr/bin/env bash
# Makes a release of the checked out commit: build/release/weft-VERSION, with all files to publish, their sums, and where
# each was tried (CONTENTS, from scripts/release-contents).
#   release.sh [PART...]    portable rpm deb series: all
# It refuses a tree with changes, a version without its entry in docs/CHANGELOG.md, and a tag of that version on
# another commit. Where the tag is not there, it says how it is made. The same commit gives the same files.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need git tar xz sha256sum

version=$(weft_version)
tag=v$version
out=$WEFT_BUILD/release/weft-$version
[ $# -gt 0 ] || set -- portable rpm deb series

head_of() { git -C "$WEFT_TOP" rev-parse -q --verify "$1^{commit}"; }

check_commit() {
	local changes
	changes=$(git -C "$WEFT_TOP" status --porcelain)
	[ -z "$changes" ] || die "the tree has changes: ${changes//$'\n'/,}"
	# The newest entry comes first.
	[ "$(sed -n 's/^## //p' "$WEFT_TOP/docs/CHANGELOG.md" | head -n 1)" = "$version" ] ||
		die "the first entry of docs/CHANGELOG.md is not $version (VERSION)"
	[ -z "$(head_of "$tag")" ] || [ "$(head_of "$tag")" = "$(head_of HEAD)" ] ||
		die "the tag $tag is on another commit"
}

# pack NAME FOLDER: as NAME.tar.xz, without anything of this machine or hour.
pack() {
	tar -C "$(dirname "$2")" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--mtime="@$SOURCE_DATE_EPOCH" --transform="s,^$(basename "$2"),$1," -cf - "$(basename "$2")" |
		xz -9e -T1 >"$out/$1.tar.xz"
}

portable() {
	local arch sums=()
	for arch in x86_64 aarch64; do
		ARCH=$arch "$WEFT_TOP/scripts/build-portable.sh"
		find "$WEFT_BUILD/portable" -maxdepth 2 \( -name "weft-run-$version-$arch.tar.xz" \
			-o -name "weft-run-$version-$arch.spdx.json" \) -exec cp {} "$out" \;
		sums+=(-e "s/@SHA256_$arch@/$(sha256sum <"$out/weft-run-$version-$arch.tar.xz" | cut -d ' ' -f 1)/")
	done
	sed -e "s/@VERSION@/$version/" "${sums[@]}" "$WEFT_TOP/packaging/PKGBUILD" >"$out/PKGBUILD"
	pack "weft-$version-recipes" "$WEFT_TOP/packaging"
}

rpm() {
	[ -e "$out/PKGBUILD" ] || portable
	"$WEFT_TOP/scripts/build-rpm.sh" x86_64 aarch64
	cp "$WEFT_BUILD"/rpm/*.rpm "$out"
}

deb() {
	"$WEFT_TOP/scripts/build-deb.sh" >&2
	cp "$WEFT_BUILD"/deb/{bookworm,trixie}/*.deb "$out"
}

# series NAME: patches alone, and not the tree that they were built in.
series() {
	local name folder
	"$WEFT_TOP/scripts/kernel-series.sh"
	"$WEFT_TOP/rdma-core-patch/series.sh"
	for name in kernel-series rdma-core-series; do
		folder=$work/$name
		mkdir "$folder"
		cp "$WEFT_BUILD/$name"/*.patch "$folder"
		pack "weft-$version-$name" "$folder"
	done
}

# CONTENTS: the paragraphs of release-contents whose files are there. Each file has one.
contents() {
	sed "s/@VERSION@/$version/" "$WEFT_TOP/scripts/release-contents" | OUT=$out awk -v RS= -v ORS='\n\n' -F '\n' '
		{ there = NR == 1 }
		{ for (i = 1; i <= NF && $i ~ /^[^ ]+$/; i++) there += (getline line <(ENVIRON["OUT"] "/" $i)) >= 0 }
		there' >"$work/contents"
	diff <(grep -xE '[^ ]+' "$work/contents" | sort) <(ls "$out") >&2 || die "scripts/release-contents has other files"
	cp "$work/contents" "$out/CONTENTS"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check_commit
SOURCE_DATE_EPOCH=$(git -C "$WEFT_TOP" log -1 --format=%ct)
# Of the commits that the series are made of.
GIT_AUTHOR_DATE=@$SOURCE_DATE_EPOCH GIT_COMMITTER_DATE=@$SOURCE_DATE_EPOCH
export SOURCE_DATE_EPOCH GIT_AUTHOR_DATE GIT_COMMITTER_DATE LC_ALL=C.UTF-8 TZ=UTC
rm -rf "$out"
mkdir -p "$out"
for part; do
	case $part in
	portable | rpm | deb | series) "$part" ;;
	*) die "no part of a release: $part" ;;
	esac
done
contents
(cd "$out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
check_commit
say "release: ${out#"$WEFT_TOP"/}"
[ -n "$(head_of "$tag")" ] || say "then: git tag -s $tag, and push it"
