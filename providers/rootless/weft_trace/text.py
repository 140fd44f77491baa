# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lines for a terminal: every entry of every process, in the order of time."""
import collections
import datetime
import errno
import ipaddress

from . import names, record
from .story import RECV_KIND, SEND_KIND, Fpdu


def error_name(result):
    return errno.errorcode.get(-result, "error %d" % -result) if result < 0 else "ok"


def duration(ns):
    for unit, size in (("s", 10 ** 9), ("ms", 10 ** 6), ("us", 10 ** 3)):
        if ns >= size:
            return "%.*f %s" % (3 if unit == "s" else 1, ns / size, unit)
    return "%d ns" % ns


def address(octets, flags, port):
    packed = octets[:16] if flags & record.IPV6 else octets[:4]
    host = str(ipaddress.ip_address(packed))
    return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)


def say_post(process, entry):
    body = entry.body
    where = process.lines.get(body.caller)
    if body.post == SEND_KIND:
        words = "post %s" % names.name_of(names.REQUESTS, body.opcode)
        if entry.flags & record.INLINE:
            words += ", inline"
        if not entry.flags & record.SIGNALED:
            words += ", unsignaled"
        if body.opcode not in (names.SEND, names.SEND_IMM, names.SEND_INV) and body.rkey:
            words += ", to 0x%x by rkey 0x%x" % (body.remote_addr, body.rkey)
    else:
        words = "post receive" if body.post == RECV_KIND else "post receive to SRQ %d" % body.handle
    words += ", wr_id 0x%x, %d octets" % (body.wr_id, body.length)
    return words + (" by %s" % where if where else "")


def say_completed(_, entry):
    what = "receive" if entry.flags & record.RECEIVE else "request"
    words = "%s of wr_id 0x%x is complete: %s" % (what, entry.body.wr_id,
                                                  names.name_of(names.RING_STATUS, entry.body.status))
    return words + (", %d octets" % entry.body.byte_len if entry.flags & record.RECEIVE else "")


def say_polled(_, entry):
    return "polled the %s of wr_id 0x%x from CQ %d: %s" % (
        "receive" if entry.flags & record.RECEIVE else "request", entry.body.wr_id, entry.body.cq,
        names.name_of(names.STATUS, entry.body.status))


def say_fpdu(_, entry):
    fpdu = Fpdu(entry)
    way = "sent" if fpdu.is_out else "received"
    if fpdu.is_start:
        return "%s %d octets of start-up: %s" % (way, fpdu.length, record.text_of(fpdu.data[:16]))
    return "%s FPDU %s, %d octets of payload, message %d%s%s" % (
        way, names.name_of(names.FPDUS, fpdu.opcode), fpdu.payload, fpdu.number,
        ", its last" if fpdu.is_last else "", ", the engine's own" if fpdu.is_own else "")


def say_conn(_, entry):
    flags = entry.flags
    words = "connection %d: %s to %s, %s" % (
        entry.body.conn, address(entry.body.addr, flags, entry.body.port),
        address(entry.body.peer_addr, flags, entry.body.peer_port),
        "initiator" if flags & record.INITIATOR else "responder")
    for flag, name in ((record.BY_HAND, "connected by hand"), (record.STARTED, "in Full Operation"),
                       (record.CRC, "CRC"), (record.MARKERS, "Markers")):
        words += ", " + name if flags & flag else ""
    return words


def say_conn_end(_, entry):
    error = ": " + error_name(entry.body.error) if entry.body.error else ""
    return "connection %d is closed%s" % (entry.body.conn, error)


def say_object(process, entry):
    body = entry.body
    kind = names.name_of(names.KINDS, body.kind)
    where = process.lines.get(body.caller)
    by = " by %s" % where if where else ""
    if body.kind == names.KIND_MR and body.deed in (names.MADE, names.CHANGED):
        return "memory region 0x%x %s: %d octets at 0x%x%s" % (
            body.number, names.name_of(names.DEEDS, body.deed), body.length, body.addr, by)
    if body.kind == names.KIND_QP and body.deed == names.MADE:
        return "QP 0x%x made, of CQs %d and %d%s" % (body.number, body.send_cq, body.recv_cq, by)
    number = "0x%x" % body.number if body.number and body.kind != names.KIND_CQ else "of handle %d" % body.handle
    return "%s %s %s%s" % (kind, number, names.name_of(names.DEEDS, body.deed), by)


def say_call(_, entry):
    body = entry.body
    subject = " of id %d" % body.subject if body.family == 2 and body.subject else ""
    return "%s%s: %s, took %s" % (names.call_name(body.family, body.number), subject, error_name(body.result),
                                  duration(body.took_ns))


def event_name(process, body):
    if body.source == record.CM_EVENT:
        status = ", status %d" % body.status if body.status else ""
        return "RDMA_CM_EVENT_%s of id %d%s" % (names.name_of(names.CM_EVENTS, body.number), body.subject, status)
    if body.source == record.ASYNC_EVENT:
        return "IBV_EVENT_" + names.name_of(names.ASYNC_EVENTS, body.number)
    return "an event of CQ %s" % process.cqs.get(body.subject, "0x%x" % body.subject)


def say_event(process, entry):
    what = event_name(process, entry.body)
    if entry.flags & record.TAKEN:
        return "got %s, after %s" % (what, duration(entry.body.waited_ns))
    return "%s arose" % what


SAY = {record.POST: say_post, record.COMPLETED: say_completed, record.POLLED: say_polled, record.FPDU: say_fpdu,
       record.CONN: say_conn, record.CONN_END: say_conn_end, record.OBJECT: say_object, record.CALL: say_call,
       record.EVENT: say_event}


def say(process, entry):
    if entry.type == record.NOTE:
        return entry.data
    return SAY[entry.type](process, entry)


def date(ns):
    try:
        when = datetime.datetime.fromtimestamp(ns // 10 ** 9).strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        when = "--:--:--"
    return "%s.%06d" % (when, ns // 1000 % 1000000)


def head_of(process):
    rec = process.record
    words = "%s on %s: %d entries" % (process.name, rec.host or "?", len(rec.entries))
    if rec.is_wrapped:
        words += "; older ones gave way"
    if rec.skipped:
        words += "; %d octets could not be read" % rec.skipped
    if process.shift:
        words += "; its clock was shifted by %.3f us" % (process.shift / 1000)
    return words


def write(story, out, tail=None):
    entries = [(e.ns + p.shift, p.index, i, p, e) for p in story.processes for i, e in enumerate(p.record.entries)]
    entries.sort(key=lambda e: e[:3])
    for process in story.processes:
        out.write("# %s\n" % head_of(process))
    if tail is not None:
        entries = collections.deque(entries, maxlen=tail)
    for ns, _, _, process, entry in entries:
        qp = " QP 0x%x" % entry.qpn if entry.qpn and entry.type != record.OBJECT else ""
        out.write("%s %s.%d%s %s\n" % (date(story.date_of(ns)), process.name, entry.thread, qp, say(process, entry)))
