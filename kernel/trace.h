/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tracepoints: /sys/kernel/tracing/events/weft. A run is what one call of TCP
 * brought or took, not an FPDU: with all of them on, a fast connection still is
 * one. Events of a QP carry what an error and a Terminate were.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM weft

#if !defined(WEFT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WEFT_TRACE_H

#include <linux/tracepoint.h>

#include "conn.h"

TRACE_DEFINE_ENUM(WEFT_EV_TERM_SENT);
TRACE_DEFINE_ENUM(WEFT_EV_TERM_RECEIVED);
TRACE_DEFINE_ENUM(WEFT_EV_LOCAL_ERROR);
TRACE_DEFINE_ENUM(WEFT_EV_RTS);
TRACE_DEFINE_ENUM(WEFT_EV_FLUSHED);

TRACE_DEFINE_ENUM(WEFT_LINK_CONNECTING);
TRACE_DEFINE_ENUM(WEFT_LINK_AWAIT_REPLY);
TRACE_DEFINE_ENUM(WEFT_LINK_AWAIT_REQUEST);
TRACE_DEFINE_ENUM(WEFT_LINK_REQUESTED);
TRACE_DEFINE_ENUM(WEFT_LINK_OPEN);
TRACE_DEFINE_ENUM(WEFT_LINK_CLOSING);
TRACE_DEFINE_ENUM(WEFT_LINK_DEAD);

/* A listener has no state of a link. */
#define WEFT_TRACE_LISTENING	(WEFT_LINK_DEAD + 1)

#define weft_show_event(ev)					\
	__print_symbolic(ev,					\
		{ WEFT_EV_TERM_SENT,		"term-sent" },	\
		{ WEFT_EV_TERM_RECEIVED,	"term-received" }, \
		{ WEFT_EV_LOCAL_ERROR,		"local-error" }, \
		{ WEFT_EV_RTS,			"first-fpdu" },	\
		{ WEFT_EV_FLUSHED,		"flushed" })

#define weft_show_state(state)					\
	__print_symbolic(state,					\
		{ WEFT_LINK_CONNECTING,		"connecting" },	\
		{ WEFT_LINK_AWAIT_REPLY,	"await-reply" }, \
		{ WEFT_LINK_AWAIT_REQUEST,	"await-request" }, \
		{ WEFT_LINK_REQUESTED,		"requested" },	\
		{ WEFT_LINK_OPEN,		"open" },	\
		{ WEFT_LINK_CLOSING,		"closing" },	\
		{ WEFT_LINK_DEAD,		"dead" },	\
		{ WEFT_TRACE_LISTENING,		"listening" })

/* A doorbell: the kernel slept, and there is something in a ring. */
TRACE_EVENT(weft_kick,
	TP_PROTO(u32 qpn),
	TP_ARGS(qpn),
	TP_STRUCT__entry(
		__field(u32, qpn)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
	),
	TP_printk("qp %u", __entry->qpn)
);

DECLARE_EVENT_CLASS(weft_run,
	TP_PROTO(u32 qpn, u32 fpdus, u32 octets),
	TP_ARGS(qpn, fpdus, octets),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, fpdus)
		__field(u32, octets)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
		__entry->fpdus = fpdus;
		__entry->octets = octets;
	),
	TP_printk("qp %u: %u FPDUs, %u octets", __entry->qpn, __entry->fpdus, __entry->octets)
);

DEFINE_EVENT(weft_run, weft_rx,
	TP_PROTO(u32 qpn, u32 fpdus, u32 octets), TP_ARGS(qpn, fpdus, octets));
DEFINE_EVENT(weft_run, weft_tx,
	TP_PROTO(u32 qpn, u32 fpdus, u32 octets), TP_ARGS(qpn, fpdus, octets));

/* Layer, type and code are those of the Terminate, of the two that speak of one. */
TRACE_EVENT(weft_qp,
	TP_PROTO(const struct weft_qpc *qp, enum weft_event ev),
	TP_ARGS(qp, ev),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, error)
		__field(u8, ev)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, code)
	),
	TP_fast_assign(
		const struct weft_term *t = ev == WEFT_EV_TERM_SENT ? &qp->term_out :
					    ev == WEFT_EV_TERM_RECEIVED ? &qp->term_in : NULL;

		__entry->qpn = qp->id;
		__entry->error = qp->error;
		__entry->ev = ev;
		__entry->layer = t ? t->layer : 0;
		__entry->etype = t ? t->etype : 0;
		__entry->code = t ? t->code : 0;
	),
	TP_printk("qp %u: %s, error %u, terminate %u/%u/0x%02x", __entry->qpn,
		  weft_show_event(__entry->ev), __entry->error, __entry->layer, __entry->etype,
		  __entry->code)
);

/*
 * A step of a connection's life; its mutex is held. @qpn is 0 without a QP, and MPA's
 * revision and CRC are 0 until they are agreed.
 */
TRACE_EVENT(weft_conn,
	TP_PROTO(const struct weft_conn *conn, enum weft_link_state from),
	TP_ARGS(conn, from),
	TP_STRUCT__entry(
		__field(const void *, conn)
		__field(u32, qpn)
		__field(u8, from)
		__field(u8, to)
		__field(u8, rev)
		__field(bool, crc)
	),
	TP_fast_assign(
		const struct weft_qpc *qp = READ_ONCE(conn->link.qp);

		__entry->conn = conn;
		__entry->qpn = qp ? qp->id : 0;
		__entry->from = conn->listening ? WEFT_TRACE_LISTENING : from;
		__entry->to = conn->link.state;
		__entry->rev = READ_ONCE(conn->link.st.agreed.rev);
		__entry->crc = READ_ONCE(conn->link.st.agreed.crc);
	),
	TP_printk("%p: %s -> %s, qp %u, revision %u, CRC %u", __entry->conn,
		  weft_show_state(__entry->from), weft_show_state(__entry->to), __entry->qpn,
		  __entry->rev, __entry->crc)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
