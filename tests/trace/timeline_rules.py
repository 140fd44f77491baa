#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges a time line by the rules of Chrome's trace-event format, as Perfetto's importer applies them.

    timeline_rules.py FILE      prints what is in it, or what is wrong
"""
import collections
import json
import numbers
import sys

PHASES = {"X": {"dur"}, "i": {"s"}, "M": {"args"}, "s": {"id", "cat"}, "f": {"id", "cat"}, "b": {"id", "cat"},
          "e": {"id", "cat"}}
METADATA = {"process_name", "thread_name", "thread_sort_index"}
SLACK = 0.0011                  # microseconds: a time is rounded


def fail(words, event):
    raise ValueError("%s: %s" % (words, json.dumps(event)[:300]))


def check_event(event):
    if event.get("ph") not in PHASES:
        fail("a phase of another kind", event)
    for field, kind in (("name", str), ("pid", int), ("tid", int)):
        if not isinstance(event.get(field), kind) or isinstance(event.get(field), bool):
            fail("%s is missing, or no %s" % (field, kind.__name__), event)
    missing = PHASES[event["ph"]] - set(event)
    if missing:
        fail("%s is missing" % ", ".join(missing), event)
    if event["ph"] == "M":
        if event["name"] not in METADATA:
            fail("metadata of another kind", event)
        return
    if not isinstance(event.get("ts"), numbers.Real) or event["ts"] < 0:
        fail("ts is no time", event)
    if event["ph"] == "X" and not (isinstance(event["dur"], numbers.Real) and event["dur"] >= 0):
        fail("dur is no duration", event)
    if event["ph"] == "i" and event["s"] not in ("g", "p", "t"):
        fail("s is no scope", event)


def check_nesting(slices):
    """Slices of a track contain each other, or are apart."""
    stack = []
    for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        end = event["ts"] + event["dur"]
        while stack and stack[-1][1] <= event["ts"] + SLACK:
            stack.pop()
        if stack and end > stack[-1][1] + SLACK:
            fail("overlaps with %s" % json.dumps(stack[-1][0])[:200], event)
        stack.append((event, end))


def holder_of(tracks, event):
    return any(s["ts"] - SLACK <= event["ts"] <= s["ts"] + s["dur"] + SLACK
               for s in tracks.get((event["pid"], event["tid"]), ()))


def check_pairs(events, begin, end):
    """Each id begins and ends once: {id: (begin, end)}."""
    found = {}
    for event in events:
        if event["ph"] in (begin, end):
            found.setdefault((event["cat"], event["id"]), []).append(event)
    for pair in found.values():
        if len(pair) != 2 or {e["ph"] for e in pair} != {begin, end} or pair[0]["name"] != pair[1]["name"]:
            fail("no pair", pair[0])
    return {k: tuple(sorted(p, key=lambda e: e["ph"] == end)) for k, p in found.items()}


def judge(document):
    """Counts of its parts; ValueError if a rule is broken."""
    events = document["traceEvents"]
    for event in events:
        check_event(event)
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[(event["pid"], event["tid"])].append(event)
    for slices in tracks.values():
        check_nesting(slices)
    arrows = check_pairs(events, "s", "f")
    for begin, end in arrows.values():
        if not holder_of(tracks, begin) or not holder_of(tracks, end):
            fail("an arrow that no slice holds", begin)
        if end.get("bp") != "e":
            fail("an arrow's end that would bind to the next slice", end)
    check_pairs(events, "b", "e")
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    nameless = set(tracks) - named
    if nameless:
        raise ValueError("tracks without a name: %s" % nameless)
    return {
        "processes": sum(1 for e in events if e["ph"] == "M" and e["name"] == "process_name"),
        "slices": sum(len(t) for t in tracks.values()),
        "requests": sum(1 for e in events if e.get("cat") in ("request", "error")),
        "arrows": len(arrows),
        "arrows between processes": sum(1 for b, e in arrows.values() if b["pid"] != e["pid"]),
        "arrows back in time": sum(1 for b, e in arrows.values() if e["ts"] < b["ts"]),
    }


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        print(json.dumps(judge(json.load(f))))
