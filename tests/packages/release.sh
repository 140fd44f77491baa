#!/usr/bin/env bash
# make release, TAP, in a clone of the current commit that has the changelog's entry:
#   release.sh [PART...]      parts of scripts/release.sh; all
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
need git

[ $# -gt 0 ] || set -- portable rpm deb series
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
# shellcheck source-path=SCRIPTDIR source=tap.sh
. "$WEFT_TOP/tests/packages/tap.sh"
clone=$scratch/weft
version=$(weft_version)
git clone -q "$WEFT_TOP" "$clone"
git -C "$clone" config user.name weft
git -C "$clone" config user.email weft@localhost

# refuses TEXT
refuses() {
	local said
	said=$("$clone/scripts/release.sh" portable 2>&1) && return 1
	grep -F -e "$1" <<<"$said"
}

commit_entry() {
	sed -i "0,/^## .*/s//## $version/" "$clone/docs/CHANGELOG.md"
	git -C "$clone" commit -q --allow-empty -am "Release $version"
}

refuses_a_version_without_its_entry() {
	sed -i '0,/^## .*/s//## Unreleased/' "$clone/docs/CHANGELOG.md"
	git -C "$clone" commit -q --allow-empty -am 'Have no entry'
	refuses 'the first entry of docs/CHANGELOG.md is not'
}

refuses_changes() {
	commit_entry
	touch "$clone/something"
	refuses 'the tree has changes'
	rm "$clone/something"
}

refuses_a_tag_elsewhere() {
	git -C "$clone" tag "v$version" HEAD~1
	refuses "the tag v$version is on another commit"
	git -C "$clone" tag -d "v$version"
}

makes_all_files() {
	"$clone/scripts/release.sh" "$@"
	cd "$clone/build/release/weft-$version"
	sha256sum -c SHA256SUMS
	[ "$(wc -l <SHA256SUMS)" = "$(find . -type f ! -name SHA256SUMS | wc -l)" ]
	cp SHA256SUMS "$scratch/first"
}

# Of each file it says where it was tried: by groups of tests that there are.
contents_say_where_each_was_tried() {
	local group
	cd "$clone/build/release/weft-$version"
	cut -c 67- SHA256SUMS | grep -vx CONTENTS | grep -vxF -f CONTENTS && return 1
	[ "$(grep -c '^  tried: ' CONTENTS)" -ge 1 ]
	[ "$(grep -c '^  tried: ' CONTENTS)" = "$(grep -c '^  not: ' CONTENTS)" ]
	while read -r group; do
		grep "^group_$group() {" "$clone/scripts/check.sh"
	done < <(grep -oE '\(group [a-z_0-9]+' CONTENTS | sed 's/.* //')
}

# From another checkout of the same commit: other paths, and files that are younger than the commit.
gives_equal_files_twice() {
	git clone -q "$clone" "$scratch/else/where"
	cp "$clone/.git/config" "$scratch/else/where/.git/config"
	rm -rf "$clone"
	clone=$scratch/else/where
	"$clone/scripts/release.sh" "$@"
	diff "$scratch/first" "$clone/build/release/weft-$version/SHA256SUMS"
}

check refuses-a-version-without-its-entry refuses_a_version_without_its_entry
check refuses-changes refuses_changes
check refuses-a-tag-elsewhere refuses_a_tag_elsewhere
check makes-all-files-and-their-sums makes_all_files "$@"
check contents-say-where-each-was-tried contents_say_where_each_was_tried
check gives-equal-files-twice gives_equal_files_twice "$@"
echo "1..$n"
