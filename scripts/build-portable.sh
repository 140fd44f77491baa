#!/usr/bin/env bash
# Builds weft-run for any distribution: one file, which is unpacked anywhere.
#   build-portable.sh [FOLDER]     FOLDER in the place of build/portable, or of build/portable/ARCH for another processor
#   FOLDER/weft-run-VERSION-PROCESSOR.tar.xz, .tar.xz.sha256 and .spdx.json (a list of what is in it, SPDX)
#   FOLDER/weft-run                its content
# It needs glibc 2.28 (and libgcc_s, which comes with it) and rdma-core's libraries, 28 to 65. For each
# layout of what providers and libibverbs share there is a provider (scripts/portable/headers.py).
# Environment: ARCH  the processor: aarch64, x86_64; without, this machine's
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arch=${ARCH:-$(uname -m)} here=$(uname -m)
case $arch in
"$here") tools='' debian='' ;;
aarch64) tools=aarch64-linux-gnu- debian=arm64 ;;
x86_64) tools=x86_64-linux-gnu- debian=amd64 ;;
*) die "ARCH=$arch: aarch64 or x86_64" ;;
esac
need "${tools}gcc" make python3 "${tools}"{objdump,nm,strip,ar} tar xz sha256sum git

out=$(realpath -m "${1:-$WEFT_BUILD/portable${debian:+/$arch}}")
work=$out/work
tree=$out/weft-run
portable=$WEFT_TOP/scripts/portable
version=$(weft_version)
name=weft-run-$version-$arch
newest_glibc=2.28

triplet=$arch-linux-gnu

# Nothing of this machine goes into the files: neither time nor path.
SOURCE_DATE_EPOCH=$(git -C "$WEFT_TOP" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export LC_ALL=C.UTF-8 TZ=UTC
flags="-O2 -ffile-prefix-map=$WEFT_TOP=. -ffile-prefix-map=$out=build"

# The compiler is of today, with headers and libraries of an older system.
set_compiler() {
	# shellcheck disable=SC2086 # none, or one
	root=$("$WEFT_TOP/scripts/fetch-old-sysroot.sh" $debian)
	cc="${tools}gcc --sysroot=$root -B$root/usr/lib/$triplet/ -L$root/usr/lib/$triplet -L$root/lib/$triplet"
	cc+=" -include $portable/include/weft-glibc.h -I$portable/include -ffile-prefix-map=$root="
}

# stub PABI OBJECT...: a libibverbs to link with that has what the objects need, each with its version.
stub() {
	local pabi=$1 symbol
	shift
	"${tools}nm" -u "$@" | awk '$1 == "U" && /ibv_|verbs_|execute_ioctl/ {print $2}' | sort -u >"$work/stub.symbols"
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
	local since=$1 pabi=$2 headers=$work/headers-$1 to=$tree/lib/weft/rdma-core/$1
	python3 "$portable/headers.py" "$source" "$headers" "$since"
	$cc -D_GNU_SOURCE -I"$headers" -fsyntax-only "$headers/check.c"
	mkdir -p "$headers/o" "$to"
	# shellcheck disable=SC2086 # words
	(cd "$headers/o" && printf '%s\n' "$WEFT_TOP"/providers/weft/*.c | xargs -P "$(nproc)" -n 4 $cc $flags -std=gnu11 \
		-Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Werror -DNDEBUG -fPIC -I"$headers" -c)
	stub "$pabi" "$headers"/o/*.o
	$cc -shared -Wl,--version-script,"$source/buildlib/provider.map" -Wl,-z,defs -Wl,-z,now,-z,relro \
		-o "$to/libweft-rdmav$pabi.so" "$headers"/o/*.o "$work/libibverbs.so" -lpthread
}

programs() {
	logged "$work/rootless.log" make -C "$WEFT_TOP/providers/rootless" BUILD="$work" CC="$cc" AR="${tools}ar" CFLAGS="$flags" \
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

# Neither scripts nor archives.
binaries() { find "$tree/bin" "$tree/lib" -type f ! -name '*.a' -exec grep -lP '^\x7fELF' {} +; }

# What a file needs, and the newest version of it.
check_needs() {
	local file newest other
	while read -r file; do
		newest=$("${tools}objdump" -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
		[ "$(printf '%s\n' "$newest" "GLIBC_$newest_glibc" | sort -V | tail -n 1)" = "GLIBC_$newest_glibc" ] ||
			die "${file#"$tree"/} needs $newest"
		other=$("${tools}objdump" -p "$file" | awk '$1 == "NEEDED" {print $2}' |
			grep -vE '^(lib(c|dl|pthread|gcc_s|ibverbs|rdmacm|weft-rootless)\.so|ld-linux)') || true
		[ -z "$other" ] || die "${file#"$tree"/} needs $other"
	done < <(binaries)
}

pack() {
	binaries | xargs "${tools}strip" --strip-unneeded
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
	echo "$SOURCE_DATE_EPOCH $source $root $("${tools}gcc" --version | head -n 1)"
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
