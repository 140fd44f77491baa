# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where in a program's source an instruction lies, by addr2line (binutils)."""
import os
import shutil
import subprocess

from . import record

PATIENCE_S = 20


def short(path):
    return path.rsplit("/", 1)[-1]


def ask(tool, module, offsets):
    """[(function, file:line)]: of each the one that called a function of verbs, many of which are inline."""
    try:
        run = subprocess.run([tool, "-a", "-i", "-f", "-C", "-e", module] + ["0x%x" % o for o in offsets],
                             capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    frames = []
    for line in run.stdout.splitlines():
        line = record.text_of(line)
        if line.startswith("0x"):
            frames.append([])
        elif frames:
            frames[-1].append(line)
    return [outside(f) for f in frames] if len(frames) == len(offsets) else []


def outside(lines):
    pairs = list(zip(lines[0::2], lines[1::2]))
    return next((p for p in pairs if not p[0].startswith("ibv_")), ("??", "??:0"))


def without_tool(caller):
    where = "%s+0x%x" % (short(caller.module), caller.offset)
    return "%s (%s)" % (caller.function, where) if caller.function else where


def find(callers, with_tool=True):
    """pc -> words, for the callers of a record."""
    words = {pc: without_tool(c) for pc, c in callers.items()}
    tool = shutil.which("addr2line") if with_tool else None
    modules = {}
    for pc, caller in callers.items():
        modules.setdefault(caller.module, []).append(pc)
    for module, pcs in modules.items():
        if not tool or not os.path.isabs(module) or not os.path.isfile(module):
            continue
        for pc, (function, line) in zip(pcs, ask(tool, module, [callers[pc].offset for pc in pcs])):
            if not line.startswith("??"):
                words[pc] = "%s %s" % (function, short(line.split(" (", 1)[0]))
    return words
