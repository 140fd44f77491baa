#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the table of docs/performance-native.md out of the native bench's CSV, on stdout.

    native-report.py FIGURES.csv             the goals, met or missed, and what missed ones count
    native-report.py --missed FIGURES.csv    for scripts: cell, driver and MTU of each missed goal
"""
import sys

from report import Figures, over

MB, US = "MB/s", "µs"
STREAM = {"64K": ["stream_64K:weft-rate", "stream_64K:iperf3"],
          "1M": ["stream_1M:weft-rate", "stream_1M:iperf3"],
          "4K": ["stream_4K:weft-rate", "stream_4K:iperf3"]}


class Goal:
    """
    @cell of @driver against the best of @against of @theirs: their quotient, or as @how says, is to
    be >= or <= @goal. No @against: the figure itself is.
    """
    def __init__(self, what, cell, unit, sense, goal, against=(), driver="rootless", theirs="tcp",
                 how="ratio"):
        self.what, self.cell, self.unit, self.sense, self.goal = what, cell, unit, sense, goal
        self.against, self.driver, self.theirs, self.how = list(against), driver, theirs, how

    def best(self, f, mtu):
        """The cell of theirs that counts."""
        found = [c for c in self.against if f.median(c, mtu, self.theirs) is not None]
        if not found:
            return None
        better = max if self.sense == ">=" else min
        return better(found, key=lambda c: f.median(c, mtu, self.theirs))

    def measure(self, f, mtu):
        ours, best = f.median(self.cell, mtu, self.driver), self.best(f, mtu)
        theirs = f.median(best, mtu, self.theirs) if best else None
        if not self.against:
            return ours
        if self.how == "ratio":
            return over(ours, theirs)
        return None if None in (ours, theirs) else ours - theirs

    def is_met(self, value):
        return value >= self.goal if self.sense == ">=" else value <= self.goal


def streams():
    for driver, goal in (("rootless", 1.0), ("rootless+crc", 0.8)):
        for verb in ("write", "send"):
            for size in ("64K", "1M"):
                crc = ", CRC on" if "crc" in driver else ""
                yield Goal(f"ib_{verb}_bw {size}B{crc}", f"{verb}_bw_{size}", MB, ">=", goal,
                           STREAM[size], driver)


GOALS = [
    *streams(),
    Goal("ib_read_bw 64KB", "read_bw_64K", MB, ">=", 0.9, STREAM["64K"]),
    Goal("ib_write_bw 4KB", "write_bw_4K", MB, ">=", 2, STREAM["4K"]),
    Goal("ib_write_bw 64B", "write_rate_64", "a second", ">=", 3e6),
    Goal("ib_send_lat 8B", "send_lat_8", US, "<=", 1.15, ["ping_8"]),
    Goal("ib_write_lat 8B", "write_lat_8", US, "<=", 1.3, ["ping_8"]),
    Goal("ib_read_lat 8B", "read_lat_8", US, "<=", 1.3, ["asked_8"]),
    Goal("ib_send_lat -e 8B", "send_lat_8_e", US, "<=", 1.2, ["ping_8_e"]),
    Goal("ib_read_lat -e 8B", "read_lat_8_e", US, "<=", 1.2, ["asked_8_e"]),
    Goal("1000 connections, of one", "conns_1000", MB, ">=", 0.8, ["conns_1"], theirs="rootless"),
    Goal("an idle connection, without rings", "idle_KB", "KB", "<=", 16, ["idle_KB"], how="more"),
    Goal("cmtime -c 500", "connects_at_once_per_s", "a second", ">=", 5000),
    Goal("CPU time, both ends asleep", "cpu_s_per_GB", "s/GB", "<=", 1.1, ["cpu_s_per_GB"]),
    Goal("start of ibv_devinfo", "start_ms", "ms", "<=", 20, ["start_ms:without"],
         theirs="rootless", how="more"),
]


def judged(f):
    """(goal, mtu, value, met) of each; value None: not measured."""
    for goal in GOALS:
        mtus = mtus_of(f, goal.cell)
        for mtu in mtus or [None]:
            value = goal.measure(f, mtu) if mtu else None
            yield goal, mtu, value, None if value is None else goal.is_met(value)


def mtus_of(f, cell=None):
    """Those that the cell was measured at, or any; the larger first."""
    return sorted({m for c, m in f.rows if cell in (None, c)}, reverse=True)


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def columns(f, goal, mtu):
    """What stands in a row for one MTU."""
    value = goal.measure(f, mtu)
    if value is None:
        return ["", "", ""]
    best = goal.best(f, mtu)
    theirs = f"{f.show(f.all(best, mtu, goal.theirs))} {best}" if best else ""
    verdict = "met" if goal.is_met(value) else "missed"
    return [f.show(f.all(goal.cell, mtu, goal.driver)), theirs, f"{number(value)}: {verdict}"]


def table(f):
    mtus = mtus_of(f)
    heads = ["what", "unit", "goal"]
    for mtu in mtus:
        heads += [f"MTU {mtu}: weft", "against", "measured"]
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for goal in GOALS:
        if all(goal.measure(f, mtu) is None for mtu in mtus):
            continue
        row = [goal.what, goal.unit, f"{goal.sense} {number(goal.goal)}"]
        for mtu in mtus:
            row += columns(f, goal, mtu)
        print("| " + " | ".join(row) + " |")
    print()


def calls(f, goal, mtu):
    """What each end of a traced run called, for one message."""
    for end in ("client", "server"):
        prefix = f"{goal.cell}:{end}/"
        found = [(f.median(c, m, goal.driver), c[len(prefix):]) for c, m in f.rows
                 if c.startswith(prefix) and m == mtu]
        found = sorted(((n, name) for n, name in found if n), reverse=True)
        if found:
            yield f"{end} " + ", ".join(f"{name} {number(n)}" for n, name in found)


def missed(f):
    for goal, mtu, value, met in judged(f):
        if met is False:
            counts = "; ".join(calls(f, goal, mtu))
            print(f"- **{goal.what}**, MTU {mtu} ({number(value)}, goal {goal.sense} "
                  f"{number(goal.goal)})" + (f": calls a message, traced: {counts}." if counts else "."))
    print()


def main():
    if sys.argv[1] == "--missed":
        for goal, mtu, _, met in judged(Figures(sys.argv[2])):
            if met is False:
                print(goal.cell, goal.driver, mtu)
        return
    f = Figures(sys.argv[1])
    all_of = [met for _, _, _, met in judged(f)]
    table(f)
    print(f"{all_of.count(True)} goals met, {all_of.count(False)} missed, {all_of.count(None)} not "
          f"measured; figures that could not be taken: {', '.join(f.missing) or 'none'}.")
    print()
    missed(f)


if __name__ == "__main__":
    main()
