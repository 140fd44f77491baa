/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kinds of the "ready to receive" message by the names that options have. Pure functions. */
#ifndef WEFT_CORE_RTR_H
#define WEFT_CORE_RTR_H

#include "../proto/port.h"

#define WEFT_RTR_TEXT	16		/* octets of all names, and of a 0 behind them */

/*
 * What @words names, with blanks, commas or line ends between: WEFT_RTR_ bits. 0: there is no name,
 * or a word that is none.
 */
u8 weft_rtr_parse(const char *words);
/* The names of @rtr, a blank between. */
void weft_rtr_format(u8 rtr, char text[WEFT_RTR_TEXT]);

#endif
