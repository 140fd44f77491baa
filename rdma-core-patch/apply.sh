#!/usr/bin/env bash
# Makes an rdma-core source tree build the weft provider:
#   apply.sh TREE          what a build needs
#   apply.sh --all TREE    also what only packagers and readers of the tree need
# The places are found by what stands there, not by line numbers or patch contexts, so that
# one script serves every release from 44 to 65. A place that cannot be found is an error; a
# file that was dealt with before is left as it is. The sources themselves (providers/weft,
# kernel-headers/rdma/weft-abi.h) are copied by the callers.
set -euo pipefail

all=
if [ "$1" = --all ]; then
	all=1
	shift
fi
tree=${1:?tree}

# insert before|after FILE COUNT ANCHOR TEXT: puts TEXT beside each of the COUNT lines that
# read ANCHOR.
insert() {
	local where=$1 file=$tree/$2 count=$3 found
	if grep -q weft "$file"; then
		return 0
	fi
	found=$(grep -cxF -- "$4" "$file") || true
	if [ "$found" != "$count" ]; then
		echo "rdma-core-patch: $2 has '$4' $found times, not $count" >&2
		exit 1
	fi
	# Into a copy first: a file is changed wholly or not at all.
	ANCHOR=$4 TEXT=$5 WHERE=$where awk '
		$0 != ENVIRON["ANCHOR"] { print; next }
		ENVIRON["WHERE"] == "before" { print ENVIRON["TEXT"]; print; next }
		{ print; print ENVIRON["TEXT"] }' "$file" >"$file.weft"
	chmod --reference="$file" "$file.weft"
	mv "$file.weft" "$file"
}

insert after CMakeLists.txt 1 'add_subdirectory(providers/vmw_pvrdma)' \
	'add_subdirectory(providers/weft)'
# Twice: headers to publish, headers whose structs become macros.
insert after kernel-headers/CMakeLists.txt 2 '  rdma/vmw_pvrdma-abi.h' '  rdma/weft-abi.h'
# For programs that link providers statically.
insert after libibverbs/verbs.h 1 \
	'extern const struct verbs_device_ops verbs_provider_vmw_pvrdma;' \
	'extern const struct verbs_device_ops verbs_provider_weft;'

[ -n "$all" ] || exit 0

about='A software implementation of the iWARP protocol'
insert after README.md 1 ' - vmw_pvrdma.ko' ' - weft.ko'
insert after debian/control 1 '  - vmw_pvrdma: VMware paravirtual RDMA device' "  - weft: $about"
insert before debian/copyright 1 'Files: rdma-ndd/*' 'Files: providers/weft/*
Copyright: 2026 the weft developers
License: BSD-2-clause or GPL-2
'
insert after redhat/rdma-core.spec 1 '- libvmw_pvrdma: VMware paravirtual RDMA device' \
	"- libweft: $about"
insert after suse/rdma-core.spec 1 '- libvmw_pvrdma: VMware paravirtual RDMA device' \
	"- libweft: $about"
insert after MAINTAINERS 1 'F:	providers/vmw_pvrdma/' '
WEFT SOFT IWARP USERSPACE PROVIDER (for weft.ko)
M:	The weft developers
S:	Supported
F:	providers/weft/'
