#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Static analysis; scripts/lint.sh calls it.

    lint.py [--kernel-source FOLDER] [-j N] [--under FOLDER] tidy|gcc|cocci...

tidy and gcc look at providers/, kernel/core and kernel/proto as user space compiles them, cocci at
kernel/ by the scripts of a kernel's source. What they find is compared with scripts/lint-accepted:

    # The reason, of one or more lines, for the entries below it.
    CHECK FILE: SOURCE LINE

FILE is a file's name without folders, so that entries outlive moves. An entry that nothing matches is
stale, which is an error, too. The last line is "N findings, N explained, N new". Results are kept in
build/lint by the content of what was analysed. --under looks at the sources of one folder alone, and
then no entry is stale. -j says how many tools run at a time.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = 'build/lint'
ACCEPTED = 'scripts/lint-accepted'
USER = ['-std=gnu11', '-D_GNU_SOURCE=', '-Iproviders/rootless', '-Iproviders', '-I.']
PROVIDER = ['-std=gnu11', '-Ibuild/provider/build/include', '-I/usr/include/libnl3', '-DNDEBUG']
TIDY = ['-*', 'bugprone-*', 'clang-analyzer-*',
        # Any function of two integers.
        '-bugprone-easily-swappable-parameters',
        # Hooks have libc's names, which are reserved.
        '-bugprone-reserved-identifier',
        # glibc has no memcpy_s().
        '-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling',
        # The kernel's style: !strcmp(), u32 from what is known to fit, int * sizeof.
        '-bugprone-suspicious-string-compare', '-bugprone-narrowing-conversions',
        '-bugprone-implicit-widening-of-multiplication-result',
        # A macro's argument that is a name or a type.
        '-bugprone-macro-parentheses',
        # A list of pointers: sizeof(*list).
        '-bugprone-sizeof-expression']
FOUND = re.compile(r'^(?P<path>[^\s:]+):(?P<line>\d+)(?::[\d-]+)*: (?:warning|error|WARNING|ERROR)[^:\n]*: ?'
                   r'(?P<text>.*)$', re.M)


def run(command):
    """Its output; of a tool that fails without a finding, an error."""
    done = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, errors='replace')
    if done.returncode and not FOUND.search(done.stdout + done.stderr):
        sys.exit('lint: %s\n%s' % (' '.join(command), done.stderr))
    return done.stdout + done.stderr


def cached(key, command):
    name = os.path.join(TOP, CACHE, hashlib.sha256('\0'.join(key + command).encode()).hexdigest()[:32])
    try:
        with open(name, encoding='utf-8') as f:
            return f.read()
    except FileNotFoundError:
        said = run(command)
    with open(name + '.new', 'w', encoding='utf-8') as f:
        f.write(said)
    os.rename(name + '.new', name)
    return said


def build_flags():
    """What build-provider.sh found out about this machine's libibverbs."""
    with open(os.path.join(TOP, 'build/provider/build/CMakeCache.txt'), encoding='utf-8') as f:
        return re.search(r'^CMAKE_C_FLAGS:STRING=(.*)$', f.read(), re.M)[1].split()


def user_sources():
    for pattern in ('kernel/proto/*.c', 'kernel/core/*.c', 'providers/rootless/**/*.c',
                    'providers/sockets/**/*.c'):
        for path in sorted(glob.glob(os.path.join(TOP, pattern), recursive=True)):
            yield os.path.relpath(path, TOP), USER
    provider = PROVIDER + build_flags()
    for path in sorted(glob.glob(os.path.join(TOP, 'providers/weft/*.c'))):
        yield os.path.relpath(path, TOP), provider


def tidy(path, flags):
    said = cached([run(['gcc', '-E', '-P', '-D__clang_analyzer__'] + flags + [path]),
                   open(os.path.join(TOP, path)).read()],
                  ['clang-tidy', '--quiet', '--checks=' + ','.join(TIDY), path, '--'] + flags)
    for m in FOUND.finditer(said):
        check = re.search(r' \[([\w.,-]+)\]$', m['text'])
        if check:
            yield check[1].split(',')[0], m['path'], int(m['line']), m['text'][:check.start()]


def gcc(path, flags):
    said = cached([run(['gcc', '-E', '-P'] + flags + [path]), open(os.path.join(TOP, path)).read()],
                  ['gcc', '-O2', '-fanalyzer', '-fdiagnostics-plain-output', '-c', '-o', '/dev/null']
                  + flags + [path])
    for m in FOUND.finditer(said):
        check = re.search(r' \[-W(analyzer-[\w-]+)\]$', m['text'])
        if check:
            yield 'gcc-' + check[1][9:], m['path'], int(m['line']), m['text'][:check.start()]


def cocci(script, sources):
    # By what the script is, not by where it lies.
    said = cached(sources + [open(script, encoding='utf-8').read()],
                  ['spatch', '-D', 'report', '--very-quiet', '--no-show-diff', '--cocci-file', script,
                   '--dir', 'kernel'])
    for m in FOUND.finditer(said):
        yield 'cocci-' + os.path.basename(script)[:-6], m['path'], int(m['line']), m['text']


def can_run(script):
    """Has it a report, and no need of an OCaml compiler?"""
    with open(script, encoding='utf-8') as f:
        text = f.read()
    return 'virtual report' in text and ':ocaml@' not in text


def accepted():
    """{(check, file, source line)}: those of which a reason stands before them."""
    entries, reason = [], False
    with open(os.path.join(TOP, ACCEPTED), encoding='utf-8') as f:
        for line in f.read().splitlines():
            if not line.strip():
                reason = False
            elif line.startswith('#'):
                reason = True
            else:
                check, file, source = re.match(r'(\S+) (\S+): (.*)$', line).groups()
                if not reason:
                    sys.exit('%s: no reason: %s' % (ACCEPTED, line))
                entries.append((check, file, source))
    return set(entries)


def source_line(path, line):
    with open(os.path.join(TOP, path), encoding='utf-8', errors='replace') as f:
        lines = f.read().splitlines()
    return ' '.join(lines[line - 1].split()) if line <= len(lines) else ''


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--kernel-source')
    p.add_argument('-j', type=int, default=os.cpu_count())
    p.add_argument('--under', default='')
    p.add_argument('tools', nargs='+', choices=['tidy', 'gcc', 'cocci'])
    a = p.parse_args()
    os.makedirs(os.path.join(TOP, CACHE), exist_ok=True)
    jobs = [(tool, args) for name, tool in (('tidy', tidy), ('gcc', gcc)) if name in a.tools
            for args in user_sources() if args[0].startswith(a.under)]
    if 'cocci' in a.tools:
        paths = sorted(glob.glob(os.path.join(TOP, 'kernel/**/*.[ch]'), recursive=True))
        sources = [open(q, encoding='utf-8').read() for q in paths if not q.endswith(('have.h', '.mod.c'))]
        jobs += [(cocci, (s, sources)) for s in
                 sorted(glob.glob(a.kernel_source + '/scripts/coccinelle/*/*.cocci')) if can_run(s)]
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        found = {f for each in pool.map(lambda j: list(j[0](*j[1])), jobs) for f in each}
    known, matched, new = accepted(), set(), 0
    for check, path, line, text in sorted(found):
        path = os.path.relpath(os.path.join(TOP, path), TOP)
        entry = (check, os.path.basename(path), source_line(path, line))
        matched.add(entry)
        if entry not in known:
            new += 1
            print('%s:%d: %s\n\t%s %s: %s' % (path, line, text, *entry))
    kinds = {'cocci-': 'cocci', 'gcc-': 'gcc', '': 'tidy'}
    stale = [e for e in known - matched
             if not a.under and next(t for k, t in kinds.items() if e[0].startswith(k)) in a.tools]
    for entry in sorted(stale):
        print('stale: %s %s: %s' % entry)
    print('%d findings, %d explained, %d new' % (len(found), len(found) - new, new))
    return bool(new or stale)


sys.exit(main())
