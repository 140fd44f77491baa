# shellcheck shell=bash
# weft-run --profile and --rails: what programs see of a device agrees whoever asks, its limits are kept, what the host
# cannot do is refused by line, and several devices are several devices.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	local profile
	for profile in "$WEFT_TOP"/providers/rootless/profiles/*; do
		profile=${profile##*/}
		echo "$profile-tells-one-story one_story $profile"
		echo "limits-of-$profile-are-kept limits $profile"
	done
	cat <<-'END'
		mlx5-moves-data moves mlx5 ib_write_bw
		bnxt_re-moves-data moves bnxt_re ib_read_lat
		rxe-moves-data moves rxe ib_atomic_lat
		apple-uc-moves-data moves apple-uc ib_send_bw -c UC -x 1 -t 32 -r 32
		efa-like-moves-data moves efa-like ib_send_lat -c UD -x 0
		irdma-iwarp-moves-data pings irdma-iwarp
		cxgb4-moves-data pings cxgb4
		siw-moves-data pings siw
		what-another-profile-promises-is-not-its-story another_story
		limits-are-kept-by-queries-and-reregistrations limits_later
		a-request-without-depths-has-the-limits-of-the-profile depths
		what-the-host-cannot-do-is-refused-by-line refused
		a-file-that-changes-later-is-ignored-aloud changed
		rails-are-devices-of-their-own rails_shown
		perftest-on-each-of-two-rails rails_by_perftest
		rdma_cm-finds-the-rail-of-an-address rails_by_cm
		ucx-over-two-rails rails_by_ucx
		rails-at-neighbours-of-ipv6-loopback rails_six
		rails-of-mixed-rate-and-mtu rails_mixed
		rails-have-names-of-their-own rails_named
		rails-have-functions-that-the-host-lacks rails_beside_host
		rails-over-two-netdevs rails_by_turns
	END
}

# says and run_says are of this suite.
# shellcheck source-path=SCRIPTDIR source=rootless.sh
. <(sed -n '/^# says STATUS/,/^# --- what a program sees/p' "$WEFT_TOP/tests/lab/suites/rootless.sh")

# --- one story ---

story=$WEFT_TOP/tests/lab/device-story.py

one_story() {
	run_says '0:^one story$' --profile="$1" --netdevs=lo /usr/bin/python3 "$story" 1 "$WEFT_TOP/providers/rootless/profiles/$1"
	cat "$TEST_DIR/said"
}

# Each key is compared: of these two, nearly all differ.
another_story() {
	local key
	run_says '1:^vendor_id of ' --profile=bnxt_re --netdevs=lo /usr/bin/python3 "$story" 1 "$WEFT_TOP/providers/rootless/profiles/mlx5"
	for key in name vendor_part_id hw_ver fw_ver hca_type board_id hw_rev node_desc device_cap_flags atomic_cap odp \
		max_sge max_mr max_pkeys pci pci_vendor pci_device pci_driver port_counters hw_counters; do
		grep -q "^$key of " "$TEST_DIR/said" || fail "$key is not compared"
	done
}

# --- data ---

# moves PROFILE PROGRAM [OPT...]: by hand
moves() {
	pair weft:weft
	option a profile "$WEFT_TOP/providers/rootless/profiles/$1"
	at b option b profile "$WEFT_TOP/providers/rootless/profiles/$1"
	local dev
	dev=$(PATH=${PATH#*:} $AS_USER "$WEFT_RUN" --profile="$1" --netdevs=lo ls /sys/class/infiniband)
	start_b server "$2" -d "$dev" -n 100 "${@:3}"
	wait_listen_b 18515
	run "$2" -d "$dev" -n 100 "${@:3}" "$IP_B"
	finish_b server
}

pings() {
	pair weft:weft
	local place
	for place in a b; do
		at $place option $place profile "$WEFT_TOP/providers/rootless/profiles/$1"
		at $place option $place device iwarp
	done
	start_b server rping -s -a "$IP_B" -C 20 -V
	wait_listen_b 7174
	run rping -c -a "$IP_B" -C 20 -V
	finish_b server
}

# --- limits ---

# Just within each limit, and just beyond.
limits_py='
import errno
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.srq import SRQ, SrqInitAttr, SrqAttr
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
import pyverbs.enums as e, os, sys
name = os.listdir("/sys/class/infiniband")[0]
c = Context(name=name)
a = c.query_device()
p = PD(c)
bad = []
def refused(what, codes, make):
    try:
        make()
    except PyverbsRDMAError as x:
        if x.error_code not in codes:
            bad.append(f"{what}: {x}")
        return
    bad.append(f"{what}: taken")
def taken(what, make):
    try:
        return make()
    except PyverbsRDMAError as x:
        bad.append(f"{what}: {x}")
CQ(c, a.max_cqe)
refused("max_cqe", [errno.EINVAL], lambda: CQ(c, a.max_cqe + 1))
q = CQ(c, 10)
types = {"rc": e.IBV_QPT_RC, "uc": e.IBV_QPT_UC, "ud": e.IBV_QPT_UD}
has = sys.argv[1].split(",")
inline = int(sys.argv[2])
def qp(t=has[0], **k):
    cap = dict(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1, max_inline_data=0)
    cap.update(k)
    return QP(p, QPInitAttr(qp_type=types[t], scq=q, rcq=q, cap=QPCap(**cap)))
for t in types:
    if t in has:
        taken(t, lambda: qp(t))
    else:
        refused(t, [errno.EOPNOTSUPP], lambda: qp(t))
for key, most in (("max_send_wr", a.max_qp_wr), ("max_recv_wr", a.max_qp_wr), ("max_send_sge", a.max_sge),
                  ("max_recv_sge", a.max_sge), ("max_inline_data", inline)):
    taken(key, lambda: qp(**{key: most}))
    refused(key, [errno.EINVAL], lambda: qp(**{key: most + 1}))
if a.max_srq:
    taken("srq", lambda: SRQ(p, SrqInitAttr(SrqAttr(max_wr=a.max_srq_wr, max_sge=a.max_srq_sge))))
    refused("max_srq_wr", [errno.EINVAL], lambda: SRQ(p, SrqInitAttr(SrqAttr(max_wr=a.max_srq_wr + 1, max_sge=1))))
    refused("max_srq_sge", [errno.EINVAL], lambda: SRQ(p, SrqInitAttr(SrqAttr(max_wr=1, max_sge=a.max_srq_sge + 1))))
else:
    refused("max_srq", [errno.EOPNOTSUPP], lambda: SRQ(p, SrqInitAttr(SrqAttr(max_wr=1, max_sge=1))))
if a.max_qp < 100:
    held = [taken("qp", qp) for i in range(a.max_qp)]
    refused("max_qp", [errno.ENOMEM], qp)
if a.max_mr <= 1000:
    held += [taken("mr", lambda: MR(p, 4096, 0)) for i in range(a.max_mr)]
    refused("max_mr", [errno.ENOMEM], lambda: MR(p, 4096, 0))
if not c.query_device_ex().odp_caps.general_caps:
    refused("odp", [errno.EOPNOTSUPP], lambda: MR(p, 4096, e.IBV_ACCESS_ON_DEMAND))
print("\n".join(bad) or "kept")
sys.exit(bool(bad))'

limits() {
	local file=$WEFT_TOP/providers/rootless/profiles/$1 types inline
	types=$(awk '$1 == "qp_types" {sub(/#.*/, ""); $1 = ""; $0 = $0; OFS = ","; $1 = $1; print}' "$file")
	inline=$(awk '$1 == "max_inline_data" {print $2}' "$file")
	run_says '0:^kept$' --profile="$1" --netdevs=lo /usr/bin/python3 -c "$limits_py" "$types" "$inline"
}

# What is granted and queried has the limits, though rings have more room; rereg_mr as reg_mr.
limits_later() {
	cat >"$TEST_DIR/file" <<-'END'
		max_mr_size 65536
		max_qp_wr 100
		max_sge 3
		max_inline_data 100
		max_srq_wr 100
		max_srq_sge 3
		odp no
	END
	chmod 644 "$TEST_DIR/file"
	run_says '0:^kept$' --profile="$TEST_DIR/file" --netdevs=lo /usr/bin/python3 -c '
import errno
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.srq import SRQ, SrqInitAttr, SrqAttr
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
import pyverbs.enums as e
c = Context(name="weft_lo")
p = PD(c)
q = CQ(c, 10)
big = MR(p, 65536, e.IBV_ACCESS_LOCAL_WRITE)
mr = MR(p, 4096, e.IBV_ACCESS_LOCAL_WRITE)
def refused(code, make):
    try:
        make()
    except PyverbsRDMAError as x:
        assert x.error_code == code, x
        return
    raise AssertionError("taken")
refused(errno.EINVAL, lambda: MR(p, 65537, 0))
refused(errno.EINVAL, lambda: mr.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION, None, big.buf, 65537, 0))
refused(errno.EOPNOTSUPP, lambda: mr.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, e.IBV_ACCESS_ON_DEMAND))
mr.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION, None, big.buf, 65536, 0)
ask = QPCap(max_send_wr=100, max_recv_wr=100, max_send_sge=3, max_recv_sge=3, max_inline_data=100)
qp = QP(p, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=q, rcq=q, cap=ask))
cap = qp.query(e.IBV_QP_CAP)[0].cap
got = [cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data]
assert got == [100, 100, 3, 3, 100], got
srq = SRQ(p, SrqInitAttr(SrqAttr(max_wr=100, max_sge=3)))
a = srq.query()
assert (a.max_wr, a.max_sge) == (100, 3), a
print("kept")'
}

# MPA of RFC 5044 carries no depths.
depths() {
	printf 'face iwarp\nmax_qp_rd_atom 8\nmax_qp_init_rd_atom 4\n' >"$TEST_DIR/file"
	chmod 644 "$TEST_DIR/file"
	run_says '0:^4 8$' --profile="$TEST_DIR/file" --netdevs=lo timeout 20 /usr/bin/python3 -c '
from ctypes import *
import socket, struct
cm = CDLL("librdmacm.so.1")
cm.rdma_create_event_channel.restype = c_void_p
channel = c_void_p(cm.rdma_create_event_channel())
listener, event = c_void_p(), c_void_p()
assert not cm.rdma_create_id(channel, byref(listener), None, 0x0106)
name = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(18550), socket.inet_aton("127.0.0.1"))
assert not cm.rdma_bind_addr(listener, name) and not cm.rdma_listen(listener, 1)
peer = socket.create_connection(("127.0.0.1", 18550))
peer.sendall(b"MPA ID Req Frame" + struct.pack(">BBH", 0x40, 1, 0))
assert not cm.rdma_get_cm_event(channel, byref(event))
number, = struct.unpack("=i", string_at(event.value + 16, 4))
responder, initiator = string_at(event.value + 33, 2)
assert number == 4, number
print(initiator, responder)'
}

# --- refusals ---

# refuses PATTERN OPTION TEXT: a file with the text
refuses() {
	printf '%b' "$3" >"$TEST_DIR/file"
	chmod 644 "$TEST_DIR/file"
	run_says "125:/file: $1" "--$2=$TEST_DIR/file" true
}

refused() {
	refuses 'line 2: max_qp_wr: 32768: this host has at most 16384' profile 'name x\nmax_qp_wr 32768\n'
	refuses 'line 1: qp_types: "srd": this host has rc uc ud' profile 'qp_types ud srd\n'
	refuses 'line 3: "speed" is no key' profile '# mine\n\nspeed 100\n'
	refuses 'line 2: rail: this host has no nosuchdev' rails '\nrail nosuchdev\n'
	refuses 'line 1: rail: address 1 of lo is not this host' rails 'rail lo 203.0.113.1\n'
	refuses 'line 2: rail: 127.0.0.1 is in line 1, too' rails 'rail lo 127.0.0.1\nrail lo 127.0.0.1\n'
	run_says '125:no-such-profile: there is no such file' --profile=no-such-profile true
	run_says '125:--rails: eth0 has 2 addresses' --rails=3 --netdevs=eth0 true
	run_says '125:--device=roce: the profile has face iwarp' --device=roce --profile=siw true
	run_says '0:mlx5_0' --profile=siw "$WEFT_RUN" --profile=mlx5 ibv_devices
	run_says '125:makes no sense' --profile= true
	run_says '125:makes no sense' --rails= true
	run_says '0:' --profile=mlx5 --rails=64 true
}

# The program then has the device without a profile, and a complaint on stderr.
changed() {
	printf 'name mine%%d\n' >"$TEST_DIR/file"
	chmod 666 "$TEST_DIR/file"
	run_says '0:mine0' --profile="$TEST_DIR/file" --netdevs=lo ibv_devices
	run_says '0:^weft: /.*/file is ignored: line 1: name' --profile="$TEST_DIR/file" --netdevs=lo \
		sh -c "echo name a/b >'$TEST_DIR/file'; exec ibv_devices"
	grep -q weft_lo "$TEST_DIR/said" || fail "no device at all"
}

# --- rails ---

rails_shown() {
	local i
	run_says '0:^one story$' --profile=mlx5 --rails=8 /usr/bin/python3 "$story" 8
	cat "$TEST_DIR/said"
	[ "$(grep -o 'numa [01]' "$TEST_DIR/said" | sort | uniq -c | tr -s ' ')" = " 4 numa 0
 4 numa 1" ] || fail "NUMA nodes"
	[ "$(awk '/^mlx5/ {print $2}' "$TEST_DIR/said" | sort -u | wc -l)" = 8 ] || fail "PCI functions"
	for i in 0 3 7; do
		run_says "0:^0000:0000:0000:0000:0000:ffff:7f00:000$((i + 1))\$" --profile=mlx5 --rails=8 \
			cat /sys/class/infiniband/mlx5_$i/ports/1/gids/3
	done
	run_says '0:weft_lo_1' --rails=2 ibv_devices
}

both_have() {
	local place
	for place in a b; do
		at $place option $place profile "$WEFT_TOP/providers/rootless/profiles/$1"
		at $place option $place rails "$2"
	done
}

# Both at once; while they run, each connection is from its rail's address to its rail's.
rails_by_perftest() {
	local i
	pair weft:weft
	both_have mlx5 2
	for i in 0 1; do
		start_b "server-$i" ib_write_bw -d mlx5_$i -p $((18520 + i)) -D 4
		wait_listen_b $((18520 + i))
	done
	for i in 0 1; do
		run_apart "$TEST_DIR/client-$i" ib_write_bw -d mlx5_$i -p $((18520 + i)) -D 4 127.0.0.1
	done
	wait_for 10 rails_connected || fail "no connection from each rail's address; $(awk '{print $2, $3, $4}' /proc/net/tcp | sort | uniq -c | tail -5)"
	for i in 0 1; do
		finish_b "client-$i"
		finish_b "server-$i"
	done
}

rails_connected() {
	local at=/proc/net/tcp
	grep -qE ': 0100007F:[0-9A-F]+ 0100007F:[0-9A-F]+ 01' $at && grep -qE ': 0200007F:[0-9A-F]+ 0200007F:[0-9A-F]+ 01' $at
}

# The device of the id that resolves to each rail's address, from it.
rails_by_cm() {
	run_says '0:^mlx5_0 mlx5_2 mlx5_3$' --profile=mlx5 --rails=4 /usr/bin/python3 -c '
from pyverbs.cmid import AddrInfo, CMID
import pyverbs.cm_enums as ce
names = []
for a in ("127.0.0.1", "127.0.0.3", "127.0.0.4"):
    info = AddrInfo(src=a, dst=a, dst_service="7471", port_space=ce.RDMA_PS_TCP, flags=0)
    names.append(CMID(creator=info).context.name)
print(*names)'
	pair weft:weft
	both_have mlx5 4
	start_b server rping -s -a 127.0.0.3 -C 5
	wait_listen_b 7174
	run rping -c -a 127.0.0.3 -I 127.0.0.4 -C 5
	finish_b server
}

# Stripes of one message on both.
rails_by_ucx() {
	pair weft:weft
	both_have mlx5 2
	local place
	for place in a b; do
		printf '%s\n' 'export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 UCX_MAX_RNDV_RAILS=2' \
			>>"$TEST_DIR/options-$place"
	done
	start_b server ucx_perftest -p 18530
	wait_listen_b 18530
	run_apart "$TEST_DIR/client" ucx_perftest -p 18530 -t tag_bw -s 1000000 -n 600 127.0.0.1
	wait_for 20 rails_connected || fail "not over both rails; $(tail -3 "$TEST_DIR/client.log")"
	finish_b client
	finish_b server
}

rails_six() {
	[ "$OWN_NET" = yes ] || skip "lo is the host's"
	pair weft:weft
	ip addr replace ::2/128 dev lo nodad
	printf 'name six%%d\nrail lo ::1\nrail lo ::2\n' >"$TEST_DIR/file"
	chmod 644 "$TEST_DIR/file"
	run_says '0:GID\[  1\]:.*::2' --rails="$TEST_DIR/file" ibv_devinfo -v -d six1
	both_have mlx5 "$TEST_DIR/file"
	start_b server ibv_rc_pingpong -d six1 -g 1 -n 100 -p 18540
	wait_listen_b 18540
	run ibv_rc_pingpong -d six1 -g 1 -n 100 -p 18540 127.0.0.1
	finish_b server
	ip addr del ::2/128 dev lo
}

rails_mixed() {
	cat >"$TEST_DIR/file" <<-'END'
		name r%d
		active_speed 400
		rail lo 127.0.0.1
		numa_node 0
		rail lo 127.0.0.2
		active_speed 25
		active_mtu 1024
		numa_node 1
		pci 7766:96:02.0/7766:97:00.0
		node_guid 0c42:a103:0011:2233
	END
	chmod 644 "$TEST_DIR/file"
	run_says '0:^one story$' --rails="$TEST_DIR/file" /usr/bin/python3 "$story" 2
	grep -q '^r0 .* 400 Gb/sec (4X NDR) numa 0' "$TEST_DIR/said" || fail "rail 0"
	grep -q '^r1 7766:97:00.0 25 Gb/sec (1X EDR) numa 1' "$TEST_DIR/said" || fail "rail 1"
	run_says '0:active_mtu:.*1024' --rails="$TEST_DIR/file" ibv_devinfo -d r1
	run_says '0:node_guid:.*0c42:a103:0011:2233' --rails="$TEST_DIR/file" ibv_devinfo -d r1
	pair weft:weft
	both_have mlx5 "$TEST_DIR/file"
	start_b server ib_send_lat -d r1 -c UD -n 100 -s 1024
	wait_listen_b 18515
	run ib_send_lat -d r1 -c UD -n 100 -s 1024 127.0.0.1
	finish_b server
	! run_ends 0 ib_send_lat -d r1 -c UD -n 100 -s 2048 127.0.0.1 || fail "a datagram of 2048 octets"
}

# The third would be "lo" as the second is, and "lo_2" as the first is.
rails_named() {
	cat >"$TEST_DIR/file" <<-'END'
		rail lo 127.0.0.1
		name %n_2
		rail lo 127.0.0.2
		name %n
		rail lo 127.0.0.3
		name %n
	END
	chmod 644 "$TEST_DIR/file"
	run_says '0:^lo lo_2 lo_3$' --rails="$TEST_DIR/file" sh -c 'echo $(ls /sys/class/infiniband)'
}

# The first function is one that this host lacks, and the next one is the host's.
rails_beside_host() {
	local at=/sys/bus/pci/devices next free name
	for next in "$at"/*; do
		name=${next##*/}
		[[ $name =~ ^(....:..:)(..)\.([0-7])$ ]] || continue
		free=$((0x${BASH_REMATCH[2]} * 8 + BASH_REMATCH[3] - 1))
		[ $free -ge 0 ] || continue
		free=$(printf '%s%02x.%x' "${BASH_REMATCH[1]}" $((free / 8)) $((free % 8)))
		[ -e "$at/$free" ] || break
		free=
	done
	[ -n "${free-}" ] || skip "no function of this host has a free one before it"
	printf 'name r%%d\npci %s\n' "$free" >"$TEST_DIR/file"
	chmod 644 "$TEST_DIR/file"
	run_says "0:/$free\$" --profile="$TEST_DIR/file" --rails=2 readlink -f /sys/class/infiniband/r0/device
	run_says '0:.' --profile="$TEST_DIR/file" --rails=2 readlink -f /sys/class/infiniband/r1/device
	! grep -q "$name" "$TEST_DIR/said" || fail "the second is $name, which is the host's"
}

run_ends() { timeout 20 "${@:2}" >/dev/null 2>&1; }

rails_by_turns() {
	[ "$OWN_NET" = yes ] || skip "there is no second netdev"
	run_says '0:^one story$' --profile=mlx5 --rails=4 --netdevs=eth0,lo /usr/bin/python3 "$story" 4
	run_says '0:0a07:0001$' --profile=mlx5 --rails=4 --netdevs=eth0,lo cat /sys/class/infiniband/mlx5_0/ports/1/gids/3
	run_says '0:7f00:0001$' --profile=mlx5 --rails=4 --netdevs=eth0,lo cat /sys/class/infiniband/mlx5_1/ports/1/gids/3
	run_says '0:^eth0$' --profile=mlx5 --rails=4 --netdevs=eth0,lo cat /sys/class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/0
	run_says '0:7f00:0002$' --profile=mlx5 --rails=4 --netdevs=eth0,lo cat /sys/class/infiniband/mlx5_3/ports/1/gids/3
}
