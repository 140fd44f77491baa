#!/usr/bin/env bash
# Builds the rpm for RHEL, its kin, and Fedora from the portable file, which has to be there:
#   build-rpm.sh [PROCESSOR...]      build/rpm/weft-run-VERSION-1.PROCESSOR.rpm: aarch64, x86_64; without, this machine's
# No such system can be had here: its content, its dependencies and rpmlint's verdict are what is tested.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need rpmbuild git

version=$(weft_version) here=$(uname -m)
out=$WEFT_BUILD/rpm
[ $# -gt 0 ] || set -- "$here"
SOURCE_DATE_EPOCH=$(git -C "$WEFT_TOP" log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC

rm -rf "$out"
for arch; do
	files=$WEFT_BUILD/portable
	[ "$arch" = "$here" ] || files+=/$arch
	mkdir -p "$out/work"
	logged "$out/build-$arch.log" rpmbuild -bb --target "$arch-linux" --define "_topdir $out/work" \
		--define "_sourcedir $files" \
		--define "_rpmdir $out" --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
		--define "weft_version $version" --define '_buildhost localhost' --define 'use_source_date_epoch_as_buildtime 1' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define '_prefix /usr' --define '_docdir /usr/share/doc' \
		"$WEFT_TOP/packaging/rpm/weft-run.spec"
	rm -rf "$out/work"
done
say "rpm: $(echo "${out#"$WEFT_TOP"/}"/*.rpm)"
