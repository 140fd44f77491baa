#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The patches of net/ that the driver is built on:

    net.py WEFT REPO NUMBER     applies one of them to REPO, and prints its message
    net.py files                prints the files that they change

The functions are those of WEFT's kernel/compat/net.h. Whatever is replaced must be there as it is written here.
"""
import os
import re
import sys

SOCK_H, TCP_H = 'include/net/sock.h', 'include/net/tcp.h'
ICMP, ICMP6 = 'net/ipv4/icmp.c', 'net/ipv6/icmp.c'
OUTPUT, MPTCP = 'net/ipv4/tcp_output.c', 'net/mptcp/protocol.c'
FILES = (SOCK_H, TCP_H, ICMP, ICMP6, OUTPUT, MPTCP)


def die(text):
    sys.exit('net.py: ' + text)


class Patch:
    def __init__(self, weft, repo):
        with open(os.path.join(weft, 'kernel/compat/net.h'), encoding='utf-8') as f:
            self.compat = f.read()
        self.repo = repo

    def function(self, name):
        """With its kernel-doc, as the newest kernel has it."""
        found = re.search(r'/\*\*\n \* %s - .*?\n\}\n' % name, self.compat, re.S)
        if not found:
            die('compat/net.h has no ' + name)
        return re.sub(r'#ifdef [^\n]*\n(.*?)#else\n.*?#endif\n', r'\1', found[0], flags=re.S)

    def edit(self, name, old, new):
        """Replaces the one occurrence of old."""
        path = os.path.join(self.repo, name)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        if text.count(old) != 1:
            die('%s has %d of %r' % (name, text.count(old), old))
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text.replace(old, new))

    def insert(self, name, after, *functions):
        self.edit(name, after, after + '\n' + '\n'.join(self.function(f) for f in functions))

    def export(self, after, name):
        """A function of its own of tcp_output.c, for modules."""
        text = self.function(name).replace('static inline ', '')
        head = re.search(r'^[^\n/* ][^{]*(?=\n\{)', text, re.M)[0]
        self.edit(OUTPUT, after, '%s\n%sEXPORT_SYMBOL_GPL(%s);\n' % (after, text, name))
        return head + ';\n'


def trylock(p):
    p.insert(SOCK_H, '#define bh_unlock_sock(__sk)\tspin_unlock(&((__sk)->sk_lock.slock))\n', 'bh_trylock_sock')
    for name in (ICMP, ICMP6):
        p.edit(name, 'spin_trylock(&sk->sk_lock.slock)', 'bh_trylock_sock(sk)')
    return '''net: Add bh_trylock_sock()

ICMP takes the spinlock of its own sockets without waiting, by its name. RDMA
over TCP has the same wish: ib_post_send() may be called with a spinlock held,
and sends at once unless another CPU is at work on the connection. espintcp
does without: it takes bh_lock_sock() and queues if the socket has an owner.

Give the pattern a name beside bh_lock_sock(), and let ICMP use it.'''


def page_frag(p):
    p.insert(SOCK_H, 'bool sk_page_frag_refill(struct sock *sk, struct page_frag *pfrag);\n',
             'sk_give_page_frag', 'sk_take_page_frag')
    return '''net: Let a kernel socket's owner lend it a page fragment

A kernel socket that may be written to in softirq cannot use the task's page
fragment, and keeps one of its own, up to 32 KB, for as long as it lives. With
thousands of mostly idle connections that is most of their memory. nvme-tcp
and espintcp have such sockets, too.

The owner may lend a fragment of its own for a call, and take back what is left
of it. sk_page_frag_refill() needs no change.'''


def end_of_record(p):
    p.insert(TCP_H, '''static inline struct sk_buff *tcp_write_queue_tail(const struct sock *sk)
{
	return skb_peek_tail(&sk->sk_write_queue);
}
''', 'tcp_mark_tail_eor')
    p.edit(MPTCP, '''			TCP_SKB_CB(skb)->eor = 1;
			tcp_mark_push(tcp_sk(ssk), skb);
			goto alloc_skb;''', '''			tcp_mark_tail_eor(ssk);
			tcp_mark_push(tcp_sk(ssk), skb);
			goto alloc_skb;''')
    return '''tcp: Add tcp_mark_tail_eor()

MSG_EOR lets a segment end with the octets of a call. Whether a segment should
end is sometimes known at the next call only: MPTCP finds that its mapping
cannot go on in the skb at the tail, and RDMA over TCP that the next FPDU does
not fit into the segment that the last one left open (RFC 5044, section 5).

Give what MPTCP does by hand a name, so that others need no TCP_SKB_CB().'''


def current_mss(p):
    p.edit(OUTPUT, '''		mss_now -= delta;
	}

	return mss_now;
}

/* RFC2861,''', '''		mss_now -= delta;
	}

	return mss_now;
}
EXPORT_SYMBOL_GPL(tcp_current_mss);

/* RFC2861,''')
    return '''tcp: Export tcp_current_mss()

A ULP that aligns its frames with segments (RFC 5044, section 5) must know their
size before it builds the frames, with the socket's lock held. TCP_INFO has it,
but tcp_get_info() takes that lock. siw reads tp->mss_cache without one.'''


def window(p):
    is_stale = p.export('EXPORT_SYMBOL_GPL(__tcp_send_ack);\n', 'tcp_window_is_stale')
    update = p.export('EXPORT_SYMBOL_GPL(tcp_window_is_stale);\n', 'tcp_send_window_update')
    p.edit(TCP_H, 'void tcp_send_ack(struct sock *sk);\n', 'void tcp_send_ack(struct sock *sk);\n' + is_stale + update)
    return '''tcp: Let readers in softirq open a window that the backlog has closed

A reader that owns the socket gets what arrives meanwhile from release_sock(),
by sk_data_ready(). While the backlog is processed its memory still counts as in
use, so that __tcp_select_window() may answer 0 although all has been read; and
nothing is read later that would open the window. The peer then waits for its
window probe, 200 ms or more.

strparser (kcm, tls, espintcp) avoids this: it leaves the reading to a work if the
socket has an owner. RDMA over TCP reads at once, which saves a wake-up for each
request. Add a test, and a call for when softirqs are off and the backlog is
empty. __tcp_send_ack() then needs no caller outside of net/.'''


PATCHES = (trylock, page_frag, end_of_record, current_mss, window)


def main():
    if sys.argv[1:] == ['files']:
        print('\n'.join(FILES))
        return
    weft, repo, number = sys.argv[1:]
    print(PATCHES[int(number) - 1](Patch(weft, repo)))


if __name__ == '__main__':
    main()
