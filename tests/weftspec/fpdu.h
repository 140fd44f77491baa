/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FPDU framing, RFC 5044 section 4: length, ULPDU, PAD, CRC, and Markers at
 * each 512 octets of the stream.  The builder can break one thing at a time;
 * the parser reports everything it sees and judges nothing.
 */
#ifndef WEFTSPEC_FPDU_H
#define WEFTSPEC_FPDU_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define FPDU_ULPDU_MAX 65535
#define MARKER_EVERY 512
#define MARKER_LEN 4
/* Room for the largest FPDU with its Markers. */
#define FPDU_WIRE_MAX (2 + FPDU_ULPDU_MAX + 3 + 4 + 4 * 131)

/* One direction of a stream as its sender sees it. */
struct fpdu_tx {
	bool markers;
	bool crc;
	uint32_t pos; /* octets sent since Full Operation began, Markers too */
};

/* What to break.  All zero builds a right FPDU. */
struct fpdu_break {
	uint32_t crc_xor;    /* flips bits of the CRC field */
	int len_add;         /* added to ULPDU_Length; the CRC covers the lie */
	uint8_t pad[3];      /* bytes of PAD */
	uint16_t mk_reserved;
	uint16_t mk_or;      /* ORed into FPDUPTR */
	int mk_add;          /* added to FPDUPTR */
	int flip_at;         /* flip a bit of this octet after the CRC, from 1 */
};

/* Writes one FPDU to out (FPDU_WIRE_MAX), returns its octets, advances tx. */
size_t fpdu_build(struct fpdu_tx *tx, uint8_t *out, const uint8_t *ulpdu,
		  size_t len, const struct fpdu_break *b);

struct fpdu {
	uint8_t *ulpdu;
	size_t len;
	size_t wire;         /* octets it took on the wire */
	uint32_t at;         /* stream position of its first octet */
	uint8_t pad[3];
	unsigned int npad;
	uint32_t crc, crc_want;
	bool crc_ok;
	unsigned int nmarkers;
	bool mk_reserved_bad; /* Reserved was not zero */
	bool mk_low_bad;      /* low two bits of FPDUPTR set */
	bool mk_ptr_bad;      /* FPDUPTR does not point at the length field */
};

struct fpdu_rx {
	bool markers;
	uint32_t pos;
	uint8_t ulpdu[FPDU_ULPDU_MAX + 8];
};

/*
 * Looks for one FPDU at the start of in.  Returns the octets it took, or 0
 * when more are needed.  f->ulpdu points into rx and lives until the next call.
 */
size_t fpdu_parse(struct fpdu_rx *rx, const uint8_t *in, size_t avail,
		  struct fpdu *f);

#endif
