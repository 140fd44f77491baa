#!/usr/bin/env bash
# Static analysis: clang-tidy and gcc's -fanalyzer on what runs in user space, coccinelle's scripts of
# the kernel on the driver. scripts/lint-accepted has the findings that are explained. TAP with --tap.
#   lint.sh [--tap] [tidy|gcc|cocci]...   all three without a name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$WEFT_TOP"
need gcc clang-tidy spatch python3

tap=
[ "${1:-}" != --tap ] || {
	tap=yes
	shift
}
tools=("$@")
[ $# -gt 0 ] || tools=(tidy gcc cocci)
args=()
for tool in "${tools[@]}"; do
	case $tool in
	cocci)
		package=$(scripts/fetch-packages.sh bookworm-backports linux-source-6.12)
		args+=(--kernel-source "$(unpack_kernel "$package")")
		;;
	# The provider's headers are rdma-core's.
	*) [ -d build/provider/build/include ] || make -s provider >&2 ;;
	esac
done
if [ -z "$tap" ]; then
	exec scripts/lint.py "${args[@]}" "${tools[@]}"
fi
echo "1..${#tools[@]}"
n=0
for tool in "${tools[@]}"; do
	n=$((n + 1))
	if said=$(scripts/lint.py "${args[@]}" "$tool" 2>&1); then
		echo "ok $n - $tool"
	else
		echo "not ok $n - $tool"
	fi
	printf '# %s\n' "${said//$'\n'/$'\n# '}"
done
