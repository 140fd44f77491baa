#!/usr/bin/env python3
"""The headers that a provider of one private ABI of libibverbs is compiled with:
  headers.py --list                  the layouts: SINCE PABI, oldest first
  headers.py SOURCE OUT SINCE        fills OUT from a source of rdma-core of private ABI 34 (45 to 56)

A provider and libibverbs share structures that differ from release to release, at times within one
private ABI. SINCE names the first release that has a layout. What differs is the table below: releases
add operations to sorted structures, and no operation ever changes. So one source serves them all.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

BASE_PABI = 34

# since: private ABI, sizes of verbs_context, verbs_context_ops and ibv_qp_ex on x86-64; the first and the last have a
# mutex, which is longer elsewhere
LAYOUTS = {
    28: (25, 648, 536, 344),
    30: (25, 648, 536, 344),
    31: (25, 648, 584, 344),
    33: (33, 648, 576, 344),
    34: (34, 648, 584, 344),
    35: (34, 648, 600, 344),
    36: (34, 648, 608, 344),
    37: (34, 648, 608, 344),
    44: (34, 648, 608, 352),
    45: (34, 648, 608, 360),
    57: (57, 648, 608, 360),
    59: (59, 672, 632, 360),
    62: (59, 680, 648, 360),
    64: (64, 696, 664, 360),
    65: (65, 696, 744, 360),
}

# Operations that the source has, and releases before this one do not.
MISSING_OPS = {31: 'import_mr import_pd query_ece set_ece unimport_mr unimport_pd', 34: 'reg_dmabuf_mr', 35: 'import_dm unimport_dm', 36: 'query_qp_data_in_order'}
# Operations that the source has not, and releases before this one have.
OLD_OPS = {33: 'query_device'}
# Operations that the source has not, and releases since this one have.
NEW_OPS = {
    59: 'alloc_dmah dealloc_dmah reg_mr_ex',
    62: 'dm_export_dmabuf_fd query_port_speed',
    64: 'alloc_buf free_buf',
    65: 'create_comp_cntr destroy_comp_cntr inc_comp_cntr inc_err_comp_cntr qp_attach_comp_cntr '
        'query_comp_cntr_caps read_comp_cntr read_err_comp_cntr set_comp_cntr set_err_comp_cntr',
}
# The public table grows at its front.
NEW_CONTEXT_OPS = {59: 3, 62: 1, 64: 2}
# Arguments that the provider's calls have, as compat.h knows them.
NEW_ARGUMENTS = {
    57: ('ibv_cmd_get_context', 'size_t cmd_size,', 'struct ibv_fd_arr *fds,'),
    59: ('ibv_cmd_create_cq_ex', 'const struct ibv_cq_init_attr_ex *cq_attr,',
         'struct verbs_create_cq_prov_attr *prov,'),
}
FORWARD = 'struct ibv_fd_arr;\nstruct verbs_create_cq_prov_attr;\n'

CONFIG = '''#define HAVE_STATEMENT_EXPR 1
#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE_TYPEOF 1
#define VERBS_IOCTL_ONLY 0
#define VERBS_WRITE_ONLY 0
#define IBVERBS_PABI_VERSION %d
#define WEFT_QP_EX_SIZE (%d + sizeof(pthread_mutex_t) - 40)
'''
# What providers/weft/compat.h adapts to.
CONFIG_BEFORE = {
    30: '#define WEFT_CREATE_QP_EX_WITH_SIZE\n',
    31: '#define WEFT_WITHOUT_IMPORT\n',
    33: '#define WEFT_WITHOUT_QUERY_DEVICE_ANY\n',
    34: '#define WEFT_CREATE_CQ_EX_WITHOUT_FLAGS\n',
    37: '#define WEFT_WITHOUT_LOG\n',
    57: '#define WEFT_GET_CONTEXT_WITHOUT_FDS\n',
    59: '#define WEFT_CREATE_CQ_EX_WITHOUT_PROV\n',
}

CHECK = '''#include <infiniband/driver.h>
_Static_assert(sizeof(struct verbs_context) == %d + sizeof(pthread_mutex_t) - 40, "verbs_context");
_Static_assert(sizeof(struct verbs_context_ops) - %d == %d, "verbs_context_ops");
_Static_assert(sizeof(struct ibv_qp_ex) >= %d + sizeof(pthread_mutex_t) - 40, "ibv_qp_ex");
'''


def words(table, wanted):
    return [word for since, text in table.items() if wanted(since) for word in text.split()]


def member(name):
    """A member that points to a function, and what precedes it."""
    return re.compile(r'\n\t(?:[a-z_0-9]+ )+\**\(\*' + name + r'\)\s*\([^;]*;')


class Header:
    def __init__(self, file):
        self.file = file
        self.text = file.read_text()

    def inside(self, start, end, change):
        """Changes what stands between two marks, which must be there."""
        at = self.text.index(start) + len(start)
        to = self.text.index(end, at)
        self.text = self.text[:at] + change(self.text[at:to]) + self.text[to:]

    def inside_struct(self, name, change):
        self.inside('struct %s {' % name, '\n}', change)

    def write(self):
        self.file.unlink()
        self.file.write_text(self.text)


def take(text, name):
    """The structure without a member, and the member."""
    found = member(name).findall(text)
    if len(found) != 1:
        sys.exit('headers.py: %s is there %d times' % (name, len(found)))
    return text.replace(found[0], ''), found[0]


def at_the_end(names):
    """For members that the provider sets: where no older libibverbs looks."""
    def change(text):
        for name in names:
            text, found = take(text, name)
            text += found
        return text
    return change


def sorted_in(names):
    def change(text):
        for name in names:
            have = re.findall(r'\(\*([a-z_0-9]+)\)', text)
            after = next(one for one in have if one > name)
            _, found = take(text, after)
            text = text.replace(found, '\n\tvoid (*%s)(void);%s' % (name, found))
        return text
    return change


def change_driver(header, since):
    header.inside_struct('verbs_context_ops', at_the_end(words(MISSING_OPS, lambda n: since < n)))
    header.inside_struct('verbs_context_ops', sorted_in(words(OLD_OPS, lambda n: since < n)))
    header.inside_struct('verbs_context_ops', sorted_in(words(NEW_OPS, lambda n: since >= n)))
    for first, (function, before, argument) in NEW_ARGUMENTS.items():
        if since >= first:
            header.inside('int %s(' % function, ';', lambda s: s.replace(before, before + ' ' + argument, 1))
    if since < 31:
        header.inside_struct('verbs_device_ops', at_the_end(['import_context']))
    if since < 30:
        header.inside('int ibv_cmd_create_qp_ex(', ';', lambda s: s.replace('*qp,', '*qp, int vqp_sz,', 1))
    if since < 34:
        header.inside('int ibv_cmd_create_cq_ex(', ';', lambda s: re.sub(r',\s*uint32_t cmd_flags', '', s))
    header.text = header.text.replace('struct verbs_device;', FORWARD + 'struct verbs_device;', 1)


def change_verbs(header, since):
    new = sum(count for first, count in NEW_CONTEXT_OPS.items() if since >= first)
    header.inside_struct('verbs_context', lambda s: '\n\tvoid (*newer[%d])(void);' % new * bool(new) + s)


def main():
    if sys.argv[1:] == ['--list']:
        for since, (pabi, *_) in LAYOUTS.items():
            print(since, pabi)
        return
    source, out, since = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    pabi, context, ops, qp_ex = LAYOUTS[since]
    if 'IBVERBS_PABI_VERSION "%d"' % BASE_PABI not in (source / 'CMakeLists.txt').read_text():
        sys.exit('headers.py: %s has not the private ABI %d' % (source, BASE_PABI))
    shutil.rmtree(out, ignore_errors=True)
    for place, files in {'infiniband': 'libibverbs/*.h', 'rdma': 'kernel-headers/rdma/*.h',
                         'util': 'util/*.h', 'ccan': 'ccan/*.h'}.items():
        (out / place).mkdir(parents=True)
        for file in source.glob(files):
            shutil.copy(file, out / place)
    shutil.copy(out / 'rdma/ib_user_ioctl_verbs.h', out / 'infiniband')
    shutil.copy(Path(__file__).parents[2] / 'kernel/uapi/rdma/weft-abi.h', out / 'rdma')
    for name, change in ('driver', change_driver), ('verbs', change_verbs):
        header = Header(out / 'infiniband' / (name + '.h'))
        change(header, since)
        header.write()
    (out / 'config.h').write_text(CONFIG % (pabi, qp_ex) +
                                   ''.join(text for first, text in CONFIG_BEFORE.items() if since < first))
    moved = 8 * len(words(MISSING_OPS, lambda n: since < n))
    (out / 'check.c').write_text(CHECK % (context, moved, ops, qp_ex))
    (out / 'kernel-abi').mkdir()
    for name in 'ib_user_verbs.h', 'weft-abi.h':
        subprocess.run([sys.executable, source / 'buildlib/make_abi_structs.py', out / 'rdma' / name,
                        out / 'kernel-abi' / name], check=True)


main()
