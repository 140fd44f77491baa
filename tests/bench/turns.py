#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs benchmark programs by turns, A B A B, and judges the ratios of the pairs.

    turns.py [OPTION...] PLAN FIGURES.csv             takes pairs, and prints the table
    turns.py --table [OPTION...] PLAN FIGURES.csv     prints the table of pairs taken before
    turns.py --missed [OPTION...] PLAN FIGURES.csv    for scripts: NAME, tab, COMMAND of missed goals
    turns.py --points REGEX PLAN FIGURES.csv          for plots: SIZE FIGURE BASE of each row that
                                                      matches; its first group is the size

A line of PLAN is a row: NAME | PAIRS | BASE | GOAL | READER | COMMAND. A - stands for nothing.
    PAIRS    at most so many, where one pair says as much as nine
    BASE     the row that this one is compared with
    GOAL     >= or <= and a number, for the ratio to BASE, or without BASE for the figure itself;
             with a + in front, for the difference
    READER   how to read what COMMAND prints: a name of READERS, or a KEY of KEY=FIGURE
    COMMAND  for the shell; runs both ends of a program once
A row without BASE and GOAL is measured for the rows that name it.

The status is 1 if a row has too few pairs because its program failed.
"""
import argparse
import collections
import csv
import itertools
import os
import re
import signal
import statistics
import subprocess
import sys
import time

# perftest prints zeros, or inf, where it could not gauge its clock.
NUMBER = r"([\d.]*[1-9][\d.]*)(?=\s)"
PERFTEST = r"(?m)^ *\d+ +\d+ +\S+[ \t]+"
# What programs print: where the figure is, what makes it of the unit, the unit.
READERS = {
    "perftest_bw": (PERFTEST + NUMBER, 1.048576, "MB/s"),
    "perftest_rate": (PERFTEST + r"\S+[ \t]+" + NUMBER, 1e6, "a second"),
    "perftest_lat": (PERFTEST + r"\S+[ \t]+" + NUMBER, 1, "µs"),
    "typical_us": (r"\btypical_us=(\S+)", 1, "µs"),
    "ucx_bw": (r"(?m)^Final:" + r" +\S+" * 5 + r" +([\d.]+)", 1.048576, "MB/s"),
    "mpi_lat": (r"(?m)^([\d.]+) us$", 1, "µs"),
    "operations_lat": (r"(?m)^([\d.]+) [\d.]+$", 1, "µs"),
    "operations_bw": (r"(?m)^[\d.]+ ([\d.]+)$", 1, "MB/s"),
}
TRIES = 2       # of a run; a row whose runs failed in so many rounds one after the other is given up


def say(text):
    print("# " + text, flush=True)


# ---- the plan ----

class Row:
    def __init__(self, name, pairs, base, goal, reader, command):
        self.name, self.base, self.reader, self.command = name, base, reader, command
        self.pairs = int(pairs) if pairs != "-" else None
        m = re.fullmatch(r"(\+?)([<>]=) *([\d.]+)", goal)
        if not m and goal != "-":
            sys.exit(f"turns.py: {name}: {goal} is no goal")
        self.goal, self.sense = (float(m[3]), m[2]) if m else (None, None)
        self.difference = bool(m and m[1])

    def wanted(self, pairs):
        return min(pairs, self.pairs or pairs)

    def value(self, ours, theirs):
        """What the goal is about."""
        if not self.base:
            return ours
        if self.difference:
            return ours - theirs
        return ours / theirs if theirs else None

    def is_met(self, value):
        return value >= self.goal if self.sense == ">=" else value <= self.goal

    @property
    def unit(self):
        return READERS[self.reader][2] if self.reader in READERS else self.reader


def read_plan(path):
    rows = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if not line.strip() or line.startswith("#"):
                continue
            fields = [x.strip() for x in line.split("|", 5)]
            if len(fields) != 6 or fields[0] in rows:
                sys.exit(f"turns.py: {path}: no row, or a second one: {line.strip()}")
            rows[fields[0]] = Row(*fields)
    for row in rows.values():
        if row.base != "-" and row.base not in rows:
            sys.exit(f"turns.py: {path}: {row.name} is compared with {row.base}, which is no row")
        row.base = rows.get(row.base)
    return [row for row in rows.values() if row.base or row.goal is not None]


def select(rows, regex):
    found = [row for row in rows if re.search(regex, row.name)]
    if not found:
        sys.exit(f"turns.py: no row matches {regex}")
    return found


# ---- one run ----

class Failed(Exception):
    pass


class TimeOver(Exception):
    pass


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.stdout.close()
    process.wait()


def run(command, limit):
    """What the command prints. Nothing that it started is left."""
    process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {limit:g} s") from None
    finally:
        end_group(process)
    if process.returncode:
        raise Failed(f"status {process.returncode}: {last_line(said)}")
    return said


def last_line(said):
    return (said.strip().splitlines() or ["it printed nothing"])[-1]


def read(reader, said):
    pattern, scale, _ = READERS.get(reader, (rf"(?:^|\s){re.escape(reader)}=([\d.]+)", 1, ""))
    found = re.findall(pattern, said)
    if not found:
        raise Failed(f"no figure: {last_line(said)}")
    return float(found[-1]) * scale


def figure(row, limit, deadline):
    for _ in range(TRIES):
        left = deadline - time.monotonic()
        try:
            return read(row.reader, run(row.command, max(min(limit, left), 0)))
        except Failed as e:
            if time.monotonic() >= deadline:
                raise TimeOver from None
            say(f"{row.name}: {e}")
    return None


# ---- the turns ----

def turns(rows, backwards):
    """Lists of rows to run one soon after the other: a base stands between two that it is for."""
    for base, group in itertools.groupby(rows, key=lambda row: row.base):
        group = list(group)
        step = 2 if base else 1
        for i in range(0, len(group), step):
            first, *second = group[i:i + step]
            turn = [first] + [base] * bool(base) + second
            yield turn[::-1] if backwards else turn


def names(turn):
    return tuple(sorted(row.name for row in turn))


class Taker:
    """Takes pairs of each row, as many as are wanted, until the time is over."""
    def __init__(self, options, out):
        self.o, self.out = options, csv.writer(out, lineterminator="\n")
        self.file = out
        self.deadline = time.monotonic() + options.seconds
        self.failed = collections.Counter()     # rounds in a row without a pair
        self.took = collections.Counter()       # seconds of the longest turn
        self.done = collections.Counter()
        self.left_out = set()                   # names

    def wants(self, row):
        return (self.done[row.name] < row.wanted(self.o.pairs) and self.failed[row.name] < TRIES
                and row.name not in self.left_out)

    def wanted_of(self, turn, rows):
        """Without a base that is only measured for others."""
        return [row for row in turn if row in rows and self.wants(row)]

    def needs(self, turn, rows):
        """Seconds, until all its rows have enough pairs; of a turn that was not taken yet, by the others."""
        missing = [row.wanted(self.o.least) - self.done[row.name] for row in self.wanted_of(turn, rows)]
        return (self.took[names(turn)] or statistics.mean(self.took.values())) * max([0, *missing])

    def leave_out(self, rows):
        """The last turns, if the time would not do for enough pairs of all."""
        needy = turns([row for row in rows if self.wants(row)], False)
        left = [turn for turn in needy if self.needs(turn, rows)]
        while len(left) > 1 and \
                sum(self.needs(turn, rows) for turn in left) > self.deadline - time.monotonic():
            self.left_out.update(row.name for row in self.wanted_of(left.pop(), rows))

    def take_all(self, rows):
        try:
            self.take_rounds(rows)
        except TimeOver:
            say("the time is over")
        if self.left_out:
            say(f"left out, for the others to have {self.o.least} pairs: {len(self.left_out)} rows")

    def take_rounds(self, rows):
        number = 0
        while any(self.wants(row) for row in rows):
            number += 1
            began = time.monotonic()
            for turn in turns([row for row in rows if self.wants(row)], number % 2 == 0):
                if self.took:
                    self.leave_out(rows)
                if not self.wanted_of(turn, rows):
                    continue
                start = time.monotonic()
                if start + self.took[names(turn)] > self.deadline:
                    raise TimeOver
                self.take(turn, number)
                self.took[names(turn)] = max(self.took[names(turn)], time.monotonic() - start)
            say(f"round {number}: {time.monotonic() - began:.0f} s")

    def take(self, turn, number):
        base = next((row.base for row in turn if row.base), None)
        taken = {row.name: figure(row, self.o.limit, self.deadline) for row in turn}
        for row in turn:
            if row is base:
                continue
            ours, theirs = taken[row.name], taken.get(base.name) if base else None
            self.out.writerow([row.name, number] + ["" if x is None else f"{x:.6g}"
                                                    for x in (ours, theirs)])
            if ours is None or (base and theirs is None):
                self.failed[row.name] += 1
                if not self.wants(row):
                    say(f"{row.name}: given up")
                continue
            self.failed[row.name] = 0
            self.done[row.name] += 1
        self.file.flush()


# ---- what came of it ----

class Figures:
    def __init__(self, rows, path, options):
        self.rows, self.o, self.pairs = rows, options, collections.defaultdict(list)
        self.void = collections.Counter()
        known = {row.name: row for row in rows}
        with open(path, newline="", encoding="utf-8") as f:
            for name, _, ours, theirs in csv.reader(f):
                row = known.get(name)
                if not row:
                    continue
                if ours and (theirs or not row.base):
                    self.pairs[name].append((float(ours), float(theirs or 0)))
                else:
                    self.void[name] += 1

    def values(self, row):
        found = (row.value(*pair) for pair in self.pairs[row.name])
        return [v for v in found if v is not None]

    def is_enough(self, row):
        return len(self.values(row)) >= row.wanted(self.o.least)

    def is_failed(self, row):
        return not self.is_enough(row) and self.void[row.name] > 0

    def quartiles(self, row):
        values = self.values(row)
        if len(values) == 1:
            return values * 3
        return statistics.quantiles(values, n=4, method="inclusive")

    def verdict(self, row):
        if not self.is_enough(row):
            return "failed" if self.is_failed(row) else "too few pairs"
        if row.goal is None:
            return ""
        return "met" if row.is_met(self.quartiles(row)[1]) else "missed"

    def medians(self, row):
        return [statistics.median(x) for x in zip(*self.pairs[row.name])]


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cells(f, row):
    goal = "" if row.goal is None else f"{row.sense} {number(row.goal)}" + " more" * row.difference
    shown = ["", "", "", ""]
    # Of fewer pairs a figure would say nothing.
    if f.is_enough(row):
        low, middle, high = map(number, f.quartiles(row))
        ours, theirs = f.medians(row)
        shown = [f"{number(ours)} {row.unit}", f"{number(theirs)} {row.unit}" if row.base else "",
                 middle if row.base else "", f"{low} to {high}"]
    return [row.name, goal, *shown, str(len(f.values(row))), f.verdict(row)]


HEADS = ["what", "goal", "weft", "against", "ratio", "quartiles", "pairs", ""]


def table(f):
    lines = [HEADS] + [cells(f, row) for row in f.rows]
    if all(row.goal is None for row in f.rows):
        lines = [line[:1] + line[2:] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for i, line in enumerate(lines):
        print("| " + " | ".join(x.ljust(w) for x, w in zip(line, widths)) + " |")
        if not i:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print()


def read_counts(path):
    """NAME, tab, what was counted."""
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split("\t", 1) for line in f)


def summary(f):
    verdicts = collections.Counter(f.verdict(row) for row in f.rows)
    if any(row.goal is not None for row in f.rows):
        print(f"{verdicts['met']} goals met, {verdicts['missed']} missed, "
              f"{verdicts['too few pairs'] + verdicts['failed']} not judged.")
    few = [row for row in f.rows if len(f.values(row)) < row.wanted(f.o.pairs)]
    if few:
        least = min(len(f.values(row)) for row in few)
        print(f"{len(few)} of {len(f.rows)} rows have fewer than {f.o.pairs} pairs, "
              f"{least} at the least: the time was over, or a program failed.")
    hidden = sum(not f.is_enough(row) for row in f.rows)
    if hidden:
        print(f"{hidden} of them show no figure: fewer than {f.o.least} pairs say nothing. "
              "A machine that is less busy has the time for more.")


def missed(f):
    counts = read_counts(f.o.counts) if f.o.counts else {}
    lines = [row for row in f.rows if f.verdict(row) == "missed"]
    if lines and f.o.counts:
        print()
        for row in lines:
            said = counts.get(row.name)
            print(f"- **{row.name}**: {number(f.quartiles(row)[1])}, goal {cells(f, row)[1]}" +
                  (f"; counted for each message: {said}." if said else "."))


def report(f):
    table(f)
    summary(f)
    missed(f)
    return any(f.is_failed(row) for row in f.rows)


def parse():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--pairs", type=int, default=9)
    p.add_argument("--least", type=int, default=3, help="fewer pairs are not judged")
    p.add_argument("--seconds", type=float, default=1e9, help="no run goes on for longer")
    p.add_argument("--limit", type=float, default=20, help="seconds of one run")
    p.add_argument("--only", default="", help="regular expression for names of rows")
    p.add_argument("--counts", help="file: NAME, tab, what was counted of it")
    p.add_argument("--table", action="store_true")
    p.add_argument("--missed", action="store_true")
    p.add_argument("--points")
    p.add_argument("plan")
    p.add_argument("figures")
    return p.parse_args()


def main():
    options = parse()
    rows = select(read_plan(options.plan), options.only)
    if not (options.table or options.missed or options.points):
        with open(options.figures, "w", newline="", encoding="utf-8") as out:
            Taker(options, out).take_all(rows)
    f = Figures(rows, options.figures, options)
    if options.missed:
        for row in rows:
            if f.verdict(row) == "missed":
                print(f"{row.name}\t{row.command}")
        return 0
    if options.points:
        for row in rows:
            m = re.search(options.points, row.name)
            if m and f.values(row):
                print(m[1], *map("{:.6g}".format, f.medians(row)))
        return 0
    return report(f)


if __name__ == "__main__":
    sys.exit(main())
