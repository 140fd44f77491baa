#!/usr/bin/env bash
# The recipes of packaging/, TAP: the steps of each run as they stand, in a root folder of Debian 13 whose packages
# are there already; rpm's and Arch's packages are built and their content judged.
#   recipes.sh
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
need python3 rpmbuild rpmlint

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
# shellcheck source-path=SCRIPTDIR source=tap.sh
. "$WEFT_TOP/tests/packages/tap.sh"
"$WEFT_TOP/scripts/build-portable.sh" >&2
file=$WEFT_BUILD/portable/weft-run-$(weft_version)-$(uname -m).tar.xz
sum=$(cut -d ' ' -f 1 "$file.sha256")
root=$("$WEFT_TOP/scripts/fetch-release-root.sh" trixie portable)
tar -C "$scratch" -xf "$file"

# The packages that a recipe asks for must be those that the root has: there is no network in it.
stand_ins() {
	mkdir -p "$scratch/stand-ins"
	cat >"$scratch/stand-ins/apt-get" <<-'END'
		#!/bin/sh
		[ "$1" = install ] || exit 0
		shift
		for package; do
			case $package in
			-*) ;;
			*) dpkg-query -W -f '${Package}, ${Provides}\n' | tr ', ' '\n\n' | grep -qx "$package" || exit 100 ;;
			esac
		done
	END
	printf '#!/bin/sh\nexec "$@"\n' >"$scratch/stand-ins/sudo"
	chmod 755 "$scratch" "$scratch"/stand-ins "$scratch"/stand-ins/*
}

# Afterwards a user's program has a device.
steps() {
	{
		python3 "$WEFT_TOP/tests/packages/recipe-steps.py" "$1"
		echo 'setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs weft-run ibv_devinfo -d weft_lo'
	} >"$scratch/steps"
	"$WEFT_TOP/scripts/in-root.sh" "$root" --at "$WEFT_BUILD/portable:/release" --at "$scratch:/steps" \
		env FILE="/release/$(basename "$file")" URL="file:///release/$(basename "$file")" SHA256="$sum" \
		STANDINS=/steps/stand-ins PATH="/steps/stand-ins:/usr/sbin:/usr/bin:/sbin:/bin" bash /steps/steps
}

# Another file under the same name is refused before any of it runs.
wrong_sum_is_refused() {
	local sum
	sum=$(printf '%064d' 0)
	for recipe in github-action gitlab devcontainer; do
		if steps "$recipe"; then return 1; fi
	done
}

rpms_are_built() {
	ARCH=aarch64 "$WEFT_TOP/scripts/build-portable.sh"
	"$WEFT_TOP/scripts/build-rpm.sh" x86_64 aarch64
}

# rpm_has_the_files PROCESSOR FOLDER: those of the portable file, in FOLDER.
rpm_has_the_files() {
	local made
	made=$(echo "$WEFT_BUILD"/rpm/*."$1".rpm)
	diff <(rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$made" |
		sed -nE 's,^-[^ ]* /usr/((bin|lib|include|share/man|share/weft|share/weftspec)/.*),\1,p' |
		sed 's/\.gz$//' | sort) \
		<(cd "$2/weft-run" && find bin lib include share/man share/weft share/weftspec -type f | sort)
	rpm -qp --requires "$made" | grep -x 'glibc >= 2.28'
	rpm -qp --requires "$made" | grep -x 'libibverbs >= 28'
	[ "$(rpm -qp --queryformat '%{ARCH}' "$made")" = "$1" ]
}

rpms_are_reproducible() {
	local first
	first=$(cd "$WEFT_BUILD/rpm" && sha256sum -- *.rpm)
	rpms_are_built
	[ "$first" = "$(cd "$WEFT_BUILD/rpm" && sha256sum -- *.rpm)" ]
}

rpmlint_is_silent() {
	ls "$WEFT_BUILD"/rpm/*.rpm
	rpmlint --rpmlintrc "$WEFT_TOP/packaging/rpm/rpmlintrc" "$WEFT_BUILD"/rpm/*.rpm
}

# PKGBUILD is bash: its function is what makepkg calls.
# shellcheck disable=SC2034,SC2154 # what PKGBUILD uses and sets
pkgbuild_has_the_files() {
	local pkgdir=$scratch/arch srcdir=$scratch
	CARCH=$(uname -m)
	sed -e "s/@VERSION@/$(weft_version)/" -e "s/@SHA256_$CARCH@/$sum/" "$WEFT_TOP/packaging/PKGBUILD" >"$scratch/PKGBUILD"
	# shellcheck disable=SC1091
	. "$scratch/PKGBUILD"
	declare -n source=source_$CARCH sums=sha256sums_$CARCH
	[ "${source[0]}" = "$(basename "$file")" ]
	[ "${sums[0]}" = "$sum" ]
	package
	"$pkgdir/usr/bin/weft-run" --check
	[ -e "$pkgdir/usr/share/licenses/weft-run/LICENSE" ]
}

# As it stands, but for the network; what the machine has changed without git is in the checkout, too.
workflow_runs() {
	local system
	system=$("$WEFT_TOP/scripts/fetch-release-root.sh" bookworm system)
	mkdir "$scratch/checkout"
	(cd "$WEFT_TOP" && git ls-files -z | tar --null -T - -cf -) | tar -C "$scratch/checkout" -xf -
	python3 "$WEFT_TOP/tests/packages/recipe-steps.py" workflow "$1" >"$scratch/steps"
	"$WEFT_TOP/scripts/in-root.sh" "$system" --at "$scratch:/steps" env CHECKOUT=/steps/checkout \
		PATH="/steps/stand-ins:/usr/sbin:/usr/bin:/sbin:/bin" bash /steps/steps
}

# That all of weft's workflows call.
workflows_call_targets() {
	local target targets
	targets=$(cd "$WEFT_TOP/.github/workflows" && python3 "$WEFT_TOP/tests/packages/recipe-steps.py" targets ./*.yml)
	grep -x test <<<"$targets"
	grep -x check <<<"$targets"
	grep -x release <<<"$targets"
	for target in $targets; do make -C "$WEFT_TOP" -n "$target" >/dev/null; done
}

# Two ask for it at once. The first makes it, and does so until the second waits for the lock.
root_is_made_once() {
	local cache=$scratch/cache
	mkdir -p "$scratch/maker" "$cache"
	cat >"$scratch/maker/mmdebstrap" <<-'END'
		#!/bin/bash
		echo made >>"$WEFT_CACHE/made"
		for ((n = 0; n < 600; n++)); do
			! grep -q -- "-> FLOCK .*:$(stat -c %i "$WEFT_CACHE/lock/root-sid") " /proc/locks || break
			sleep 0.1
		done
		for folder; do [[ $folder != *.new ]] || mkdir "$folder"; done
	END
	chmod 755 "$scratch/maker/mmdebstrap"
	(
		export PATH="$scratch/maker:$PATH" WEFT_CACHE="$cache"
		"$WEFT_TOP/scripts/fetch-release-root.sh" sid >"$scratch/first" &
		"$WEFT_TOP/scripts/fetch-release-root.sh" sid >"$scratch/second"
		wait $!
	)
	[ "$(wc -l <"$cache/made")" = 1 ]
	cmp "$scratch/first" "$scratch/second"
	[ -d "$(cat "$scratch/first")" ]
}

stand_ins
check a-root-folder-is-made-once root_is_made_once
for recipe in containerfile github-action gitlab devcontainer kubernetes; do
	check "$recipe-gives-programs-a-device" steps $recipe
done
check a-wrong-sum-is-refused wrong_sum_is_refused
check rpms-are-built rpms_are_built
check rpm-has-the-files rpm_has_the_files x86_64 "$scratch"
check rpm-for-arm64-has-the-files rpm_has_the_files aarch64 "$WEFT_BUILD/portable/aarch64"
check rpms-are-reproducible rpms_are_reproducible
check rpmlint-is-silent rpmlint_is_silent
check pkgbuild-has-the-files pkgbuild_has_the_files
check workflows-call-targets-of-the-makefile workflows_call_targets
check workflow-test-runs workflow_runs test.yml
echo "1..$n"
