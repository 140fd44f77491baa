#!/bin/bash
# The bench, inside the lab: weft, siw, rxe and TCP by turns, one driver loaded at a time.
# Every figure is a line of CSV in /run/weft/bench/figures.csv, flushed as it is taken:
#   round,mtu,driver,cell,value        value is empty if the figure could not be taken
# "weft+crc" is weft with CRC on; every other row is without, as siw is by default; "lab" is
# the machine itself. Rates are in 10^6 octets a second (perftest's 2^20 are converted),
# latencies in us, half a round trip, memory in 1024 octets, of one end.
#   measure.sh ROUNDS PLAN LOSS_SECONDS
#        PLAN: full, quick, or a regular expression of cells of full
#        LOSS_SECONDS: how long a round of the cells with loss lasts
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh
# shellcheck disable=SC2154 # KO_weft_kmod is in the environment
. "$WEFT_TOP/tests/lab/lib.sh"

rounds=$1 plan=$2 loss_seconds=$3
TEST_DIR=$SHARE/bench
mkdir -p "$TEST_DIR"
export TEST_DIR TMPDIR=$TEST_DIR
csv=$TEST_DIR/figures.csv
# siw on lo needs a link-layer address for its GID, and does not resolve 127.0.0.1.
here=10.7.9.1
ip link set lo address 02:77:65:66:74:01
ip addr add $here/32 dev lo
seconds=3
[ "$plan" != quick ] || seconds=2
# shellcheck source-path=SCRIPTDIR source=figures.sh
. "$WEFT_TOP/tests/bench/figures.sh"
longest=$((loss_seconds + 60))
# A kernel's listener is in no table that all drivers have.
begun() { pause 0.5; }

# What is measured: ROUNDS DRIVER-LIST MTU-LIST CELL FUNCTION [ARG...]. In so many rounds at
# most, unless the plan names cells: what no goal is about is taken twice, what only the plots
# need, once. A driver that does not know how to do a cell is not listed; rxe stalls on messages
# of 1 MB.
cells() {
	cat <<-END
		99 weft,weft+crc,siw,tcp 1500 write_bw_64K bw write 65536
		99 weft,siw,tcp 1500 write_bw_1M bw write 1048576
		99 weft,siw 1500 write_bw_4K bw write 4096
		99 weft,siw 1500 write_rate_64 rate write 64
		99 weft,siw 1500 read_bw_64K bw read 65536
		99 weft,siw,tcp 1500 write_lat_8 lat write 8
		99 weft,siw 1500 read_lat_8 lat read 8
		99 weft,siw 1500 send_lat_64K lat send 65536
	END
	[ "$plan" != quick ] || return
	cat <<-END
		99 weft+crc 1500 write_bw_1M bw write 1048576
		99 tcp 1500 send_lat_64K lat send 65536
		99 weft,siw,tcp 65536 write_bw_64K bw write 65536
		99 weft,siw 65536 write_bw_4K bw write 4096
		99 weft,siw 65536 read_bw_64K bw read 65536
		99 weft,tcp 1500 cpu_s_per_GB cpu
		99 weft 1500 conns_1 conns 1
		99 weft 1500 conns_16 conns 16
		99 weft 1500 conns_256 conns 256
		99 weft 1500 conns_1024 conns 1024
		99 weft,siw 1500 connects_per_s connects
		99 weft,siw 1500 connects_at_once_per_s connects_at_once 50
		3 weft,tcp 1500 idle_KB idle
		99 weft,tcp 1500 loss_1%_10ms loss 1 $loss_seconds 1
		99 weft,tcp 1500 loss_1%_10ms_16conns loss 1 15 16
		2 rxe 1500,65536 write_bw_64K bw write 65536
		2 weft+crc 65536 write_bw_64K bw write 65536
		2 weft,weft+crc,siw,rxe,tcp 9000 write_bw_64K bw write 65536
		2 rxe,tcp 1500 write_bw_4K bw write 4096
		2 weft,siw,tcp 1500 placed_64K placed 65536
		2 weft,siw,tcp 1500 send_bw_64K bw send 65536
		2 weft+crc,rxe 1500 write_lat_8 lat write 8
		2 rxe 1500 read_lat_8 lat read 8
		2 siw 1500 cpu_s_per_GB cpu
		2 siw,tcp 1500 conns_1 conns 1
		2 siw,tcp 1500 conns_16 conns 16
		2 tcp 1500 conns_256 conns 256
		2 tcp 1500 conns_1024 conns 1024
		2 tcp 1500 connects_per_s connects
		1 siw 1500 idle_KB idle
		2 weft,tcp 1500 loss_0.1%_10ms loss 0.1 $loss_seconds 1
		1 siw 1500 loss_1%_10ms loss 1 $loss_seconds 1
		1 rxe 1500 write_rate_64 rate write 64
		1 tcp 1500 write_bw_64 bw write 64
		1 weft,siw,rxe,tcp 1500 write_bw_1K bw write 1024
		1 weft,siw,rxe,tcp 1500 write_bw_16K bw write 16384
		1 weft,siw,rxe,tcp 1500 write_bw_256K bw write 262144
		1 weft,siw,rxe,tcp 1500 write_lat_256 lat write 256
		1 weft,siw,rxe,tcp 1500 write_lat_4K lat write 4096
		1 weft,siw,rxe,tcp 1500 write_lat_64K lat write 65536
	END
}

# The better of qperf and iperf3, with writes of that size: both say what came.
tcp_bw() {
	local q i
	server qperf
	q=$(timeout 60 qperf -uu $here -m "$1" -t $seconds tcp_bw |
		awk '/bw *=/ {printf "%.1f", $3 / 1e6}')
	end_server 0
	i=$(iperf3_bw "$1" $seconds)
	awk -v q="${q:-0}" -v i="${i:-0}" 'BEGIN {if (q || i) print (q > i) ? q : i}'
}

# --- the cells: they print their figures ---

# counts NAME...: of the device on lo.
counts() {
	local name
	for name; do
		cat /sys/class/infiniband/weft0/ports/1/hw_counters/"$name"
	done
}

# explained CELL COMMAND...: the command, and what weft's counters say of it.
explained() {
	local cell=$1 names=(tx_segs tx_segs_aligned tx_calls tx_fpdus doorbells requests) before after
	shift
	if [ "$driver" != weft ]; then
		"$@"
		return
	fi
	before=$(counts "${names[@]}")
	"$@"
	after=$(counts "${names[@]}")
	# shellcheck disable=SC2086 # lists
	awk -v of="$round,$mtu,$driver,$cell" 'BEGIN {
		for (i = 1; i <= 6; i++)
			n[i] = ARGV[i + 6] - ARGV[i]
		print of ":aligned_%," (n[1] ? 100 * n[2] / n[1] : "")
		print of ":fpdus_per_call," (n[3] ? n[4] / n[3] : "")
		print of ":requests_per_doorbell," (n[5] ? n[6] / n[5] : "")
	}' $before $after | tee -a "$csv"
}

# perftest counts what it has taken from the CQ, and lets 128 requests wait there: 128 MB of 1 MB
# messages. With a margin of a second before and behind (which -D makes of five) they wait at both
# ends of what it counts.
long=$((seconds + 2))

bw_figure() {
	local v
	if [ "$driver" = tcp ]; then
		v=$(tcp_bw "$3")
	else
		v=$(perftest 4 "ib_$2_bw" -s "$3" -D $long)
		v=$(awk -v v="$v" 'BEGIN {if (v) print v * 1.048576}')
	fi
	figure "$1" "$v"
}

rate_figure() {
	local v
	v=$(perftest 5 "ib_$2_bw" -s "$3" -D $long)
	figure "$1" "$(awk -v v="$v" 'BEGIN {if (v) print v * 1e6}')"
}

bw() { explained "$1" bw_figure "$@"; }
rate() { explained "$1" rate_figure "$@"; }

# perftest wants a number of round trips: as many as take three seconds or more.
round_trips() {
	case $driver-$1 in
	rxe-8 | rxe-256) echo 60000 ;;
	*-8 | *-256) echo 100000 ;;
	weft*-4096) echo 60000 ;;
	*-4096) echo 20000 ;;
	weft*) echo 30000 ;;
	*) echo 3000 ;;
	esac
}

lat() {
	local n typical
	n=$(round_trips "$3")
	if [ "$driver" = tcp ]; then
		figure "$1" "$(rate_of typical_us -L -s "$3" -t $seconds)"
		figure "${1}_p99" "$(value_of p99_us)"
		return
	fi
	[ "$plan" != quick ] || n=$((n / 4))
	typical=$(perftest 5 "ib_$2_lat" -s "$3" -n "$n")
	figure "$1" "$typical"
	figure "${1}_p99" "${typical:+$(perftest_column 8)}"
}

# What perftest counts are the sender's completions; this is what the receiver's were.
placed() { figure "$1" "$(rate_of MB/s -s "$2" -q 64 -t $seconds)"; }

# Seconds of both CPUs that were not idle, since boot.
busy() { awk '/^cpu /{print ($2 + $3 + $4 + $7 + $8) / 100}' /proc/stat; }

# The warm-up's octets are not counted, its CPU time is: the window is long beside it.
cpu() {
	local before after bytes
	before=$(busy)
	bytes=$(rate_of bytes -e -s 65536 -t $((3 * seconds)))
	after=$(busy)
	figure "$1" "$(awk -v a="$before" -v b="$after" -v n="${bytes:-0}" \
		'BEGIN {if (n > 0) print (b - a) / n * 1e9}')"
}

conns() { figure "$1" "$(rate_of MB/s -c "$2" -s 65536 -q 4 -t $seconds)"; }

# And of a connection's time, what the client's steps have.
connects() {
	local step
	figure "$1" "$(rate_of connects/s -C -t $seconds)"
	[ "$driver" != tcp ] || return
	for step in resolve queues connect close; do
		figure "$1:${step}_us" "$(value_of ${step}_us)"
	done
}

# Memory in use. After drop_caches what is left of the reclaimable slabs is in use, too.
in_use_now() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '{n[$1] = $2} END {print n["MemTotal:"] - n["MemFree:"] - n["Buffers:"] - n["Cached:"]}' \
		/proc/meminfo
}

# Once what went before has let go of its memory: less than 100 KB in half a second.
in_use() {
	local before now tries=20
	now=$(in_use_now)
	while [ $((tries -= 1)) -gt 0 ]; do
		pause 0.5
		before=$now
		now=$(in_use_now)
		[ $((before - now)) -gt 100 ] || break
	done
	echo "$now"
}

# Of a process: what it has mapped of a device's rings.
mapped() {
	awk '/uverbs/{on = 1} /^Size:/{if (on) n += $2; on = 0} END {print n + 0}' "/proc/$1/smaps"
}

# figures.sh: what a program and its connections take, and of that the rings.
memory_of() { echo "$(in_use) $(mapped "$1")"; }

# The memory of one end is half of what a connection takes. Pages on a CPU's own list do not count in
# MemFree: the lists are kept short, or they hide tens of megabytes.
idle() {
	local both queues keep=/proc/sys/vm/percpu_pagelist_high_fraction
	echo 100000 >$keep
	both=$(per_one -I)
	figure "$1" "$(awk -v v="${both% *}" 'BEGIN {if (v) print v / 2}')"
	if [ "$driver" != tcp ]; then
		figure "$1:rings" "${both#* }"
		queues=$(per_one -U)
		figure "$1:unconnected" "${queues% *}"
	fi
	echo 0 >$keep
}

# Over veth to b, one segment a packet: of the larger ones that TCP would make here netem
# loses all at once. Both directions lose. Little is under way, since what the receiver answers
# for together, a quarter of it, is as exact as the count can be.
#   loss CELL PERCENT SECONDS CONNECTIONS
loss() {
	local where dev_b=${dev}9
	local there=(nsenter --net=/run/netns/b) peer=$IP_B
	if [ "$driver" = tcp ]; then
		ip link set eth0 mtu 1500
		on_b ip link set eth0 mtu 1500
	else
		at a bring_up "$dev" "${dev}8" 1500
		at b bring_up "$dev" "$dev_b" 1500
		wait_active a "${dev}8"
		wait_active b "$dev_b"
		[ "$dev" != weft ] || { option weft8 crc 0 && at b option "$dev_b" crc 0; }
	fi
	for where in a b; do
		on $where ip link set eth0 gso_max_segs 1
		on $where tc qdisc replace dev eth0 root netem delay 5ms loss "$2%" limit 100000
	done
	figure "$1" "$(rate_of MB/s -c "$4" -s 65536 -q 16 -t "$3")"
	for where in a b; do on $where tc qdisc del dev eth0 root; done
	[ "$driver" = tcp ] || {
		rdma link del "${dev}8"
		rdma link del "$dev_b"
	}
}

# --- the machine ---

# load_ours MODULE: one of tests/kmod.
load_ours() { insmod "${KO_weft_kmod%/*}/$1.ko"; }

# crc32c's cost.
sum_alone() {
	load_ours weft_ksum
	figure crc32c_ns_per_octet "$(awk '{print $1 / 1000}' \
		/sys/module/weft_ksum/parameters/ps_per_octet)"
	rmmod weft_ksum
}

# What a system call and TCP cost a message of 8 octets, and one that is answered; and how fast
# one of 1 MB is if both ends' work is on the CPU that sends.
tcp_alone() {
	load_ours weft_kping
	client weft-rate -K -t $seconds
	figure floor_write_us "$(value_of typical_us)"
	client weft-rate -K -o read -t $seconds
	figure floor_read_us "$(value_of typical_us | awk '{print 2 * $1}')"
	client weft-rate -K -o send -s 1048576 -t $seconds
	figure bound_1M "$(value_of MB/s)"
	rmmod weft_kping
}

# Beside a CPU that spins, as perftest's other end does: one that the host has to wake for each
# call takes five times as long.
of_the_lab() {
	local driver=lab mtu=0 spinner
	while :; do :; done &
	spinner=$!
	weft-rate -S >"$TEST_DIR/client.log"
	figure syscall_us "$(value_of syscall_us)"
	[ "$plan" = quick ] || sum_alone
	kill $spinner
	wait $spinner 2>/dev/null
	[ "$plan" != quick ] || return 0
	ip link set lo mtu 1500
	tcp_alone
}

# --- the turns ---

set_up() {
	local module=$dev crc=0
	[ "$driver" != weft+crc ] || crc=1
	[ "$dev" != rxe ] || module=rdma_rxe
	load "$module" && rdma link add "${dev}0" type "$dev" netdev lo &&
		wait_for 5 port_is_active "${dev}0" || return
	[ "$dev" != weft ] || option weft0 crc $crc
}

take_down() {
	rdma link del "${dev}0"
	if [ "$dev" = rxe ]; then rmmod rdma_rxe; else rmmod "$dev"; fi
}

# A cell that fails costs its figure, and a driver that fails its turn; the run goes on.
turn() {
	local line lines cell fn args dev=${driver%+*} ready=true
	lines_of_turn >"$TEST_DIR/turn"
	mapfile -t lines <"$TEST_DIR/turn"
	[ ${#lines[@]} -gt 0 ] || return 0
	ip link set lo mtu "$mtu"
	[ "$driver" = tcp ] || set_up || ready=false
	for line in "${lines[@]}"; do
		read -r cell fn args <<<"$line"
		# shellcheck disable=SC2086 # a list
		if $ready; then ($fn "$cell" $args </dev/null); else figure "$cell" ''; fi
	done
	[ "$driver" = tcp ] || take_down
}

{
	echo "user-mode Linux $(uname -r), $(nproc) CPUs, TCP's own buffers for all:"
	echo "tcp_wmem $(tr '\t' ' ' </proc/sys/net/ipv4/tcp_wmem), tcp_rmem $(tr '\t' ' ' \
		</proc/sys/net/ipv4/tcp_rmem), $(cat /proc/sys/net/ipv4/tcp_congestion_control)"
} >"$TEST_DIR/machine"
cells >"$TEST_DIR/cells"
for round in $(seq "$rounds"); do
	of_the_lab
	mtus='1500 9000 65536' drivers='weft weft+crc siw rxe tcp'
	# The other way round every other time.
	[ $((round % 2)) = 1 ] || mtus='65536 9000 1500' drivers='tcp rxe siw weft+crc weft'
	for mtu in $mtus; do
		for driver in $drivers; do
			turn
			echo "# at $SECONDS s: round $round, MTU $mtu, $driver done"
		done
	done
done
