# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Chrome's trace-event format, which Perfetto and chrome://tracing open.

A process has a track for each thread, with its calls; for each QP tracks of requests, from post to
poll, side by side where they overlap; and one of the messages that arrive. Arrows lead from a request
to the receive that takes its message, or to where it arrives, and from there to the Response.
"""
import json

from . import names, record, text

FIRST_TRACK = 1 << 23           # above all numbers of threads, which are below 2^22
MOST_LANES = 128                # of a QP; what overlaps with more is drawn apart


def lanes_of(slices):
    """Assigns (begin, end, ...) to lanes on which none overlap: [(lane, slice)]."""
    ends, placed = [], []
    for piece in sorted(slices, key=lambda s: (s[0], s[1])):
        lane = next((i for i, end in enumerate(ends) if end <= piece[0]), len(ends))
        if lane == len(ends):
            ends.append(0)
        ends[lane] = piece[1]
        placed.append((lane, piece))
    return placed


class Timeline:
    def __init__(self, story):
        self.story = story
        self.start = story.start
        self.events = []
        self._flows = self._aparts = 0
        self._tracks = {}
        self._places = {}       # id of a request or message -> process, track, begin, end
        self._asked = {}        # connection, number -> the message that asks for a Response
        conns = [c for p in story.processes for c in p.conns.values()]
        for process in story.processes:
            self._process(process)
        for conn in conns:
            self._arrivals(conn.process, conn)
        for conn in conns:
            self._arrows(conn)

    def _us(self, process, ns):
        return (ns + process.shift - self.start) / 1000

    def _add(self, process, thread, phase, name, ns, **more):
        self.events.append(dict({"ph": phase, "name": name, "pid": process.index + 1, "tid": thread,
                                 "ts": self._us(process, ns)}, **more))

    def _slice(self, process, thread, name, begin, end, category, args):
        self._add(process, thread, "X", name, begin, dur=max(0, end - begin) / 1000, cat=category, args=args)

    def _instant(self, process, thread, name, ns, category, args):
        self._add(process, thread, "i", name, ns, s="t", cat=category, args=args)

    def _name(self, process, what, thread, name):
        self.events.append({"ph": "M", "name": what, "pid": process.index + 1, "tid": thread, "args": {"name": name}})

    # ---- a process ----

    def _process(self, process):
        self._name(process, "process_name", 0, process.name)
        self._calls(process)
        by_qp = {}
        for request in process.requests:
            if request.qpn:
                by_qp.setdefault((request.qpn, request.is_receive), []).append(request)
        for (qpn, is_receive), requests in sorted(by_qp.items()):
            self._requests(process, qpn, is_receive, requests)

    def _track(self, process, key, name):
        """Tracks are numbered as they come, and sorted so."""
        tracks = self._tracks.setdefault(process.index, {})
        if key not in tracks:
            tracks[key] = FIRST_TRACK + len(tracks)
            self._name(process, "thread_name", tracks[key], name)
            self.events.append({"ph": "M", "name": "thread_sort_index", "pid": process.index + 1,
                                "tid": tracks[key], "args": {"sort_index": len(tracks)}})
        return tracks[key]

    def _calls(self, process):
        """Calls nest, since entries of a thread do; an entry without a length is an instant."""
        threads = set()
        for entry in process.record.entries:
            body = entry.body
            if entry.type == record.CALL:
                args = {"result": text.error_name(body.result)}
                self._slice(process, entry.thread, names.call_name(body.family, body.number), entry.ns,
                            entry.ns + body.took_ns, "call", args)
            elif entry.type == record.EVENT and entry.flags & record.TAKEN and body.source != record.CM_EVENT:
                name = "ibv_get_cq_event" if body.source == record.COMP_EVENT else "ibv_get_async_event"
                self._slice(process, entry.thread, name, entry.ns - body.waited_ns, entry.ns, "wait",
                            {"event": text.event_name(process, body)})
            elif entry.type in (record.POST, record.POLLED, record.EVENT, record.OBJECT, record.NOTE):
                kind = {record.POST: "post", record.POLLED: "poll", record.EVENT: "event", record.OBJECT: "object",
                        record.NOTE: "note"}[entry.type]
                self._instant(process, entry.thread, text.say(process, entry), entry.ns, kind,
                              {"QP": "0x%x" % entry.qpn} if entry.qpn else {})
            else:
                continue
            threads.add(entry.thread)
        for thread in sorted(threads):
            self._name(process, "thread_name", thread, "thread %d" % thread)

    # ---- requests ----

    def _requests(self, process, qpn, is_receive, requests):
        last = max(process.record.entries[-1].ns, max(r.posted for r in requests))
        slices = [(r.posted, max(r.posted, last if r.end is None else r.end), i, r) for i, r in enumerate(requests)]
        kind = "receives" if is_receive else "requests"
        for lane, (begin, end, _, request) in lanes_of(slices):
            if lane >= MOST_LANES:
                self._apart(process, request, begin, end)
                continue
            track = self._track(process, (qpn, kind, lane), "QP 0x%x %s %d" % (qpn, kind, lane + 1))
            self._request(process, track, request, begin, end)

    def _apart(self, process, request, begin, end):
        self._aparts += 1
        for phase, ns in (("b", begin), ("e", end)):
            self._add(process, 0, phase, "%s 0x%x of QP 0x%x" % (request.name, request.wr_id, request.qpn), ns,
                      cat="apart", id=self._aparts)

    def _request(self, process, track, request, begin, end):
        self._places[id(request)] = (process, track, begin, end)
        args = {"wr_id": "0x%x" % request.wr_id, "octets": request.length, "posted by": request.where,
                "status": request.status_name or "under way", "FPDUs": request.fpdus}
        category = "error" if request.status else "request"
        self._slice(process, track, "%s 0x%x" % (request.name, request.wr_id), begin, end, category, args)
        for name, since, until in phases(request):
            since, until = max(begin, since), min(end, until)
            if begin < end and since < until:
                self._slice(process, track, name, since, until, "phase", {})

    # ---- messages and arrows ----

    def _arrivals(self, process, conn):
        before = 0
        for message in sorted((m for m in conn.messages if not m.is_out), key=lambda m: (m.first, m.last)):
            track = self._track(process, (conn.qpn, conn.number), "QP 0x%x arrivals" % conn.qpn)
            begin = max(before, message.first)
            # A message of one FPDU has no length, and an arrow needs something to end at.
            before = end = max(begin + 100, message.last)
            self._slice(process, track, "%s arrives" % message.name, begin, end, "message",
                        {"octets": message.octets, "whole": message.is_whole})
            self._places[id(message)] = (process, track, begin, end)
            if message.opcode in (names.OP_READ_REQ, names.OP_ATOMIC_REQ):
                self._asked[(id(conn), message.number)] = message

    def _arrows(self, conn):
        for message in conn.messages:
            if message.is_out or not message.peer:
                continue
            source = self._source_of(message.peer)
            target = self._places.get(id(message.request)) or self._places.get(id(message))
            if source and target and source[0] is not target[0]:
                self._arrow(source, message.peer.first, target, message.last)

    def _source_of(self, message):
        """A request, or what a Response answers."""
        request = message.request
        if not request and message.opcode in (names.OP_READ_RESP, names.OP_ATOMIC_RESP) and not message.is_own:
            request = self._asked.get((id(message.conn), message.number))
        return self._places.get(id(request))

    def _arrow(self, source, leaves, target, arrives):
        self._flows += 1
        flow = {"cat": "message", "id": self._flows}
        process, track, begin, end = source
        self._add(process, track, "s", "message", min(end, max(begin, leaves)), **flow)
        process, track, begin, end = target
        self._add(process, track, "f", "message", min(end, max(begin, arrives)), bp="e", **flow)


def phases(request):
    """(name, begin, end): what it waits for."""
    marks = [("waits to be sent" if not request.is_receive else "waits for a message", request.posted, request.first),
             ("is sent" if not request.is_receive else "is filled", request.first, request.last),
             ("waits for its completion", request.last, request.completed),
             ("waits to be polled", request.completed, request.polled)]
    return [(name, a, b) for name, a, b in marks if a is not None and b is not None and a < b]


def write(story, out):
    timeline = Timeline(story)
    out.write('{"displayTimeUnit":"ns","otherData":{"made by":"weft-trace"},"traceEvents":[\n')
    for i, event in enumerate(timeline.events):
        out.write((",\n" if i else "") + json.dumps(event, separators=(",", ":")))
    out.write("\n]}\n")
    return len(timeline.events)
