/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the driver takes from inside TCP: the calls that a kernel with weft in it would
 * get from net/ipv4. Each names the function there that it mirrors, and what happens
 * without it. All but weft_tcp_exit() are called with the socket's lock.
 */
#ifndef WEFT_TCP_H
#define WEFT_TCP_H

#include <net/sock.h>

/*
 * Where the next octet handed to TCP will lie: *@mss is the size of a segment, or @smallest,
 * *@off the octets in the segment that the octet continues. Mirrors tcp_current_mss() (not
 * exported) and the choice of the skb in tcp_sendmsg_locked(). Without it FPDUs straddle
 * segments, which an RNIC places slowly; nothing breaks.
 */
void weft_tcp_next_segment(struct sock *sk, u32 smallest, u32 *mss, u32 *off);

/*
 * The next octet begins a segment. Mirrors what MSG_EOR leaves in the tail of the write
 * queue. Without it an FPDU that fits no more begins in the middle of a segment.
 */
void weft_tcp_end_segment(struct sock *sk);

/*
 * Octets that TCP takes now, 0 if none: mirrors sk_stream_memory_free(). Without it batches
 * are built that TCP refuses, and copied to be kept.
 */
u32 weft_tcp_room(const struct sock *sk);

/*
 * Is there memory for a start-up frame, which @sk's next call of weft_tcp_send() then has? Reclaims
 * nothing. Socket lock.
 */
bool weft_tcp_has_memory(struct sock *sk);

/*
 * Hands @len octets of @iov to TCP, which copies them: how many it took, or -errno. Mirrors
 * sk_page_frag(): TCP's copies go to a fragment of this CPU, lent to the socket for the call.
 * Without the loan every idle connection keeps 32 KB.
 */
int weft_tcp_send(struct sock *sk, const struct kvec *iov, u32 niov, u32 len, int flags);

/* Is nothing waiting, sent or not, whose acknowledgement would make room? Mirrors
 * tcp_rtx_and_write_queues_empty() (an inline). Without it a sender that TCP
 * had no memory for waits for ever.
 */
bool weft_tcp_is_drained(const struct sock *sk);

/*
 * What the peer has acknowledged of our octets, and how long ago it was last heard, in ms.
 * Mirrors tcp_get_info() (tcpi_bytes_acked, tcpi_last_ack_recv), which takes the socket's
 * lock. Without it a slow peer looks like one that is gone, and loses the octets that TCP has.
 */
void weft_tcp_acked(const struct sock *sk, u64 *octets, u32 *idle_ms);

/* Data segments sent, retransmitted ones included, modulo 2^32: tcpi_data_segs_out. For
 * counters alone.
 */
u32 weft_tcp_segments_out(const struct sock *sk);

/*
 * Is the window that was advertised less than half of the real one? Mirrors
 * __tcp_select_window(), whose answer is wrong while TCP works off its backlog: see tcp.c.
 * Without it such a peer waits for its own probe, 200 ms and more.
 */
bool weft_tcp_window_is_stale(const struct sock *sk);

/* Tells the peer of the window as it is: __tcp_send_ack(). Softirqs are off, and there is no backlog. */
void weft_tcp_open_window(struct sock *sk);

/* Urgent data stops tcp_read_sock() for ever; mirrors the test in tcp_recv_skb()'s callers. */
bool weft_tcp_has_urgent_data(const struct sock *sk);

/* Gives back the fragments that CPUs keep. No connection is left; no lock. */
void weft_tcp_exit(void);

#endif
