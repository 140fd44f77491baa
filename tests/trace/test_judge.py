#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""weft-trace judge, with records that no program has made: what it reports, and when it must not. TAP."""
import json
import os
import subprocess
import sys
import tempfile

import tap
import writer

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOL = os.path.join(TOP, "providers", "rootless", "weft-trace")
sys.path.insert(0, os.path.join(TOP, "providers", "rootless"))
sys.dont_write_bytecode = True

from weft_trace import judge, record, story  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
QP, MR = 5, 1                           # kinds of objects
MADE, ENDS, GONE, CHANGED = 2, 3, 6, 8
WRITE, SEND = 0, 2                      # of requests
KEY = 3                                 # of Writer.post()
US, MS = 1000, 1000_000


class Ends:
    """A client that sends on some QPs, and its server. Times are those of the client's clock."""

    def __init__(self, qps=1, shift=0, boots=(b"one", b"one")):
        self.shift = shift
        self.client = writer.Writer(pid=100, program=b"client", boot=boots[0])
        self.server = writer.Writer(pid=200, program=b"server", boot=boots[1], start_ns=MS + shift)
        self.offsets = [20] * qps
        self.numbers = [[0, 0, 0] for _ in range(qps)]
        for q in range(qps):
            self.client.conn(MS + 1, number=q + 1, port=1000 + q, qpn=5 + q)
            self.server.conn(MS + 1 + shift, number=q + 1, port=2000, peer=1000 + q, addr=b"\x7f\0\0\2",
                             peer_addr=b"\x7f\0\0\1", flags=0x42, qpn=50 + q)
            self.client.object(MS + 2, MADE, QP, 9 + q, 5 + q, qpn=5 + q)
            self.server.object(MS + 2 + shift, MADE, QP, 9 + q, 50 + q, qpn=50 + q)
            self.client.fpdu(MS + 3, writer.FRAME[0], 0, flags=3, conn=q + 1, qpn=5 + q)
            self.server.fpdu(MS + 3 + shift, writer.FRAME[0], 0, flags=2, conn=q + 1, qpn=50 + q)

    def request(self, at, wr_id, opcode=SEND, length=8, q=0, caller=0):
        self.client.post(at, wr_id, opcode=opcode, length=length, qpn=5 + q, numbers=tuple(self.numbers[q]), caller=caller)

    def carry(self, at, arrives, opcode=SEND, length=8, q=0):
        """The request's message."""
        which = 0 if opcode == WRITE else 1
        octets = writer.fpdu_of(0 if opcode == WRITE else 3, bytes(length))
        for w, flags, ns, qpn in ((self.client, 1, at, 5 + q), (self.server, 0, arrives + self.shift, 50 + q)):
            w.fpdu(ns, octets[:128], self.offsets[q], len(octets), number=self.numbers[q][which], flags=flags, conn=q + 1,
                   qpn=qpn)
        self.offsets[q] += len(octets)
        self.numbers[q][which] += 1

    def receive(self, at, wr_id, caller=0, q=0):
        self.server.post(at + self.shift, wr_id, kind=writer.RECEIVE, qpn=50 + q, caller=caller)

    def received(self, at, wr_id, q=0):
        self.server.completed(at + self.shift, wr_id, receive=True, qpn=50 + q)
        self.server.polled(at + 100 + self.shift, wr_id, receive=True, qpn=50 + q)

    def region(self, at, deed, key=KEY, handle=1, caller=0):
        self.server.put(writer.OBJECT, at + self.shift, self.server.pack(
            "QQQIIIIIIIIIIIIQ", 0x1000, 4096, 0, deed, MR, 1, handle, key if deed in (MADE, CHANGED) else 0, 0, 0, 0, 0, 0,
            7, 0, caller))

    def close(self):
        for w, shift in ((self.client, 0), (self.server, self.shift)):
            w.clock(100 * MS + shift)

    def paths(self):
        self.close()
        return [self.client.save(os.path.join(FOLDER.name, "client.weft")),
                self.server.save(os.path.join(FOLDER.name, "server.weft"))]

    def reports(self, rules="all"):
        told = story.Story([record.Record(p) for p in self.paths()], with_lines=False)
        return judge.judge(told, judge.rules_of(rules))


def names_of(reports):
    return [report.rule.name for report, _ in reports]


# ---- receives ----

def sent_at(post, receive, arrives, **how):
    """A Send that is posted and arrives, and its receive."""
    ends = Ends(**how)
    ends.receive(receive, 7)
    ends.request(post, 1)
    ends.carry(post + US, arrives)
    ends.received(max(arrives, receive) + US, 7)
    return ends


def receive_after_the_send_is_reported():
    (report, count), = sent_at(2 * MS, 2 * MS + 50 * US, 2 * MS + 90 * US).reports()
    assert (report.rule.name, count) == ("receive-too-late", 1)
    assert "50.0 us after the Send was posted" in report.what and "server[200]" in report.what, report.what
    assert "QP 0x32" in report.places[0][0] and "client[100]" in report.places[1][0], report.places


def receive_before_the_send_is_not():
    assert not sent_at(2 * MS, 2 * MS - 50 * US, 2 * MS + 90 * US).reports()
    # Nor one that clocks cannot tell from it.
    assert not sent_at(2 * MS, 2 * MS + 1 * US, 2 * MS + 90 * US).reports()
    assert not Ends().reports()


def clocks_of_two_hosts_tell_of_arrivals_alone():
    hosts = {"shift": 77 * MS, "boots": (b"one", b"two")}
    assert not sent_at(2 * MS, 2 * MS + 50 * US, 2 * MS + 90 * US, **hosts).reports()
    (report, _), = sent_at(2 * MS, 2 * MS + 95 * US, 2 * MS + 90 * US, **hosts).reports()
    assert "5.0 us after the Send had arrived" in report.what, report.what


def send_without_a_receive_is_reported():
    ends = Ends()
    ends.request(2 * MS, 1)
    ends.carry(2 * MS + US, 2 * MS + 2 * US)
    ends.client.completed(3 * MS, 1, status=11)
    (report, _), = ends.reports()
    assert "posted no receive for the Send of wr_id 0x1" in report.what, report.what


def receive_whose_post_is_lost_shifts_no_other():
    """The ring lost the first receive's post; the second one's, which is early enough, is there."""
    ends = Ends()
    ends.request(2 * MS, 1)
    ends.carry(2 * MS + US, 2 * MS + 2 * US)
    ends.received(2 * MS + 3 * US, 7)
    ends.receive(3 * MS, 8)
    ends.request(4 * MS, 2)
    ends.carry(4 * MS + US, 4 * MS + 2 * US)
    ends.received(4 * MS + 3 * US, 8)
    assert not ends.reports()


def same_place_is_reported_once():
    ends = Ends()
    ends.server.callers.append((0xabc, 0x10, b"post_late", b"/bin/none"))
    for i in range(5):
        at = (2 + i) * MS
        ends.request(at, i)
        ends.carry(at + US, at + 2 * US)
        ends.receive(at + 50 * US, 7, caller=0xabc)
        ends.received(at + 60 * US, 7)
    (report, count), = ends.reports()
    assert count == 5 and report.places[0][1] == "post_late (none+0x10)", report


# ---- keys ----

def write_to_region(*deeds, arrives=3 * MS, status=0):
    ends = Ends()
    for at, deed, *more in deeds:
        ends.region(at, deed, **(more[0] if more else {}))
    ends.request(2 * MS, 1, opcode=WRITE)
    ends.carry(2 * MS + US, arrives, opcode=WRITE)
    ends.client.completed(arrives + MS, 1, status=status)
    return ends


def write_to_a_region_that_is_gone_is_reported():
    ends = write_to_region((2 * MS, MADE), (2 * MS + 500 * US, ENDS), (2 * MS + 600 * US, GONE))
    ends.server.callers.append((0xdef, 0x20, b"drop", b"/bin/none"))
    (report, _), = ends.reports()
    assert report.rule.name == "stale-key" and "500.0 us after the region of its key 0x3" in report.what, report.what


def line_that_deregistered_is_named():
    ends = write_to_region((2 * MS, MADE), (2 * MS + 500 * US, ENDS, {"caller": 0xdef}), (2 * MS + 600 * US, GONE))
    ends.server.callers.append((0xdef, 0x20, b"drop", b"/bin/none"))
    (report, _), = ends.reports()
    assert report.places[1] == ("server[200] deregistered the region", "drop (none+0x20)"), report.places


def write_to_a_region_that_is_there_is_not():
    assert not write_to_region((2 * MS, MADE)).reports()
    assert not write_to_region((2 * MS, MADE), (3 * MS + US, ENDS), (3 * MS + 2 * US, GONE)).reports()
    # A region that the record does not have.
    assert not write_to_region().reports()
    assert not write_to_region((2 * MS, MADE, {"key": 4}), (2 * MS + US, ENDS), (2 * MS + 2 * US, GONE)).reports()


def region_that_is_going_decides_by_the_status():
    going = ((2 * MS, MADE), (3 * MS - US, ENDS), (3 * MS + US, GONE))
    assert not write_to_region(*going).reports()
    assert names_of(write_to_region(*going, status=8).reports()) == ["stale-key"]


def key_that_another_region_has_now_is_not_reported():
    assert not write_to_region((MS + US, MADE), (MS + 2 * US, ENDS), (MS + 3 * US, GONE),
                               (2 * MS, MADE, {"handle": 2})).reports()


def key_of_a_region_that_was_registered_again_is_reported():
    assert names_of(write_to_region((MS + US, MADE), (2 * MS, CHANGED, {"key": 4})).reports()) == ["stale-key"]
    assert not write_to_region((MS + US, MADE, {"key": 9}), (2 * MS, CHANGED)).reports()


# ---- flags ----

def data_and_flag(flag_at=3 * MS, data_arrives=9 * MS, polled=None, q=1, **flag):
    """A Write of 4000 octets, and a flag by another QP which arrives at 4 ms."""
    ends = Ends(qps=2)
    ends.receive(MS + 10, 7, q=q)
    ends.request(2 * MS, 1, opcode=WRITE, length=4000)
    ends.carry(2 * MS + US, data_arrives, opcode=WRITE, length=4000)
    if polled:
        ends.client.completed(polled - 100, 1)
        ends.client.polled(polled, 1)
    ends.request(flag_at, 2, q=q, **flag)
    ends.carry(flag_at + US, 4 * MS, q=q, **flag)
    if flag.get("opcode", SEND) == SEND:
        ends.received(4 * MS + US, 7, q=q)
    return ends


def flag_that_overtakes_is_reported():
    (report, _), = data_and_flag().reports()
    assert report.rule.name == "flag-overtakes-data" and "the Send of wr_id 0x2 has overtaken the Write" in report.what
    assert names_of(data_and_flag(opcode=WRITE, length=8).reports()) == ["flag-overtakes-data"]


def flag_in_order_is_not():
    assert not data_and_flag(polled=2 * MS + 500 * US).reports()
    assert not data_and_flag(data_arrives=3 * MS).reports()
    assert not data_and_flag(q=0, data_arrives=3 * MS + 900 * US).reports()
    # As large as data.
    assert not data_and_flag(opcode=WRITE, length=4000).reports()
    # A warning, off unless asked for.
    assert not data_and_flag().reports("default")


# ---- the command ----

def run(*args):
    return subprocess.run([TOOL, "judge", "--no-lines", *args], capture_output=True, text=True, timeout=60, check=False)


def status_is_that_of_the_judge():
    late = sent_at(2 * MS, 2 * MS + 50 * US, 2 * MS + 90 * US).paths()
    said = run(*late)
    assert said.returncode == 99 and said.stdout.startswith("weft-trace: J305 receive-too-late: server[200] posted"), said
    assert "see: docs/checking-ends.md#receive-too-late" in said.stdout, said
    said = run("--rules=all,-J305", *late)
    assert said.returncode == 0 and not said.stdout, said
    said = run(late[0])
    assert said.returncode == 1 and "no connection has both ends" in said.stderr, said
    said = run("--rules=J999", *late)
    assert said.returncode == 2 and "J999 is no rule" in said.stderr, said
    assert run(*sent_at(2 * MS, MS + 10, 3 * MS).paths()).returncode == 0


def reports_are_lines_of_json():
    path = os.path.join(FOLDER.name, "json")
    assert run("--json", path, *sent_at(2 * MS, 2 * MS + 50 * US, 2 * MS + 90 * US).paths()).returncode == 99
    with open(path, encoding="utf-8") as f:
        reports = [json.loads(line) for line in f]
    assert [(r["number"], r["count"], len(r["places"])) for r in reports] == [("J305", 1, 2)], reports


def suppressed_reports_are_not_made():
    ends = sent_at(2 * MS, 2 * MS + 50 * US, 2 * MS + 90 * US)
    ends.server.callers.append((0xabc, 0x10, b"post_late", b"/bin/none"))
    ends.receive(5 * MS, 8, caller=0xabc)
    ends.request(4 * MS, 2)
    ends.carry(4 * MS + US, 4 * MS + 2 * US)
    ends.received(5 * MS + US, 8)
    known = os.path.join(FOLDER.name, "known")
    for lines, count in (("# none\n", 2), ("receive-too-late post_l*\n", 1), ("J210 post_late\n", 2), ("* post_late\n", 1)):
        with open(known, "w", encoding="utf-8") as f:
            f.write(lines)
        said = run("--suppress", known, *ends.paths())
        assert said.stdout.count("weft-trace: J305") == count, (lines, said)


def rules_have_pages():
    with open(os.path.join(TOP, "docs", "checking-ends.md"), encoding="utf-8") as f:
        page = f.read()
    with open(os.path.join(TOP, "providers", "rootless", "judge", "rules.c"), encoding="utf-8") as f:
        others = f.read()
    for rule in judge.RULES:
        assert "## %s %s\n" % (rule.number, rule.name) in page, rule
        assert '"%s"' % rule.number not in others and '"%s"' % rule.name not in others, rule


TESTS = [
    receive_after_the_send_is_reported, receive_before_the_send_is_not, clocks_of_two_hosts_tell_of_arrivals_alone,
    send_without_a_receive_is_reported, receive_whose_post_is_lost_shifts_no_other, same_place_is_reported_once,
    write_to_a_region_that_is_gone_is_reported, line_that_deregistered_is_named, write_to_a_region_that_is_there_is_not,
    region_that_is_going_decides_by_the_status, key_that_another_region_has_now_is_not_reported,
    key_of_a_region_that_was_registered_again_is_reported, flag_that_overtakes_is_reported, flag_in_order_is_not,
    status_is_that_of_the_judge, reports_are_lines_of_json, suppressed_reports_are_not_made, rules_have_pages,
]


if __name__ == "__main__":
    sys.exit(tap.run(TESTS))
