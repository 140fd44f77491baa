#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints how the files of the C sources depend on each other.

    structure.py [FOLDER...]                 a line of figures for each folder
    structure.py --arrows [FOLDER...]        each arrow with its symbols
    structure.py --circle N [FOLDER...]      the members of the Nth circle and the arrows in it
    structure.py --no-cross [FOLDER...]      fails on a circle across folders, on one of more than
                                             3 units (5 in kernel, none in kernel/core)
    structure.py --shared-statics [FOLDER..] fails on a static function's name that two files define
    structure.py --rooms FILE                fails on an include or a use that FILE does not allow

A unit is X.c with X.h beside it. An arrow from A to B: A calls a function that B defines, or names
it in a table; with --variables also: A uses a variable of B's; with --includes: A includes a header
of B's. A circle is a set of units that reach each other by arrows. "up" is the number of arrows to
remove until no circle is left (found greedily: at most that many). What a host has to provide
belongs to the header that declares it, kernel/core/host.h.

FILE has a block ```rooms of lines "hooks -> host, process" (files of hooks may include and use what is
of these and their own) and "engine = kernel/core, kernel/proto" (a name for folders; other rooms are
folders beside FILE). A room without "->" may use all.
"""
import argparse
import collections
import os
import re
import sys

sys.dont_write_bytecode = True
from c_source import Source  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A row of figures: its files, with those of the folders below (/**).
ROWS = ['kernel', 'kernel/core', 'kernel/proto', 'kernel/**', 'providers/rootless/**',
        'providers/sockets/**', 'providers/rootless/** providers/sockets/**', 'providers/weft']
# What is linked together: names mean the same in these folders.
PROGRAMS = [('kernel',), ('providers/rootless', 'providers/sockets', 'kernel/core', 'kernel/proto'),
            ('providers/weft',)]
HOST_INTERFACE = 'kernel/core/host.h'
# A folder's largest circle that --no-cross lets pass, if not 3.
LARGEST = {'kernel/core': 1, 'kernel': 5}
INCLUDE_PATH = ['', 'kernel', 'kernel/uapi', 'providers', 'providers/rootless']


class Tree:
    def __init__(self, variables):
        self.files = {}
        for start in ('kernel', 'providers'):
            for folder, _, names in os.walk(os.path.join(TOP, start)):
                for name in sorted(names):
                    path = os.path.relpath(os.path.join(folder, name), TOP)
                    if name.endswith(('.c', '.h')) and not name.endswith('.mod.c') and '/probe/' not in path:
                        self.files[path] = Source(TOP, path)
        self.interface = self.files[HOST_INTERFACE].declared
        self.definers = collections.defaultdict(set)
        self.macros = {}
        for f in self.files.values():
            self.macros.update({m: b for m, b in f.macros.items() if f.path.endswith('.h')})
            for name in f.defined if variables else f.functions & set(f.defined):
                self.definers[name].add(f)

    def symbols(self, f):
        """The names that a file uses, those in macros' bodies among them: name, line."""
        todo, seen = list(f.uses.items()), set()
        for name, line in todo:
            if name not in seen:
                seen.add(name)
                yield name, line
                todo += [(n, line) for n in f.macros.get(name, self.macros.get(name, ()))]

    def uses(self, f):
        """What other units define: path of the definition, name, line."""
        program = next(p for p in PROGRAMS if below(f.folder, p))
        for name, line in self.symbols(f):
            if name in self.interface:
                if f.folder != 'kernel':
                    yield HOST_INTERFACE, name, line
                continue
            found = [d for d in self.definers.get(name, ()) if below(d.folder, program)]
            if name in f.static or any(d.unit == f.unit for d in found):
                continue
            for d in found:
                yield d.path, name, line

    def included(self, f):
        for name, line in f.includes:
            for folder in [f.folder] + INCLUDE_PATH:
                path = os.path.normpath(os.path.join(folder, name))
                if path in self.files:
                    yield path, 'include', line
                    break

    def arrows(self, row, includes=False):
        """{unit: {unit: {name}}} of the files of a row."""
        graph = {f.unit: {} for f in self.files.values() if in_row(f.folder, row)}
        for f in self.files.values():
            if f.unit in graph:
                for path, name, _ in list(self.uses(f)) + (list(self.included(f)) if includes else []):
                    to = self.files[path].unit
                    if to in graph and to != f.unit:
                        graph[f.unit].setdefault(to, set()).add(name)
        return graph


def below(folder, program):
    return any(folder == p or folder.startswith(p + '/') for p in program)


def in_row(folder, row):
    return any(below(folder, [p[:-3]]) if p.endswith('/**') else folder == p for p in row.split())


def circles(graph):
    """Strongly connected components of more than one unit, the largest first (Tarjan)."""
    index, low, stack, out = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                out.append(sorted(stack[at:]))
            del stack[at:]

    for v in graph:
        if v not in index:
            visit(v)
    return sorted(out, key=lambda c: (-len(c), c))


def arrows_up(graph):
    """Arrows against an order of the units: Eades' greedy one, then each unit moved where it is best."""
    rest, first, last = set(graph), [], []
    into = {v: {u for u in graph if v in graph[u]} for v in graph}
    while rest:
        sink = next((v for v in sorted(rest) if not rest & set(graph[v])), None)
        v = sink or max(sorted(rest), key=lambda v: len(rest & set(graph[v])) - len(rest & into[v]))
        last.insert(0, v) if sink else first.append(v)
        rest.remove(v)
    order, better = first + last, True
    while better:
        better = False
        for v in sorted(graph):
            others = [u for u in order if u != v]
            cost = [len(into[v])]       # arrows up if v is the first, and behind each of the others
            for u in others:
                cost.append(cost[-1] + (u in graph[v]) - (u in into[v]))
            best = min(range(len(cost)), key=lambda p: cost[p])
            if cost[best] < cost[order.index(v)]:
                order, better = others[:best] + [v] + others[best:], True
    place = {v: n for n, v in enumerate(order)}
    return [(v, w) for v in order for w in graph[v] if place[w] < place[v]]


def figures(tree, rows, includes):
    print('%-46s%6s %7s %8s %3s %6s  %s' % ('folder', 'units', 'arrows', 'largest', 'up', 'across', 'circles'))
    for row in rows:
        graph = tree.arrows(row, includes)
        if graph:
            found = circles(graph)
            print('%-46s%6d %7d %8d %3d %6d  %s' % (
                row, len(graph), sum(map(len, graph.values())),
                max(map(len, found), default=1), len(arrows_up(graph)), sum(crosses(c) for c in found),
                ' '.join(str(len(c)) for c in found) or '-'))


def crosses(circle):
    return len({os.path.dirname(u) for u in circle}) > 1


def print_arrows(graph, units, where=''):
    for u in units:
        for w in sorted(graph[u]):
            if w in units:
                print('%s%s -> %s: %s' % (where, u, w, ' '.join(sorted(graph[u][w]))))


def print_circle(tree, rows, n, includes):
    for row in rows:
        graph = tree.arrows(row, includes)
        found = circles(graph)
        if n <= len(found):
            print('%s, circle %d of %d: %d units' % (row, n, len(found), len(found[n - 1])))
            up = arrows_up({u: {w: graph[u][w] for w in graph[u] if w in found[n - 1]} for u in found[n - 1]})
            print('up: ' + ', '.join('%s -> %s' % (os.path.basename(v), os.path.basename(w)) for v, w in up))
            print_arrows(graph, found[n - 1], '  ')


def no_cross(tree, rows, includes):
    said = []
    for row in rows:
        for c in circles(tree.arrows(row, includes)):
            folder = os.path.dirname(c[0])
            limit = LARGEST.get(folder, 3)
            if crosses(c) or len(c) > limit:
                said.append('a circle %s: %s' % ('across folders' if crosses(c) else
                                                 'of %d units, not %d' % (len(c), limit), ' '.join(c)))
    print('\n'.join(sorted(set(said))), end='\n' if said else '')
    return bool(said)


def shared_statics(tree, folders):
    where = collections.defaultdict(set)
    for f in tree.files.values():
        for name in f.static:
            if name in f.functions:
                program = next(p for p in PROGRAMS if below(f.folder, p))
                where[program[0], name].add(f.path)
    shared = [(n, sorted(w)) for (_, n), w in sorted(where.items())
              if len(w) > 1 and any(in_row(os.path.dirname(p), r) for p in w for r in folders)]
    for name, paths in shared:
        print('%s: %s' % (name, ' '.join(paths)))
    return bool(shared)


def read_rooms(path):
    """{room: folders}, {room: rooms that it may use}, as the file says."""
    base = os.path.relpath(os.path.dirname(os.path.abspath(path)), TOP)
    with open(path, encoding='utf-8') as f:
        block = re.search(r'^```rooms\n(.*?)^```', f.read(), re.S | re.M)
    if not block:
        sys.exit(path + ': no block of rooms')
    folders, may = {}, {}
    for line in filter(None, (line.split('#')[0].strip() for line in block[1].splitlines())):
        name, sign, rest = re.match(r'([\w.-]+)\s*(->|=)\s*(.*)', line).groups()
        names = [n.strip() for n in rest.split(',') if n.strip()]
        if sign == '=':
            folders[name] = names
        else:
            may[name] = names
    for name in set(may) | {n for names in may.values() for n in names}:
        folders.setdefault(name, [os.path.normpath(os.path.join(base, name))])
    return base, folders, may


def check_rooms(tree, path):
    base, folders, may = read_rooms(path)
    said = ['room %s: there is no folder %s' % (r, p) for r in sorted(folders) for p in folders[r]
            if not os.path.isdir(os.path.join(TOP, p))]
    room_of = {f.path: r for f in tree.files.values() for r in folders if below(f.folder, folders[r])}
    said += ['%s is in no room' % p for p in sorted({f.folder for f in tree.files.values()})
             if below(p, [base]) and p != base and not any(below(p, v) for v in folders.values())]
    said += ['rooms in a circle: ' + ' '.join(c)
             for c in circles({r: {n: 1 for n in may.get(r, ())} for r in folders})]
    for f in tree.files.values():
        room = room_of.get(f.path)
        if room in may:
            for to, name, line in sorted(set(tree.uses(f)) | set(tree.included(f)), key=lambda u: u[2]):
                if room_of.get(to, room) not in may[room] + [room]:
                    said.append('%s:%d: %s may not use %s: %s of %s'
                                % (f.path, line, room, room_of[to], name, to))
    print('\n'.join(said), end='\n' if said else '')
    return bool(said)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--variables', action='store_true')
    p.add_argument('--includes', action='store_true')
    p.add_argument('--arrows', action='store_true')
    p.add_argument('--circle', type=int, metavar='N')
    p.add_argument('--no-cross', action='store_true')
    p.add_argument('--shared-statics', action='store_true')
    p.add_argument('--rooms', metavar='FILE')
    p.add_argument('folders', nargs='*', default=ROWS)
    a = p.parse_args()
    tree = Tree(a.variables or a.rooms)
    if a.rooms:
        return check_rooms(tree, a.rooms)
    if a.no_cross:
        return no_cross(tree, a.folders, a.includes)
    if a.shared_statics:
        return shared_statics(tree, a.folders)
    if a.circle:
        print_circle(tree, a.folders, a.circle, a.includes)
    elif a.arrows:
        for row in a.folders:
            graph = tree.arrows(row, a.includes)
            print_arrows(graph, sorted(graph))
    else:
        figures(tree, a.folders, a.includes)
    return 0


sys.setrecursionlimit(10000)
sys.exit(main())
