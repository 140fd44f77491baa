// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../proto/mpa.h"
#include "rtr.h"

#define BETWEEN " ,\n"

static const struct {
	const char *name;
	u8 bit;
} kinds[] = {
	{ "send", WEFT_RTR_SEND },
	{ "write", WEFT_RTR_WRITE },
	{ "read", WEFT_RTR_READ },
};

static u8 bit_of(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == len && !memcmp(kinds[i].name, word, len))
			return kinds[i].bit;
	return 0;
}

u8 weft_rtr_parse(const char *words)
{
	u8 rtr = 0, bit;
	size_t len;

	for (words += strspn(words, BETWEEN); *words; words += strspn(words, BETWEEN)) {
		len = strcspn(words, BETWEEN);
		bit = bit_of(words, len);
		if (!bit)
			return 0;
		rtr |= bit;
		words += len;
	}
	return rtr;
}

void weft_rtr_format(u8 rtr, char text[WEFT_RTR_TEXT])
{
	size_t i, len;
	char *at = text;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!(rtr & kinds[i].bit))
			continue;
		if (at != text)
			*at++ = ' ';
		len = strlen(kinds[i].name);
		memcpy(at, kinds[i].name, len);
		at += len;
	}
	*at = '\0';
}
