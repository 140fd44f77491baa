# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""pcapng: each FPDU a TCP segment of its own, with a comment that names its request.

A record has the headers of an FPDU and the first octets of its payload. Wireshark reads no FPDU that
is cut off, so that the others are zeros here, and the CRC is theirs, as the comment reports. Markers are
left out, and the CRC is that of the rest. Of a connection that both ends have recorded, one end's view
is written.
"""
import struct

from . import record
from .crc32c import crc32c

RAW = 101                       # link type: IP
MOST_OCTETS = 256 << 20         # the oldest packets are left out, so that there are no more
PACKET_COST = 400               # of a packet without its FPDU, more or less
FRAME_LEN = 20                  # of MPA's start-up, without private data
CRC_LEN = 4


# ---- blocks ----

def option(code, value):
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def block(kind, body):
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def section():
    return block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, b"weft-trace") + option(0, b""))


def interface(name):
    # Times are in nanoseconds.
    return block(1, struct.pack("<HHI", RAW, 0, 0) + option(2, name.encode()) + option(9, b"\x09") + option(0, b""))


def packet(index, ns, octets, is_out, comment):
    head = struct.pack("<IIIII", index, ns >> 32 & 0xffffffff, ns & 0xffffffff, len(octets), len(octets))
    options = option(1, comment.encode("utf-8", "replace")[:60000]) if comment else b""
    options += option(2, struct.pack("<I", 2 if is_out else 1)) + option(0, b"")
    return block(6, head + octets + b"\0" * (-len(octets) % 4) + options)


# ---- IP and TCP ----

def checksum(octets):
    total = sum(struct.unpack(">%dH" % (len(octets) // 2), octets))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip_header(source, target, length):
    """A length of 0 is what a capture of a segment too large for IP has."""
    if len(source) == 16:
        return struct.pack(">IHBB", 6 << 28, length if length < 65536 else 0, 6, 64) + source + target
    total = length + 20
    parts = [0x45, 0, total if total < 65536 else 0, 0, 0x4000, 64, 6, 0, source, target]
    parts[7] = checksum(struct.pack(">BBHHHBBH4s4s", *parts))
    return struct.pack(">BBHHHBBH4s4s", *parts)


def segment(source, target, sequence, acknowledged, payload):
    tcp = struct.pack(">HHIIBBHHH", source[1], target[1], sequence & 0xffffffff, acknowledged & 0xffffffff, 0x50,
                      0x18, 65535, 0, 0)
    return ip_header(source[0], target[0], len(tcp) + len(payload)) + tcp + payload


# ---- FPDUs ----

def whole(fpdu, conn):
    """All of an FPDU's octets, as far as they are known."""
    missing = fpdu.length - len(fpdu.data)
    has_crc = conn.flags & record.CRC or not conn.flags & record.STARTED
    if fpdu.is_start or fpdu.length < CRC_LEN:
        return fpdu.data + b"\0" * missing
    if not missing and not conn.flags & record.MARKERS:
        return fpdu.data
    known = fpdu.data[:fpdu.length - CRC_LEN]
    zeros = fpdu.length - CRC_LEN - len(known)
    return known + b"\0" * zeros + (crc32c(known, zeros) if has_crc else b"\0" * CRC_LEN)


def without_markers(frame):
    """A frame of start-up that asks for none."""
    if len(frame) < FRAME_LEN or not frame[16] & 0x80:
        return frame
    return frame[:16] + bytes([frame[16] & 0x7f]) + frame[17:]


def made_up_frame(conn, is_request):
    crc = 0x40 if conn.flags & record.CRC else 0
    return (b"MPA ID Req Frame" if is_request else b"MPA ID Rep Frame") + struct.pack(">BBH", crc, 1, 0)


# ---- comments ----

def about_request(request):
    if not request:
        return ""
    words = "%s of QP 0x%x in %s, wr_id 0x%x" % (request.name, request.qpn, request.process.name, request.wr_id)
    if not request.is_receive:
        words += ", %d octets" % request.length
    call = "ibv_post_recv" if request.is_receive else "ibv_post_send"
    if request.where:
        words += ", %s by %s" % (call, request.where)
    if request.status:
        words += ", ended with %s" % request.status_name
    return words


def comment_of(conn, fpdu):
    lines = ["QP 0x%x of %s %s this" % (conn.qpn, conn.process.name, "sent" if fpdu.is_out else "received")]
    if fpdu.is_start:
        lines.append("start-up of MPA")
        if len(fpdu.data) >= FRAME_LEN and fpdu.data[16] & 0x80:
            lines.append("it asks for Markers, which are left out")
        return "\n".join(lines)
    message = fpdu.message
    if message and message.request:
        lines.append(about_request(message.request))
    if message and message.peer and message.peer.request:
        lines.append("at the other end: " + about_request(message.peer.request))
    if fpdu.is_own:
        lines.append("no request asked for this: it is the engine's")
    if conn.flags & record.MARKERS:
        lines.append("Markers are left out: the CRC is that of the rest")
    if fpdu.length > len(fpdu.data):
        lines.append("%d of %d octets were recorded: the others are shown as zeros, and the CRC is theirs" %
                     (len(fpdu.data), fpdu.length))
    return "\n".join(lines)


# ---- connections ----

class Way:
    """One direction of a connection."""

    def __init__(self, fpdus, is_out):
        self.fpdus = [f for f in fpdus if f.is_out == is_out]
        first = self.fpdus[0] if self.fpdus else None
        self.lacks_start = not first or not first.is_start
        self.base = (first.offset if first else 0) - (FRAME_LEN if self.lacks_start else 0)
        self.next = 1           # of the sequence

    def place(self, offset):
        return 1 + offset - self.base


def packets_of(story, conn, has_all):
    """(joined time, octets, is it sent, comment) of a connection, in order."""
    ways = {True: Way(conn.fpdus, True), False: Way(conn.fpdus, False)}
    own, peer = conn.own, conn.peer_name
    # A QP that is connected with itself has one socket.
    if own == peer:
        peer = (peer[0], peer[1] ^ 1)

    def make(is_out, place, payload):
        ends = (own, peer) if is_out else (peer, own)
        ways[is_out].next = place + len(payload)
        return segment(*ends, place, ways[not is_out].next, payload)

    begin = conn.fpdus[0].ns
    is_initiator = bool(conn.flags & record.INITIATOR)
    for is_out in (is_initiator, not is_initiator):
        if ways[is_out].lacks_start and not has_all:
            frame = made_up_frame(conn, is_out == is_initiator)
            yield (begin, make(is_out, 1, frame), is_out,
                   "made up: the record no longer has this connection's start-up")
    for fpdu in conn.fpdus:
        octets = whole(fpdu, conn)
        if fpdu.is_start:
            octets = without_markers(octets)
        yield (fpdu.ns, make(fpdu.is_out, ways[fpdu.is_out].place(fpdu.offset), octets), fpdu.is_out,
               comment_of(conn, fpdu))


def views(story):
    """One of the two ends of each connection: that which knows more of it."""
    for process in story.processes:
        for conn in process.conns.values():
            if not conn.own or not conn.fpdus:
                continue
            other = conn.peer
            if other and (len(other.fpdus), -other.process.index, -other.number) > (
                    len(conn.fpdus), -process.index, -conn.number):
                continue
            yield conn


def keep_newest(story, conns):
    """Drops FPDUs until the rest is not too large: how many."""
    fpdus = sorted(((story.time(c.process, f.ns), f.length) for c in conns for f in c.fpdus), reverse=True)
    room, since = MOST_OCTETS, None
    for ns, length in fpdus:
        room -= length + PACKET_COST
        if room < 0:
            break
        since = ns
    if room >= 0:
        return 0
    for conn in conns:
        conn.fpdus = [f for f in conn.fpdus if f.is_start or story.time(conn.process, f.ns) >= since]
    return len(fpdus) - sum(len(c.fpdus) for c in conns)


def write(story, out):
    """How many older FPDUs were left out."""
    conns = list(views(story))
    dropped = keep_newest(story, conns)
    out.write(section())
    for process in story.processes:
        out.write(interface(process.name))
    entries = []
    for conn in conns:
        has_start = any(f.is_start for f in conn.fpdus)
        failed = has_start and not conn.flags & record.STARTED
        for order, (ns, octets, is_out, comment) in enumerate(packets_of(story, conn, failed)):
            date = story.date_of(story.time(conn.process, ns))
            entries.append((date, conn.process.index, conn.number, order, octets, is_out, comment))
    entries.sort(key=lambda e: e[:4])
    for date, index, _, _, octets, is_out, comment in entries:
        out.write(packet(index, max(0, date), octets, is_out, comment))
    return dropped
