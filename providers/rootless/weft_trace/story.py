# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What happened: requests from post to completion, their FPDUs, and those of the peer."""
import collections

from . import lines, names, record

WRITES, SENDS, REQUESTS, RESPONSES = range(4)
IMM_OF_SEND = 0x77655369        # as the engine announces the immediate data of a Send
SEND_KIND, RECV_KIND, SRQ_KIND = 1, 2, 3        # enum weft_run_post


class Request:
    """A work request. Times are nanoseconds of its process's clock, or None."""

    __slots__ = ("process", "qpn", "is_receive", "opcode", "wr_id", "length", "posted", "thread", "caller",
                 "is_signaled", "first", "last", "completed", "status", "polled", "poll_thread", "fpdus", "peer",
                 "received", "rkey")

    def __init__(self, process, entry):
        body = entry.body
        self.process = process
        self.qpn = entry.qpn
        self.is_receive = body.post != SEND_KIND
        self.opcode = body.opcode
        self.wr_id = body.wr_id
        self.length = body.length
        self.posted = entry.ns
        self.thread = entry.thread
        self.caller = body.caller
        self.rkey = body.rkey
        self.is_signaled = bool(entry.flags & record.SIGNALED)
        self.first = self.last = self.completed = self.status = self.polled = self.poll_thread = None
        self.fpdus = 0
        self.peer = None        # a Send's receive, and the reverse
        self.received = None    # octets of the message in a receive

    @property
    def name(self):
        return "receive" if self.is_receive else names.name_of(names.REQUESTS, self.opcode)

    @property
    def where(self):
        return self.process.lines.get(self.caller, "")

    @property
    def status_name(self):
        return names.name_of(names.RING_STATUS, self.status) if self.status is not None else None

    @property
    def end(self):
        """When nothing more happened to it; None: it is under way."""
        return self.polled if self.polled is not None else self.completed


class Message:
    """A message on a connection: one or more FPDUs."""

    __slots__ = ("conn", "is_out", "opcode", "number", "first", "last", "octets", "request", "peer", "offset",
                 "is_own", "is_whole")

    def __init__(self, conn, fpdu):
        self.conn = conn
        self.is_out = fpdu.is_out
        self.opcode = fpdu.opcode
        self.number = fpdu.number
        self.first = fpdu.first
        self.last = fpdu.ns
        self.octets = 0
        self.request = None
        self.peer = None        # the same message in the other process
        self.offset = fpdu.offset
        self.is_own = fpdu.is_own
        self.is_whole = False

    @property
    def name(self):
        return names.name_of(names.FPDUS, self.opcode)


class Fpdu:
    __slots__ = ("ns", "first", "is_out", "is_start", "is_own", "offset", "length", "number", "data", "thread",
                 "message")

    def __init__(self, entry):
        body = entry.body
        self.ns = entry.ns
        self.first = body.first_ns if body.first_ns and body.first_ns <= entry.ns else entry.ns
        self.is_out = bool(entry.flags & record.OUT)
        self.is_start = bool(entry.flags & record.START)
        self.is_own = bool(entry.flags & record.OWN)
        self.offset = body.offset
        self.length = body.len
        self.number = body.number
        self.data = entry.data
        self.thread = entry.thread
        self.message = None

    @property
    def is_tagged(self):
        return len(self.data) > 2 and bool(self.data[2] & 0x80)

    @property
    def is_last(self):
        return len(self.data) > 2 and bool(self.data[2] & 0x40)

    @property
    def opcode(self):
        return self.data[3] & 0x0f if len(self.data) > 3 else 15

    @property
    def payload(self):
        """Octets behind DDP's header."""
        if len(self.data) < 4:
            return 0
        return max(0, int.from_bytes(self.data[:2], "big") + 2 - (16 if self.is_tagged else 20))

    @property
    def msg_class(self):
        if self.opcode == names.OP_WRITE:
            return WRITES
        if self.opcode in (names.OP_READ_REQ, names.OP_ATOMIC_REQ):
            return REQUESTS
        if self.opcode in (names.OP_READ_RESP, names.OP_ATOMIC_RESP):
            return RESPONSES
        return SENDS

    @property
    def is_announcement(self):
        """Immediate data of the Send that follows: it takes no receive."""
        return (self.opcode in (names.OP_IMM, names.OP_IMM_SE) and
                int.from_bytes(self.data[20:24], "big") == IMM_OF_SEND)


class Conn:
    """A TCP connection, as one end has it."""

    def __init__(self, process, number):
        self.process = process
        self.number = number
        self.qpn = 0
        self.flags = 0
        self.own = self.peer_name = None        # (address octets, port)
        self.fpdus = []
        self.messages = []
        self.before = {}        # class -> messages of requests on earlier connections of its QP
        self.begun = {}         # the same, on this one, too
        self.end = None         # (ns, error)
        self.peer = None        # the other end's Conn

    def learn(self, entry):
        size = 16 if entry.flags & record.IPV6 else 4
        self.own = (entry.body.addr[:size], entry.body.port)
        self.peer_name = (entry.body.peer_addr[:size], entry.body.peer_port)
        self.flags = entry.flags
        self.qpn = entry.qpn or self.qpn


class Process:
    def __init__(self, rec, index, with_lines):
        self.record = rec
        self.index = index
        self.program, self.pid = rec.program, rec.pid
        self.lines = lines.find(rec.callers, with_lines)
        self.shift = 0          # nanoseconds to add to its clock
        self.conns = {}
        self.requests = []
        self.qps = {}           # number -> OBJECT body
        self.cqs = {}           # user handle -> handle
        self._read()

    @property
    def name(self):
        return "%s[%d]" % (self.program, self.pid)

    # ---- reading ----

    def _read(self):
        self._sends = collections.defaultdict(collections.deque)        # qpn -> not completed
        self._receives = collections.defaultdict(collections.deque)     # qpn, or context and handle of an SRQ
        self._unpolled = collections.defaultdict(collections.deque)     # qpn, is receive, wr_id -> completed
        self._by_number = {}                    # qpn, class, number -> request
        self._arrived = collections.defaultdict(collections.deque)      # qpn -> messages without a receive yet
        self._latest = {}                       # qpn -> its latest connection with messages
        handlers = {
            record.POST: self._post, record.COMPLETED: self._completed, record.POLLED: self._polled,
            record.FPDU: self._fpdu, record.CONN: self._conn, record.CONN_END: self._conn_end,
            record.OBJECT: self._object,
        }
        for entry in self.record.entries:
            handler = handlers.get(entry.type)
            if handler:
                handler(entry)

    def _post(self, entry):
        request = Request(self, entry)
        self.requests.append(request)
        body = entry.body
        if body.post == SEND_KIND:
            self._sends[entry.qpn].append(request)
            for key in numbers_of(body):
                self._by_number[(entry.qpn,) + key] = request
        elif body.post == SRQ_KIND:
            self._receives[(body.context, body.handle)].append(request)
        else:
            self._receives[entry.qpn].append(request)

    def _completed(self, entry):
        is_receive = bool(entry.flags & record.RECEIVE)
        request = self._take_receive(entry) if is_receive else self._take_send(entry)
        if not request:
            # Its post has left the ring: its message is no later receive's.
            if is_receive and entry.body.status == 0 and self._arrived.get(entry.qpn):
                self._arrived[entry.qpn].popleft()
            return
        request.completed, request.status = entry.ns, entry.body.status
        if is_receive:
            request.qpn = entry.qpn
            request.received = entry.body.byte_len
            self._join_arrived(request)
        self._unpolled[(entry.qpn, is_receive, entry.body.wr_id)].append(request)

    def _take_send(self, entry):
        """A completion tells of all requests before it, too."""
        queue = self._sends[entry.qpn]
        at = next((i for i, r in enumerate(queue) if r.wr_id == entry.body.wr_id and
                   (r.is_signaled or entry.body.status)), None)
        if at is None:
            return None
        for _ in range(at):
            early = queue.popleft()
            early.completed, early.status = entry.ns, 0
        return queue.popleft()

    def _take_receive(self, entry):
        keys = [entry.qpn]
        qp = self.qps.get(entry.qpn)
        if qp and qp.has_srq:
            keys = [(qp.context, qp.srq)]
        elif not qp:
            keys += [k for k in self._receives if isinstance(k, tuple)]
        for key in keys:
            for i, request in enumerate(self._receives[key]):
                if request.wr_id == entry.body.wr_id:
                    del self._receives[key][i]
                    return request
        return None

    def _polled(self, entry):
        queue = self._unpolled.get((entry.qpn, bool(entry.flags & record.RECEIVE), entry.body.wr_id))
        if queue:
            request = queue.popleft()
            request.polled, request.poll_thread = entry.ns, entry.thread

    def _object(self, entry):
        body = entry.body
        if body.kind == names.KIND_QP and body.deed == names.MADE:
            self.qps[body.number] = body
            self._latest.pop(body.number, None)
        if body.kind == names.KIND_CQ and body.deed == names.MADE:
            self.cqs[body.user_handle] = body.handle
        if body.kind == names.KIND_QP and body.deed == names.RESET:
            self._sends.pop(entry.qpn, None)
            self._receives.pop(entry.qpn, None)
            self._arrived.pop(entry.qpn, None)
            self._latest.pop(entry.qpn, None)

    # ---- connections ----

    def _conn_of(self, number):
        if number not in self.conns:
            self.conns[number] = Conn(self, number)
        return self.conns[number]

    def _conn(self, entry):
        self._conn_of(entry.body.conn).learn(entry)

    def _conn_end(self, entry):
        self._conn_of(entry.body.conn).end = (entry.ns, entry.body.error)

    def _fpdu(self, entry):
        fpdu, conn = Fpdu(entry), self._conn_of(entry.body.conn)
        conn.qpn = entry.qpn or conn.qpn
        conn.fpdus.append(fpdu)
        if fpdu.is_start:
            return
        message = self._message_of(conn, fpdu)
        fpdu.message = message
        message.last = fpdu.ns
        message.octets += fpdu.payload
        request = message.request
        if request:
            request.fpdus += 1
            request.first = fpdu.first if request.first is None else min(request.first, fpdu.first)
            request.last = fpdu.ns
        if fpdu.is_last:
            message.is_whole = True
            self._message_is_whole(conn, fpdu, message)

    def _message_of(self, conn, fpdu):
        """The one that it goes on with, or a new one."""
        for message in conn.messages[:-4:-1]:
            if (not message.is_whole and message.is_out == fpdu.is_out and message.opcode == fpdu.opcode and
                    message.number == fpdu.number):
                return message
        message = Message(conn, fpdu)
        conn.messages.append(message)
        if fpdu.is_own or (fpdu.is_out and fpdu.msg_class == RESPONSES):
            return message
        msg_class = fpdu.msg_class if fpdu.is_out else REQUESTS
        if fpdu.is_out or fpdu.msg_class == RESPONSES:
            message.request = self._by_number.get((conn.qpn, msg_class, self._number_of(conn, msg_class, fpdu)))
        return message

    def _number_of(self, conn, msg_class, fpdu):
        """The message's number among its QP's. A QP connected by hand may connect anew, and FPDUs are counted from 0 then."""
        latest = self._latest.get(conn.qpn)
        if latest is not conn:
            conn.before = dict(latest.begun) if latest else {}
            conn.begun = dict(conn.before)
            self._latest[conn.qpn] = conn
        number = conn.before.get(msg_class, 0) + fpdu.number
        if fpdu.is_out:
            conn.begun[msg_class] = number + 1
        return number & 0xffffffff

    def _message_is_whole(self, conn, fpdu, message):
        if not fpdu.is_out and not fpdu.is_own and fpdu.msg_class == SENDS and not fpdu.is_announcement:
            self._arrived[conn.qpn].append(message)

    def _join_arrived(self, request):
        """Messages take receives in their order."""
        queue = self._arrived.get(request.qpn)
        if queue and request.status == 0:
            message = queue.popleft()
            message.request = request
            request.first, request.last = message.first, message.last
            request.fpdus += 1


def numbers_of(body):
    """(class, number) of each message that a request to send becomes."""
    if body.opcode == names.WRITE:
        return [(WRITES, body.writes)]
    if body.opcode == names.WRITE_IMM:
        return [(WRITES, body.writes), (SENDS, body.sends)]
    if body.opcode == names.SEND_IMM:
        return [(SENDS, body.sends), (SENDS, body.sends + 1 & 0xffffffff)]
    if body.opcode in (names.SEND, names.SEND_INV):
        return [(SENDS, body.sends)]
    if body.opcode in (names.READ, names.READ_INV, names.CMP_SWAP, names.FETCH_ADD):
        return [(REQUESTS, body.requests)]
    return []


# ---- several processes ----

class Story:
    def __init__(self, records, with_lines=True):
        self.processes = [Process(r, i, with_lines) for i, r in enumerate(records)]
        self._join_conns()
        self._join_clocks()
        self._join_messages()

    def _join_conns(self):
        waiting = {}
        for process in self.processes:
            for conn in process.conns.values():
                if not conn.own or not conn.fpdus or conn.own == conn.peer_name:
                    continue
                other = waiting.pop((conn.peer_name, conn.own), None)
                if other:
                    conn.peer, other.peer = other, conn
                else:
                    waiting[(conn.own, conn.peer_name)] = conn

    def _join_clocks(self):
        """The first process's clock is the others'; those who share no messages are joined by the date."""
        if not self.processes:
            return
        known, todo = {self.processes[0]}, [self.processes[0]]
        while todo or len(known) < len(self.processes):
            if not todo:
                stranger = next(p for p in self.processes if p not in known)
                stranger.shift = by_date(self.processes[0], stranger)
                known.add(stranger)
                todo.append(stranger)
            process = todo.pop()
            for conn in process.conns.values():
                other = conn.peer.process if conn.peer else None
                if other and other not in known:
                    other.shift = process.shift + by_messages(process, other)
                    known.add(other)
                    todo.append(other)

    def _join_messages(self):
        for process in self.processes:
            for conn in process.conns.values():
                if conn.peer:
                    join_messages(conn)

    def time(self, process, ns):
        return ns + process.shift

    @property
    def start(self):
        """The first time of all."""
        return min((p.record.entries[0].ns + p.shift for p in self.processes if p.record.entries), default=0)

    def date_of(self, ns):
        """Of a joined time: nanoseconds since 1970."""
        first = self.processes[0].record
        return ns - first.start_ns + first.start_real_ns


def by_date(first, other):
    if first.record.boot and first.record.boot == other.record.boot:
        return 0
    ours = first.record.start_real_ns - first.record.start_ns
    return other.record.start_real_ns - other.record.start_ns - ours


def travel(one, two):
    """The least time from ONE's clock, as it sends, to TWO's, as that receives; None: no message is in both."""
    least = None
    for conn in one.conns.values():
        if not conn.peer or conn.peer.process is not two:
            continue
        arrivals = {f.offset: f.ns for f in conn.peer.fpdus if not f.is_out}
        for fpdu in conn.fpdus:
            if fpdu.is_out and fpdu.offset in arrivals:
                took = arrivals[fpdu.offset] - fpdu.first
                least = took if least is None else min(least, took)
    return least


def by_messages(first, other):
    """What to add to OTHER's clock: no message may arrive before it is sent, and both ways are as long."""
    there, back = travel(first, other), travel(other, first)
    if by_date(first, other) == 0 and (there is None or there >= 0) and (back is None or back >= 0):
        return 0
    if there is None and back is None:
        return by_date(first, other)
    if there is None or back is None:
        return back if there is None else -there
    return (back - there) // 2


def join_messages(conn):
    arrivals = {m.offset: m for m in conn.peer.messages if not m.is_out}
    for message in conn.messages:
        other = arrivals.get(message.offset) if message.is_out else None
        if not other:
            continue
        message.peer, other.peer = other, message
        if message.request and other.request and other.request.is_receive and not message.request.is_receive:
            message.request.peer, other.request.peer = other.request, message.request
