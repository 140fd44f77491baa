# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Records that no program has made, for tests: as format.h says, apart from the reader's own tables."""
import struct

SEGMENT = 65536
HEADER_LEN = 4096 + 128 * 256
PAD, POST, COMPLETED, POLLED, FPDU, CONN, CONN_END, OBJECT, CALL, EVENT, NOTE, CLOCK = range(12)
SEND, RECEIVE, SRQ = 1, 2, 3            # kinds of posts
TICKS = 2                               # in a nanosecond


class Writer:
    def __init__(self, order="<", segments=2, pid=100, program=b"made", start_ns=1_000_000, real_ns=1_700_000_000 * 10**9,
                 boot=b"one"):
        self.order = order
        self.ring = bytearray(segments * SEGMENT)
        self.head = 0
        self.pid, self.program, self.boot = pid, program, boot
        self.start_ns, self.real_ns = start_ns, real_ns
        self.callers = []
        self.put(CLOCK, start_ns, struct.pack(order + "Q", start_ns))

    def pack(self, layout, *values):
        return struct.pack(self.order + layout, *values)

    def ticks(self, ns):
        return ns * TICKS

    def put(self, kind, ns, body, flags=0, thread=7, qpn=0):
        size = (24 + len(body) + 7) & ~7
        left = SEGMENT - self.head % SEGMENT
        if left < size:
            if left >= 24:
                self._entry(PAD, 0, 0, 0, 0, b"\0" * (left - 24))
            else:
                self.head += left
        self._entry(kind, flags, self.ticks(ns), thread, qpn, body)

    def _entry(self, kind, flags, ticks, thread, qpn, body):
        size = (24 + len(body) + 7) & ~7
        octets = self.pack("IHBBQII", self.head // 8 & 0xffffffff, size // 8, kind, flags, ticks, thread, qpn) + body
        at = self.head % len(self.ring)
        self.ring[at:at + size] = octets.ljust(size, b"\0")
        self.head += size

    def clock(self, ns):
        self.put(CLOCK, ns, self.pack("Q", ns))

    def octets(self):
        head = self.pack("8sIIIIQQQQQII64s64s40s", b"WEFTREC\0", 1, 0x01020304, HEADER_LEN, SEGMENT, len(self.ring),
                         self.head, self.ticks(self.start_ns), self.start_ns, self.real_ns, self.pid, 1, self.program,
                         b"host", self.boot).ljust(4096, b"\0")
        callers = b"".join(self.pack("QQ48s192s", *c) for c in self.callers).ljust(128 * 256, b"\0")
        return head + callers + bytes(self.ring)

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self.octets())
        return path

    # ---- entries ----

    def post(self, ns, wr_id, kind=SEND, opcode=2, length=8, qpn=5, numbers=(0, 0, 0), flags=1, handle=9, caller=0):
        self.put(POST, ns, self.pack("QQQQIIIIIIIIHBBI", wr_id, caller, 0x1000, 0x2000, 3, 4, length, 1, handle,
                                     *numbers, 1, kind, opcode, 0), flags, qpn=qpn)

    def completed(self, ns, wr_id, receive=False, status=0, qpn=5, length=8):
        self.put(COMPLETED, ns, self.pack("QIIIBBH", wr_id, 1, 2, length, status, 8 if receive else 1, 0), int(receive),
                 qpn=qpn)

    def polled(self, ns, wr_id, receive=False, status=0, qpn=5):
        self.put(POLLED, ns, self.pack("QIIIBBH", wr_id, 1, 2, 0, status, 0, 0), int(receive), qpn=qpn)

    def conn(self, ns, number=1, port=1000, peer=2000, flags=0x43, addr=b"\x7f\0\0\1", peer_addr=b"\x7f\0\0\2", qpn=5):
        self.put(CONN, ns, self.pack("IHH16s16s", number, port, peer, addr, peer_addr), flags, qpn=qpn)

    def fpdu(self, ns, data, offset, length=None, number=0, flags=1, conn=1, qpn=5, first=None):
        length = len(data) if length is None else length
        body = self.pack("QQIIII", self.ticks(ns if first is None else first), offset, conn, length, number, len(data))
        self.put(FPDU, ns, body + data, flags, qpn=qpn)

    def object(self, ns, deed, kind, handle, number, qpn=0, has_srq=0, srq=0):
        self.put(OBJECT, ns, self.pack("QQQIIIIIIIIIIII", 0x5000, 4096, 77, deed, kind, 1, handle, number, 0, 2, 2, srq,
                                       16, 7, has_srq), qpn=qpn)

    def call(self, ns, family, number, result=0, took=1000):
        self.put(CALL, ns, self.pack("QIIIIiI", took * TICKS, family, number, 1, 3, result, 0))

    def event(self, ns, source, number, flags=1, waited=500):
        self.put(EVENT, ns, self.pack("QQIIiI", waited * TICKS, 77, source, number, 0, 0), flags)

    def note(self, ns, words):
        self.put(NOTE, ns, words)


def fpdu_of(opcode, payload=b"", is_last=True, stag=0x1234, msn=1):
    """An FPDU without Markers; its CRC is not right."""
    control = (0x41 if is_last else 1), 0x40 | opcode
    if opcode in (0, 2):
        ulpdu = bytes((control[0] | 0x80, control[1])) + struct.pack(">IQ", stag, 0x1000) + payload
    else:
        ulpdu = bytes(control) + struct.pack(">IIII", 0, {1: 1, 10: 1, 11: 3, 7: 2}.get(opcode, 0), msn, 0) + payload
    return (struct.pack(">H", len(ulpdu)) + ulpdu).ljust((len(ulpdu) + 5) & ~3, b"\0") + b"\xde\xad\xbe\xef"


FRAME = b"MPA ID Req Frame\x40\x01\0\0", b"MPA ID Rep Frame\x40\x01\0\0"


def two_ends(shift=0, sends=10, boots=(b"one", b"one"), travel=3000, long_payload=0):
    """Two processes: the first sends to the second, whose clock is SHIFT ahead, and is answered each time."""
    one = Writer(pid=100, program=b"client", boot=boots[0])
    two = Writer(pid=200, program=b"server", boot=boots[1], start_ns=1_000_000 + shift)
    ends = ((one, 5, 0), (two, 6, shift))
    t = 1_010_000
    one.conn(t, flags=0x43)
    two.conn(t + shift, port=2000, peer=1000, addr=b"\x7f\0\0\2", peer_addr=b"\x7f\0\0\1", flags=0x42, qpn=6)
    for w, qpn, s in ends:
        w.object(t + s, 2, 5, 9, qpn, qpn=qpn)
    for is_reply, frame in enumerate(FRAME):
        sender, receiver = (ends[is_reply], ends[1 - is_reply])
        sender[0].fpdu(t + sender[2], frame, 0, flags=3)
        receiver[0].fpdu(t + travel + receiver[2], frame, 0, flags=2, qpn=receiver[1])
        t += 10000
    offsets = [len(FRAME[0])] * 2
    for i in range(sends):
        for way, opcode in ((0, 3), (1, 3)):
            sender, receiver = ends[way], ends[1 - way]
            octets = fpdu_of(opcode, b"payload%d" % i + bytes(long_payload), msn=i + 1)
            kept = octets[:128]
            receiver[0].post(t + receiver[2], 1000 + i, kind=RECEIVE, qpn=receiver[1])
            sender[0].post(t + 100 + sender[2], i, numbers=(0, i, 0), qpn=sender[1])
            sender[0].fpdu(t + 700 + sender[2], kept, offsets[way], len(octets), number=i, flags=1, qpn=sender[1])
            sender[0].completed(t + 900 + sender[2], i, qpn=sender[1])
            sender[0].polled(t + 1100 + sender[2], i, qpn=sender[1])
            receiver[0].fpdu(t + 700 + travel + receiver[2], kept, offsets[way], len(octets), number=i, flags=0,
                             qpn=receiver[1])
            receiver[0].completed(t + 800 + travel + receiver[2], 1000 + i, receive=True, qpn=receiver[1])
            receiver[0].polled(t + 1500 + travel + receiver[2], 1000 + i, receive=True, qpn=receiver[1])
            offsets[way] += len(octets)
            t += 20000
    for w, _, s in ends:
        w.clock(t + s)
    return one, two
