#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a program has open once it uses a device: descriptors.py WEFT_RUN [OPTION...]

Prints a line for each kind of descriptor that opening a device, a CQ and a region adds, hidden ones among them: its
kind, and how many. Sockets are named by their family.
"""
import collections
import os
import subprocess
import sys

PROGRAM = """
import sys
def stop(word):
    print(word, flush=True)
    sys.stdin.readline()
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.cq import CQ
from pyverbs.mr import MR
stop("before")
c = Context(name="weft_lo")
p = PD(c)
q = CQ(c, 10)
m = MR(p, 4096, 1)
stop("after")
"""

def family(pid, inode):
    for name in ("unix", "netlink", "tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/{pid}/net/{name}") as f:
            if any(inode in line.split() for line in f):
                return name
    return "other"

def kind(pid, target):
    if target.startswith("socket:"):
        return "socket of " + family(pid, target[8:-1])
    return target.removeprefix("anon_inode:").removesuffix(" (deleted)").strip("[]")

def descriptors(pid):
    folder = f"/proc/{pid}/fd/"
    return {int(n): os.readlink(folder + n) for n in os.listdir(folder)}

def main(weft_run, *options):
    command = [weft_run, *options, "--netdevs=lo", "/usr/bin/python3", "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        seen = []
        for word in ("before", "after"):
            line = p.stdout.readline().strip()
            if line != word:
                sys.exit(f"the program says {line!r}, not {word!r}")
            seen.append(descriptors(p.pid))
            if word == "after":
                new = collections.Counter(kind(p.pid, t) for n, t in seen[1].items() if seen[0].get(n) != t)
            p.stdin.write("\n")
            p.stdin.flush()
    for name, n in sorted(new.items()):
        print(name, n)

main(*sys.argv[1:])
