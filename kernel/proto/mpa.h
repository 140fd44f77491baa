/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MPA (RFC 5044) and its enhanced connection set-up (RFC 6581): start-up
 * frames and what two of them agree on; FPDU sizes; Markers; the trailer.
 */
#ifndef WEFT_MPA_H
#define WEFT_MPA_H

#include "bytes.h"
#include "err.h"

#define WEFT_MPA_KEY_LEN	16
#define WEFT_MPA_FRAME_LEN	20	/* key, flags, revision, PD_Length */
#define WEFT_MPA_PD_MAX		512	/* RFC 5044 §7.1.1 */
#define WEFT_MPA_ENH_LEN	4	/* IRD and ORD words, RFC 6581 §9 */
#define WEFT_MPA_FRAME_MAX	(WEFT_MPA_FRAME_LEN + WEFT_MPA_PD_MAX)
#define WEFT_MPA_NO_NEGOTIATION	0x3FFF	/* RFC 6581 §9.1 */

#define WEFT_MPA_LEN_SIZE	2	/* ULPDU_Length */
#define WEFT_MPA_CRC_SIZE	4
#define WEFT_MPA_ULPDU_MAX	64768	/* largest one sent, RFC 5044 §3 */
#define WEFT_MPA_ULPDU_MIN_MULPDU 128	/* RFC 5044 §4.5 */
#define WEFT_MPA_MARKER_EVERY	512
#define WEFT_MPA_MARKER_SIZE	4

/* Kinds of the "ready to receive" message, RFC 6581 §9.2. */
enum {
	WEFT_RTR_SEND	= 1,		/* bit B: zero-length Send */
	WEFT_RTR_WRITE	= 2,		/* bit C: zero-length RDMA Write */
	WEFT_RTR_READ	= 4,		/* bit D: zero-length RDMA Read */
	WEFT_RTR_ALL	= 7,
};

/* A start-up frame in host order; private data is carried beside it. */
struct weft_mpa_frame {
	bool reply;			/* which key */
	bool markers;			/* M: the sender of this frame wants Markers */
	bool crc;			/* C */
	bool reject;			/* R, meaningful in a Reply */
	bool enhanced;			/* S, only honoured when rev >= 2 */
	u8 rev;
	/* Valid when enhanced: */
	bool p2p;			/* A */
	u8 rtr;				/* B, C, D as WEFT_RTR_ bits */
	u16 ird, ord;			/* 14 bits each */
	u16 pd_len;			/* the ULP's private data: without the 4 enhanced bytes */
};

/* What this end wants of a connection. */
struct weft_mpa_cfg {
	u8 rev;				/* 1 or 2: highest one spoken */
	bool crc;			/* ask for CRC */
	bool markers;			/* ask to receive Markers */
	bool p2p;			/* initiator: ask for peer-to-peer (needs rev 2) */
	u8 rtr;				/* kinds this end can send and accept */
	u16 ird, ord;			/* this end's, <= 0x3FFE, or 0x3FFF */
};

/* What two frames agreed on, seen from this end. */
struct weft_mpa_agreed {
	u8 rev;
	bool enhanced;
	bool crc;			/* generate and check */
	bool tx_markers;		/* the peer wants Markers */
	bool rx_markers;		/* we asked for Markers */
	bool p2p;
	u8 rtr;				/* exactly one kind when p2p, else 0 */
	u16 ird, ord;			/* to be used by this end */
};

/*
 * Writes frame @f and its @f->pd_len bytes of private data at @pd to @out.
 * Returns the length, or 0 if the private data exceeds 512 bytes (508 with
 * enhanced) or @cap is too small.
 */
u32 weft_mpa_frame_write(const struct weft_mpa_frame *f, const void *pd, u8 *out, u32 cap);

/*
 * How much of a start-up frame is known from its first @n bytes at @p:
 * returns the length of the whole frame once @n >= 20, 20 before; 0 if the
 * bytes cannot begin the expected frame (wrong key, PD_Length > 512).
 */
u32 weft_mpa_frame_need(const u8 *p, u32 n, bool reply);

/*
 * Reads a whole frame of @len bytes. *@pd points into @p. Returns WEFT_OK or
 * WEFT_E_MPA_STARTUP (wrong key, length mismatch, PD_Length > 512, S=1 with
 * fewer than 4 bytes). Reserved bits, and R in a Request, are ignored.
 * The revision is not judged here.
 */
enum weft_err weft_mpa_frame_read(const u8 *p, u32 len, bool reply,
				  struct weft_mpa_frame *f, const u8 **pd);

/* Initiator: the Request for @cfg (@pd_len: bytes of ULP private data). */
void weft_mpa_request(const struct weft_mpa_cfg *cfg, u16 pd_len, struct weft_mpa_frame *req);

/* Responder: judges a Request's revision: WEFT_OK or WEFT_E_MPA_STARTUP. */
enum weft_err weft_mpa_request_check(const struct weft_mpa_cfg *cfg,
				     const struct weft_mpa_frame *req);

/*
 * Responder: the Reply to @req with @cfg (cfg->ird and ord are what the ULP
 * accepted), and what follows for this end in *@agreed. RFC 6581 §9.1: our
 * ORD is cut to the peer's IRD, our IRD answers the peer's ORD; 0x3FFF answers
 * 0x3FFF. When p2p: offers every kind of cfg->rtr that was asked for, or one
 * of its own if none was; *agreed then has p2p with rtr = the whole offer.
 * D is only offered while cfg->ird allows one Read.
 */
void weft_mpa_reply(const struct weft_mpa_cfg *cfg, const struct weft_mpa_frame *req,
		    bool reject, u16 pd_len, struct weft_mpa_frame *rep,
		    struct weft_mpa_agreed *agreed);

/*
 * Initiator: judges the Reply to our @req. Returns WEFT_OK; WEFT_E_MPA_STARTUP
 * (wrong revision, S mismatch: close); WEFT_E_MPA_IRD or WEFT_E_MPA_RTR (to be
 * sent as a Terminate). A Reply with R=1 is WEFT_OK: look at rep->reject.
 * *@v1_retry is set when the peer answered an enhanced Request without S or
 * with revision 1: the initiator may try again on a new connection with rev 1.
 */
enum weft_err weft_mpa_reply_check(const struct weft_mpa_cfg *cfg,
				   const struct weft_mpa_frame *req,
				   const struct weft_mpa_frame *rep,
				   struct weft_mpa_agreed *agreed, bool *v1_retry);

/* Bytes of PAD behind a ULPDU of @ulpdu_len bytes: 0 to 3. */
static inline u32 weft_mpa_pad(u32 ulpdu_len)
{
	return -(WEFT_MPA_LEN_SIZE + ulpdu_len) & 3;
}

/* Length of an FPDU on the wire without Markers: a multiple of 4. */
static inline u32 weft_mpa_fpdu_len(u32 ulpdu_len)
{
	return WEFT_MPA_LEN_SIZE + ulpdu_len + weft_mpa_pad(ulpdu_len) + WEFT_MPA_CRC_SIZE;
}

/* The shortest FPDU that holds a DDP segment: without Markers, of a tagged one without payload. */
#define WEFT_MPA_FPDU_MIN	20

/*
 * MULPDU for @emss payload bytes a TCP segment (RFC 5044 §4.5): at least 128,
 * at most 64768.
 */
u32 weft_mpa_mulpdu(u32 emss, bool markers);

/*
 * Markers (RFC 5044 §4.3). @pos counts the octets of the stream since the
 * first one of Full Operation, Markers included, modulo 512: a Marker stands
 * wherever it is 0.
 */
static inline u32 weft_mpa_to_marker(u32 pos)
{
	return -pos & (WEFT_MPA_MARKER_EVERY - 1);
}

/*
 * Length of an FPDU of @plain octets (weft_mpa_fpdu_len) with its Markers when
 * its first octet, or the Marker before that, stands at @pos.
 */
u32 weft_mpa_marked_len(u32 pos, u32 plain);

/*
 * Writes one FPDU to a contiguous buffer: copies pieces, inserts Markers, pads
 * and sums as agreed. Begin, then the ULPDU's bytes in order, then end.
 */
struct weft_emit {
	u8 *out;			/* next octet to write */
	u8 *start;			/* where begin() started */
	u8 *summed;			/* crc has all octets before this one */
	u32 ulpdu_len;
	u32 pos;			/* Marker position modulo 512 */
	u32 fpdu_off;			/* octets since the length field: FPDUPTR */
	u32 crc;
	bool do_crc;
	bool markers;
};

/* @out must have room for weft_mpa_marked_len() (or weft_mpa_fpdu_len()). */
void weft_emit_begin(struct weft_emit *e, u8 *out, u32 ulpdu_len, bool crc,
		     bool markers, u32 marker_pos);
/*
 * Right after begin: the length field and the headers, @n bytes. WEFT_MPA_FPDU_MIN bytes at @head
 * can be read, and @out has room for an FPDU at least that long.
 */
void weft_emit_head(struct weft_emit *e, const u8 *head, u32 n);
/* Copies @n bytes; they are summed at once, or with those that follow. */
void weft_emit_bytes(struct weft_emit *e, const void *p, u32 n);
/* May ULPDU octets go out from where they lie? Not if they are summed or have Markers. */
static inline bool weft_emit_may_refer(const struct weft_emit *e)
{
	return !e->do_crc && !e->markers;
}
/* PAD and CRC (zero when off). Returns the octets written since begin. */
u32 weft_emit_end(struct weft_emit *e);

#endif
