#!/bin/bash
# Run in a system's root folder (scripts/in-root.sh): makes of it the disk /out/disk of a machine of
# real-systems.sh. Installs /debs/NAME_*.deb before, natively.
#   image.sh ADDRESS [NAME...]
set -e
address=$1
shift
for name; do set -- "$@" /debs/"$name"_*.deb && shift; done

# The release's own kernel is the one to boot: bookworm has its backports' beside it, which would be built for.
kernel=$(find /boot -name 'vmlinuz-*' -printf '%f\n' | sort -V | head -n 1)
kernel=${kernel#vmlinuz-}
for other in /lib/modules/*; do
	[ "$other" = "/lib/modules/$kernel" ] || { rm -r "$other" && find /boot -name "*-${other##*/}" -delete; }
done
[ $# = 0 ] || apt-get install -y --no-install-recommends "$@"
dkms status -m weft -k "$kernel" | grep ': installed'

echo "root-of-weft" >/etc/hostname
echo 00000000000000000000000077656674 >/etc/machine-id
printf '[Match]\nName=eth0\n[Network]\nAddress=%s/24\nLinkLocalAddressing=no\n' "$address" \
	>/etc/systemd/network/eth0.network
install -m 755 /tests/agent.sh /usr/local/sbin/weft-agent
printf '%s\n' '[Unit]' 'After=multi-user.target' '[Service]' 'ExecStart=/usr/local/sbin/weft-agent' \
	'LimitMEMLOCK=infinity' >/etc/systemd/system/weft-agent.service
mkdir -p /etc/systemd/system/default.target.wants /etc/systemd/system/multi-user.target.wants
ln -s /etc/systemd/system/weft-agent.service /etc/systemd/system/default.target.wants/
ln -s /lib/systemd/system/systemd-networkd.service /etc/systemd/system/multi-user.target.wants/
for unit in apt-daily.timer apt-daily-upgrade.timer man-db.timer systemd-networkd-wait-online.service; do
	ln -sf /dev/null "/etc/systemd/system/$unit"
done

# Without what is mounted in it.
mkdir /tmp/disk
mount --bind / /tmp/disk
rm -f /out/disk
mke2fs -q -t ext4 -O ^has_journal -d /tmp/disk /out/disk 3G
cp "/boot/vmlinuz-$kernel" /out/vmlinuz
cp "/boot/initrd.img-$kernel" /out/initrd
