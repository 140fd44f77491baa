#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares what verbs, sysfs, netlink, UCX and hwloc say of each RDMA device: device-story.py [NUMBER OF DEVICES]

Runs under weft-run. Prints a line for each device, then "one story", or what differs.
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

root = "/sys/class/infiniband/"
links = {m[1]: m for m in re.finditer(r"^link (\S+)/1 state (\S+) physical_state (\S+) netdev (\S+)", tool("rdma", "link"), re.M)}
devs = {m[1]: m for m in re.finditer(r"^\d+: (\S+): node_type (\S+) (?:fw (\S+) )?node_guid (\S+) sys_image_guid (\S+)", tool("rdma", "dev"), re.M)}
topology = tool("lstopo-no-graphics", "-v", "--whole-io")
ucx = tool("ucx_info", "-d")
names = sorted(os.listdir(root))
for name in names:
    d = root + name + "/"
    port = d + "ports/1/"
    info = tool("ibv_devinfo", "-v", "-d", name)
    def says(key):
        m = re.search(r"^\s*" + key + r":\s+(.*?)\s*$", info, re.M)
        return m and m[1]
    c = Context(name=name)
    p = c.query_port(1)
    n = devs[name]
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
