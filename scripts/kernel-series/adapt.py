#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The driver as the newest kernel's tree would have it:

    adapt.py WEFT TREE    from the checkout WEFT into TREE's drivers/infiniband/sw/weft and include/uapi/rdma

And its KUnit tests: all of tests/engine, and of tests/stacks those in STACKS, which have one end.

Without compat/ and the user-space half of port.h, with the driver id that upstream gives. Whatever is
replaced must be there as it is written here: a change of the driver that this page does not know fails.
"""
import os
import re
import sys

WEFT, TREE = sys.argv[1:]
OUT = os.path.join(TREE, 'drivers/infiniband/sw/weft')
ABI = 'uapi/rdma/weft-abi.h'
STACKS = ('ddp', 'rdmap', 'read', 'region', 'cq', 'shape', 'verbs', 'start')


def die(text):
    sys.exit('adapt.py: ' + text)


class File:
    def __init__(self, name, folder='kernel'):
        self.name = name
        with open(os.path.join(WEFT, folder, name), encoding='utf-8') as f:
            self.text = f.read()

    def replace(self, old, new):
        if old not in self.text:
            die('%s has no %r' % (self.name, old))
        self.text = self.text.replace(old, new)

    def cut(self, pattern, new=''):
        self.text, n = re.subn(pattern, new, self.text, flags=re.M | re.S)
        if n != 1:
            die('%s has %d of %r' % (self.name, n, pattern))

    def drop_function(self, name):
        """A definition, or a declaration, with the lines that it goes on over."""
        self.cut(r'^[^\n{}*/#]*?[ *]' + name + r'\([^;{]*?\)(?:;\n|\n\{\n.*?\n\}\n\n?)')


def objects():
    with open(os.path.join(WEFT, 'kernel/Kbuild'), encoding='utf-8') as f:
        text = f.read().replace('\\\n', ' ')
    return [o for line in re.findall(r'^weft-y [:+]= (.*)$', text, re.M) for o in re.findall(r'([\w/]+)\.o\b', line)]


def files():
    sources = [o + '.c' for o in objects()]
    headers = [os.path.join(d, f) if d else f for d in ('', 'core', 'proto')
               for f in sorted(os.listdir(os.path.join(WEFT, 'kernel', d)))
               # Datagrams are another host's.
               if f.endswith('.h') and f != 'ud.h']
    return {name: File(name) for name in sources + headers + [ABI]}


def newest_interfaces(f):
    f['verbs.h'].replace('#include "compat/compat.h"\n',
                         '#include <linux/mm.h>\n#include <rdma/ib_umem.h>\n#include <rdma/ib_verbs.h>\n'
                         '#include <rdma/iter.h>\n#include <rdma/uverbs_ioctl.h>\n\n')
    f['dmabuf.c'].replace('\n#include "compat/compat.h"\n', '\n')
    f['linger.c'].replace('#include "compat/hrtimer.h"\n', '')
    f['linger.c'].cut(r'\A(.*?\*/\n)', r'\1#include <linux/hrtimer.h>\n')
    # net.py's patches have what stands in there.
    for name in ('tcp.c', 'sock.c', 'conn_rx.c', 'conn_run.c'):
        f[name].replace('#include "compat/net.h"\n', '')
    f['conn_tx.c'].replace('#include "compat/net.h"\n', '')
    f['conn_tx.c'].replace('#include <linux/sizes.h>\n', '#include <linux/sizes.h>\n#include <net/tcp.h>\n')
    f['sock.c'].replace('weft_sk_no_task_frag(sk);', 'sk->sk_use_task_frag = false;')

    device = f['device.c']
    device.replace('WEFT_OP_CREATE_CQ', 'weft_create_cq')
    device.replace('\tWEFT_OP_FILL_RES_SRQ\n', '\t.fill_res_srq_entry = weft_fill_res_srq,\n')
    device.replace('WEFT_OP_REG_USER_MR', 'weft_reg_user_mr')
    device.replace('WEFT_OP_REG_DMABUF_MR', 'weft_reg_dmabuf_mr')
    device.replace('\tWEFT_OP_RESIZE_CQ,\n', '\t.resize_user_cq = weft_resize_cq,\n')
    device.replace('\tif (!weft_gid_may_be_made_up)\n\t\treturn -ENODEV;\n', '')
    # The core tells of the port's state itself.
    device.drop_function('weft_port_changed')
    device.replace('\tdev->port_active = netdev_active(nd);\n', '')
    f['weft.h'].cut(r'^\tbool port_active;[^\n]*\n')
    f['verbs.h'].drop_function('weft_port_changed')
    f['verbs.h'].replace("/* The port's state or address changed", "/* The port's address changed")
    f['main.c'].replace('\tcase NETDEV_UP:\n\tcase NETDEV_DOWN:\n\tcase NETDEV_CHANGE:\n'
                        '\t\tweft_port_changed(dev, nd);\n\t\tbreak;\n', '')
    f['main.c'].cut(r'^/\* As MODULE_IMPORT_NS\(\)[^\n]*\nMODULE_INFO\(import_ns, "DMA_BUF"\);',
                    'MODULE_IMPORT_NS("DMA_BUF");')

    for name in ('weft_resize_cq_int', 'weft_create_cq_udata'):
        f['verbs.h'].drop_function(name)
    f['cq_verbs.c'].drop_function('weft_resize_cq_int')
    f['cq_verbs.c'].replace('int weft_create_cq_udata(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,\n'
                            '\t\t\t struct ib_udata *udata)',
                            'static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,\n'
                            '\t\t     struct ib_udata *udata)')
    f['cq_verbs.c'].replace('weft_create_cq_udata(', 'create_cq(')
    for name in ('weft_reg_user_mr_no_dmah', 'weft_reg_dmabuf_mr_no_dmah', 'weft_reg_dmabuf_mr_udata'):
        f['verbs.h'].drop_function(name)
    for name in ('weft_reg_dmabuf_mr_no_dmah', 'weft_reg_dmabuf_mr_udata'):
        f['mr.c'].drop_function(name)
    f['mr.c'].cut(r'struct ib_mr \*weft_reg_user_mr_no_dmah\((.*?)u64 iova,\n[\t ]+int access,',
                  r'static struct ib_mr *reg_user_mr(\1u64 iova,\n\t\t\t\t int access,')
    f['mr.c'].replace('weft_reg_user_mr_no_dmah(', 'reg_user_mr(')
    for name in ('mr.c', 'cm_active.c', 'ring_mem.c'):
        f[name].cut(r'kzalloc\(sizeof\((\*\w+)\), (\w+)\)', r'kzalloc_obj(\1, \2)')
    f['conn_limits.c'].replace('kzalloc(sizeof(*spare[i]), ', 'kzalloc_obj(*spare[i], ')


def bottom_halves(f):
    """Works of the BH workqueues, as compat/bh.h has them."""
    softirq = f['softirq.c']
    softirq.replace('#include "compat/bh.h"\n', '')
    softirq.replace('#include <linux/spinlock.h>\n', '#include <linux/spinlock.h>\n#include <linux/workqueue.h>\n')
    softirq.replace('struct weft_bh_work ', 'struct work_struct ')
    softirq.replace('weft_bh_work_owner(s, ', 'container_of(')
    softirq.text = re.sub(r'(container_of\(work, )', r'\1struct softirq, ', softirq.text)
    softirq.replace('weft_bh_work_init(', 'INIT_WORK(')
    softirq.replace('weft_bh_work_queue(', 'queue_work(system_bh_wq, ')
    softirq.replace('weft_bh_work_queue_first(', 'queue_work(system_bh_highpri_wq, ')
    softirq.replace('weft_bh_work_flush(', 'flush_work(')

    f['weft.h'].replace('#include "compat/bh.h"\n', '')
    f['weft.h'].replace('struct weft_bh_work more_calls;', 'struct work_struct more_calls;')
    cq = f['cq.c']
    cq.replace('(struct weft_bh_work *work)', '(struct work_struct *work)')
    cq.replace('weft_bh_work_owner(cq, work, more_calls)', 'container_of(work, struct weft_cq, more_calls)')
    cq.replace('weft_bh_work_init(', 'INIT_WORK(')
    cq.replace('weft_bh_work_queue(', 'queue_work(system_bh_wq, ')
    f['cq_verbs.c'].replace('\tweft_bh_work_retire(&cq->more_calls);\n', '')


def without_user_space(f):
    f['proto/port.h'].cut(r'#ifdef __KERNEL__\n\n(.*?)\n#else .*?#endif\n#endif\n', r'\1\n#endif\n')
    f['proto/port.h'].cut(r"/\*\n \* The engine's only header.*?\*/\n", '''/*
 * What the protocol and the queue logic use of the kernel: fixed-width types,
 * memory functions, assertions and a CRC. No allocation, lock, clock, socket
 * or log: they are tested in user space, over another page like this.
 */
''')
    f['core/host.h'].replace('(the driver, the tests, rootless)', '(the driver, or a test)')


def abi(f):
    """Upstream's own driver id; the assertions of the ABI stand in C, where no macro is needed."""
    header = f[ABI]
    header.cut(r'^/\* Private until upstream[^\n]*\n#define WEFT_DRIVER_ID[^\n]*\n')
    for name in ('device.c', 'main.c'):
        f[name].replace('WEFT_DRIVER_ID', 'RDMA_DRIVER_WEFT')
    found = re.search(r'/\* Expands A\(.*?\n#define WEFT_ABI_ASSERTS\(S, A\)(.*?)\n\n', header.text, re.S)
    asserts = []
    for kind, args in re.findall(r'\b([SA])\(([^)]*)\)', found[1]):
        args = [a.strip() for a in args.split(',')]
        if kind == 'S':
            asserts.append('static_assert(sizeof(struct %s) == %s);' % tuple(args))
        else:
            asserts.append('static_assert(offsetof(struct %s, %s) == %s);' % tuple(args))
    if len(asserts) < 80:
        die('%d assertions of the ABI' % len(asserts))
    header.text = header.text.replace(found[0], '')
    header.replace('docs/abi.md tells the\n * whys; size and offset of every field are asserted on both sides\n'
                   ' * (WEFT_ABI_ASSERTS below).',
                   'Size and offset of\n * every field are asserted on both sides.')
    f['core/ring.c'].cut(r'#define WEFT_ASSERT_SIZE.*?WEFT_ABI_ASSERTS\([^\n]*\n', '\n'.join(asserts) + '\n')
    for name, file in f.items():
        file.text = re.sub(r'#include "\.\./uapi/rdma/weft-abi\.h"', '#include <rdma/weft-abi.h>', file.text)


def columns(text):
    return len(text.expandtabs(8))


def break_at(limit, first, words):
    """How many of the words fit behind first."""
    n = len(words)
    while n > 1 and columns(first + ' '.join(words[:n])) > limit:
        n -= 1
    return n


def comment_lines(lines):
    """Comments within 100 columns, whose end stands by itself if they have several lines."""
    i = 0
    while i < len(lines):
        line = lines[i]
        inside = re.match(r'^(\s*) \* (.*?)( \*/)?$', line)
        if inside and inside[3]:
            lines[i:i + 1] = [inside[1] + ' * ' + inside[2], inside[1] + ' */']
            continue
        if columns(line) <= 100:
            i += 1
            continue
        alone = re.match(r'^(\t*)/\* (.*) \*/$', line)
        beside = re.match(r'^(\t*)(\S.*?)\s+(/\* .* \*/)$', line)
        begins = re.match(r'^(\t*\S.*?\s/\* )(?!.*\*/)(.*)$', line)
        if inside:
            start = inside[1] + ' * '
            words = inside[2].split(' ')
            n = break_at(100, start, words)
            rest = ' '.join(words[n:])
            lines[i] = start + ' '.join(words[:n])
            # On into what follows, if that is the same paragraph.
            if re.match(re.escape(start) + r'[^\s@(*-]', lines[i + 1]):
                lines[i + 1] = start + rest + ' ' + lines[i + 1][len(start):]
            else:
                lines.insert(i + 1, start + rest)
        elif alone:
            lines[i:i + 1] = [alone[1] + '/*', alone[1] + ' * ' + alone[2], alone[1] + ' */']
        elif beside:
            lines[i:i + 1] = [beside[1] + beside[3], beside[1] + beside[2]]
        elif begins:
            words = begins[2].split(' ')
            n = break_at(100, begins[1], words)
            lines[i] = begins[1] + ' '.join(words[:n])
            lines[i + 1] = re.sub(r'^(\s* \* )', lambda m: m[1] + ' '.join(words[n:]) + ' ', lines[i + 1])
        else:
            die('more than 100 columns: ' + line)


def as_checkpatch_likes(f):
    for file in f.values():
        if not file.name.endswith(('.c', '.h')):
            continue
        lines = re.sub('(?i)(acknowledg)ement', r'\1ment', file.text).split('\n')
        comment_lines(lines)
        file.text = '\n'.join(lines)


def pages(f):
    page = 'Documentation/infiniband/weft.rst'
    f['conn_run.c'].replace('docs/locking.md', page)
    f['tcp.h'].replace("without it; what net/ should offer is in compat/net.h. All but", 'without it. All but')
    f['weft.h'].replace('docs/locking.md', page)


def unit_tests():
    """tests/, as it is here, but for the programs that are left out and have no suite that says so."""
    stacks = ['test_%s.c' % name for name in STACKS] + ['test.h', 'rng.h']
    stacks += [name + end for name in ('host', 'post', 'link', 'wire', 'side', 'peer', 'world') for end in ('.c', '.h')]
    engine = [name for name in sorted(os.listdir(os.path.join(WEFT, 'tests/engine')))
              if re.match(r'(test_(?!crc).*|rig)\.[ch]$', name)]
    kunit = ['Kbuild', 'cmocka.c', 'libc.c', 'suites.c']
    include = os.path.join(WEFT, 'tests/kunit/include')
    kunit += [os.path.relpath(os.path.join(d, name), os.path.join(WEFT, 'tests/kunit'))
              for d, _, names in os.walk(include) for name in sorted(names)]
    f = {os.path.join(d, name): File(os.path.join(d, name), 'tests')
         for d, names in (('stacks', stacks), ('engine', engine), ('kunit', kunit)) for name in names}
    for file in f.values():
        file.text = file.text.replace('"../../kernel/', '"../../')
    kbuild = f['kunit/Kbuild']
    kbuild.cut(r'^#\n# weft_kunit.ko: .*?left_out.c has the reasons.\nleft-out := [^\n]*\n\n')
    kbuild.replace('$(filter-out $(left-out),$(call names,../engine/test_))', '$(call names,../engine/test_)')
    kbuild.replace('$(filter-out $(left-out),$(call names,../stacks/test_))', '$(call names,../stacks/test_)')
    kbuild.replace('../../kernel/', '../../')
    kbuild.cut(r'^# ud.c is [^\n]*\n')
    kbuild.replace('$(filter-out ud,$(call names,../../core/))', '$(call names,../../core/)')
    kbuild.replace('obj-m := weft_kunit.o', 'obj-$(CONFIG_RDMA_WEFT_KUNIT_TEST) := weft_kunit.o')
    kbuild.replace(' left_out.o', '')
    f['kunit/suites.c'].replace('#include "suites.h"\n\n', '')
    f['kunit/suites.c'].replace('PROGRAMS &weft_kunit_left_out', 'PROGRAMS')
    return f


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)


def main():
    f = files()
    newest_interfaces(f)
    bottom_halves(f)
    without_user_space(f)
    abi(f)
    pages(f)
    as_checkpatch_likes(f)
    for name, file in f.items():
        left = re.search(r'compat|WEFT_HAVE|WEFT_DRIVER_ID|docs/|#else /\* user', file.text)
        if left:
            die('%s still has %r' % (name, left[0]))
        write(os.path.join(TREE, 'include', name) if name == ABI else os.path.join(OUT, name), file.text)
    tests = unit_tests()
    as_checkpatch_likes(tests)
    for name, file in tests.items():
        write(os.path.join(OUT, 'tests', name), file.text)


main()
