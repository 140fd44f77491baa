# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Scans C in kernel style: which functions and variables a file defines, and which names it uses.

Comments and strings are skipped; of #if and #else both sides are read; a name that a function
declares itself, and a field's name, are no uses. A macro's names are used where the macro is.
"""
import os
import re
import sys

# A function that is so marked has a name of libc's: other files that use the name mean libc's.
LIBC_NAMES = 'RL_HOOK'
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*|\\\n'
                   r'|^[ \t]*#[ \t]*(?P<directive>\w+)|[A-Za-z_]\w*|\.?\d[\w.]*|->|\.\.\.|\n|[^\s\w]',
                   re.S | re.M)
IDENTIFIER = re.compile(r'[A-Za-z_]\w*$')
KEYWORDS = set('return else goto case sizeof do if while for switch default typeof __typeof__'.split())
# The token before the name of a field or of a type.
NO_USE = ('.', '->', 'struct', 'union', 'enum')
TYPES = set('const struct union enum unsigned signed static volatile register __thread inline extern'.split())


class Source:
    """The functions and variables that a file defines, and the names that it uses."""

    def __init__(self, top, path):
        self.path = path
        self.unit = re.sub(r'\.[ch]$', '', path)
        self.folder = os.path.dirname(path)
        self.includes, self.macros = [], {}
        self.defined, self.static, self.functions = {}, {}, set()
        self.declared = set()
        self.uses = {}              # name: line of the first use
        with open(os.path.join(top, path), encoding='utf-8', errors='replace') as f:
            self.scan_items(self.scan_directives(f.read()))

    def scan_directives(self, text):
        """The tokens (text, line) of the code; of #if and #else both, of a macro none."""
        code, line, directive, body = [], 1, None, []
        for m in TOKEN.finditer(text + '\n'):
            t = m[0]
            if m['directive']:
                directive, body = m['directive'], []
            elif t == '\n' and directive:
                if directive == 'define' and body:
                    self.macros[body[0]] = [b for b in body[1:] if IDENTIFIER.match(b)]
                directive = None
            elif directive == 'include' and t[0] == '"':
                self.includes.append((t[1:-1], line))
            elif t[0] in '\'"':
                body.append(t) if directive else code.append(('""', line))
            elif not t.isspace() and not t.startswith(('/*', '//', '\\\n')):
                body.append(t) if directive else code.append((t, line))
            line += t.count('\n')
        return code

    def scan_items(self, code):
        """Cuts the code into what stands at file level, each with its bodies."""
        item, depth, body = [], 0, False
        for t, line in code:
            item.append((t, line))
            if t in '({[':
                if t == '{' and depth == 0:
                    body = self.is_function(item[:-1])
                depth += 1
            elif t in ')}]':
                depth -= 1
            if depth == 0 and (t == ';' or t == '}' and body):
                self.take_item(item, body)
                item, body = [], False
        if depth:
            print('%s: braces do not match' % self.path, file=sys.stderr)

    @staticmethod
    def is_function(head):
        words = [t for t, _ in flat(head)]
        return '(' in words and '=' not in words and 'typedef' not in words

    def take_item(self, item, body):
        words = [t for t, _ in flat(item)]
        if words[0] == 'typedef' or words == [';']:
            return
        called = called_name(words, item)
        macro = not body and called and called.isupper()
        prototype = '(' in words and '=' not in words and not body and not macro and not inside(item)
        if macro:       # DEFINE_MUTEX(lock)
            names = [t for t, _ in item if IDENTIFIER.match(t)][-1:] if called.startswith('DEFINE') else []
        else:
            names = [called] if body or prototype else variables(words, inside(item))
        if prototype or 'extern' in words:
            self.declared.update(filter(None, names))
            return
        if LIBC_NAMES not in words:
            for name in filter(None, names):
                static = 'static' in words and self.path.endswith('.c')
                (self.static if static else self.defined)[name] = item[0][1]
                if body:
                    self.functions.add(name)
        if body or macro or '=' in words:
            self.take_uses(item)

    def take_uses(self, item):
        words = [t for t, _ in item]
        local = set()
        for i in range(1, len(words) - 1):
            if IDENTIFIER.match(words[i]) and words[i + 1] in (';', '=', ',', ')', '['):
                k = i - 1
                while k > 0 and words[k] in ('*', 'const'):
                    k -= 1
                if (IDENTIFIER.match(words[k]) and words[k] not in KEYWORDS
                        and (words[k - 1] in ('{', '}', ';', '(', ',') or words[k - 1] in TYPES)):
                    local.add(words[i])
        for i, (t, line) in enumerate(item):
            if IDENTIFIER.match(t) and t not in local and (i == 0 or words[i - 1] not in NO_USE):
                self.uses.setdefault(t, line)


def flat(item):
    """An item without what is inside brackets, and without attributes."""
    out, depth = [], 0
    for i, (t, line) in enumerate(item):
        if t in ')}]':
            depth -= 1
        if depth == 0 and not (t in '()' and out and out[-1][0] == '__attribute__'):
            out.append((t, line))
        elif t == ')' and depth == 0:
            out.pop()
        if t in '({[':
            depth += 1
    return out


def inside(item):
    """What the first pair of parentheses at file level declares: "* f" of "int (*f)(void)"."""
    words = first_parentheses(item)
    return words[:2] if words[:1] == ['*'] and words[2] in ')[' else []


def first_parentheses(item):
    words, depth = [t for t, _ in item], 0
    for i, t in enumerate(words):
        if t == '(' and depth == 0:
            return words[i + 1:i + 4]
        depth += (t in '({[') - (t in ')}]')
    return []


def called_name(words, item):
    """The function that is declared: f of "int f(void)" and of "void (*f(int))(int)"."""
    pointer = first_parentheses(item)
    if pointer[:1] == ['*'] and pointer[2] == '(':
        return pointer[1]
    return next((a for a, b in zip(words, words[1:]) if b == '(' and IDENTIFIER.match(a)), None)


def variables(words, pointer):
    """The names that a declaration of variables declares."""
    names, last, done = pointer[1:], None, bool(pointer)
    for n, t in enumerate(words):
        if t in ',;=':
            if last and not done:
                names.append(last)
            last, done = None, t == '='
        elif IDENTIFIER.match(t) and t not in TYPES and words[n - 1] not in ('struct', 'union', 'enum'):
            last = t
    return names if len(words) > 2 and names != words[:1] else []

