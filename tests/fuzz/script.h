/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An input read as a script: octets and numbers, zeros after its end. */
#ifndef WEFT_FUZZ_SCRIPT_H
#define WEFT_FUZZ_SCRIPT_H

#include "fuzz.h"

struct script {
	const u8 *p;
	size_t left;
};

static inline u8 script_octet(struct script *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->p++;
}

static inline u16 script_u16(struct script *s)
{
	u16 v = script_octet(s);

	return (u16)(v << 8 | script_octet(s));
}

/* Up to @n octets of the script, in place; returns how many there are. */
static inline u32 script_octets(struct script *s, u32 n, const u8 **p)
{
	*p = s->p;
	if (n > s->left)
		n = (u32)s->left;
	s->p += n;
	s->left -= n;
	return n;
}

#endif
