/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One end of a connection made by hand: a QP whose modify_qp takes what the peer's end has told, by
 * whatever way. Everything that the case did not ask for and goes wrong ends the program with a line
 * that says what. Nothing here knows weft.
 */
#ifndef BYHAND_H
#define BYHAND_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define HAND_BUF	4096
#define HAND_DEPTH	64

/* What an end tells the other. */
struct hand_name {
	union ibv_gid gid;
	uint32_t qpn, psn;
	uint64_t addr;
	uint32_t rkey;
};

struct hand_device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid;
	int gid_index;
};

/* How modify_qp is called. */
struct hand_setting {
	enum ibv_qp_type type;
	int access;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic, dest_rd_atomic;
	uint32_t max_inline;
};

extern const struct hand_setting hand_usual;

struct hand_end {
	struct hand_device *dev;
	struct hand_setting set;
	struct ibv_cq *cq;
	bool own_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t psn;
	uint8_t buf[2 * HAND_BUF] __attribute__((aligned(8)));	/* what is sent; what comes in */
};

/* The name that error lines begin with. */
extern const char *hand_program;
void hand_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The device that has the GID of @addr, an IPv4 address. */
void hand_open(struct hand_device *dev, const char *addr);
void hand_close(struct hand_device *dev);

/* A QP in RESET. @cq: NULL, and it has one of its own. */
void hand_make(struct hand_end *e, struct hand_device *dev, const struct hand_setting *set,
	       struct ibv_cq *cq);
void hand_unmake(struct hand_end *e);
void hand_tell(const struct hand_end *e, struct hand_name *name);

/* Each: what ibv_modify_qp returned. */
int hand_to_init(struct hand_end *e);
int hand_to_rtr(struct hand_end *e, const struct hand_name *peer);
int hand_to_rts(struct hand_end *e);
int hand_to(struct hand_end *e, enum ibv_qp_state state);

/* The same, and it must succeed. */
void hand_ready(struct hand_end *e, const struct hand_name *peer);
enum ibv_qp_state hand_state(const struct hand_end *e);

/* Receives into the second half of the buffer; work requests from and to the first. */
void hand_recv(struct hand_end *e, uint64_t id);
void hand_send(struct hand_end *e, uint64_t id, uint32_t len);
/* With @imm or without: IBV_WR_RDMA_WRITE, _WRITE_WITH_IMM, _READ. */
void hand_rdma(struct hand_end *e, uint64_t id, enum ibv_wr_opcode op, const struct hand_name *at,
	       uint32_t len);

/* The next completion, within so many ms: false if none comes. */
bool hand_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
/* It comes, with this number and status; else the program says what came, and false. */
bool hand_took(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);

long hand_now_ms(void);

struct hand_case {
	const char *name;
	bool (*run)(void);
};

/* A program's main(), NAME ADDR [CASE]: opens *@dev on ADDR, and runs all @n cases or that one. TAP. */
int hand_run_cases(const char *name, int argc, char **argv, struct hand_device *dev,
		   const struct hand_case *cases, int n);

/* A program with a fault, and its right twin. */
struct hand_twin {
	const char *name;
	void (*run)(void);
};

/* Of the arguments ADDR CASE wrong|right: the case, one of @n; *@wrong: with the fault. Wrong arguments end the program. */
const struct hand_twin *hand_find_twin(int argc, char **argv, const struct hand_twin *cases, int n, bool *wrong);

/* The next asynchronous event says that @qp's send queue is drained. */
bool hand_reports_drained(const struct hand_device *d, const struct ibv_qp *qp);

#endif
