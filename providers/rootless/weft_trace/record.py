# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads a record: format.h and docs/recording.md.

Nothing in a file is believed: it may be cut off, a thread may have died in the middle of an entry,
and somebody may have made it to do harm. What is wrong is skipped and counted; a file that is no
record at all raises BadRecord.
"""
import bisect
import collections
import os
import re
import stat
import struct

MAGIC = b"WEFTREC\0"
VERSION = 1
ORDER = 0x01020304
SEGMENT = 65536
CALLERS = 128
HEADER = "8sIIIIQQQQQII64s64s40s"
CALLERS_AT = 4096
CALLER = "QQ48s192s"
HEADER_LEN = CALLERS_AT + CALLERS * 256
HEAD = "IHBBQII"
HEAD_LEN = 24
MOST_OCTETS = 5 << 30
LONGEST_FPDU = 2 + 65535 + 3 + 4

PAD, POST, COMPLETED, POLLED, FPDU, CONN, CONN_END, OBJECT, CALL, EVENT, NOTE, CLOCK = range(12)

SIGNALED, INLINE, DATAGRAM = 1, 2, 4            # flags of POST
RECEIVE = 1                                     # of COMPLETED and POLLED
OUT, START, OWN = 1, 2, 4                       # of FPDU
INITIATOR, CRC, MARKERS, ENHANCED, BY_HAND, IPV6, STARTED = 1, 2, 4, 8, 16, 32, 64   # of CONN
TAKEN = 1                                       # of EVENT
COMP_EVENT, ASYNC_EVENT, CM_EVENT = 0, 1, 2

BODIES = {
    POST: ("QQQQIIIIIIIIHBBI", "wr_id caller remote_addr addr rkey lkey length context handle writes sends requests "
                               "num_sge post opcode reserved"),
    COMPLETED: ("QIIIBBH", "wr_id context cq byte_len status opcode reserved"),
    POLLED: ("QIIIBBH", "wr_id context cq byte_len status opcode reserved"),
    FPDU: ("QQIIII", "first_ns offset conn len number kept"),
    CONN: ("IHH16s16s", "conn port peer_port addr peer_addr"),
    CONN_END: ("Ii", "conn error"),
    OBJECT: ("QQQIIIIIIIIIIIIQ", "addr length user_handle deed kind context handle number pd send_cq recv_cq srq size "
                                "access has_srq caller"),
    CALL: ("QIIIIiI", "took_ns family number context subject result reserved"),
    EVENT: ("QQIIiI", "waited_ns subject source number status context"),
    CLOCK: ("Q", "clock_ns"),
}
# Fields in ticks: when, or how long from the entry's on, or how long until then.
WHEN = {FPDU: "first_ns"}
LONG = {CALL: ("took_ns", 1), EVENT: ("waited_ns", -1)}

Entry = collections.namedtuple("Entry", "type flags ns thread qpn body data")
Caller = collections.namedtuple("Caller", "function module offset")


class BadRecord(Exception):
    """The file is no record, or one that this version does not know."""


def text_of(octets):
    """A C string, without what a terminal would obey."""
    text = octets.split(b"\0", 1)[0].decode("utf-8", "replace")
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", "?", text)


class Clock:
    """Makes ticks of the CPU times: from one that is known to the next both go on evenly."""

    def __init__(self, known):
        self._known = []
        for ticks, ns in sorted(known):
            if not self._known or (ticks > self._known[-1][0] and ns > self._known[-1][1]):
                self._known.append((ticks, ns))
        self._ticks = [k[0] for k in self._known]

    def ns(self, ticks):
        if len(self._known) < 2:
            return self._known[0][1] + ticks - self._known[0][0]
        at = min(max(1, bisect.bisect_right(self._ticks, ticks)), len(self._known) - 1)
        (from_ticks, from_ns), (to_ticks, to_ns) = self._known[at - 1:at + 1]
        return from_ns + (ticks - from_ticks) * (to_ns - from_ns) // (to_ticks - from_ticks)


def in_time(entry, clock):
    """The entry, with times where it has ticks."""
    ns, body = clock.ns(entry.ns), entry.body
    if entry.type in WHEN:
        name = WHEN[entry.type]
        body = body._replace(**{name: clock.ns(getattr(body, name))})
    elif entry.type in LONG:
        name, sign = LONG[entry.type]
        body = body._replace(**{name: abs(clock.ns(entry.ns + sign * getattr(body, name)) - ns)})
    return entry._replace(ns=ns, body=body)


class Record:
    """A process, as its file has it."""

    def __init__(self, path):
        self.path = path
        self.entries = []
        self.skipped = 0        # octets that could not be read
        self.is_wrapped = False
        octets = read_file(path)
        self._read_header(octets)
        self._read_callers(octets)
        self._read_ring(octets)
        clock = Clock([(self._start_ticks, self.start_ns)] +
                      [(e.ns, e.body.clock_ns) for e in self.entries if e.type == CLOCK])
        self.entries = [in_time(e, clock) for e in self.entries if e.type != CLOCK]
        self.entries.sort(key=lambda e: e.ns)

    # ---- header ----

    def _read_header(self, octets):
        if octets[:8] != MAGIC:
            raise BadRecord("%s: this is no record of weft-run" % self.path)
        if len(octets) < HEADER_LEN:
            raise BadRecord("%s: the file ends in its header" % self.path)
        order = struct.unpack_from("<I", octets, 12)[0]
        if order not in (ORDER, int.from_bytes(ORDER.to_bytes(4, "little"), "big")):
            raise BadRecord("%s: the header is damaged" % self.path)
        self._order = "<" if order == ORDER else ">"
        head = struct.unpack_from(self._order + HEADER, octets)
        if head[1] != VERSION:
            raise BadRecord("%s: version %d of the format; this weft-trace reads version %d" %
                            (self.path, head[1], VERSION))
        self._header_len, segment, self._ring_len, self._head = head[3:7]
        self._start_ticks, self.start_ns, self.start_real_ns, self.pid, self.parent = head[7:12]
        self.program, self.host, self.boot = (text_of(t) for t in head[12:15])
        if (segment != SEGMENT or self._header_len < HEADER_LEN or self._header_len % 8 or
                self._header_len > len(octets) or not self._ring_len or self._ring_len % SEGMENT or
                self._ring_len > MOST_OCTETS):
            raise BadRecord("%s: the header is damaged" % self.path)

    def _read_callers(self, octets):
        self.callers = {}
        layout = struct.Struct(self._order + CALLER)
        for i in range(CALLERS):
            pc, offset, function, module = layout.unpack_from(octets, CALLERS_AT + i * 256)
            if pc:
                self.callers[pc] = Caller(text_of(function), text_of(module), offset)

    # ---- ring ----

    def _read_ring(self, octets):
        """Each segment begins with an entry: one that is torn spoils no more than the rest of its own."""
        self._layouts = {t: struct.Struct(self._order + b[0]) for t, b in BODIES.items()}
        self._bodies = {t: collections.namedtuple("Body%d" % t, b[1]) for t, b in BODIES.items()}
        head_layout = struct.Struct(self._order + HEAD)
        there = min(self._ring_len, len(octets) - self._header_len)
        first = max(0, self._head - self._ring_len)
        self.is_wrapped = first > 0
        # What the segment that is being written had before has no beginning any more.
        first = -(-first // SEGMENT) * SEGMENT
        for begin in range(first, self._head, SEGMENT):
            at = begin % self._ring_len
            end = min(SEGMENT, self._head - begin)
            if at + end > there:
                self.skipped += min(end, at + end - there)
                end = max(0, there - at)
            self._read_segment(octets, begin, self._header_len + at, end, head_layout)

    def _read_segment(self, octets, position, base, end, layout):
        at = 0
        while at + HEAD_LEN <= end:
            mark, len8, kind, flags, ns, thread, qpn = layout.unpack_from(octets, base + at)
            size = len8 * 8
            if mark != (position + at) // 8 & 0xffffffff or size < HEAD_LEN or at + size > end:
                self.skipped += end - at
                return
            if kind != PAD:
                self._read_entry(octets, base + at + HEAD_LEN, size - HEAD_LEN, (kind, flags, ns, thread, qpn))
            at += size

    def _read_entry(self, octets, at, size, head):
        kind = head[0]
        if kind == NOTE:
            self.entries.append(Entry(*head, None, text_of(octets[at:at + size])))
            return
        layout = self._layouts.get(kind)
        if not layout:
            return              # of a later version
        have = octets[at:at + min(size, layout.size)]
        body = self._bodies[kind]._make(layout.unpack(have.ljust(layout.size, b"\0")))
        data = octets[at + layout.size:at + size]
        if kind == FPDU:
            if body.kept > len(data) or body.len > LONGEST_FPDU or body.kept > body.len:
                self.skipped += size
                return
            data = data[:body.kept]
        self.entries.append(Entry(*head, body, data))


def read_file(path):
    """Its octets; a record is a regular file of some size."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        raise BadRecord("%s: %s" % (path, e.strerror)) from None
    with open(fd, "rb") as f:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise BadRecord("%s: this is no file" % path)
        if about.st_size > MOST_OCTETS:
            raise BadRecord("%s: %d octets are more than a record has" % (path, about.st_size))
        return f.read(MOST_OCTETS)


def find_records(names):
    """The files that NAMES mean: each, or those of a folder."""
    found = []
    for name in names:
        if os.path.isdir(name):
            inside = sorted(os.path.join(name, n) for n in os.listdir(name) if n.endswith(".weft"))
            if not inside:
                raise BadRecord("%s: there is no record (*.weft) in this folder" % name)
            found += inside
        else:
            found.append(name)
    return found
