#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints where comments, pages and messages have a phrase of scripts/english-phrases.txt.

    check-english.py FOLDER|FILE...

In C it looks at comments and strings, in scripts at comments, in pages at all but code. A phrase may
go over a line's end.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PHRASES = 'scripts/english-phrases.txt'
IN_C = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
# Comments of several lines are one text.
IN_SCRIPT = re.compile(r'^[ \t]*#[^\n]*(?:\n[ \t]*#[^\n]*)*|""".*?"""', re.S | re.M)
CODE_IN_PAGE = re.compile(r'^```.*?^```|`[^`\n]+`', re.S | re.M)
# What begins a line and is no part of its sentence.
MARGIN = re.compile(r'\n[ \t]*(?:\*(?!/)|//|#|\.\\"|>)?[ \t]*')


def phrases():
    with open(os.path.join(TOP, PHRASES), encoding='utf-8') as f:
        for line in f.read().splitlines():
            if line and line[0] != '#':
                pattern, better = re.split(r'\t+', line)
                yield re.compile(pattern.replace(' ', r'\s+'), re.I), better


def spans(path, text):
    """What a person reads of a file: offset, text."""
    if re.search(r'\.[ch]$', path):
        return [(m.start(), m[0]) for m in IN_C.finditer(text)]
    if re.search(r'\.(sh|py|awk)$|Makefile$', path):
        return [(m.start(), m[0]) for m in IN_SCRIPT.finditer(text)]
    if re.search(r'\.(md|rst|[1-9])$|/cover$', path):
        return [(0, CODE_IN_PAGE.sub(lambda m: re.sub(r'[^\n]', '`', m[0]), text))]
    return []


def main():
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z', '--'] + sys.argv[1:],
                            cwd=TOP, check=True, stdout=subprocess.PIPE).stdout.decode()
    known = list(phrases())
    for path in listed.split('\0'):
        if not path:
            continue
        with open(os.path.join(TOP, path), encoding='utf-8', errors='replace') as f:
            text = f.read()
        for start, span in spans(path, text):
            # As long as before, so that offsets hold.
            flat = MARGIN.sub(lambda m: ' ' * len(m[0]), span)
            for pattern, better in known:
                for m in pattern.finditer(flat):
                    print('%s:%d: "%s": %s' % (path, text.count('\n', 0, start + m.start()) + 1,
                                               ' '.join(m[0].split()), better))


main()
