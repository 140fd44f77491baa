#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the tables of the bench out of its CSV: medians, spread, and the goals met or missed.

    report.py FIGURES.csv FOLDER     all, as Markdown on stdout; what is plotted, into FOLDER
    report.py --page FIGURES.csv     the tables of docs/performance.md on stdout: without
                                     counters, and what only the plots need
"""
import collections
import csv
import re
import statistics
import sys

# What is to be reached (issue 5): cell, MTU, weft's row, whose row it is compared with,
# the ratio, and which way is good. No ratio: it is to be measured.
GOALS = [
    ("write_bw_64K", 1500, "weft", "siw", 12, ">="),
    ("write_bw_1M", 1500, "weft", "siw", 12, ">="),
    ("write_bw_64K", 1500, "weft", "tcp", 1.0, ">="),
    ("write_bw_1M", 1500, "weft", "tcp", 1.0, ">="),
    ("placed_64K", 1500, "weft", "tcp", None, ""),
    ("write_bw_64K", 1500, "weft+crc", "tcp", None, ""),
    ("write_bw_1M", 1500, "weft+crc", "tcp", None, ""),
    ("write_bw_64K", 65536, "weft", "tcp", 1.2, ">="),
    ("write_bw_64K", 65536, "weft", "siw", 1.0, ">="),
    ("read_bw_64K", 65536, "weft", "siw", 3, ">="),
    ("read_bw_64K", 1500, "weft", "siw", 15, ">="),
    ("write_bw_4K", 65536, "weft", "siw", 3, ">="),
    ("write_bw_4K", 1500, "weft", "siw", 8, ">="),
    ("write_rate_64", 1500, "weft", "siw", 5, ">="),
    ("write_lat_8", 1500, "weft", "siw", 0.8, "<="),
    ("write_lat_8", 1500, "weft", "tcp", 0.6, "<="),
    ("read_lat_8", 1500, "weft", "siw", 0.6, "<="),
    ("send_lat_64K", 1500, "weft", "siw", 0.12, "<="),
    ("cpu_s_per_GB", 1500, "weft", "tcp", 0.9, "<="),
    ("connects_per_s", 1500, "weft", "siw", 2, ">="),
    ("connects_at_once_per_s", 1500, "weft", "siw", 2, ">="),
]
DRIVERS = ["weft", "weft+crc", "siw", "rxe", "tcp"]
CONNS = ["conns_1", "conns_16", "conns_256", "conns_1024"]
COUNTERS = ["aligned_%", "fpdus_per_call", "requests_per_doorbell"]
MEMORY = ["rings", "unconnected"]
STEPS = ["resolve", "queues", "connect", "close"]
# The unit of a cell is that of the first pattern found in its name.
UNITS = [("write_rate", "messages/s"), ("connects", "connections/s"), ("cpu_s_per_GB", "s/GB"),
         ("idle_KB", "KB"), ("_lat_", "µs"), ("", "MB/s")]


class Figures:
    def __init__(self, path):
        self.rows = {}          # {(cell, mtu): {driver: [values]}}
        self.taken = {}         # {(cell, mtu, driver): {round: value}}
        self.rounds = 0
        self.missing = []       # what could not be taken
        with open(path, newline="") as f:
            for number, mtu, driver, cell, value in csv.reader(f):
                self.rounds = max(self.rounds, int(number))
                by = self.rows.setdefault((cell, int(mtu)), collections.defaultdict(list))
                try:
                    by[driver].append(float(value))
                    self.taken.setdefault((cell, int(mtu), driver), {})[int(number)] = by[driver][-1]
                except ValueError:
                    self.missing.append(f"{cell} ({driver}, MTU {mtu}, round {number})")

    def all(self, cell, mtu=1500, driver="weft"):
        return self.rows.get((cell, mtu), {}).get(driver, [])

    def median(self, cell, mtu=1500, driver="weft"):
        values = self.all(cell, mtu, driver)
        return statistics.median(values) if values else None

    def quotients(self, cell, other, mtu=1500, driver="weft"):
        """Of the rounds that have both."""
        a, b = (self.taken.get((c, mtu, driver), {}) for c in (cell, other))
        return [a[n] / b[n] for n in sorted(a) if b.get(n)]

    def show(self, values):
        if not values:
            return "–"
        m = statistics.median(values)
        text = f"{m:,.0f}" if m >= 1000 else f"{m:.3g}"
        if len(values) > 1 and m:
            text += f" ±{100 * (max(values) - min(values)) / 2 / m:.0f} %"
        if len(values) < self.rounds:
            text += f" ({len(values)})"
        return text


# ---- the figures ----

def say_call(f):
    """What a system call costs stands beside every table."""
    if f.all("syscall_us", 0, "lab"):
        print(f"(A system call: {f.show(f.all('syscall_us', 0, 'lab'))} µs.)\n")


def unit(cell):
    return next(unit for pattern, unit in UNITS if pattern in cell)


def only_plotted(f, by):
    """The bench takes what only the plots need in one round, and all else in more."""
    return f.rounds > 1 and max(len(values) for values in by.values()) == 1


def table(f, page=False):
    print("Medians ± half the spread; (n): of n rounds. MB are 10^6 octets, KB are 1024 octets of "
          "one end.\nLatencies are half a round trip, those of Reads a whole one. *weft+crc* is "
          "weft's default;\nall others are without CRC, as siw is by default.")
    print()
    say_call(f)
    print("| cell | unit | MTU | " + " | ".join(DRIVERS) + " |")
    print("|---" * (len(DRIVERS) + 3) + "|")
    # A cell's rows together, the cells as they came.
    place = {cell: i for i, (cell, _) in reversed(list(enumerate(f.rows)))}
    for (cell, mtu), by in sorted(f.rows.items(), key=lambda r: (place[r[0][0]], r[0][1])):
        if mtu and ":" not in cell and not (page and only_plotted(f, by)):
            print(f"| {cell} | {unit(cell)} | {mtu} | " +
                  " | ".join(f.show(by.get(d)) for d in DRIVERS) + " |")
    print()


def beside(f):
    """Figures that stand in no row of the table."""
    for cell, what in (("floor_write_us", "µs for 8 octets one way, by a system call and TCP alone"),
                       ("floor_read_us", "µs for them and an answer sent from TCP's callback"),
                       ("bound_1M", "MB/s of 1 MB, by TCP alone, both ends on the CPU that sends"),
                       ("crc32c_ns_per_octet", "ns an octet for crc32c alone")):
        if f.all(cell, 0, "lab"):
            print(f"* {f.show(f.all(cell, 0, 'lab'))} {what}")
    placed(f)
    for driver in ("weft", "siw"):
        steps = [f.median(f"connects_per_s:{s}_us", driver=driver) for s in STEPS]
        if None not in steps:
            print(f"* µs of a connection that the client's steps have ({driver}): " +
                  ", ".join(f"{s} {us:.0f}" for s, us in zip(STEPS, steps)))
    print()


def placed(f):
    """perftest counts at the sender; weft-rate at the receiver."""
    for driver in ("weft", "siw"):
        both = f.quotients("placed_64K", "write_bw_64K", driver=driver)
        if both:
            print(f"* {', '.join(f'{q:.2f}' for q in both)} of what perftest's sender counts of 64 KB "
                  f"Writes in the same round, weft-rate's receiver counts as placed ({driver})")


def counters(f):
    cells = [(c.split(":")[0], m) for c, m in f.rows if c.endswith(":" + COUNTERS[0])]
    if not cells:
        return
    say_call(f)
    print("| what weft's counters say | MTU | segments that start an FPDU, % | FPDUs a TCP call "
          "| requests a doorbell |")
    print("|---|---|---|---|---|")
    for cell, mtu in cells:
        print(f"| {cell} | {mtu} | " +
              " | ".join(f.show(f.all(f"{cell}:{c}", mtu)) for c in COUNTERS) + " |")
    print()


# ---- the goals: (what, MTU, against, goal, measured, met) ----

def row(what, mtu, against, sense, goal, value, digits=2):
    """@goal None: it is to be measured; @value None: it was not."""
    met = None
    if value is not None:
        met = goal is None or (value >= goal if sense == ">=" else value <= goal)
        # A goal missed by less than is shown.
        digits += not met and float(f"{value:.{digits}f}") == goal
    return (what, mtu, against, "measured" if goal is None else f"{sense} {goal}",
            None if value is None else f"{value:.{digits}f}", met)


def over(a, b):
    return a / b if a is not None and b else None


def ratios(f):
    for cell, mtu, ours, theirs, goal, sense in GOALS:
        yield row(cell + (", CRC on" if ours != "weft" else ""), mtu, theirs, sense, goal,
                  over(f.median(cell, mtu, ours), f.median(cell, mtu, theirs)))


def floors(f):
    """
    What no driver over TCP that is called for each message goes below, or beyond if both ends
    are on one CPU. And a connection, were connecting to cost nothing.
    """
    for cell, against in (("write_lat_8", "siw"), ("write_lat_8", "tcp"), ("read_lat_8", "siw")):
        floor = f.median(f"floor_{cell.split('_')[0]}_us", 0, "lab")
        if floor:
            yield row(f"{cell}: a system call and TCP alone, {floor:.1f} µs", 1500, against, "",
                      None, over(floor, f.median(cell, driver=against)))
    bound = f.median("bound_1M", 0, "lab")
    if bound:
        one_cpu = f"TCP alone, both ends on one CPU, {bound:,.0f}"
        yield row(f"write_bw_1M: {one_cpu}", 1500, "tcp", "", None,
                  over(bound, f.median("write_bw_1M", driver="tcp")))
        yield row("write_bw_1M", 1500, one_cpu, "", None, over(f.median("write_bw_1M"), bound))
    # By one clock, the rate's: the steps are the client's alone, and the warm-up's are among them.
    rate, connect = f.median("connects_per_s"), f.median("connects_per_s:connect_us")
    if rate and connect:
        rest = 1e6 / rate - connect
        yield row(f"connects_per_s: were connecting to cost nothing, {rest:.0f} µs", 1500,
                  "siw", "", None, over(1e6 / rest, f.median("connects_per_s", driver="siw")))


def sums(f):
    """
    What the sum allows: an octet takes as long as without CRC, and its sum twice, at the
    sender and at the receiver, since both run on one CPU here. ns an octet are 1000 over
    10^6 octets a second. Beside it, the sum alone.
    """
    each = f.median("crc32c_ns_per_octet", 0, "lab")
    for cell in ("write_bw_64K", "write_bw_1M"):
        bare, bound = f.median(cell), None
        if bare and each:
            bound = 1000 / (1000 / bare + 2 * each)
        text = f"{bound:.0f}" if bound else "?"
        crc = f.median(cell, driver="weft+crc")
        yield row(cell + ", CRC on", 1500, f"the sum's bound, {text}", ">=", 0.9, over(crc, bound))
        if each:
            yield row(cell + ", CRC on", 1500, f"two sums alone, {500 / each:.0f}", "", None,
                      over(crc, 500 / each))


def connections(f):
    rates = [f.median(c) for c in CONNS]
    peak = max((r for r in rates if r), default=None)
    yield row(CONNS[-1], 1500, "own peak", ">=", 0.8, over(rates[-1], peak))
    yield row(CONNS[-1], 1500, "one connection with 64 under way, placed_64K", "", None,
              over(rates[-1], f.median("placed_64K")))


def memory(f):
    """One end: beyond a TCP socket's and the rings; and beyond all of a QP that is not connected."""
    total, rings, queues = (f.median(c) for c in
                            ["idle_KB"] + ["idle_KB:" + m for m in MEMORY])
    tcp = f.median("idle_KB", driver="tcp")
    rest = None if None in (total, rings, tcp) else total - rings - tcp
    yield row("idle_KB", 1500, "beyond TCP's and the rings", "<=", 16, rest, 1)
    if None not in (total, queues, tcp):
        yield row("idle_KB", 1500, "beyond TCP's and an unconnected QP's", "", None,
                  total - queues - tcp, 1)
    siw = [f.median(c, driver="siw") for c in ("idle_KB", "idle_KB:rings")]
    if None not in (*siw, tcp):
        yield row("idle_KB, siw", 1500, "beyond TCP's and the rings", "", None,
                  siw[0] - siw[1] - tcp, 1)


def losses(f):
    """Not below the lowest of TCP's rounds."""
    for cell, goal in (("loss_1%_10ms", 1.0), ("loss_1%_10ms_16conns", 1.0),
                       ("loss_0.1%_10ms", None)):
        ours, theirs = f.median(cell), f.all(cell, driver="tcp")
        against = "tcp's rounds"
        if theirs:
            against += f", {min(theirs):.3g} to {max(theirs):.3g}; their lowest"
        yield row(cell, 1500, against, ">=", goal,
                  over(ours, min(theirs, default=None)))


def aligned(f):
    for cell in ("write_bw_64K", "write_bw_4K"):
        yield row(f"{cell}, segments that start an FPDU, %", 1500, "", ">=", 90,
                  f.median(cell + ":aligned_%"), 1)


def listed(names, what):
    return f"{len(names)} {what}" + (": " + ", ".join(names) if names else "")


def goals(f, page=False):
    result = collections.Counter()
    unmeasured = []
    say_call(f)
    print("| cell | MTU | against | goal | measured | |")
    print("|---|---|---|---|---|---|")
    for group in (ratios, floors, sums, connections, memory, losses, aligned):
        for what, mtu, against, goal, value, met in group(f):
            if page and goal == "measured" and group not in (ratios, floors):
                continue
            if value is None:
                unmeasured.append(f"{what} ({mtu}, {against})")
                continue
            verdict = "" if goal == "measured" else "met" if met else "missed"
            result[verdict] += 1
            print(f"| {what} | {mtu} | {against} | {goal} | {value} | {verdict} |")
    print()
    print(f"{result['met']} goals met, {result['missed']} missed,", listed(unmeasured,
          "not measured"), end="; ")
    print(listed(f.missing, "figures could not be taken") + ".")


# ---- the plots ----

def octets(size):
    number, unit = re.fullmatch(r"(\d+)([KM]?)", size).groups()
    return int(number) * {"": 1, "K": 1024, "M": 1 << 20}[unit]


def points(f, prefix, driver):
    found = {}
    for cell, mtu in f.rows:
        m = re.fullmatch(prefix + r"_(\d+[KM]?)", cell)
        value = f.median(cell, mtu, driver) if m and mtu == 1500 else None
        if value:
            found[octets(m[1])] = value
    # The same run of perftest, in messages.
    rate = f.median("write_rate_64", driver=driver)
    if prefix == "write_bw" and rate:
        found[64] = rate * 64 / 1e6
    return sorted(found.items())


def plotted(f, prefix, path):
    blocks = []
    for driver in DRIVERS:
        some = points(f, prefix, driver) if driver != "weft+crc" else []
        if some:
            blocks.append(driver + "\n" + "".join(f"{x} {y}\n" for x, y in some))
    with open(path, "w") as out:
        out.write("\n\n".join(blocks))


def main():
    if sys.argv[1] == "--page":
        f = Figures(sys.argv[2])
        table(f, page=True)
        goals(f, page=True)
        return
    f = Figures(sys.argv[1])
    table(f)
    beside(f)
    counters(f)
    goals(f)
    plotted(f, "write_bw", sys.argv[2] + "/bandwidth.dat")
    plotted(f, "write_lat", sys.argv[2] + "/latency.dat")


if __name__ == "__main__":
    main()
