/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults on demand: rules of a file (docs/faults.md), and what they decide about one call
 * of a program. The same rules, seed and calls give the same faults.
 *
 * Pure: weft-run, the library, tests and the fuzzer read files by the same functions. The caller
 * locks. Files: fault_parse.c (text to rules), fault_decide.c; fault_words.c has the names.
 */
#ifndef RL_FAULT_H
#define RL_FAULT_H

#include "devices/profile.h"

#define RL_FAULT_RULES		256
#define RL_FAULT_MAX_MS		600000	/* of a delay */
#define RL_FAULT_THREAD		16	/* octets of a thread's name, as Linux has it */
#define RL_FAULT_CERTAIN	(1ull << 32) /* a chance of 1 */

/* Calls that can fail, of verbs, then of rdma_cm; and completions, which are the device's. */
enum rl_fault_call {
	RL_FAULT_NO_CALL,
	RL_FAULT_OPEN_DEVICE, RL_FAULT_QUERY_DEVICE, RL_FAULT_QUERY_PORT, RL_FAULT_ALLOC_PD,
	RL_FAULT_REG_MR, RL_FAULT_REREG_MR, RL_FAULT_ALLOC_MW, RL_FAULT_CREATE_COMP_CHANNEL,
	RL_FAULT_CREATE_CQ, RL_FAULT_RESIZE_CQ, RL_FAULT_CREATE_QP, RL_FAULT_MODIFY_QP,
	RL_FAULT_CREATE_SRQ, RL_FAULT_MODIFY_SRQ, RL_FAULT_ATTACH_MCAST,
	RL_FAULT_POST_SEND, RL_FAULT_POST_RECV, RL_FAULT_POST_SRQ_RECV,
	RL_FAULT_CREATE_ID, RL_FAULT_BIND_ADDR, RL_FAULT_RESOLVE_ADDR, RL_FAULT_RESOLVE_ROUTE,
	RL_FAULT_LISTEN, RL_FAULT_CONNECT, RL_FAULT_ACCEPT, RL_FAULT_JOIN_MULTICAST,
	RL_FAULT_SEND_COMPLETION, RL_FAULT_RECV_COMPLETION,
	RL_FAULT_CALLS
};

/* What a call knows of itself. */
enum {
	RL_FAULT_HAS_DEVICE = 1, RL_FAULT_HAS_TYPE = 2, RL_FAULT_HAS_SIZE = 4,
	RL_FAULT_HAS_EVENT = 8,		/* it is answered by an event, which can report a failure */
	RL_FAULT_HAS_QP = 16,		/* it is a QP's */
	RL_FAULT_HAS_REQUEST = 32,	/* it posts a request, which has an opcode and can fail */
	RL_FAULT_HAS_OCTETS = 64,	/* its size is in octets */
	RL_FAULT_HAS_RESULT = 128,	/* a thread of the program calls, and can get an error */
	RL_FAULT_HAS_SRQ = 256, RL_FAULT_HAS_CQ = 512, RL_FAULT_HAS_CONTEXT = 1024,
	RL_FAULT_HAS_RECEIVE = 2048,	/* it posts a receive, which can fail */
};

/* One call of the program. */
struct rl_fault_subject {
	enum rl_fault_call call;
	const char *device;		/* its name; NULL: none yet */
	u32 type;			/* IBV_QPT_; 0: none */
	u64 size;			/* octets of a region or request, entries of a queue */
	u32 qpn;			/* 0: none */
	u32 opcode;			/* WEFT_WR_ + 1; 0: none */
	u32 statuses;			/* that the request may complete with: bits by IBV_WC_ */
	bool connected;			/* its QP is, and can fail */
	bool armed;			/* its SRQ's limit is */
	const char *thread;		/* the caller's name; NULL: no rule asks for it */
};

/* A status that is none: the peer is gone, and its connection with it. */
#define RL_FAULT_PEER_DEAD 31

enum rl_fault_effect {
	RL_FAULT_NOTHING,		/* but perhaps a delay */
	RL_FAULT_ERRNO,			/* the call fails */
	RL_FAULT_EVENT,			/* the call succeeds, and its event reports the failure */
	RL_FAULT_QP,			/* the call succeeds, and its QP fails first */
	RL_FAULT_STATUS,		/* the call succeeds, and its request fails later */
	RL_FAULT_CQ,			/* the completion finds no room */
	RL_FAULT_SRQ_LIMIT,		/* the call succeeds; its SRQ's limit is reached first */
	RL_FAULT_SRQ,			/* the call succeeds, and its SRQ fails first */
	RL_FAULT_DEVICE,		/* the device fails first; posts succeed */
	RL_FAULT_PORT,			/* the call succeeds; its device's port goes down first */
	RL_FAULT_LATEST,		/* the completion is held as long as a program bears it */
};

/* What happens to the call. All zeros: nothing. */
struct rl_fault {
	enum rl_fault_effect effect;
	int err;			/* positive: errno; of STATUS its IBV_WC_; of PORT ms */
	u32 delay_ms;			/* first */
	u32 line;			/* of the rule */
	u64 number;			/* which call of its name it is in this process, from 1 */
};

struct rl_fault_rule {
	u32 line;
	/* When. 0 or "": any. */
	enum rl_fault_call call;
	char device[RL_PROFILE_NAMES];	/* a '*' at the end matches any rest of a name */
	u32 type, qpn, opcode;
	u64 size_min, size_max;
	u64 after_ms;			/* of the process's life */
	u64 octets;			/* so many of the others, this one included */
	char thread[RL_FAULT_THREAD];	/* as device */
	/* Which of these calls. */
	u64 nth, every, times;
	u64 chance;			/* of RL_FAULT_CERTAIN */
	/* What. */
	enum rl_fault_effect effect;
	int err;
	u32 delay_ms;
	/* So far. */
	u64 moved;			/* octets */
	u64 matched, fired;
};

struct rl_faults {
	struct rl_fault_rule rules[RL_FAULT_RULES];
	u32 n;
	bool by_thread;			/* some rule asks for the caller's name */
	u64 seed;
	u64 calls[RL_FAULT_CALLS];	/* so far */
};

/* Reads rules from @len octets of @text. False: *@e has line and reason, *@f is undefined. */
bool rl_faults_parse(struct rl_faults *f, const char *text, size_t len,
		     struct rl_profile_error *e);

/* Counts the call, @now_ms after the process's first, and decides about it; false: no fault. */
bool rl_faults_decide(struct rl_faults *f, const struct rl_fault_subject *s, u64 now_ms,
		      struct rl_fault *fault);

#define RL_FAULT_LOG_LINE 256

/* Writes @fault as a log line, which is also a rule that repeats it. Returns its length. */
size_t rl_fault_describe(const struct rl_fault_subject *s, const struct rl_fault *fault,
			 char line[RL_FAULT_LOG_LINE]);

/* ---- words; NULL or 0: unknown ---- */

const char *rl_fault_call_name(enum rl_fault_call call);
enum rl_fault_call rl_fault_call_of(const char *name);
u32 rl_fault_call_has(enum rl_fault_call call);
const char *rl_fault_errno_name(int err);
int rl_fault_errno_of(const char *name);
/* What fails instead of the call, but QPs' requests. */
const char *rl_fault_effect_name(enum rl_fault_effect effect);
enum rl_fault_effect rl_fault_effect_of(const char *name);
u32 rl_fault_effect_needs(enum rl_fault_effect effect);
/* Statuses of completions, IBV_WC_. */
const char *rl_fault_status_name(int status);
int rl_fault_status_of(const char *name);
/* Why a status of verbs is never that of a request here; NULL: it can be, or is none. */
const char *rl_fault_no_status(const char *name);
bool rl_fault_status_fits(int status, enum rl_fault_call call);
/* WEFT_WR_ + 1 */
const char *rl_fault_opcode_name(u32 opcode);
u32 rl_fault_opcode_of(const char *name);
const char *rl_fault_type_name(u32 type);
u32 rl_fault_type_of(const char *name);

#endif
