/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The Terminate header, RFC 5040 section 4.8, with the registered errors of
 * RFC 6580, 6581 and 7306.  Decoding is strict first; a peer known to put the
 * control word on the wire bit-reversed (siw) is read through a named quirk,
 * so that one fault is reported once instead of in every case.
 */
#ifndef WEFTSPEC_TERM_H
#define WEFTSPEC_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define TERM_M 0x80
#define TERM_D 0x40
#define TERM_R 0x20
#define TERM_MD (TERM_M | TERM_D)
#define TERM_MDR (TERM_M | TERM_D | TERM_R)
#define TERM_CTL_LEN 4

#define TERM_ANY_CODE 0x100

enum term_error {
#define TERM_ERROR(name, layer, etype, code, bits, text) TERM_##name,
#include "term-errors.def"
#undef TERM_ERROR
};

struct term_error_bytes {
	uint8_t layer, etype;
	uint16_t code;    /* or TERM_ANY_CODE */
	uint8_t bits;     /* TERM_M, TERM_D; a Read Request adds TERM_R */
	const char *text;
};
/* By enum term_error. */
extern const struct term_error_bytes term_errors[];
bool term_is_error(enum term_error e, uint8_t layer, uint8_t etype, uint8_t code);

enum term_quirk { TERM_STRICT, TERM_SIW_BITORDER };

struct term {
	uint8_t layer, etype, code;
	uint8_t bits;            /* TERM_M, TERM_D, TERM_R */
	uint16_t reserved;       /* 13 bits */
	enum term_quirk read_as;
	bool has_seglen;
	uint16_t seglen;
	const uint8_t *ddp;      /* copied headers, or NULL */
	size_t ddp_len;
	const uint8_t *rdma;
	size_t left;             /* octets that no header bit accounts for */
	bool cut;                /* shorter than its header bits say */
};

/* Returns 0, or -1 when the body cannot even hold the control word. */
int term_decode(const uint8_t *body, size_t len, enum term_quirk hint,
		struct term *t);
/* Writes the control word and copies the headers given; returns the end. */
uint8_t *term_encode(uint8_t *out, const struct term *t);
bool term_registered(uint8_t layer, uint8_t etype, uint8_t code);
const char *term_name(uint8_t layer, uint8_t etype, uint8_t code);
/* "1/2/05 MD" */
void term_print(char *out, size_t size, const struct term *t);

#endif
