# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""weft-trace judge: misuse that neither end can see alone. docs/checking-ends.md has the rules."""
import argparse
import collections
import fnmatch
import json
import sys

from . import names, record, story, text

REPORTED = 99                   # the status, as of weft-run --judge
CLOCKS_NS = 2000                # two processes' clocks agree so well
FLAG_OCTETS = 64                # more is no flag
MOST_WRITES = 64                # of a QP, that a flag is compared with
REM_ACCESS_ERR, RNR_RETRY_EXC_ERR = 8, 11       # of the ring

Rule = collections.namedtuple("Rule", "number name is_off why do")
STALE_KEY = Rule(
    "J210", "stale-key", False,
    "ibv_dereg_mr(3): a region's key ends with it; the peer's request ends with IBV_WC_REM_ACCESS_ERR, or reaches what is "
    "registered there next",
    "deregister the region after the peer has said that it will not use the key any more")
RECEIVE_TOO_LATE = Rule(
    "J305", "receive-too-late", False,
    "RFC 5041 7.1, InfiniBand's RNR NAK: a message without a receive ends the connection, or waits for a retry of the "
    "sender's",
    "post the receive before the peer may send: before the connection is made, or before the message that permits it")
FLAG_OVERTAKES_DATA = Rule(
    "J903", "flag-overtakes-data", True,
    "RFC 5040 5.5: the requests of one queue pair are in order, those of two are not",
    "send the flag by the QP of the data, or after the completion of the data was polled")
RULES = (STALE_KEY, RECEIVE_TOO_LATE, FLAG_OVERTAKES_DATA)

# PLACES: (what happened there, "function file:line" or ""), the one that broke the rule first.
Report = collections.namedtuple("Report", "rule what places")


def ago(ns):
    return text.duration(max(0, ns))


def posted(request):
    return "%s posted the %s of wr_id 0x%x, QP 0x%x" % (request.process.name, request.name, request.wr_id, request.qpn)


def arrivals(process):
    """(message, the peer's request) for each message that has reached PROCESS, if the peer's record has both."""
    for conn in process.conns.values():
        for message in conn.messages:
            if not message.is_out and not message.is_own and message.peer and message.peer.request:
                yield message, message.peer.request


# ---- keys of regions that are gone ----

Region = collections.namedtuple("Region", "made ends gone caller")


class Regions:
    """When which key was valid in a process."""

    def __init__(self, process):
        self._by_key = collections.defaultdict(list)
        under, ending = {}, {}
        for entry in process.record.entries:
            body = entry.body
            if entry.type != record.OBJECT or body.kind != names.KIND_MR:
                continue
            handle = (body.context, body.handle)
            if body.deed == names.ENDS:
                ending[handle] = entry
            elif body.deed in (names.MADE, names.CHANGED, names.GONE):
                self._close(under.pop(handle, None), ending.pop(handle, entry), entry)
            if body.deed in (names.MADE, names.CHANGED):
                under[handle] = entry
        for made in under.values():
            self._by_key[made.body.number].append(Region(made.ns, None, None, 0))

    def _close(self, made, ends, gone):
        if made:
            self._by_key[made.body.number].append(Region(made.ns, ends.ns, gone.ns, ends.body.caller or gone.body.caller))

    def gone(self, key, at, is_refused):
        """The region that this key had before AT, if it has none at AT."""
        found = None
        for region in self._by_key.get(key, ()):
            end = region.ends if is_refused else region.gone
            if end is None or end >= at:
                if region.made <= at:
                    return None
            elif not found or end > found.gone:
                found = region
        return found


def judge_keys(told):
    for process in told.processes:
        regions = Regions(process)
        for message, request in arrivals(process):
            if not names.uses_rkey(request.opcode) or request.is_receive:
                continue
            region = regions.gone(request.rkey, message.last, request.status == REM_ACCESS_ERR)
            if region:
                yield Report(
                    STALE_KEY, "the %s of wr_id 0x%x has reached %s %s after the region of its key 0x%x was deregistered" %
                    (request.name, request.wr_id, process.name, ago(message.last - region.ends), request.rkey),
                    [(posted(request), request.where),
                     ("%s deregistered the region" % process.name, process.lines.get(region.caller, ""))])


# ---- receives ----

def lateness(told, message, request):
    """How long after the message its receive was posted, and the words for it; None: it was there in time."""
    receive = message.request
    one, two = request.process, receive.process
    if one.record.boot and one.record.boot == two.record.boot and one.shift == two.shift:
        late = receive.posted - request.posted
        if late > CLOCKS_NS:
            return "%s after the %s was posted" % (ago(late), request.name)
    elif receive.posted > message.first:
        return "%s after the %s had arrived" % (ago(receive.posted - message.first), request.name)
    return None


def judge_receives(told):
    for process in told.processes:
        for message, request in arrivals(process):
            receive = message.request
            if receive and receive.is_receive and not request.is_receive:
                late = lateness(told, message, request)
                if late:
                    yield Report(RECEIVE_TOO_LATE, "%s posted the receive %s" % (process.name, late),
                                 [(posted(receive), receive.where), (posted(request), request.where)])
            elif not receive and request.status == RNR_RETRY_EXC_ERR:
                yield Report(RECEIVE_TOO_LATE, "%s posted no receive for the %s of wr_id 0x%x" %
                             (process.name, request.name, request.wr_id), [(posted(request), request.where)])


# ---- flags ----

def polled_times(process):
    """When the program knew of each request that it was complete: by it, or by a later one of its QP."""
    known, latest = {}, {}
    for request in reversed(process.requests):
        if not request.is_receive:
            times = [t for t in (request.polled, latest.get(request.qpn)) if t is not None]
            known[request] = latest[request.qpn] = min(times, default=None)
    return known


def is_flag(request):
    if request.opcode == names.WRITE:
        return 0 < request.length <= FLAG_OCTETS
    return request.opcode in names.SENT or request.opcode in (names.WRITE_IMM, names.CMP_SWAP, names.FETCH_ADD)


def seen(message, request):
    """When the other program could act on the flag."""
    receive = message.request
    if receive and receive.is_receive and receive.polled is not None:
        return receive.polled
    return message.last if request.opcode not in names.SENT else None


def judge_flags_between(pairs, known):
    """PAIRS: (request, message at the other end), of one process to another."""
    open_writes = collections.defaultdict(lambda: collections.deque(maxlen=MOST_WRITES))    # by QP
    if len({request.qpn for request, _ in pairs}) < 2:
        return
    for request, message in sorted(pairs, key=lambda p: p[0].posted):
        at = seen(message, request) if is_flag(request) else None
        for qpn, writes in open_writes.items() if at is not None else ():
            while writes and known[writes[0][0]] is not None and known[writes[0][0]] <= request.posted:
                writes.popleft()
            for write, data in writes if qpn != request.qpn else ():
                if write.length > request.length and data.last > at:
                    yield Report(
                        FLAG_OVERTAKES_DATA, "the %s of wr_id 0x%x has overtaken the Write of wr_id 0x%x, which was posted "
                        "%s before" % (request.name, request.wr_id, write.wr_id, ago(request.posted - write.posted)),
                        [(posted(request), request.where), (posted(write), write.where)])
        if request.opcode == names.WRITE:
            open_writes[request.qpn].append((request, message))


def judge_flags(told):
    pairs = collections.defaultdict(dict)
    for process in told.processes:
        for message, request in arrivals(process):
            if not request.is_receive:
                pairs[(request.process, process)][request] = message
    known = {p: polled_times(p) for p in told.processes}
    for (process, _), found in pairs.items():
        yield from judge_flags_between(list(found.items()), known[process])


JUDGES = {STALE_KEY: judge_keys, RECEIVE_TOO_LATE: judge_receives, FLAG_OVERTAKES_DATA: judge_flags}


# ---- reports ----

def judge(told, rules):
    """The reports, each place once; how often each was made."""
    counts, first = collections.Counter(), {}
    for rule in RULES:
        for report in JUDGES[rule](told) if rule in rules else ():
            key = (rule, report.places[0][1] or report.what)
            counts[key] += 1
            first.setdefault(key, report)
    return [(report, counts[key]) for key, report in first.items()]


def write_report(report, count, out):
    out.write("weft-trace: %s %s: %s\n" % (report.rule.number, report.rule.name, report.what))
    for title, where in report.places:
        out.write("    %s%s\n" % (title, ":\n      " + where if where else ""))
    if count > 1:
        out.write("    and %d more from there\n" % (count - 1))
    out.write("    why: %s\n    do: %s\n    see: docs/checking-ends.md#%s\n" %
              (report.rule.why, report.rule.do, report.rule.name))


def json_of(report, count):
    return json.dumps({
        "number": report.rule.number, "rule": report.rule.name, "what": report.what, "count": count,
        "places": [{"title": title, "where": where} for title, where in report.places],
        "why": report.rule.why, "do": report.rule.do})


# ---- the command ----

def rules_of(words):
    """As --judge of weft-run takes them."""
    chosen = {r for r in RULES if not r.is_off} if words.startswith("-") else set()
    for word in words.split(","):
        minus, word = word.startswith("-"), word.lstrip("-")
        some = {r for r in RULES if word in ("all", r.number, r.name) or (word == "default" and not r.is_off)}
        if not some:
            raise argparse.ArgumentTypeError("%s is no rule of two ends: see docs/checking-ends.md" % word)
        chosen = chosen - some if minus else chosen | some
    return chosen


def read_suppressions(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = [line.split() for line in f]
    return [line for line in lines if len(line) == 2 and not line[0].startswith("#")]


def is_suppressed(report, known):
    rule = report.rule
    for name, pattern in known:
        if name in ("*", rule.number, rule.name) and any(
                fnmatch.fnmatchcase(word, pattern) for _, where in report.places
                for word in where.split() + [w.rsplit(":", 1)[0] for w in where.split()]):
            return True
    return False


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="weft-trace judge", description="Judges the records of both ends of a connection.",
        epilog="Exit status: 99 if anything is reported.")
    parser.add_argument("records", metavar="RECORD|FOLDER", nargs="+", help="of all processes")
    parser.add_argument("--rules", metavar="RULES", type=rules_of, default=rules_of("default"),
                        help="by name or number, with commas; -RULE leaves one out; default, all")
    parser.add_argument("--json", metavar="FILE", help="each report as a line of JSON")
    parser.add_argument("--suppress", metavar="FILE", help="lines RULE PATTERN, as of weft-run --judge-suppress")
    parser.add_argument("--no-lines", action="store_true", help="do not ask addr2line for lines of the source")
    return parser.parse_args(argv)


def run(argv, read_records):
    args = arguments(argv)
    records = read_records(args.records)
    if not records:
        print("weft-trace: there is nothing to judge", file=sys.stderr)
        return 1
    known = read_suppressions(args.suppress) if args.suppress else []
    told = story.Story(records, with_lines=not args.no_lines)
    reports = [r for r in judge(told, args.rules) if not is_suppressed(r[0], known)]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            out.writelines(json_of(*r) + "\n" for r in reports)
    for report, count in reports:
        write_report(report, count, sys.stdout)
    if not any(c.peer for p in told.processes for c in p.conns.values()):
        print("weft-trace: no connection has both ends in these records", file=sys.stderr)
        return 1
    return REPORTED if reports else 0
