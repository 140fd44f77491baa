#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""weft-trace's page in a real browser: what its script makes of it, and what is to be seen. TAP.

    test_page.py [PICTURE]      keeps the screenshot
"""
import html.parser
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import writer

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOL = os.path.join(TOP, "providers", "rootless", "weft-trace")
FOLDER = tempfile.TemporaryDirectory()
WIDTH, HEIGHT = 1240, 1700
SENDS = 30
# What the key of the page says.
GREY, BLUE, YELLOW, PURPLE, RED = ("8c959f", "2f81f7", "d4a72c", "bf5af2", "b3261e")


def path_of(name):
    return os.path.join(FOLDER.name, name)


def make_page():
    one, two = writer.two_ends(sends=SENDS)
    t = 3_000_000
    # One that fails, long enough to be seen.
    one.post(t, 0xbad, numbers=(0, SENDS, 0))
    one.completed(t + 200_000, 0xbad, status=8)
    one.polled(t + 250_000, 0xbad, status=10)
    one.clock(t + 300_000)
    one.save(path_of("one.weft"))
    two.save(path_of("two.weft"))
    subprocess.run([TOOL, "--html", path_of("page.html"), path_of("one.weft"), path_of("two.weft")], check=True,
                   timeout=100)


def browse(*options):
    """Chromium, which finds no host."""
    return subprocess.run([
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + path_of("profile"), "--virtual-time-budget=10000",
        "--window-size=%d,%d" % (WIDTH, HEIGHT), *options, "file://" + path_of("page.html")],
        capture_output=True, text=True, timeout=200, check=True).stdout


class Page(html.parser.HTMLParser):
    """Elements by name, with their attributes, and the words of table cells."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.tables, self._cell, self._table = [], {}, None, None
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        if tag == "table":
            self._table = self.tables.setdefault(attrs["id"], [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_data(self, data):
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self._cell is not None:
            self._table[-1].append("".join(self._cell))
            self._cell = None

    def all(self, tag, **attrs):
        return [a for t, a in self.elements if t == tag and all(a.get(k.replace("_", "-")) == v for k, v in attrs.items())]


def pixels(path):
    """How often each colour is in a PNG of 8 bits a channel."""
    with open(path, "rb") as f:
        octets = f.read()
    assert octets[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(octets):
        size, kind = struct.unpack_from(">I4s", octets, at)
        body = octets[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            data += body
        at += size + 12
    assert depth == 8 and colours in (2, 6), (depth, colours)
    step = 3 if colours == 2 else 4
    counts, before = {}, bytes(width * step)
    data = zlib.decompress(data)
    for y in range(height):
        line = data[y * (width * step + 1):(y + 1) * (width * step + 1)]
        before = unfilter(line[0], bytearray(line[1:]), before, step)
        for x in range(0, len(before), step):
            colour = bytes(before[x:x + 3])
            counts[colour] = counts.get(colour, 0) + 1
    return {c.hex(): n for c, n in counts.items()}, width, height


def unfilter(way, line, before, step):
    for i in range(len(line)):
        left, up, corner = (line[i - step] if i >= step else 0), before[i], (before[i - step] if i >= step else 0)
        if way == 1:
            line[i] = (line[i] + left) & 255
        elif way == 2:
            line[i] = (line[i] + up) & 255
        elif way == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif way == 4:
            guess = left + up - corner
            nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
            line[i] = (line[i] + nearest[2]) & 255
    return bytes(line)


def script_draws_the_bars(page):
    assert page.all("body")[0].get("data-ready") == "yes", page.all("body")
    boxes = page.all("div", **{"class": "bars"})
    assert len(boxes) == 4, boxes
    assert all(int(b["data-drawn"]) >= SENDS - 2 for b in boxes), boxes
    for phase in ("waits to be sent", "waits for its completion", "waits to be polled", "waits for a message"):
        assert len(page.all("rect", data_phase=phase)) >= SENDS - 2, phase


def tables_say_who_waited_for_whom(page):
    rows = page.tables["waits"]
    assert rows[0] == ["who waited", "for whom", "how often", "in all", "median", "longest"]
    row = next(r for r in rows if r[0] == "completions of receives of server[200], QP 0x6")
    assert row[1] == "server[200] to poll" and row[2] == str(SENDS) and row[4] == "700 ns", row
    processes = {r[0]: r for r in page.tables["processes"][1:]}
    assert processes["client[100]"][2:7] == ["1", str(2 * SENDS + 1), "1", "0", "0"], processes


def latencies_have_a_histogram(page):
    row = next(r for r in page.tables["latencies"] if r[:2] == ["client[100]", "Send"])
    assert row[2:] == [str(SENDS)] + ["800 ns"] * 4, row
    assert len(page.all("svg", **{"class": "histogram"})) == 2


def errors_are_listed(page):
    assert any("Send of wr_id 0xbad: REM_ACCESS_ERR" in r for r in page.tables["errors"]), page.tables["errors"]


def show(view, picture):
    """A picture of the page with this part of the time in view: its colours."""
    with open(path_of("page.html"), encoding="utf-8") as f:
        source = f.read()
    with open(path_of("page.html"), "w", encoding="utf-8") as f:
        f.write(re.sub(r'"view":\[[^]]*\]', '"view":' + (view or re.search(r'"all":(\[[^]]*\])', source)[1]), source))
    browse("--screenshot=" + path_of(picture))
    return pixels(path_of(picture))


def picture_shows_what_the_page_says(_):
    counts, width, height = show("[28,60]", "page.png")
    if len(sys.argv) > 1:
        shutil.copy(path_of("page.png"), sys.argv[1])
    assert (width, height) == (WIDTH, HEIGHT), (width, height)
    assert counts["ffffff"] > width * height / 2, "the page is not white"
    # Bars, and the histogram.
    for colour, least in ((GREY, 300), (YELLOW, 100), (PURPLE, 300), (BLUE, 2000)):
        assert counts.get(colour, 0) > least, (colour, counts.get(colour, 0))


def bars_of_errors_are_red(_):
    counts = show("", "all.png")[0]
    assert counts.get(RED, 0) > 500, counts.get(RED, 0)


TESTS = [script_draws_the_bars, tables_say_who_waited_for_whom, latencies_have_a_histogram, errors_are_listed,
         picture_shows_what_the_page_says, bars_of_errors_are_red]


def main():
    print("1..%d" % len(TESTS))
    make_page()
    page = Page(browse("--dump-dom"))
    bad = 0
    for number, test in enumerate(TESTS, 1):
        try:
            test(page)
            result = "ok"
        except (AssertionError, KeyError, StopIteration, subprocess.SubprocessError) as e:
            result, bad = "not ok", bad + 1
            print("# %s: %s" % (type(e).__name__, e))
        print("%s %d - %s" % (result, number, test.__name__.replace("_", "-")), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
