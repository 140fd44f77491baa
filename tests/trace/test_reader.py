#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests of weft-trace with records that no program has made: format, damage, joining, output. TAP."""
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

import timeline_rules
import tap
import writer

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOL = os.path.join(TOP, "providers", "rootless", "weft-trace")
sys.path.insert(0, os.path.join(TOP, "providers", "rootless"))
sys.dont_write_bytecode = True

from weft_trace import capture, page, record, story, text, timeline  # noqa: E402
from weft_trace.crc32c import TABLE, crc32c  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
FUZZ_ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1500"))


def path_of(name):
    return os.path.join(FOLDER.name, name)


def read(octets, name="a.weft"):
    with open(path_of(name), "wb") as f:
        f.write(octets)
    return record.Record(path_of(name))


def tell(*writers):
    return story.Story([read(w.octets(), "%d.weft" % i) for i, w in enumerate(writers)], with_lines=False)


def outputs(told):
    """What each writer makes of it."""
    packets, lines, html, words = io.BytesIO(), io.StringIO(), io.StringIO(), io.StringIO()
    capture.write(told, packets)
    timeline.write(told, lines)
    page.write(told, html)
    text.write(told, words)
    return packets.getvalue(), lines.getvalue(), html.getvalue(), words.getvalue()


def refused(octets, words):
    try:
        read(octets)
    except record.BadRecord as e:
        assert words in str(e), e
        return
    raise AssertionError("it was read")


def every_entry(order="<"):
    w = writer.Writer(order)
    w.callers.append((0xabc, 0x10, b"post_it", b"/bin/none"))
    w.object(1_001_000, 2, 5, 9, 5, qpn=5)
    w.object(1_001_100, 2, 1, 4, 0x77)
    w.object(1_001_200, 2, 3, 2, 0)
    w.conn(1_002_000)
    w.fpdu(1_003_000, writer.FRAME[0], 0, flags=3)
    w.post(1_004_000, 0x11, numbers=(0, 0, 0), caller=0xabc)
    w.post(1_004_100, 0x22, kind=writer.RECEIVE)
    w.fpdu(1_005_000, writer.fpdu_of(3, b"hello"), 20, flags=1)
    w.completed(1_006_000, 0x11)
    w.polled(1_007_000, 0x11)
    w.call(1_008_000, 0, 3)
    w.call(1_008_100, 1, 4 << 16 | 2, result=-22)
    w.call(1_008_200, 2, 6)
    w.event(1_009_000, 0, 0)
    w.event(1_009_100, 1, 2, flags=0)
    w.event(1_009_200, 2, 9)
    w.note(1_009_300, b"a connection's option 3 of level 6 stays: -1")
    w.put(writer.CONN_END, 1_009_400, w.pack("Ii", 1, -104), qpn=5)
    w.clock(2_000_000)
    return w


# ---- reading ----

def each_entry_is_said():
    rec = read(every_entry().octets())
    assert len(rec.entries) == 18 and not rec.skipped and not rec.is_wrapped, rec.entries
    said = outputs(story.Story([rec], with_lines=False))[3]
    for words in ("post Send, wr_id 0x11, 8 octets by post_it (none+0x10)", "post receive, wr_id 0x22",
                  "sent FPDU Send, 5 octets of payload, message 0, its last", "request of wr_id 0x11 is complete: SUCCESS",
                  "polled the request of wr_id 0x11 from CQ 2: SUCCESS", "ibv_alloc_pd: ok, took 1.0 us",
                  "ibv method 2 of qp: EINVAL", "rdma_connect of id 3: ok", "got an event of CQ 2, after 500 ns",
                  "IBV_EVENT_QP_REQ_ERR arose", "got RDMA_CM_EVENT_ESTABLISHED of id 77",
                  "a connection's option 3 of level 6 stays: -1", "connection 1: 127.0.0.1:1000 to 127.0.0.2:2000, initiator",
                  "connection 1 is closed: ECONNRESET", "memory region 0x77 made: 4096 octets at 0x5000",
                  "sent 20 octets of start-up: MPA ID Req Frame"):
        assert words in said, (words, said)


def other_order_of_octets_is_read():
    said = [outputs(story.Story([read(every_entry(o).octets())], with_lines=False))[3] for o in "<>"]
    assert said[0] == said[1]


def times_follow_the_clock_entries():
    w = writer.Writer()
    w.put(writer.CLOCK, 2_000_000, w.pack("Q", 3_000_000))
    w.note(1_500_000, b"half way")
    w.put(writer.CLOCK, 3_000_000, w.pack("Q", 4_000_000))
    w.note(2_500_000, b"on the slow half")
    w.note(4_000_000, b"after the last")
    assert [e.ns for e in read(w.octets()).entries] == [2_000_000, 3_500_000, 5_000_000]


def cut_file_is_read_up_to_its_end():
    whole = every_entry().octets()
    used = writer.HEADER_LEN + every_entry().head
    most = len(read(whole).entries)
    counts = []
    for length in range(writer.HEADER_LEN, used + 8):
        rec = read(whole[:length])
        counts.append(len(rec.entries))
        assert rec.skipped or length >= used, length
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == most, counts
    for length in (0, 1, 7, 8, 100, writer.HEADER_LEN - 1):
        refused(whole[:length], "record" if length < 8 else "ends in its header")


def torn_entry_spoils_its_segment_alone():
    w = writer.Writer(segments=3)
    while w.head < 2 * writer.SEGMENT + 1000:
        w.note(1_001_000 + w.head, b"x" * 100)
    octets = bytearray(w.octets())
    before = len(read(bytes(octets)).entries)
    # What a thread had not finished: its mark.
    at = writer.HEADER_LEN + writer.SEGMENT + 128 * 4
    octets[at] ^= 0xff
    rec = read(bytes(octets))
    assert 0 < rec.skipped < writer.SEGMENT and before > len(rec.entries) > before / 2
    assert max(e.ns for e in rec.entries) > 1_001_000 + 2 * writer.SEGMENT


def ring_that_went_round_has_its_newest_entries():
    w = writer.Writer(segments=2)
    for i in range(5000):
        w.note(1_001_000 + i, b"note %d" % i)
    rec = read(w.octets())
    numbers = [int(e.data.split()[1]) for e in rec.entries]
    assert rec.is_wrapped and not rec.skipped
    assert numbers == list(range(numbers[0], 5000)) and 1000 < len(numbers) < 5000, (numbers[0], len(numbers))


def files_that_are_no_records_are_refused():
    whole = every_entry().octets()
    refused(b"\x7fELF" + whole[4:], "this is no record")
    refused(whole[:8] + struct.pack("<I", 2) + whole[12:], "version 2 of the format")
    refused(whole[:12] + b"\1\1\1\1" + whole[16:], "damaged")
    refused(whole[:16] + struct.pack("<I", 1 << 31) + whole[20:], "damaged")
    refused(whole[:24] + struct.pack("<Q", 1 << 60) + whole[32:], "damaged")
    os.mkfifo(path_of("fifo"))
    for name, words in ((path_of("fifo"), "no file"), (path_of("nothing"), "No such file"), ("/dev/zero", "no file")):
        run = subprocess.run([TOOL, name], capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 1 and words in run.stderr and "Traceback" not in run.stderr, run
    os.mkdir(path_of("empty"))
    run = subprocess.run([TOOL, path_of("empty")], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and "no record (*.weft) in this folder" in run.stderr, run


def head_beyond_all_bounds_costs_no_time():
    octets = bytearray(every_entry().octets())
    for head in (1 << 63, (1 << 64) - 1, 1 << 40):
        octets[32:40] = struct.pack("<Q", head)
        begin = time.monotonic()
        read(bytes(octets))
        assert time.monotonic() - begin < 5


def mutated(rng, octets):
    octets = bytearray(octets)
    used = writer.HEADER_LEN + 6000
    for _ in range(rng.choice((1, 2, 5, 40))):
        at = rng.randrange(0, 200) if rng.random() < .2 else rng.randrange(writer.HEADER_LEN, used)
        way = rng.randrange(4)
        if way == 0:
            octets[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            octets[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        elif way == 2:
            octets[at:at + 8] = rng.getrandbits(64).to_bytes(8, "little")
        else:
            source = rng.randrange(writer.HEADER_LEN, used)
            octets[at:at + 32] = octets[source:source + 32]
    return bytes(octets[:rng.randrange(len(octets))] if rng.random() < .1 else octets)


def no_damage_makes_it_fail():
    """Whatever is in a record: it is read or refused, all that is written is whole, and soon."""
    one, two = writer.two_ends(sends=12, long_payload=300)
    seeds = [every_entry().octets(), one.octets(), two.octets()]
    read_well = 0
    begin = time.monotonic()
    for seed in range(FUZZ_ROUNDS):
        rng = random.Random(seed)
        try:
            records = [read(mutated(rng, rng.choice(seeds)), "fuzz-a.weft")]
            if rng.random() < .5:
                records.append(read(seeds[2], "fuzz-b.weft"))
            packets, lines, html, _ = outputs(story.Story(records, with_lines=False))
        except record.BadRecord:
            continue
        except Exception as e:
            raise AssertionError("seed %d" % seed) from e
        read_well += 1
        json.loads(lines)
        assert html.endswith("</html>\n") and packets[:4] == b"\x0a\x0d\x0d\x0a", seed
    assert read_well > FUZZ_ROUNDS / 2, read_well
    print("# %d of %d mutants were read, %.1f ms each" %
          (read_well, FUZZ_ROUNDS, 1000 * (time.monotonic() - begin) / FUZZ_ROUNDS))


def words_of_a_record_stay_words():
    w = writer.Writer(program=b"</script><b>\x1b[31m")
    w.callers.append((0xabc, 0x10, b"f\x1b]0;x\x07<i>", b"/bin/\xffnone"))
    w.post(1_004_000, 0x11, caller=0xabc)
    w.completed(1_005_000, 0x11, status=8)
    w.note(1_006_000, b"</script><script>alert(1)</script>\x1b[2J\xe2\x80\xae")
    _, _, html, words = outputs(tell(w))
    assert "\x1b" not in words and "\x07" not in words and "\u202e" not in words
    assert html.count("</script>") == 2 and "<b>" not in html and "<i>" not in html, html


# ---- joining ----

def requests_are_followed_to_their_end():
    told = tell(*writer.two_ends(sends=10))
    for process in told.processes:
        assert len(process.requests) == 20
        for request in process.requests:
            assert request.status == 0 and None not in (request.first, request.last, request.completed, request.polled)
            assert request.posted <= request.first <= request.last <= request.completed <= request.polled, request.name
    sends = [r for r in told.processes[0].requests if not r.is_receive]
    assert [s.peer.wr_id for s in sends] == [1000 + i for i in range(10)]
    assert all(s.peer.process is told.processes[1] and s.peer.peer is s for s in sends)


def kinds_of_requests_find_their_messages():
    w = writer.Writer()
    w.conn(1_001_000)
    imm_of_send = struct.pack(">II", 0x77655369, 5)
    imm = struct.pack(">II", 0, 6)
    kinds = ((0, (0, 0, 0), [(0, b"data", 0)]), (1, (1, 0, 0), [(0, b"data", 1), (8, imm, 0)]),
             (3, (2, 1, 0), [(8, imm_of_send, 1), (3, b"data", 2)]), (5, (2, 3, 0), [(1, bytes(28), 0)]),
             (10, (2, 3, 1), [(10, bytes(52), 1)]), (4, (2, 3, 2), [(4, b"data", 3)]))
    t, offset = 1_002_000, 0
    for wr_id, (opcode, numbers, messages) in enumerate(kinds):
        w.post(t, wr_id, opcode=opcode, numbers=numbers)
        for op, payload, number in messages:
            octets = writer.fpdu_of(op, payload)
            w.fpdu(t + 100, octets, offset, number=number)
            offset += len(octets)
        w.completed(t + 500, wr_id)
        t += 1000
    # The Read's and the atomic's Responses arrive.
    w.fpdu(t, writer.fpdu_of(2, bytes(4)), 0, number=0, flags=0)
    w.fpdu(t + 10, writer.fpdu_of(11, bytes(12)), 24, number=1, flags=0)
    process = tell(w).processes[0]
    assert [r.fpdus for r in process.requests] == [1, 2, 2, 2, 2, 1], [r.fpdus for r in process.requests]
    conn = process.conns[1]
    assert all(m.request for m in conn.messages), [(m.name, bool(m.request)) for m in conn.messages]


def unsignaled_requests_end_with_a_later_one():
    w = writer.Writer()
    for i in range(3):
        w.post(1_001_000 + i, 7, flags=int(i == 2), numbers=(0, i, 0))
    w.completed(1_002_000, 7)
    w.polled(1_003_000, 7)
    w.clock(1_003_000)
    requests = tell(w).processes[0].requests
    assert [r.completed for r in requests] == [1_002_000] * 3
    assert [r.polled for r in requests] == [None, None, 1_003_000]


def receives_of_an_srq_are_found():
    w = writer.Writer()
    w.object(1_000_500, 2, 5, 9, 5, qpn=5, has_srq=1, srq=3)
    w.post(1_001_000, 1, kind=writer.SRQ, handle=3, qpn=0)
    w.post(1_001_100, 2, kind=writer.SRQ, handle=3, qpn=0)
    w.completed(1_002_000, 2, receive=True)
    w.clock(1_003_000)
    requests = tell(w).processes[0].requests
    assert [r.completed for r in requests] == [None, 1_002_000] and requests[1].qpn == 5


def clocks_of_two_hosts_are_joined_by_messages():
    told = tell(*writer.two_ends(shift=5_000_000_000, boots=(b"one", b"two")))
    assert abs(told.processes[1].shift + 5_000_000_000) <= 1, told.processes[1].shift
    for request in told.processes[0].requests:
        if not request.is_receive:
            assert request.peer.first + told.processes[1].shift - request.first in (2999, 3000, 3001)


def one_hosts_clock_is_left_alone():
    assert [p.shift for p in tell(*writer.two_ends()).processes] == [0, 0]


# ---- writing ----

def time_line_keeps_the_rules_of_its_format():
    lines = outputs(tell(*writer.two_ends(sends=10)))[1]
    counts = timeline_rules.judge(json.loads(lines))
    assert counts["processes"] == 2 and counts["requests"] == 40, counts
    # Two frames are no requests.
    assert counts["arrows"] == counts["arrows between processes"] == 20, counts
    assert counts["arrows back in time"] == 0, counts


def rules_find_what_breaks_them():
    good = json.loads(outputs(tell(*writer.two_ends(sends=2)))[1])
    def broken(change):
        document = json.loads(json.dumps(good))
        change(document["traceEvents"])
        try:
            timeline_rules.judge(document)
        except ValueError:
            return True
        return False
    def first(events, phase):
        return next(e for e in events if e["ph"] == phase)
    assert not broken(lambda e: None)
    assert broken(lambda e: first(e, "X").update(dur=-1))
    assert broken(lambda e: first(e, "X").update(tid="one"))
    assert broken(lambda e: first(e, "s").update(id=99))
    assert broken(lambda e: first(e, "f").update(ts=10**9))
    assert broken(lambda e: first(e, "f").pop("bp"))
    assert broken(lambda e: e.append(dict(first(e, "X"), ts=first(e, "X")["ts"] + first(e, "X")["dur"] / 2)))
    assert broken(lambda e: e.append({"ph": "Q", "name": "x", "pid": 1, "tid": 1}))


def messages_of_a_second_connection_are_of_later_requests():
    """A QP connected by hand connects anew after an outage. RESET counts both from 0."""
    w = writer.Writer()
    counted = ((1, 0, 0), (2, 2, 2), (3, 4, 0))         # connection, first wr_id, first number of its posts
    for conn, wr_id, number in counted:
        at = 1_001_000 + conn * 10_000
        if not number and conn > 1:
            w.object(at, 9, 5, 9, 5, qpn=5)
        w.conn(at, number=conn)
        for i in range(2):
            w.post(at + 100 * i + 10, wr_id + i, numbers=(0, number + i, 0))
            w.fpdu(at + 100 * i + 20, writer.fpdu_of(3, b"payload"), 20 + 100 * i, number=i, conn=conn)
            w.completed(at + 100 * i + 30, wr_id + i)
    conns = tell(w).processes[0].conns
    got = [[m.request.wr_id for m in conns[conn].messages] for conn, _, _ in counted]
    assert got == [[0, 1], [2, 3], [4, 5]], got


def more_requests_than_tracks_are_drawn_apart():
    w = writer.Writer(segments=4)
    for i in range(300):
        w.post(1_001_000 + i, i, numbers=(0, i, 0))
    for i in range(300):
        w.completed(1_002_000 + i, i)
        w.polled(1_003_000 + i, i)
    document = json.loads(outputs(tell(w))[1])
    counts = timeline_rules.judge(document)
    apart = sum(1 for e in document["traceEvents"] if e["ph"] == "b")
    assert counts["requests"] + apart == 300 and apart > 100, (counts, apart)


def page_needs_no_network():
    html = outputs(tell(*writer.two_ends()))[2]
    for word in ("http:", "https:", "//cdn", "src=", "@import", "url("):
        assert word not in html.replace("http://www.w3.org/2000/svg", ""), word
    assert "default-src 'none'" in html


def crc_of_zeros_is_that_of_octets():
    assert crc32c(b"123456789") == (0xe3069283).to_bytes(4, "little") and len(TABLE) == 256
    for zeros in (1, 2, 3, 64, 4000, 65000):
        assert crc32c(b"some octets", zeros) == crc32c(b"some octets" + bytes(zeros)), zeros


def capture_of_one_connection_is_one_ends():
    told = tell(*writer.two_ends(sends=10))
    out = io.BytesIO()
    assert capture.write(told, out) == 0
    octets = out.getvalue()
    assert octets.count(b"QP 0x5 of client[100] ") == 2 + 20 and b"of server[200] sent this" not in octets
    assert b"wr_id 0x3" in octets and b"at the other end: receive of QP 0x6 in server[200], wr_id 0x3eb" in octets


def lost_start_up_is_made_up():
    one, _ = writer.two_ends(sends=3)
    rec = read(one.octets())
    rec.entries = [e for e in rec.entries if not (e.type == record.FPDU and e.flags & record.START)]
    out = io.BytesIO()
    told = story.Story([rec], with_lines=False)
    capture.write(told, out)
    assert out.getvalue().count(b"made up: the record no longer has this connection's start-up") == 2
    assert b"MPA ID Req Frame" in out.getvalue() and b"MPA ID Rep Frame" in out.getvalue()


def capture_that_would_be_huge_has_the_newest():
    w = writer.Writer(segments=40)
    w.conn(1_001_000)
    w.fpdu(1_001_500, writer.FRAME[0], 0, flags=3)
    for i in range(6000):
        w.fpdu(1_002_000 + i, writer.fpdu_of(0, b"%08d" % i + bytes(20)), 20 + i * 65532, 65532, number=i)
    told = tell(w)
    out = io.BytesIO()
    dropped = capture.write(told, out)
    octets = out.getvalue()
    assert 200 << 20 < len(octets) <= 256 << 20 and dropped > 1000, (len(octets), dropped)
    assert b"00005999" in octets and b"%08d" % (dropped + 1) in octets and b"%08d" % (dropped - 1) not in octets
    assert b"MPA ID Req" in octets


# ---- the command ----

def command_writes_what_is_asked_for():
    one, two = writer.two_ends()
    one.save(path_of("one.weft"))
    two.save(path_of("two.weft"))
    run = subprocess.run([TOOL, "--pcapng", path_of("o.pcapng"), "--chrome", path_of("o.json"), "--html", path_of("o.html"),
                          "--tail", "5", path_of("one.weft"), path_of("two.weft")], capture_output=True, text=True,
                         timeout=60, check=False)
    assert run.returncode == 0 and not run.stderr, run
    assert len(run.stdout.splitlines()) == 5 + 2, run.stdout
    assert all(os.path.getsize(path_of("o." + e)) > 1000 for e in ("pcapng", "json", "html"))
    run = subprocess.run([TOOL, "--qp", "6", path_of("one.weft"), path_of("two.weft")], capture_output=True, text=True,
                         timeout=60, check=False)
    assert "QP 0x6" in run.stdout and "QP 0x5" not in run.stdout, run.stdout
    for bad in (["--tail", "-1"], ["--last", "0"], ["--qp", "x"], []):
        run = subprocess.run([TOOL] + bad + ([path_of("one.weft")] if bad else []), capture_output=True, text=True,
                             timeout=60, check=False)
        assert run.returncode == 2 and "usage:" in run.stderr, run


def damaged_record_among_others_is_said():
    writer.two_ends()[0].save(path_of("good.weft"))
    with open(path_of("bad.weft"), "wb") as f:
        f.write(b"nothing")
    run = subprocess.run([TOOL, path_of("bad.weft"), path_of("good.weft")], capture_output=True, text=True, timeout=60,
                         check=False)
    assert run.returncode == 0 and "bad.weft: this is no record" in run.stderr and "post Send" in run.stdout, run


TESTS = [each_entry_is_said, other_order_of_octets_is_read, times_follow_the_clock_entries,
         cut_file_is_read_up_to_its_end, torn_entry_spoils_its_segment_alone,
         ring_that_went_round_has_its_newest_entries, files_that_are_no_records_are_refused,
         head_beyond_all_bounds_costs_no_time, no_damage_makes_it_fail, words_of_a_record_stay_words,
         requests_are_followed_to_their_end, kinds_of_requests_find_their_messages,
         unsignaled_requests_end_with_a_later_one, receives_of_an_srq_are_found,
         clocks_of_two_hosts_are_joined_by_messages, one_hosts_clock_is_left_alone,
         time_line_keeps_the_rules_of_its_format, rules_find_what_breaks_them,
         messages_of_a_second_connection_are_of_later_requests, more_requests_than_tracks_are_drawn_apart,
         page_needs_no_network, crc_of_zeros_is_that_of_octets,
         capture_of_one_connection_is_one_ends, lost_start_up_is_made_up, capture_that_would_be_huge_has_the_newest,
         command_writes_what_is_asked_for, damaged_record_among_others_is_said]


if __name__ == "__main__":
    sys.exit(tap.run(TESTS))
