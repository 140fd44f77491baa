/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One MPA connection: bytes in, events out; messages in, FPDUs out.
 *
 * Locking: none here; the caller holds the connection's one lock (in the
 * driver the socket's). No function blocks, allocates or reads a clock.
 *
 * Receiving. The host lists the bytes it got and calls weft_stream_rx() until
 * it returns WEFT_RX_MORE: by then every byte has been consumed, for bytes
 * left in TCP can close its window for ever. An FPDU that is whole in hand is
 * reported in place; of one that is not, the bytes are copied to the stage,
 * chunks that the host lends when WEFT_RX_CHUNK asks for one. A host without
 * memory leaves the rest in TCP, and comes back with it. With Markers
 * (we asked for them) every FPDU goes through the stage, which strips them.
 * Nothing of an FPDU is reported before it is whole and, with CRC, verified
 * (RFC 5044 §6). The exception is a long FPDU that the caller takes in parts:
 * WEFT_RX_HEAD.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include "mpa.h"
#include "rdmap.h"

#define WEFT_STAGE_CHUNK	4096
/* ULPDU_Length is 16 bits: length, ULPDU, pad, CRC */
#define WEFT_STAGE_CHUNKS	DIV_ROUND_UP(2 + 65535 + 3 + 4, WEFT_STAGE_CHUNK)

enum weft_rx_event {
	WEFT_RX_MORE,			/* all bytes consumed: come back with new ones */
	WEFT_RX_CHUNK,			/* lend a chunk with weft_stream_lend(), call again */
	WEFT_RX_STARTUP,		/* a whole start-up frame stands in st->frame */
	WEFT_RX_FPDU,			/* a whole, verified FPDU is in *fpdu */
	/*
	 * The header of an FPDU that is not whole is in *fpdu, with payload_len, but without
	 * payload: a Write, a Send or a Read Response of part_min octets or more. It is staged
	 * unless weft_stream_take_parts() is called now.
	 */
	WEFT_RX_HEAD,
	/*
	 * Octets of such an FPDU, not verified. *fpdu is a segment of these octets alone, and not
	 * the last one of its message. WEFT_RX_FPDU then has the rest, once all is verified.
	 */
	WEFT_RX_PART,
	WEFT_RX_ERROR,			/* st->rx_error; every later byte is discarded */
};

/*
 * A received segment. Valid until the next weft_stream_rx() on its stream.
 * With WEFT_RX_ERROR it tells what the Terminate needs: ddp, raw, raw_len and
 * ulpdu_len when a header was at fault; all zero when MPA was (LLP errors
 * carry no headers). A ULPDU too short for its DDP header leaves ddp zero.
 */
struct weft_fpdu {
	struct weft_ddp_hdr ddp;
	/*
	 * The ULPDU's first bytes, for a Terminate: the DDP header; of untagged
	 * messages other than Sends, also the octets after it that fit.
	 */
	u8 raw[WEFT_HEAD_MAX - 2];
	u8 raw_len;
	u16 ulpdu_len;
	struct weft_cur payload;	/* what follows the DDP header */
	u32 payload_len;
};

/* What the stream awaits. Order matters: later ones are Full Operation. */
enum weft_rx_state {
	WEFT_AWAIT_REQUEST,
	WEFT_AWAIT_REPLY,
	WEFT_AWAIT_START,		/* frame done, weft_stream_start() not yet called */
	WEFT_AWAIT_FPDU,
	WEFT_RX_DEAD,			/* after an error or stop: bytes are discarded */
};

enum weft_rx_parts {
	WEFT_PARTS_UNDECIDED,
	WEFT_PARTS_NONE,		/* it is staged */
	WEFT_PARTS_TAKEN,
};

/*
 * These last octets of a payload are never a part: a reader of a Write may poll its last aligned 8
 * octets and those after them, which are stored when all others are.
 */
#define WEFT_PART_REST	16

struct weft_stream {
	struct weft_mpa_agreed agreed;
	bool initiator;
	bool started;			/* Full Operation was entered */
	bool ext;			/* RFC 7306 opcodes allowed */

	/* receive */
	enum weft_rx_state rx_state;
	enum weft_err rx_error;
	u32 rx_marker_pos;		/* modulo 512, counts all octets */
	u32 rx_staged;			/* octets of the current unit in hand, Markers stripped */
	u32 rx_need;			/* octets of the current unit, 0 while unknown */
	u32 rx_crc;			/* over what is staged, and its Markers */
	bool rx_reported;		/* the staged FPDU is: dropped at the next call */
	bool rx_kept;			/* or, weft_stream_keep(), reported once more */
	bool rx_marker_bad;		/* a Marker of the current FPDU points elsewhere */
	u32 part_min;			/* payload of FPDUs that may be taken in parts, more than
					 * WEFT_PART_REST; 0: none */
	enum weft_rx_parts rx_parts;	/* how the current FPDU is taken */
	u32 rx_parted;			/* octets of its payload that were; the stage has no
					 * place for them */
	u32 nchunk;
	union {
		/* until weft_stream_start(): the peer's frame as it comes in */
		u8 startup[WEFT_MPA_FRAME_MAX];
		/* and then: nchunk of them */
		struct {
			u8 *chunk[WEFT_STAGE_CHUNKS];	/* lent by the host: weft_stream_lend() */
			struct weft_seg stage_seg[WEFT_STAGE_CHUNKS]; /* as pieces for a cursor */
		};
	};
	u8 marker[WEFT_MPA_MARKER_SIZE];
	u32 rx_fpdus;			/* whole FPDUs received, valid ones by MPA's rules */

	/* start-up */
	struct weft_mpa_frame frame;	/* WEFT_RX_STARTUP: what it says */
	const u8 *pd;			/* and its private data, frame.pd_len bytes in startup[],
					 * so until weft_stream_start() */

	/* send */
	bool tx_gate;			/* MPA-30: responder holds until a first FPDU came */
	u32 tx_marker_pos;
};

/* Begins a connection. Responder: awaits a Request; initiator: a Reply. */
void weft_stream_init(struct weft_stream *st, bool initiator);

/*
 * Enters Full Operation with what the frames agreed on. Initiator: any time
 * after the Reply; responder: once its Reply is handed to TCP. Bytes that came
 * behind a start-up frame have made WEFT_RX_ERROR of WEFT_RX_STARTUP before
 * (responder: a Request must stand alone, RFC 5044 §7.1.1); behind a Reply
 * they are the peer's first FPDUs and are kept: see weft_stream_rx().
 */
void weft_stream_start(struct weft_stream *st, const struct weft_mpa_agreed *agreed);

/* Discards everything from now on (a Terminate went out, or the QP is in error). */
void weft_stream_stop(struct weft_stream *st);

/*
 * One step: consumes bytes of @in and returns what the host must do next.
 * Between WEFT_RX_STARTUP and weft_stream_start() a Reply's receiver calls no
 * more: bytes still in @in stay there, and the host starts the stream before
 * it goes on (it can do so at once: the Reply has all that is needed). A
 * responder that has a whole Request consumes and answers any further byte
 * with WEFT_RX_ERROR.
 */
enum weft_rx_event weft_stream_rx(struct weft_stream *st, struct weft_cur *in,
				  struct weft_fpdu *fpdu);

/*
 * The FPDU that was just reported is to be reported once more: *@in goes back to *@before,
 * where it was before that call, unless the FPDU lies in the stage.
 */
void weft_stream_keep(struct weft_stream *st, struct weft_cur *in, const struct weft_cur *before);

/* Answers WEFT_RX_HEAD. */
void weft_stream_take_parts(struct weft_stream *st);

/*
 * Answers WEFT_RX_CHUNK, and only that: lends the stage one more chunk of
 * WEFT_STAGE_CHUNK bytes. Without an answer the next weft_stream_rx() asks again,
 * for the same bytes.
 */
void weft_stream_lend(struct weft_stream *st, u8 *chunk);

/*
 * Takes back a chunk that the stage does not need now; NULL when none is left.
 * @all: also those in use; the stream is stopped (the connection ends).
 */
u8 *weft_stream_reclaim(struct weft_stream *st, bool all);

/* May this end send FPDUs now? (Full Operation, and RFC 5044 §7.1.2(4).) */
static inline bool weft_stream_may_send(const struct weft_stream *st)
{
	return st->started && !st->tx_gate;
}

/*
 * May this end send a Terminate now? The first FPDU may be the error to report
 * (RFC 5044 §8), so the gate does not hold it; before Full Operation there is
 * nothing to send it in.
 */
static inline bool weft_stream_may_terminate(const struct weft_stream *st)
{
	return st->started;
}

/* A message on its way out. Filled by the owner, advanced by weft_stream_tx(). */
struct weft_tx_msg {
	enum weft_opcode op;
	u32 stag;			/* tagged: sink STag */
	u64 to;				/* tagged: sink TO of the first byte */
	u32 msn;			/* untagged */
	u32 inv_stag;
	u32 len;			/* payload bytes in all, ULP header excluded */
	u32 done;			/* payload bytes already cut into FPDUs */
	bool started;			/* a first FPDU was cut (matters for len 0) */
	u8 ulp[WEFT_TERM_MAX];		/* RDMAP header behind DDP's (Read Request, Terminate,
					 * Immediate): only for single-segment messages */
	u8 ulp_len;
};
static_assert(WEFT_TERM_MAX >= WEFT_ATOMIC_REQ_LEN, "ulp[] holds each RDMAP header");

/* An FPDU to send: these octets, then payload_len of the message's, then the trailer. */
struct weft_tx_fpdu {
	u8 head[WEFT_HEAD_MAX];		/* ULPDU_Length, DDP header, RDMAP header */
	u32 head_len;
	u32 payload_off;		/* in the message */
	u32 payload_len;
	u32 ulpdu_len;
	bool last;			/* the message ends here */
};

/*
 * Cuts the next FPDU, of at most @max_ulpdu octets of ULPDU, off @m. Caller:
 * @m is not finished (weft_tx_msg_finished()), and max_ulpdu >= 128.
 */
void weft_stream_tx(struct weft_tx_msg *m, u32 max_ulpdu, struct weft_tx_fpdu *f);

static inline bool weft_tx_msg_finished(const struct weft_tx_msg *m)
{
	return m->started && m->done == m->len;
}

/* Octets that an FPDU with @ulpdu_len takes on the wire now, Markers included. */
u32 weft_stream_tx_wire_len(const struct weft_stream *st, u32 ulpdu_len);

/*
 * The largest ULPDU whose FPDU takes at most @room octets on the wire now,
 * Markers included, and is at most 64768; 0 if not even an empty one fits.
 */
u32 weft_stream_tx_max_ulpdu(const struct weft_stream *st, u32 room);

/* Begins to write an FPDU for @f at @out (weft_emit_bytes, weft_emit_end follow
 * for its payload); writes f->head. Accounts for Markers: call it once an FPDU,
 * in order. (Sending by reference is possible only without Markers, and then
 * there is nothing to account for.)
 */
void weft_stream_tx_emit(struct weft_stream *st, const struct weft_tx_fpdu *f,
			 struct weft_emit *e, u8 *out);

#endif
