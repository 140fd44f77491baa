/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What weft asks of TCP. Each comment names the function that is mirrored, and what would happen
 * without it; what net/ should offer is in compat/net.h. All but weft_tcp_exit() are called with
 * the socket's lock.
 */
#ifndef WEFT_TCP_H
#define WEFT_TCP_H

#include <net/sock.h>

/*
 * Where in a segment will the next octet handed to TCP lie? *@mss is the segment size, or
 * @smallest; *@off is the number of octets already in that segment. Mirrors the choice of the skb
 * in tcp_sendmsg_locked(). Without it FPDUs straddle segments, which RNICs place slowly; nothing
 * breaks.
 */
void weft_tcp_next_segment(struct sock *sk, u32 smallest, u32 *mss, u32 *off);

/*
 * How many octets TCP takes now, or 0. Mirrors sk_stream_memory_free(). Without it we would build
 * batches that TCP refuses, and copy them to keep them.
 */
u32 weft_tcp_room(const struct sock *sk);

/*
 * Reserves memory for a start-up frame, to be used by @sk's next weft_tcp_send(). Does not
 * reclaim. False: there is none. Socket lock.
 */
bool weft_tcp_has_memory(struct sock *sk);

/*
 * Hands @len octets of @iov to TCP, which copies them. Returns how many it took, or -errno.
 * Mirrors sk_page_frag(): TCP copies into a page fragment of this CPU, lent to the socket for the
 * call. Without it every idle connection would keep 32 KB.
 */
int weft_tcp_send(struct sock *sk, const struct kvec *iov, u32 niov, u32 len, int flags);

/*
 * Are TCP's queues empty, so that no acknowledgement will make room? Mirrors
 * tcp_rtx_and_write_queues_empty() (an inline). Without it a sender waits forever if TCP ran out
 * of memory.
 */
bool weft_tcp_is_drained(const struct sock *sk);

/*
 * What the peer has shown of itself: octets acknowledged, ms since its last segment, and what TCP
 * has sent in vain since: retransmissions, window probes, keepalives. Mirrors tcp_get_info()
 * (tcpi_bytes_acked, the later of tcpi_last_ack_recv and tcpi_last_data_recv, the larger of
 * tcpi_retransmits and tcpi_probes), which takes the socket's lock. Without it a slow peer looks
 * dead, and the octets that TCP still holds for it are lost.
 */
struct weft_tcp_signs {
	u64 acked;
	u32 idle_ms, unanswered;
};

struct weft_tcp_signs weft_tcp_signs(const struct sock *sk);

/*
 * Data segments sent, including retransmissions, modulo 2^32: tcpi_data_segs_out. Only for
 * counters.
 */
u32 weft_tcp_segments_out(const struct sock *sk);

/* Urgent data stops tcp_read_sock() for good. Mirrors the test in tcp_recv_skb()'s callers. */
bool weft_tcp_has_urgent_data(const struct sock *sk);

/* Frees the page fragments that CPUs cache. No connection is left. No lock. */
void weft_tcp_exit(void);

#endif
