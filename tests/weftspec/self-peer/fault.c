/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which fault is on, and the FPDUs of both directions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bytes.h"
#include "fault_fpdu.h"
#include "fault_frame.h"
#include "manner.h"

static const struct {
	const char *name, *rows;
} faults[] = {
	[F_NONE] = { "none", "" },
#define FAULT(symbol, name, rows) [symbol] = { name, rows },
#include "faults.def"
#undef FAULT
};

#define NFAULTS (sizeof(faults) / sizeof(faults[0]))

static enum fault chosen;

bool fault_is_clean(void)
{
	return fault_is(F_NONE) && manner_is(MANNER_NONE);
}

bool fault_is(enum fault f)
{
	return chosen == f;
}

int fault_choose(const char *name)
{
	for (size_t i = 0; i < NFAULTS; i++)
		if (!strcmp(faults[i].name, name)) {
			chosen = i;
			return 0;
		}
	return -1;
}

void fault_list(void)
{
	for (size_t i = 1; i < NFAULTS; i++)
		printf("%s %s\n", faults[i].name, faults[i].rows);
}

void fault_start(struct fault_dir *in, struct fault_dir *out, bool initiator)
{
	in->initiator = out->initiator = initiator;
	in->other = out;
	out->other = in;
	in->msn[0] = in->msn[1] = in->msn[2] = 1;
	if (fault_is_clean())
		return;
	in->buf = malloc(FAULT_ROOM);
	out->buf = malloc(FAULT_ROOM);
	if (!in->buf || !out->buf)
		abort();
}

void fault_stop(struct fault_dir *d)
{
	free(d->buf);
	d->buf = NULL;
}

/* Both frames are known: CRC, and Markers of this direction. */
static void adopt_negotiated(struct fault_dir *d, const struct fault_dir *other)
{
	bool crc = (d->flags | other->flags) & MPA_C;
	bool markers = other->flags & MPA_M;

	if (d->fpdus)
		return;
	d->tx.crc = crc;
	d->tx.markers = markers && !fault_is(O_MK_NONE);
	d->rx.markers = markers;
}

static size_t filter_fpdus(struct fault_dir *d, bool out, uint8_t *dst)
{
	size_t done = 0, n, made = 0;
	struct fpdu f;

	while (!d->swallow && !d->raw &&
	       (n = fpdu_parse(&d->rx, d->buf + done, d->len - done, &f))) {
		d->fpdus++;
		made += !manner_is(MANNER_NONE) ? manner_fpdu(d, out, &f, dst + made) :
			out ? fpdu_out(d, &f, dst + made) : fpdu_in(d, &f, dst + made);
		done += n;
	}
	if (d->swallow)
		done = d->len;
	memmove(d->buf, d->buf + done, d->len - done);
	d->len -= done;
	if (!out && d->len && fault_is(I_WHOLE))
		d->kill = true;
	return made;
}

static size_t filter_octets(struct fault_dir *d, struct fault_dir *other, bool out,
			    const void *p, size_t n, uint8_t *dst, size_t room)
{
	size_t made = 0;

	if (fault_is_clean()) {
		if (out)
			memcpy(dst, p, n);
		return n;
	}
	if (d->len + n > FAULT_ROOM)
		abort();
	memcpy(d->buf + d->len, p, n);
	d->len += n;
	if (!d->framed)
		made = frame_pass(d, other, out, dst);
	if (!d->raw && d->framed && d->len) {
		adopt_negotiated(d, other);
		made += filter_fpdus(d, out, dst + made);
	}
	if (d->raw) {
		memcpy(dst + made, d->buf, d->len);
		made += d->len;
		d->len = 0;
	}
	return made;
}

size_t fault_out(struct fault_dir *out, struct fault_dir *in, const void *p,
		 size_t n, uint8_t *dst, size_t room)
{
	return filter_octets(out, in, true, p, n, dst, room);
}

size_t fault_in(struct fault_dir *in, struct fault_dir *out, const void *p,
		size_t n, uint8_t *dst, size_t room)
{
	return filter_octets(in, out, false, p, n, dst, room);
}
