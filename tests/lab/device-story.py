#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares what verbs, sysfs, netlink, UCX and hwloc say of each RDMA device: device-story.py [NUMBER OF DEVICES [PROFILE]]

Runs under weft-run. With a profile's file, also with what that promises. Prints a line for each device, then "one
story", or what differs.
"""
import ipaddress
import os
import re
import subprocess
import sys

from pyverbs.device import Context

def tool(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout

def sysfs(path):
    with open(path) as f:
        return f.read().strip()

bad = []
def same(what, a, b):
    if a != b:
        bad.append(f"{what}: {a!r}, and {b!r}")

def read_profile(path):
    """Each key's words; a comment follows a blank."""
    keys = {}
    with open(path) as f:
        for line in f:
            words = re.sub(r"(^|\s)#.*", "", line).split()
            if words:
                keys.setdefault(words[0], []).extend(words[1:])
    return keys

MASKS = {"srq_resize": 1 << 13, "mem_window": 1 << 17, "mem_window_type_2b": 1 << 24, "mem_mgt_extensions": 1 << 21,
         "port_active_event": 1 << 10, "curr_qp_state_mod": 1 << 7, "sys_image_guid": 1 << 11, "rc_rnr_nak_gen": 1 << 12}
KINDS = {"ca": "1: CA", "rnic": "4: RNIC", "unspecified": "7: unspecified"}
LAYERS = {"ethernet": "Ethernet", "unspecified": "Unknown"}

# By its key: what the device has of it.
def shown(key, name, at, context, port, words):
    d = f"/sys/class/infiniband/{name}/"
    pci = os.path.realpath(d + "device")
    a = context.query_device()
    one = words[0]
    def file(path):
        return sysfs(path) if os.path.exists(path) else "none"
    if key in ("hca_type", "board_id", "hw_rev", "node_desc"):
        return file(d + key), " ".join(words)
    if key == "fw_ver":
        return file(d + key) or "none", one
    if key == "node_type":
        return file(d + key), KINDS[one]
    if key == "face":
        return file(d + "node_type") == KINDS["rnic"], one == "iwarp"
    if key == "link_layer":
        return file(d + "ports/1/link_layer"), LAYERS[one]
    if key == "name":
        pattern = one.replace("%d", str(at)).replace("%n", "lo").replace("%p", r"p\d+s\d+(f\d+)?")
        return bool(re.fullmatch(pattern, name)), True
    if key == "active_speed":
        return float(file(d + "ports/1/rate").split()[0]), float(one)
    if key == "active_width":
        return {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[port.active_width], int(one)
    if key in ("active_mtu", "max_mtu"):
        return 128 << getattr(port, key), int(one)
    if key == "max_msg_sz":
        return port.max_msg_sz, int(one, 0)
    if key == "gid_types":
        kinds = sorted({file(d + f"ports/1/gid_attrs/types/{i}") for i in range(port.gid_tbl_len)})
        return kinds, sorted({"v1": "IB/RoCE v1", "v2": "RoCE v2"}[w] for w in words)
    if key == "gids":
        first = ipaddress.ip_address(file(d + "ports/1/gids/0"))
        is_first = {"link-local": first.is_link_local, "ipv4": first.ipv4_mapped, "ipv6": not first.ipv4_mapped}
        return bool(is_first[one]), True
    if key == "atomic_cap":
        return a.atomic_caps, {"none": 0, "hca": 1, "global": 2}[one]
    if key == "device_cap_flags":
        return a.device_cap_flags & sum(MASKS.values()), sum(MASKS[w] for w in words if w != "none")
    if key == "odp":
        return bool(context.query_device_ex().odp_caps.general_caps), one == "yes"
    if key == "pci":
        return pci.endswith(words[at]), True
    if key in ("pci_vendor", "pci_device", "pci_subsystem_vendor", "pci_subsystem_device", "pci_class"):
        return int(file(f"{pci}/{key[4:]}"), 16), int(one, 0)
    if key == "pci_driver":
        return re.search(r"^DRIVER=(.*)$", file(pci + "/uevent"), re.M)[1], one
    if key == "pci_link":
        speed, width = file(pci + "/current_link_speed"), file(pci + "/current_link_width")
        return [float(speed.split()[0]), int(width)], [float(words[0]), int(words[1])]
    if key == "numa_node":
        return int(file(pci + "/numa_node")), int(words[at % len(words)])
    if key == "port_counters":
        return os.path.isdir(d + "ports/1/counters"), one == "yes"
    if key == "hw_counters":
        have = os.listdir(d + "ports/1/hw_counters") if os.path.isdir(d + "ports/1/hw_counters") else []
        return sorted(set(have) - {"lifespan"}), sorted(set(words) - {"none"})
    if key == "max_total_mcast_qp_attach":  # pyverbs has no such attribute
        return int(re.search(key + r":\s+(\d+)", tool("ibv_devinfo", "-v", "-d", name))[1]), int(one, 0)
    return int(getattr(a, key)), int(one, 0)

# max_inline_data and the others are calls': the suite's limits-of tests.
CALLS = {"qp_types", "max_inline_data", "immediate", "pkeys", "node_guid", "sys_image_guid"}

def compare_with(profile, name, at, context, port):
    for key, words in profile.items():
        if key not in CALLS and words != ["netdev"]:
            have, want = shown(key, name, at, context, port, words)
            same(f"{key} of {name}, and in its profile", have, want)

root = "/sys/class/infiniband/"
profile = read_profile(sys.argv[2]) if len(sys.argv) > 2 else {}
links = {m[1]: m for m in re.finditer(r"^link (\S+)/1 state (\S+) physical_state (\S+) netdev (\S+)", tool("rdma", "link"), re.M)}
devs = {m[1]: m for m in re.finditer(r"^\d+: (\S+): node_type (\S+) (?:fw (\S+) )?node_guid (\S+) sys_image_guid (\S+)", tool("rdma", "dev"), re.M)}
topology = tool("lstopo-no-graphics", "-v", "--whole-io")
ucx = tool("ucx_info", "-d")
names = sorted(os.listdir(root))
for at, name in enumerate(names):
    d = root + name + "/"
    port = d + "ports/1/"
    info = tool("ibv_devinfo", "-v", "-d", name)
    def says(key):
        m = re.search(r"^\s*" + key + r":\s+(.*?)\s*$", info, re.M)
        return m and m[1]
    c = Context(name=name)
    p = c.query_port(1)
    n = devs[name]
    compare_with(profile, name, at, c, p)
    guid = sysfs(d + "node_guid")
    same("node_guid", guid, says("node_guid"))
    same("node_guid", guid, n[4])
    system = sysfs(d + "sys_image_guid")
    same("sys_image_guid", system, says("sys_image_guid"))
    same("sys_image_guid", system, n[5])
    same("fw_ver", sysfs(d + "fw_ver") or "0.0.0", says("fw_ver"))
    same("fw_ver", sysfs(d + "fw_ver") or None, n[3])
    kinds = {"1: CA": ("ca", "InfiniBand (0)"), "4: RNIC": ("rnic", "iWARP (1)"), "7: unspecified": ("unspecified", "unspecified (4)")}
    kind = kinds[sysfs(d + "node_type")]
    same("node_type", kind[0], n[2])
    same("transport", kind[1], says("transport"))
    if os.path.exists(d + "board_id"):
        same("board_id", sysfs(d + "board_id"), says("board_id"))
    elif says("board_id"):
        bad.append("board_id by ibv_devinfo alone")
    same("state", {"4: ACTIVE": "ACTIVE", "1: DOWN": "DOWN"}[sysfs(port + "state")], links[name][2])
    same("state", {4: "ACTIVE", 1: "DOWN"}[p.state], links[name][2])
    lanes = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[p.active_width]
    speed = {1: 2.5, 2: 5, 4: 10, 8: 10, 16: 14, 32: 25, 64: 50, 128: 100}[p.active_speed]
    same("rate", sysfs(port + "rate").split(" (")[0], f"{lanes * speed:g} Gb/sec")
    same("link_layer", sysfs(port + "link_layer").replace("Unknown", "Unspecified"), says("link_layer"))
    gids = [sysfs(port + f"gids/{i}") for i in range(p.gid_tbl_len)]
    same("gid_tbl_len", len(os.listdir(port + "gids")), p.gid_tbl_len)
    for i, g in enumerate(gids):
        same(f"gid {i}", ipaddress.ip_address(g), ipaddress.ip_address(str(c.query_gid(1, i))))
    if kind[0] != "rnic":
        types = [{"IB/RoCE v1": 1, "RoCE v2": 2}[sysfs(port + f"gid_attrs/types/{i}")] for i in range(p.gid_tbl_len)]
        same("gid types", types, [e.gid_type for e in c.query_gid_table(p.gid_tbl_len)])
        same("unique gids", len(set(zip(gids, types))), len(gids))
    # PCI: the folder, its vendor, and where hwloc puts it
    folder = os.path.realpath(d + "device")
    bus = os.path.basename(folder)
    verbs = "/sys/class/infiniband_verbs/"
    uverbs = [v for v in os.listdir(verbs) if v[0] == "u" and sysfs(verbs + v + "/ibdev") == name]
    same("devices of uverbs", [folder], [os.path.realpath(verbs + v + "/device") for v in uverbs])
    m = re.search(r"busid=" + bus.replace(".", r"\.") + r" id=(\S+) class=(\S+?)\((?:(?!PCI L#).)*?OpenFabrics L#\d+ \((.*?)\) \"" + name + r"\"", topology, re.S)
    if not m:
        bad.append(f"{name} at {bus} is not in the topology")
    else:
        vendor, device, kind_of_pci = (int(sysfs(folder + word), 16) for word in ("/vendor", "/device", "/class"))
        same("PCI id", f"{vendor:04x}:{device:04x}", m[1])
        same("PCI class", f"{kind_of_pci >> 8:04x}", m[2])
        same("guid by hwloc", "NodeGUID=" + guid, m[3].split()[0])
        same("state by hwloc", str(p.state), re.search(r"Port1State=(\d)", m[3])[1])
    # UCX, if it opens the device: some lack what it needs, such as SRQs.
    sections = [x for x in re.split(r"# +(?=Transport: |Connection manager: )", ucx) if f"Device: {name}:1\n" in x]
    opened = [m[1] for m in (re.search(r"bandwidth: ([0-9.]+)/ppn", x) for x in sections) if m]
    for mbps in opened:
        gbps = float(mbps) * 2**20 * 8 / 1e9
        # Above this, PCI's bandwidth counts.
        if not 0.7 * lanes * speed < gbps < 1.1 * lanes * speed and gbps < 150:
            bad.append(f"bandwidth by UCX: {gbps}")
    print(name, bus, sysfs(port + "rate"), "numa", sysfs(folder + "/numa_node"), f"UCX opens {len(opened)} of {len(sections)}")
same("devices", names, sorted(links))
same("devices", names, sorted(devs))
if len(sys.argv) > 1:
    same("number of devices", int(sys.argv[1]), len(names))
print("\n".join(bad) or "one story")
sys.exit(bool(bad))
