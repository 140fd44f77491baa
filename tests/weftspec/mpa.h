/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MPA start-up frames: RFC 5044 section 7.1.1, and the enhanced words of
 * RFC 6581 section 9.  Revision 0 (RDMAC) has the same frame.
 */
#ifndef WEFTSPEC_MPA_H
#define WEFTSPEC_MPA_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define MPA_HEAD 20
#define MPA_KEY 16
#define MPA_PD_MAX 512
#define MPA_ENH 4

#define MPA_M 0x80
#define MPA_C 0x40
#define MPA_R 0x20
#define MPA_S 0x10
#define MPA_RES 0x0f

#define MPA_NO_NEGOTIATION 0x3fff

extern const uint8_t mpa_key_req[MPA_KEY];
extern const uint8_t mpa_key_rep[MPA_KEY];

struct mpa_frame {
	uint8_t key[MPA_KEY];
	uint8_t flags;
	uint8_t rev;
	uint16_t pd_len;
};

/* a: peer-to-peer; b, c, d: RTR as Send, Write, Read. */
struct mpa_enh {
	bool a, b, c, d;
	uint16_t ird, ord;
};

uint8_t *mpa_encode(uint8_t *out, const struct mpa_frame *f);
void mpa_decode(const uint8_t *in, struct mpa_frame *f);
uint8_t *mpa_enh_encode(uint8_t *out, const struct mpa_enh *e);
void mpa_enh_decode(const uint8_t *in, struct mpa_enh *e);

#endif
