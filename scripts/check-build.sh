#!/usr/bin/env bash
# Builds weft.ko for kernels of the lab from nothing and reads what compiler and sparse say: TAP.
#   check-build.sh KERNEL...     stock (Debian's 6.1) or a flavour of build-kernel.sh
# What sparse says of the kernel's own headers is not ours and is left out.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need make gcc rsync sparse

n=0
# verdict NAME FILE: ok if FILE, what somebody said, is empty.
verdict() {
	n=$((n + 1))
	if [ -s "$2" ]; then
		sed 's/^/# /' "$2"
		echo "not ok $n - $1"
	else
		echo "ok $n - $1"
	fi
}

# What the driver asks of a kernel, by a compiler that says how many of it run.
dir=$WEFT_BUILD/check-build/probes
rm -rf "$dir"
mkdir -p "$dir/running"
cat >"$dir/cc" <<'END'
#!/bin/sh
mark=$(mktemp "$1/running/XXXXXX")
ls "$1/running" | wc -l >>"$1/counts"
sleep 0.2
rm "$mark"
END
chmod +x "$dir/cc"
sh "$WEFT_TOP/kernel/compat/probe.sh" "$dir/have.h" "$WEFT_TOP/kernel/compat/probe" any "$dir/cc" "$dir"
awk -v cpus="$(nproc --all)" '$1 > cpus {print $1 " at once"} END {if (NR < 10) print NR " probes"}' "$dir/counts" >"$dir/said"
verdict 'probes of the kernel run as many at once as there are CPUs' "$dir/said"

for kernel; do
	dir=$WEFT_BUILD/check-build/$kernel
	rm -rf "$dir"
	mkdir -p "$dir"
	find_kernel "$kernel"
	(cd "$WEFT_TOP" && git ls-files -z --cached --others --exclude-standard kernel) |
		rsync -a --from0 --files-from=- "$WEFT_TOP" "$dir"
	make=(make -C "$kernel_tree" "${kernel_arch[@]}" M="$dir/kernel" -j2)
	logged "$dir.log" "${make[@]}" modules || true
	[ -e "$dir/kernel/weft.ko" ] || echo "no weft.ko" >>"$dir.log"
	grep -E 'warning:|error:|no weft.ko' "$dir.log" >"$dir.said" || true
	verdict "weft.ko builds for $kernel without a warning" "$dir.said"
	# Debian 12's sparse does not know the word, which the newest kernels use.
	logged "$dir.sparse.log" "${make[@]}" C=2 \
		CHECK='sparse -D__typeof_unqual__=__typeof__' modules || true
	# It must have looked, at each file.
	[ "$(grep -c '^ *CHECK ' "$dir.sparse.log")" -ge "$(find "$dir/kernel" -name '*.o' \
		! -name 'weft*' ! -name '.*' | wc -l)" ] || echo "sparse has not seen every file" >>"$dir.sparse.log"
	# From 7.2 on files are named from the module's folder; and its MODULE_LICENSE() and the like
	# are more than Debian 12's sparse can reckon.
	grep -E "^($dir/kernel/|[^/ ]+:[0-9]+:).*(warning|error):|sparse has not" "$dir.sparse.log" |
		grep -v '^main\.c:[0-9]*:1: error: bad constant expression$' >"$dir.said" || true
	verdict "sparse finds nothing for $kernel" "$dir.said"
done

# What fails on demand, as docs/driver-faults.md names it: in the list that the kernel reads, and called, not copied into its
# callers. No kernel of the lab is configured for it, so the objects are built as if it were: for stock, since code of user
# mode calls by addresses.
fails_on_demand() {
	local dir=$WEFT_BUILD/check-build/stock object objects make
	find_kernel stock
	make=(make -C "$kernel_tree" "${kernel_arch[@]}" M="$dir/kernel" -j2 KCFLAGS=-DCONFIG_FUNCTION_ERROR_INJECTION)
	mapfile -t objects < <(cd "$dir/kernel" && grep -l '^ALLOW_ERROR_INJECTION' ./*.c | sed 's/^..//; s/c$/o/')
	logged "$dir.inject.log" "${make[@]}" "${objects[@]}" || true
	cd "$dir/kernel" || exit
	nm "${objects[@]}" | sed -n 's/.* d _eil_addr_//p' | sort >"$dir.listed"
	sed -n 's/^| `weft:\([a-z_]*\)` |.*/\1/p' "$WEFT_TOP/docs/driver-faults.md" | sort | diff - "$dir.listed" >"$dir.said" || true
	[ -s "$dir.listed" ] || echo "nothing is listed" >>"$dir.said"
	for object in "${objects[@]}"; do
		objdump -h "$object" | grep ' _error_injection_whitelist ' >/dev/null || echo "$object has no list" >>"$dir.said"
		objdump -d "$object"
	done | sed -n 's/.*\<call .*<\(.*\)>$/\1/p' | sort -u | comm -13 - "$dir.listed" | sed 's/$/ is not called/' >>"$dir.said"
	verdict "what fails on demand is what docs/driver-faults.md names (stock)" "$dir.said"
}
[[ " $* " != *" stock "* ]] || fails_on_demand
echo "1..$n"
