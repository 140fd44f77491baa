#!/usr/bin/env bash
# Builds weft-run for any distribution: one file, which is unpacked anywhere.
#   build-portable.sh [FOLDER]     FOLDER in the place of build/portable
#   FOLDER/weft-run-VERSION-PROCESSOR.tar.xz, .tar.xz.sha256 and .spdx.json (a list of what is in it, SPDX)
#   FOLDER/weft-run                its content
# It needs glibc 2.28 (and libgcc_s, which comes with it) and rdma-core's libraries, 33 or 37 to 65. For each
# layout of what providers and libibverbs share there is a provider (scripts/portable/headers.py).
# Environment: ARCH  the processor; so far the one that this runs on
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need gcc make python3 objdump nm strip tar xz sha256sum git

out=$(realpath -m "${1:-$WEFT_BUILD/portable}")
arch=${ARCH:-$(uname -m)}
work=$out/work
tree=$out/weft-run
portable=$WEFT_TOP/scripts/portable
version=$(weft_version)
name=weft-run-$version-$arch
newest_glibc=2.28

[ "$arch" = "$(uname -m)" ] || die "ARCH=$arch: a build for another processor is not there yet"
triplet=$arch-linux-gnu

# Nothing of this machine goes into the files: neither time nor path.
SOURCE_DATE_EPOCH=$(git -C "$WEFT_TOP" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export LC_ALL=C.UTF-8 TZ=UTC
flags="-O2 -ffile-prefix-map=$WEFT_TOP=. -ffile-prefix-map=$out=build"

# The compiler is this machine's, with headers and libraries of an older system.
set_compiler() {
	root=$("$WEFT_TOP/scripts/fetch-sysroot.sh")
	cc="gcc --sysroot=$root -B$root/usr/lib/$triplet/ -L$root/usr/lib/$triplet -L$root/lib/$triplet"
	cc+=" -include $portable/include/weft-glibc.h -I$portable/include -ffile-prefix-map=$root="
}

# stub PABI OBJECT...: a libibverbs to link with that has what the objects need, each with its version.
stub() {
	local pabi=$1 symbol
	shift
	nm -u "$@" | awk '$1 == "U" && /ibv_|verbs_|execute_ioctl/ {print $2}' | sort -u >"$work/stub.symbols"
	{
		echo "IBVERBS_PRIVATE_$pabi { global:"
		grep -vxF ibv_query_gid "$work/stub.symbols" | sed 's/$/;/'
		echo '};'
		echo 'IBVERBS_1.1 { global: ibv_query_gid; };'
	} >"$work/stub.map"
	while read -r symbol; do echo "void $symbol(void) {}"; done <"$work/stub.symbols" |
		$cc -nostdlib -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script,"$work/stub.map" \
			-x c -o "$work/libibverbs.so" -
}

# provider SINCE PABI: for the layout that begins with a release of rdma-core.
provider() {
	local since=$1 pabi=$2 headers=$work/headers-$1 file to=$tree/lib/weft/rdma-core/$1
	python3 "$portable/headers.py" "$source" "$headers" "$since"
	$cc -D_GNU_SOURCE -I"$headers" -fsyntax-only "$headers/check.c"
	mkdir -p "$headers/o" "$to"
	for file in "$WEFT_TOP"/providers/weft/*.c; do
		# shellcheck disable=SC2086 # words
		$cc $flags -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Werror -DNDEBUG -fPIC \
			-I"$headers" -c -o "$headers/o/$(basename "$file" .c).o" "$file"
	done
	stub "$pabi" "$headers"/o/*.o
	$cc -shared -Wl,--version-script,"$source/buildlib/provider.map" -Wl,-z,defs -Wl,-z,now,-z,relro \
		-o "$to/libweft-rdmav$pabi.so" "$headers"/o/*.o "$work/libibverbs.so" -lpthread
}

programs() {
	logged "$work/rootless.log" make -C "$WEFT_TOP/providers/rootless" BUILD="$work" CC="$cc" CFLAGS="$flags" \
		PROVIDERS= PREFIX= DESTDIR="$tree" install
	logged "$work/weftspec.log" make -C "$WEFT_TOP/tests/weftspec" BUILD="$work" CC="$cc" CFLAGS="$flags" \
		LDFLAGS=-Wl,--unresolved-symbols=ignore-in-shared-libs REFLECTOR="$work/bin/weft-reflector" \
		PREFIX= DESTDIR="$tree" install
}

documents() {
	mkdir -p "$tree/share/doc/weft"
	cp -R "$WEFT_TOP/COPYING" "$WEFT_TOP/LICENSES" "$tree/share/doc/weft/"
	cp "$WEFT_TOP/docs/CHANGELOG.md" "$WEFT_TOP/docs/rootless.md" "$tree/share/doc/weft/"
	sed "s/@VERSION@/$version/" "$portable/README" >"$tree/README"
	mkdir -p "$tree/share/man/man7"
	cp "$WEFT_TOP/docs/weft.7" "$tree/share/man/man7/"
}

binaries() { find "$tree/bin" "$tree/lib" -type f; }

# What a file needs, and the newest version of it.
check_needs() {
	local file newest other
	while read -r file; do
		newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
		[ "$(printf '%s\n' "$newest" "GLIBC_$newest_glibc" | sort -V | tail -n 1)" = "GLIBC_$newest_glibc" ] ||
			die "${file#"$tree"/} needs $newest"
		other=$(objdump -p "$file" | awk '$1 == "NEEDED" {print $2}' |
			grep -vE '^(lib(c|dl|pthread|gcc_s|ibverbs|rdmacm|weft-rootless)\.so|ld-linux)') || true
		[ -z "$other" ] || die "${file#"$tree"/} needs $other"
	done < <(binaries)
}

pack() {
	binaries | xargs strip --strip-unneeded
	chmod -R u=rwX,go=rX "$tree"
	tar -C "$out" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		-cf - weft-run | xz -9e -T1 >"$out/$name.tar.xz"
	(cd "$out" && sha256sum "$name.tar.xz" >"$name.tar.xz.sha256")
	python3 "$portable/sbom.py" "$tree" "$name" "$version" "$source" "$root" "$SOURCE_DATE_EPOCH" >"$out/$name.spdx.json"
}

# What the file is made of: of the same nothing is built again.
key() {
	(cd "$WEFT_TOP" && git ls-files -z --cached --others --exclude-standard COPYING LICENSES VERSION docs kernel \
		providers scripts tests/stacks tests/weftspec | xargs -0 sha256sum 2>/dev/null | sha256sum)
	echo "$SOURCE_DATE_EPOCH $source $root $(gcc --version | head -n 1)"
}

build() {
	local since pabi key
	source=$("$WEFT_TOP/scripts/fetch-rdma-core.sh" pabi 34)
	set_compiler
	key=$(key)
	[ "$(cat "$out/key" 2>/dev/null)" != "$key" ] || return 0
	rm -f "$out/key"
	rm -rf "$work" "$tree" "$out"/weft-run-*
	mkdir -p "$work" "$tree"
	say 'building weft-run for any distribution'
	programs
	while read -r since pabi; do provider "$since" "$pabi"; done < <(python3 "$portable/headers.py" --list)
	documents
	check_needs
	pack
	echo "$key" >"$out/key"
	say "portable: ${out#"$WEFT_TOP"/}/$name.tar.xz ($(stat -c %s "$out/$name.tar.xz") octets)"
}

mkdir -p "$out"
(
	flock 9
	build 9>&-
) 9>"$out/.lock"
