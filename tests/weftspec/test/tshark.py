#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tshark as a third judge: does it read the tester's captures as the tester does?

    tshark.py BIN      TAP on stdout; exit 77 without a tshark of the known version

Runs well-formed cases and cases that end in a Terminate against a clean
self-peer, and compares FPDU by FPDU: opcode, good or bad CRC, and of each
Terminate layer, error type, code and header bits.  What tshark 4.0 is known to
read wrong stays out: Markers (their pointers are never checked, and one-sided
ones not decoded), start-up frames and headers cut by TCP, Terminates of EType 1
for a Read (it shows the copied header wrong; the control word is compared all
the same).  Of RFC 7306 the opcodes are compared; EXT-18 is too long for it, and
some cases end before they have read all that their capture has.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as et

CASES = """DDP-0 DDP-15 DDP-16 DDP-17 DDP-18 DDP-2 DDP-3 DDP-51 RDM-01 RDM-02 RDM-03
RDM-06 RDM-07 RDM-09 RDM-10 RDM-12 RDM-14 RDM-16 RDM-17 RDM-18 RDM-2 RDM-3 RDM-4
RDM-56 MPA-10 MPA-51 MPA-56 MPA-57/payload MPA-57/crc MPA-61 SEC-0 EXT-""".split()
LEAVE_OUT = re.compile(r"MPA-.*peer-asks|DDP-37|DDP-15/len1000000|RDM-21|SEC-04|SEC-06|SEC-09|DDP-08|DDP-07|RDM-02|RDM-50|RDM-49|DDP-28|RDM-29|EXT-18|EXT-2[123]|EXT-27/cut")
OPCODES = ["Write", "ReadReq", "ReadResp", "Send", "SendInv", "SendSE", "SendSEInv", "Terminate",
           "Immediate", "ImmediateSE", "AtomicReq", "AtomicRep"]


def known_tshark():
    try:
        out = subprocess.run(["tshark", "--version"], capture_output=True, text=True).stdout
    except OSError:
        return None
    return re.search(r"TShark[^0-9]*(4\.0\.\d+)", out)


def run_cases(binaries, folder):
    peer = subprocess.Popen([binaries + "/weftspec-self-peer", "--listen", "127.0.0.1:0"],
                            stdout=subprocess.PIPE, text=True)
    try:
        port = peer.stdout.readline().split()[1]
        run = subprocess.run([binaries + "/weftspec", "--peer", "127.0.0.1:" + port, "--seed", "1",
                              "--timeout", "5", "--patience", "3000", "--color", "never", "-v",
                              "--pcap", folder] + CASES, capture_output=True, text=True)
        return run.stdout
    finally:
        peer.kill()
        peer.wait()


def transcripts(output):
    """case id -> its transcript lines"""
    cases, lines = {}, []
    for line in output.splitlines():
        head = re.match(r"(pass|divergent|fail|crash|skipped) +(\S+)", line)
        if head:
            lines = cases.setdefault(head[2], [])
        elif line.startswith("          "):
            lines.append(line.strip())
    return cases


def as_tester_read(lines):
    seen = collections.Counter()
    for line in lines:
        m = re.match(r"([<>]) \[\d+\] FPDU (\S+)(.*)", line)
        if m and m[2] != "runt":
            seen["opcode " + (m[2] if m[2] in OPCODES else "?")] += 1
            bad = "(broken framing)" in m[3] or "BAD CRC" in m[3]
            seen["bad CRC" if bad else "good CRC"] += 1
        m = re.match(r"> \[\d+\] Terminate (\S+) (\S+)", line)
        if m:
            seen["opcode Terminate"] += 1
            seen["good CRC"] += 1
            seen["Terminate %s %s" % (m[1], m[2])] += 1
    return seen



def shown(node, name):
    field = node.find(".//field[@name='%s']" % name)
    return 0 if field is None else int(field.get("show"), 0)


def read_terminate(rdma):
    code = next((shown(rdma, f.get("name")) for f in rdma.iter("field")
                 if f.get("name", "").startswith("iwarp_rdma.term_errcode")), 0)
    etype = next((shown(rdma, f.get("name")) for f in rdma.iter("field")
                  if f.get("name", "").startswith("iwarp_rdma.term_etype")), 0)
    bits = "".join(letter for letter, name in (("M", "iwarp_rdma.term_hdrct_m"), ("D", "iwarp_rdma.hdrct_d"),
                                              ("R", "iwarp_rdma.hdrct_r")) if shown(rdma, name))
    return "Terminate %x/%x/%02x %s" % (shown(rdma, "iwarp_rdma.term_layer"), etype, code, bits or "-")


def as_tshark_read(capture):
    seen = collections.Counter()
    pdml = subprocess.run(["tshark", "-r", capture, "-2", "--disable-protocol", "rpcordma",
                           "--disable-protocol", "smb_direct", "-T", "pdml"], capture_output=True).stdout
    for proto in et.fromstring(pdml).iter("proto"):
        if proto.get("name") == "iwarp_mpa":
            for field in proto.iter("field"):
                if field.get("name") == "iwarp_mpa.crc_check":
                    seen["bad CRC" if "Bad" in field.get("showname") else "good CRC"] += 1
        if proto.get("name") == "iwarp_ddp_rdmap":
            for field in proto.iter("field"):
                if field.get("name") == "iwarp_rdma.opcode":
                    op = int(field.get("show"), 0)
                    seen["opcode " + (OPCODES[op] if op < len(OPCODES) else "?")] += 1
            if proto.find(".//field[@name='iwarp_rdma.terminate']") is not None:
                seen[read_terminate(proto)] += 1
    return seen


def main():
    if not known_tshark():
        print("1..0 # SKIP no tshark 4.0.x")
        return 77
    count = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, lines in transcripts(run_cases(sys.argv[1], folder)).items():
            capture = os.path.join(folder, case.replace("/", "_") + ".pcap")
            if LEAVE_OUT.search(case) or not os.path.exists(capture):
                continue
            mine, theirs = as_tester_read(lines), as_tshark_read(capture)
            count += 1
            if mine == theirs:
                print("ok %d - %s" % (count, case))
                continue
            bad += 1
            print("not ok %d - %s" % (count, case))
            for what in sorted(set(mine) | set(theirs)):
                if mine[what] != theirs[what]:
                    print("#   %s: tester %d, tshark %d" % (what, mine[what], theirs[what]))
    print("1..%d" % count)
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
