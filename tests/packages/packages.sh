#!/usr/bin/env bash
# The Debian packages, each release's in a root folder of that release: lintian, their content, their
# installation, updates of rdma-core, and their purge. TAP.
#   packages.sh RELEASE...     bookworm, trixie
# The roots have no network, and changes in them are discarded.
# shellcheck source-path=SCRIPTDIR source=tap.sh
. "$(dirname "$0")/tap.sh"

# --- in the root ---

# lacks REGEX TEXT: to set -e, "! grep" is no failure.
lacks() { ! grep -E -e "$1" <<<"$2"; }

# lintian ends well if it has warnings only.
lintian_is_silent() {
	lintian --tag-display-limit 0 --fail-on error,warning "$debs"/*.changes
}

# Documents, and what debhelper makes of man pages, are packaging's own.
files_of_packages() {
	local deb
	for deb in "$debs"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -t
	done | sed -n 's,^\./,/,p' | grep -vE '/$|^/usr/share/(doc|lintian)/' | sed 's/\.gz$//' | sort
}

# As the packages' rules call it, but at once.
make_install() {
	local to=$1
	make -s -C "$debs/weft" install PREFIX=/usr DESTDIR="$to" VERSION="$(version_of weft)" \
		UNITDIR="$(files_of_packages | sed -n 's,/weft@\.service$,,p')"
}

same_files() {
	make_install /tmp/installed
	diff <(files_of_packages) <(cd /tmp/installed && find . ! -type d | sed 's/^\.//' | sort)
}

version_of() { dpkg-deb -f "$(echo "$debs/$1"_*.deb)" Version; }

# Files of the system, but for those in which dpkg, apt and others keep their notes.
list_files() {
	find / -xdev \( -path /proc -o -path /dev -o -path /run -o -path /tmp -o -path /sys -o -path /var/log \
		-o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/swcatalog -o -path /var/lib/dpkg -o -path "$debs" -o -path /tests \
		-o -path /rdma-core \) -prune -o -print | grep -vE '\.pyc$|__pycache__' | sort
}

install_all() {
	list_files >/tmp/before
	apt-get install -y --no-install-recommends "$debs"/*.deb
	list_files >/tmp/after
	[ "$(wc -l </tmp/after)" -gt "$(wc -l </tmp/before)" ]
}

kernels() { ls /lib/modules; }

# For each kernel of the release, and for the backports': dkms finds the kernels itself, as at a boot.
driver_is_built() {
	local kernel
	for kernel in $(kernels); do
		dkms autoinstall -k "$kernel"
		dkms status -m weft -k "$kernel" | grep ': installed'
		# What `rdma link add` asks the kernel for; what it needs, and what programs want beside it.
		modprobe -S "$kernel" --show-depends rdma-link-weft >/tmp/loads
		cat /tmp/loads
		grep '/weft\.ko' /tmp/loads
		grep '/iw_cm\.ko' /tmp/loads
		grep '/ib_uverbs\.ko' /tmp/loads
		grep '/rdma_ucm\.ko' /tmp/loads
		# With the key that is enrolled in the firmware.
		modinfo -k "$kernel" -F signer weft | grep .
	done
}

# With devices to look at, and no other word on where a provider is.
devices() { LD_PRELOAD=/usr/lib/weft/libweft-rootless.so ibv_devices; }

provider_is_loaded() {
	devices | grep weft_lo
	mv /etc/libibverbs.d/weft.driver /tmp/
	lacks weft_lo "$(devices)"
	mv /tmp/weft.driver /etc/libibverbs.d/
}

# From the package alone, as user 65534.
rootless_runs() {
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs) server
	"${as[@]}" weft-run --check
	"${as[@]}" weft-run --profile=mlx5 --rails=2 ibv_devices | grep mlx5_1
	"${as[@]}" timeout 60 weft-run rping -s -a 127.0.0.1 -C 10 &
	server=$!
	until grep -q ':1C06 00000000:0000 0A' /proc/net/tcp; do
		kill -0 $server
		sleep 0.05
	done
	"${as[@]}" timeout 60 weft-run rping -c -a 127.0.0.1 -C 10 -V
	wait $server
}

tester_runs() {
	weftspec --check-table
	weft-reflector --help
	weft-hwtest --help
}

unit_is_valid() {
	local said
	said=$(systemd-analyze verify --man=yes weft@eth0.service 2>&1) || { echo "$said" && false; }
	lacks weft "$said"
}

pages_are_found() {
	local page
	for page in weft.4 weft.7 weft_socket.7 weft-run.1 weft-ctl.1 weft-trace.1 weftspec.1 weft-reflector.1 weft-hwtest.1; do
		man -w "${page##*.}" "${page%.*}"
	done
}

# mirror VERSION: apt knows this version of all that rdma-core's source builds.
mirror() {
	local now source
	# shellcheck disable=SC2016 # dpkg-query's own
	now=$(dpkg-query -W -f '${Version}' libibverbs1)
	mkdir -p /tmp/mirror
	# shellcheck disable=SC2016
	for source in $(dpkg-query -W -f '${source:Package}=${Package}\n' | sed -n 's/^rdma-core=//p'); do
		dpkg-query -s "$source" | sed -e '/^Status:/d' -e '/^Conffiles:/,/^[^ ]/{/^Conffiles:/d;/^ /d}' \
			-e "s/$now/$1/g"
		printf 'Filename: ./%s.deb\nSize: 1\nSHA256: %064d\n\n' "$source" 0
	done >/tmp/mirror/Packages
	echo 'deb [trusted=yes] file:/tmp/mirror ./' >/etc/apt/sources.list.d/try.list
	apt-get -qq update
}

# simulate COMMAND...: what apt would do, one action a line: Inst libibverbs1, Remv weft
simulate() {
	apt-get -s "$@" | tee /dev/stderr | awk '/^(Inst|Remv) / {print $1, $2}'
}

with_security_update() {
	local now said
	# shellcheck disable=SC2016
	now=$(dpkg-query -W -f '${Version}' libibverbs1)
	dpkg-query -W weft weft-rootless
	mirror "$now+deb99u1"
	said=$(simulate upgrade)
	grep -x 'Inst libibverbs1' <<<"$said"
	lacks Remv "$said"
}

# The packages are those of this release of rdma-core: the next one waits, or is chosen with open eyes.
with_next_release() {
	local upstream said
	# shellcheck disable=SC2016
	upstream=$(dpkg-query -W -f '${source:Upstream-Version}' libibverbs1)
	mirror "$((${upstream%%.*} + 1)).0-1"
	said=$(simulate upgrade)
	lacks 'Remv|libibverbs1' "$said"
	said=$(simulate install libibverbs1)
	grep -x 'Remv weft' <<<"$said"
	grep -x 'Remv weft-rootless' <<<"$said"
	lacks 'Remv weft-dkms' "$said"
}

forget_mirror() { rm -r /etc/apt/sources.list.d/try.list /tmp/mirror; }

purge_leaves_nothing() {
	mkdir -p /etc/weft /etc/systemd/system/sys-subsystem-net-devices-eth0.device.wants
	echo 'crc = 0' >/etc/weft/eth0.conf
	ln -s /lib/systemd/system/weft@.service \
		/etc/systemd/system/sys-subsystem-net-devices-eth0.device.wants/weft@eth0.service
	apt-get purge -y weft weft-dkms weft-rootless weftspec
	# dkms' keys and its tree's top are dkms' own; depmod writes its lists anew.
	lacks '^[<>]' "$(diff /tmp/before <(list_files) | grep -v '/var/lib/dkms/mok\.')"
}

inside() {
	where=$1 debs=/build log=/tmp/log
	check lintian-is-silent lintian_is_silent
	check make-install-lists-the-files-of-the-packages same_files
	check apt-installs-them install_all
	check dkms-builds-for-every-kernel driver_is_built
	check libibverbs-loads-the-provider provider_is_loaded
	check weft-run-serves-nobody rootless_runs
	check weftspec-runs tester_runs
	check service-is-valid unit_is_valid
	check man-finds-the-pages pages_are_found
	check security-update-of-rdma-core-keeps-weft with_security_update
	check next-rdma-core-waits-for-its-weft with_next_release
	forget_mirror
	check purge-leaves-nothing purge_leaves_nothing
}

if [ "$1" = --inside ]; then
	inside "$2"
	exit
fi

. "$(dirname "$0")/../../scripts/lib.sh"
planned=0
for release; do
	"$WEFT_TOP/scripts/build-deb.sh" "$release" >&2
	root=$("$WEFT_TOP/scripts/fetch-release-root.sh" "$release" system)
	source=$("$WEFT_TOP/scripts/fetch-rdma-core.sh" installed "$root")
	"$WEFT_TOP/scripts/in-root.sh" "$root" --at "$WEFT_BUILD/deb/$release:/build" --at "$source:/rdma-core" \
		--at "$WEFT_TOP/tests/packages:/tests" \
		env WEFT_RDMA_CORE=/rdma-core bash /tests/packages.sh --inside "$release"
	planned=$((planned + 12))
done
echo "1..$planned"
