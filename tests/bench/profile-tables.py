#!/usr/bin/env python3
"""Tables of a profile of user-mode Linux: profile-tables.py DIR [FUNCTION]

DIR has what tests/bench/profile.sh left: perf's samples as text, the guest's kallsyms and the
memory map of its process. perf names the guest kernel's functions by itself. A module's code
lies in the guest's memory, which is a file to perf; perf prints an offset in it. The map gives the
guest's address of that page, and kallsyms the function. With FUNCTION, only samples whose call
chain contains it count.
"""
import bisect
import collections
import re
import sys

PAGE = 4096
ROWS = 40
FRAME = re.compile(r'^\s+([0-9a-f]+) (.*?) \((.*)\)$')


def read_symbols(path):
    symbols = []
    with open(path) as f:
        for line in f:
            fields = line.split()
            if fields[1] in 'tTwW':
                symbols.append((int(fields[0], 16), ' '.join(fields[2:])))
    return sorted(symbols)


def read_pages(path, first):
    """Offset in the memory file: address. Only from @first on, where modules lie."""
    pages = {}
    with open(path) as f:
        for line in f:
            fields = line.split()
            if len(fields) < 6 or not fields[5].startswith('/dev/shm/'):
                continue
            start, end = (int(x, 16) for x in fields[0].split('-'))
            for at in range(start, end, PAGE):
                if at >= first:
                    pages[int(fields[2], 16) + at - start] = at
    return pages


class Names:
    def __init__(self, folder):
        self.symbols = read_symbols(folder + '/kallsyms')
        self.starts = [s[0] for s in self.symbols]
        modules = [s[0] for s in self.symbols if s[1].endswith(']')]
        self.pages = read_pages(folder + '/maps', min(modules) & -PAGE)

    def of(self, ip, symbol, dso):
        if dso.startswith('[kernel'):
            return 'host kernel'
        if not dso.startswith('/dev/shm/'):
            return symbol
        page = self.pages.get(ip & -PAGE)
        if page is None:
            return 'user code'
        i = bisect.bisect_right(self.starts, page + ip % PAGE) - 1
        return self.symbols[i][1]


def chains(path, names):
    """The samples: of each, its functions from the innermost on."""
    chain = []
    with open(path) as f:
        for line in f:
            frame = FRAME.match(line)
            if frame:
                chain.append(names.of(int(frame[1], 16), frame[2], frame[3]))
            elif chain:
                yield chain
                chain = []
    if chain:
        yield chain


def table(title, counts, total):
    print('\n' + title)
    for name, n in counts.most_common(ROWS):
        print('%7.2f %%  %s' % (100 * n / total, name))


# User-mode Linux turns interrupts off and on by the host's sigprocmask.
KINDS = (
    ('copies, sums', re.compile(r'mem(cpy|set|move)|_copy_|csum|crc32')),
    ('switching interrupts', re.compile(r'host kernel|sig(proc)?mask|(un)?block_signals|'
                                        r'set_signals|ipi_|local_irq|uml_curr_cpu')),
    ('modules', re.compile(r'\]$')),
    ('user code', re.compile(r'^user code$')),
)


def kind(name):
    return next((k for k, pattern in KINDS if pattern.search(name)), 'the rest of the kernel')


def main(folder, only=''):
    own, whole, total, seen = collections.Counter(), collections.Counter(), 0, 0
    for chain in chains(folder + '/samples', Names(folder)):
        seen += 1
        if only and only not in (name.split(' [')[0] for name in chain):
            continue
        total += 1
        own[chain[0]] += 1
        whole.update(set(chain))
    if not total:
        sys.exit('no sample' + (' with ' + only if only else ''))
    print('%d of %d samples' % (total, seen))
    kinds = collections.Counter()
    for name, n in own.items():
        kinds[kind(name)] += n
    table('own time, by kind', kinds, total)
    table('own time', own, total)
    table('with all that they call', whole, total)


if __name__ == '__main__':
    main(*sys.argv[1:])
