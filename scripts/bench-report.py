#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the table of the bench out of its CSV: medians, spread, and the goals met or missed.

    bench-report.py FIGURES.csv        Markdown on stdout
"""
import collections
import csv
import statistics
import sys

# What is to be reached (issue 5): cell, MTU, weft's row, whose row it is compared with,
# the ratio, and which way is good.
GOALS = [
    ("write_bw_64K", 1500, "weft", "siw", 12, ">="),
    ("write_bw_1M", 1500, "weft", "siw", 12, ">="),
    ("write_bw_64K", 1500, "weft", "tcp", 1.0, ">="),
    ("write_bw_1M", 1500, "weft", "tcp", 1.0, ">="),
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
    ("cpu_per_GB", 1500, "weft", "tcp", 0.9, "<="),
    ("connects_per_s", 1500, "weft", "siw", 2, ">="),
    ("loss_1%_10ms_bw", 1500, "weft", "tcp", 0.9, ">="),
]
DRIVERS = ["weft", "weft+crc", "siw", "rxe", "tcp"]


def read(path):
    """{(cell, mtu): {driver: [values]}}; a figure that could not be taken counts for nothing."""
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    missing = 0
    with open(path, newline="") as f:
        for _, mtu, driver, cell, value in csv.reader(f):
            try:
                rows[cell, int(mtu)][driver].append(float(value))
            except ValueError:
                missing += 1
    return rows, missing


def show(values):
    if not values:
        return "–"
    m = statistics.median(values)
    text = f"{m:,.0f}" if m >= 1000 else f"{m:.3g}"
    if len(values) > 1 and m:
        text += f" ±{100 * (max(values) - min(values)) / 2 / m:.0f} %"
    return text


def table(rows):
    print("| cell | MTU | " + " | ".join(DRIVERS) + " |")
    print("|---" * (len(DRIVERS) + 2) + "|")
    for (cell, mtu), by in rows.items():
        print(f"| {cell} | {mtu} | " + " | ".join(show(by.get(d)) for d in DRIVERS) + " |")


def goals(rows):
    missed = unmeasured = 0
    print("| cell | MTU | against | goal | measured | |")
    print("|---|---|---|---|---|---|")
    for cell, mtu, ours, theirs, goal, sense in GOALS:
        by = rows.get((cell, mtu), {})
        if not by.get(ours) or not by.get(theirs):
            unmeasured += 1
            continue
        ratio = statistics.median(by[ours]) / statistics.median(by[theirs])
        met = ratio >= goal if sense == ">=" else ratio <= goal
        missed += not met
        print(f"| {cell} | {mtu} | {theirs} | {sense} {goal} | {ratio:.2f} | "
              f"{'met' if met else 'missed'} |")
    one, many = (rows.get((c, 1500), {}).get("weft") for c in ("conns_1", "conns_1024"))
    if one and many:
        peak = max(statistics.median(rows[c, 1500]["weft"])
                   for c in ("conns_1", "conns_16", "conns_256", "conns_1024")
                   if rows.get((c, 1500), {}).get("weft"))
        ratio = statistics.median(many) / peak
        missed += ratio < 0.8
        print(f"| conns_1024 | 1500 | own peak | >= 0.8 | {ratio:.2f} | "
              f"{'met' if ratio >= 0.8 else 'missed'} |")
    else:
        unmeasured += 1
    return missed, unmeasured


def main():
    rows, missing = read(sys.argv[1])
    table(rows)
    print()
    missed, unmeasured = goals(rows)
    print()
    print(f"{missed} goals missed, {unmeasured} not measured, "
          f"{missing} figures could not be taken")


if __name__ == "__main__":
    main()
