#!/bin/bash
# What `make demo` runs on machine a: the programs that everybody knows, between two machines.
# Prints the table and the verdict; what the programs said is kept in demo/.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

TEST_DIR=$SHARE/demo
mkdir -p "$TEST_DIR"
export TEST_DIR
driver=weft
DEV_A=weft0 DEV_B=weft0

for side in a b; do
	at $side load $driver || fail "$driver does not load on machine $side"
	on $side rdma link add $DEV_A type $driver netdev eth0 || fail "no device on machine $side"
done
for side in a b; do
	wait_active $side $DEV_A
	echo "machine $side: $(on $side uname -sr), $(on $side rdma link show $DEV_A/1)"
done
echo
printf '%-36s %s\n' program result

row() { printf '%-36s %s\n' "$1" "$2"; }

# figure UNIT VALUE: perftest prints nought where it could not gauge its clock.
figure() {
	if [[ $2 =~ ^(inf|-?nan|[0.]*)$ ]]; then echo 'done (the host is too busy to time it)'; else echo "$2 $1"; fi
}

# perftest PROGRAM [OPTION...]: its line of figures.
perftest() {
	rm -f "$TEST_DIR/server.rc"
	(perftest_pair "$@") >"$TEST_DIR/$1.said" 2>&1 || {
		cat "$TEST_DIR/$1.said" >&2
		exit 1
	}
	grep -E '^ *[0-9]+ +[0-9]+ ' "$TEST_DIR/$1.log" | tail -n 1
}

start_b rping.server rping -s -a "$IP_B" -C 100 -S 4000 -V
wait_listen_b 7174
run rping -c -a "$IP_B" -C 100 -S 4000 -V
finish_b rping.server
row 'rping -V, 100 x 4000 bytes' 'every byte came back right'

for program in ib_write_bw ib_send_bw ib_read_bw; do
	line=$(perftest $program -s 65536 -n 500) || fail "$program"
	row "$program -R, 64 KiB messages" "$(figure MB/s "$(awk '{print $4}' <<<"$line")")"
done
for program in ib_read_lat ib_write_lat; do
	line=$(perftest $program -s 64 -n 500) || fail "$program"
	row "$program -R, 64 bytes" "$(figure us "$(awk '{print $5}' <<<"$line")")"
done

for side in a b; do
	on $side dmesg | klog_faults && fail "the kernel of machine $side complained"
	on $side rdma link del $DEV_A || fail "the device of machine $side does not go"
	on $side rmmod $driver || fail "$driver does not unload on machine $side"
done
exit 0
