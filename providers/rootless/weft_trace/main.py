# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""weft-trace(1)."""
import argparse
import os
import sys

from . import capture, judge, page, record, story, text, timeline

WRITERS = (("pcapng", capture.write), ("chrome", timeline.write), ("html", page.write))


def number(words):
    return int(words, 0)


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="weft-trace", description="Shows what weft-run --record has recorded. Without an option: as text.",
        epilog="weft-trace judge RECORD|FOLDER...: reports misuse that takes both ends to see. It has options of its own.")
    parser.add_argument("records", metavar="RECORD|FOLDER", nargs="+", help="of one process or several")
    parser.add_argument("--pcapng", metavar="FILE", help="packets, for Wireshark")
    parser.add_argument("--chrome", metavar="FILE", help="a time line, for Perfetto and chrome://tracing")
    parser.add_argument("--html", metavar="FILE", help="a page for people")
    parser.add_argument("--text", action="store_true", help="text, beside the others")
    parser.add_argument("--tail", metavar="N", type=number, help="the last N lines of the text")
    parser.add_argument("--qp", metavar="NUMBER", type=number, action="append", help="only what is about this QP")
    parser.add_argument("--last", metavar="SECONDS", type=float, help="only the end of the records")
    parser.add_argument("--no-lines", action="store_true", help="do not ask addr2line for lines of the source")
    args = parser.parse_args(argv)
    if args.tail is not None and args.tail < 0:
        parser.error("--tail: a number from 0 on")
    if args.last is not None and not args.last > 0:
        parser.error("--last: a number of seconds")
    return args


def cut(rec, args):
    """What the options ask for; facts of connections and objects stay."""
    keep = (record.CONN, record.OBJECT)
    if args.qp:
        rec.entries = [e for e in rec.entries if not e.qpn or e.qpn in args.qp]
    if args.last and rec.entries:
        since = rec.entries[-1].ns - int(args.last * 1e9)
        rec.entries = [e for e in rec.entries if e.ns >= since or e.type in keep]


def read_records(names):
    """What cannot be read is said, and the others are shown."""
    records = []
    for path in record.find_records(names):
        try:
            records.append(record.Record(path))
        except record.BadRecord as e:
            print("weft-trace: %s" % e, file=sys.stderr)
    return records


def write_files(told, args):
    for name, write in WRITERS:
        path = getattr(args, name)
        if not path:
            continue
        if name == "pcapng":
            with open(path, "wb") as out:
                dropped = write(told, out)
            if dropped:
                print("weft-trace: %s: %d older packets are left out: it would be too large" % (path, dropped),
                      file=sys.stderr)
        else:
            with open(path, "w", encoding="utf-8", errors="replace") as out:
                write(told, out)


def run(argv):
    if argv[:1] == ["judge"]:
        return judge.run(argv[1:], read_records)
    args = arguments(argv)
    records = read_records(args.records)
    for rec in records:
        cut(rec, args)
    if not records:
        print("weft-trace: there is nothing to show", file=sys.stderr)
        return 1
    told = story.Story(records, with_lines=not args.no_lines)
    write_files(told, args)
    if args.text or args.tail is not None or not (args.pcapng or args.chrome or args.html):
        text.write(told, sys.stdout, args.tail)
        sys.stdout.flush()
    return 0


def main():
    try:
        return run(sys.argv[1:])
    except BrokenPipeError:
        # The reader of the text has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except (record.BadRecord, OSError) as e:
        print("weft-trace: %s" % e, file=sys.stderr)
        return 1
