#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do the names exist that docs and comments speak of? Prints those that do not.

    check-names.py docs|comments|paths

A name is a word with an underscore, a word before (), or a file's name with its suffix: in docs
those between backticks, in C those in comments. It exists if it is a word of the code (C without
its comments), or the end of a file's path. What ends in _ may be the beginning of a name (weft_emit_*),
what begins with _ or is in capitals the end of one (REG_MR).
What the kernel, siw and rdma-core alone have is in scripts/foreign-names; siw_* is always siw's.
paths looks at all files of the tree: what begins with a folder of ours and has a suffix, is there;
in docs also links, and paths without a suffix.
"""
import fnmatch
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOREIGN = 'scripts/foreign-names'
# Strings are matched so that what looks like a comment in one is none.
STRING_OR_COMMENT = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
SUFFIXES = '(?:c|h|md|sh|py|def|awk|config)'
FILE = re.compile(r'(?<![\w./$}*-])[\w./{},*-]*\w\.' + SUFFIXES + r'\b(?![\w*])')
WORD = re.compile(r'(?<![\w$%])(\w*[A-Za-z0-9]_\w*|\w+(?=\(\)))\b')
FOLDERS = '(?:kernel|providers|tests|scripts|docs|rdma-core-patch|[.]ci)'
PATH = re.compile(r'(?<![\w./$}*-])' + FOLDERS + r'/[\w./{},*-]*\w')
PLACEHOLDER = re.compile(r'(?:^|/)[A-Z]+(?:\.|/|$)')


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8', errors='replace') as f:
        return f.read()


def is_doc(path):
    return path.endswith('.md') or re.search(r'\.[1-9]$', path)


def is_c(path):
    return path.endswith(('.c', '.h'))


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


class Tree:
    """The files of the checkout and the words of its code."""

    def __init__(self):
        listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'], cwd=TOP,
                                check=True, stdout=subprocess.PIPE).stdout.decode()
        self.files = [f for f in listed.split('\0') if os.path.isfile(os.path.join(TOP, f))]
        self.foreign = {line for line in read(FOREIGN).splitlines() if line and line[0] != '#'}
        self.words = set()
        for path in self.files:
            if is_doc(path) or path == FOREIGN:
                continue
            text = read(path)
            if is_c(path):
                text = STRING_OR_COMMENT.sub(lambda m: ' ' if m[0][0] == '/' else m[0], text)
            self.words.update(re.findall(r'\w+', text))

    def has_word(self, name):
        if name.endswith('_'):
            return any(w.startswith(name) for w in self.words)
        if name.startswith('_') or name.isupper():
            return (name in self.foreign or name.startswith('SIW_')
                    or any(w.endswith(name) for w in self.words))
        return (name in self.words or name in self.foreign or name.startswith('siw_')
                # At the beginning of a sentence; a field with its width in bits.
                or name[0].lower() + name[1:] in self.words
                or re.sub(r'_?(8|16|32|64)$', '', name) in self.words)

    def has_file(self, name):
        """The end of a path, with wildcards."""
        if os.path.basename(name) in self.foreign or PLACEHOLDER.search(name):
            return True
        return all(any(fnmatch.fnmatch('/' + f, '*/' + n.lstrip('./')) for f in self.files)
                   for n in braces(name))

    def has_path(self, name):
        """A file, the source of a program, or a folder, from the top."""
        if (name.endswith(('.ko', '.o', '.a')) or PLACEHOLDER.search(name)
                or os.path.basename(name) in self.foreign):
            return True
        return all(os.path.exists(os.path.join(TOP, n)) or n + '.c' in self.files
                   or any(fnmatch.fnmatch(f, n) for f in self.files) for n in braces(name))


def braces(name):
    """x.{c,h} is two names."""
    m = re.match(r'(.*)\{([^}]*)\}(.*)$', name)
    return [m[1] + part + m[3] for part in m[2].split(',')] if m else [name]


def names_in_docs(tree):
    for path in (f for f in tree.files if f.endswith('.md')):
        text = read(path)
        for span in re.finditer(r'(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)', text):
            yield path, line_of(text, span.start()), span[1]


def names_in_comments(tree):
    for path in filter(is_c, tree.files):
        text = read(path)
        for m in STRING_OR_COMMENT.finditer(text):
            if m[0][0] == '/':
                yield path, line_of(text, m.start()), m[0]


def check_names(tree, spans):
    """Each span of text: path, line, text."""
    seen = 0
    for path, line, text in spans:
        for m in FILE.finditer(text):
            seen += 1
            if not tree.has_file(m[0]):
                yield path, line, text, m
        for m in WORD.finditer(FILE.sub(lambda m: ' ' * len(m[0]), text)):
            seen += 1
            if not tree.has_word(m[1]):
                yield path, line, text, m
    if seen < 100:
        print('only', seen, 'names are left')


def check_paths(tree):
    for path in tree.files:
        if path == FOREIGN:
            continue
        text = read(path)
        for m in PATH.finditer(text):
            if is_doc(path) or FILE.fullmatch(m[0]):
                if not tree.has_path(m[0]):
                    yield path, 1, text, m
        for m in re.finditer(r'(?<=\]\()(?!https?:|#)([^)#\s]+)', text if path.endswith('.md') else ''):
            if not os.path.exists(os.path.join(TOP, os.path.dirname(path), m[0])):
                yield path, 1, text, m


def main():
    tree = Tree()
    kind = sys.argv[1]
    found = {'docs': lambda: check_names(tree, names_in_docs(tree)),
             'comments': lambda: check_names(tree, names_in_comments(tree)),
             'paths': lambda: check_paths(tree)}[kind]()
    for path, first, text, m in found:
        print('%s:%d: %s' % (path, first + line_of(text, m.start()) - 1, m[0]))


main()
