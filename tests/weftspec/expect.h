/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a case waits for after its stimulus, and the judgement of it. */
#ifndef WEFTSPEC_EXPECT_H
#define WEFTSPEC_EXPECT_H

#include "peer.h"
#include "refl.h"

enum end { END_TERM, END_FIN, END_RST, END_QUIET };

/* An accepted end. */
struct want {
	bool close;     /* FIN or RST without a Terminate */
	bool tolerated; /* reported as divergent */
	bool of_read;   /* of a Read Request, whose header the Terminate copies */
	enum term_error error;
};

/* The names are those of term-errors.def, without TERM_. */
#define TERM(name) { .error = TERM_##name }
#define TERM_OF_READ(name) { .of_read = true, .error = TERM_##name }
#define TOLERATE(name) { .tolerated = true, .error = TERM_##name }
#define TOLERATE_OF_READ(name) \
	{ .tolerated = true, .of_read = true, .error = TERM_##name }
#define CLOSE { .close = true }
#define TOLERATE_CLOSE { .close = true, .tolerated = true }

/*
 * Reads until the peer ends the stream, or has been silent for ms; data that was already
 * in flight through a small window may take longer.  Everything else is counted in
 * *other.  After a Terminate it waits for the close, too.
 */
enum end wait_end(struct stream *s, int ms, unsigned int *other);
void judge_end(struct stream *s, enum end e, const struct want *w, size_t n);
void expect_end(struct stream *s, const struct want *w, size_t n);
#define EXPECT_END(s, ...) do { \
	const struct want want_[] = { __VA_ARGS__ }; \
	expect_end(s, want_, sizeof(want_) / sizeof(want_[0])); \
} while (0)

/* The stream still works: a small Read is answered, or the best there is. */
bool alive(struct stream *s);
void expect_alive(struct stream *s, const char *after);
/* Any Terminate or a close, in time. */
void expect_any_end(struct stream *s, const char *what);
/* The start-up was refused: closed without a Reply. */
void expect_refused(struct stream *s, const char *what);
/* Nothing at all arrives for so long. */
void expect_silence(struct stream *s, int ms, const char *what);
/* The next FPDU, which must be of this opcode. */
void expect_op(struct stream *s, uint8_t op);
/* A whole Read Response of size octets: compares with want unless NULL. */
void expect_resp(struct stream *s, uint32_t size, const uint8_t *want);
/* A fresh connection can still be set up. */
void expect_reconnect(struct ctx *c);

#endif
