// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "rules.h"

const struct rl_judge_text rl_judge_texts[RL_JUDGE_RULES] = {
	[RL_LEFT_AT_CLOSE] = { "J101", "left-at-close", false,
		"ibv_close_device(3): it does not release the context's resources; the user "
		"should release them before",
		"destroy each object before its context is closed" },
	[RL_LEFT_AT_EXIT] = { "J102", "left-at-exit", true,
		"no specification asks for it: the kernel destroys what a process leaves",
		"destroy each object before the program ends" },
	[RL_BUSY_IGNORED] = { "J103", "busy-ignored", false,
		"ibv_alloc_pd(3), ibv_create_cq(3), ibv_create_srq(3): destroying fails "
		"while another object uses it",
		"destroy the objects that use it first, and check what the call returns" },
	[RL_EVENT_NOT_ACKNOWLEDGED] = { "J104", "event-not-acknowledged", false,
		"ibv_get_cq_event(3), rdma_get_cm_event(3): all events must be acknowledged; "
		"destroying the CQ or id waits for that",
		"acknowledge each event by ibv_ack_cq_events() or rdma_ack_cm_event() before "
		"its object is destroyed" },
	[RL_DESTROYED_TWICE] = { "J105", "destroyed-twice", false,
		"ibv_create_qp(3) and the others: destroying an object ends its life; its "
		"memory is freed, and may be another's",
		"set the pointer to NULL when the object is destroyed, and destroy it in one "
		"place" },
	[RL_CHANNEL_IN_USE] = { "J106", "channel-in-use", false,
		"rdma_destroy_event_channel(3): all ids of the channel must be destroyed, and "
		"all its events acknowledged, before",
		"destroy the channel's ids first, or move them by rdma_migrate_id()" },
	[RL_FORK_UNPREPARED] = { "J107", "fork-unprepared", true,
		"ibv_fork_init(3): before Linux 5.12, what the parent writes to registered "
		"memory after fork() may not reach the adapter",
		"call ibv_fork_init() before any other function of libibverbs" },
	[RL_CHANGED_UNDER_WAY] = { "J201", "changed-under-way", false,
		"ibv_post_send(3): the buffers can be reused only after the request was "
		"fully executed and its completion was retrieved",
		"write to the buffer after its completion was polled, or post it inline" },
	[RL_UNMAPPED_UNDER_WAY] = { "J202", "unmapped-under-way", false,
		"ibv_post_send(3), ibv_post_recv(3): the buffers belong to the adapter "
		"until the request's completion was retrieved",
		"unmap or free the buffer after its completion was polled and its region "
		"deregistered" },
	[RL_DEREGISTERED_UNDER_WAY] = { "J203", "deregistered-under-way", false,
		"the key of a request's buffer must be valid until it completes: it ends "
		"with IBV_WC_LOC_PROT_ERR else, now or never",
		"poll the requests' completions, or move the QP to ERR or destroy it, "
		"before ibv_dereg_mr()" },
	[RL_RECEIVES_OVERLAP] = { "J204", "receives-overlap", true,
		"no specification forbids it, but messages overwrite each other there",
		"give each receive a buffer of its own" },
	[RL_FREED_UNDER_WAY] = { "J205", "freed-under-way", true,
		"ibv_post_send(3), ibv_post_recv(3): the buffers belong to the adapter "
		"until the request's completion was retrieved",
		"free the buffer after its completion was polled" },
	[RL_FOREIGN_DOMAIN] = { "J206", "foreign-domain", false,
		"ibv_alloc_pd(3): queues and the regions of their requests must be of one "
		"protection domain; the request ends with IBV_WC_LOC_PROT_ERR",
		"register the buffer in the queue's own domain" },
	[RL_OUTSIDE_REGION] = { "J207", "outside-region", false,
		"ibv_reg_mr(3): a key is valid for the region's own octets; the request ends "
		"with IBV_WC_LOC_PROT_ERR",
		"compare address and length with what was registered" },
	[RL_NO_LOCAL_WRITE] = { "J208", "no-local-write", false,
		"ibv_reg_mr(3): without IBV_ACCESS_LOCAL_WRITE a region can be read only; "
		"the request ends with IBV_WC_LOC_PROT_ERR",
		"register buffers of receives, Reads and atomics with "
		"IBV_ACCESS_LOCAL_WRITE" },
	[RL_TOUCHED_UNDER_WAY] = { "J209", "touched-under-way", true,
		"ibv_post_send(3), ibv_post_recv(3): the buffers belong to the adapter "
		"until the request's completion was retrieved",
		"touch the buffer after its completion was polled" },
	[RL_CQ_TOO_SMALL] = { "J301", "cq-too-small", false,
		"ibv_poll_cq(3): the user must prevent an overrun, after which the CQ "
		"cannot be used",
		"create the CQ with at least as many entries as its queues may complete" },
	[RL_SEND_QUEUE_FULL] = { "J302", "send-queue-full", false,
		"ibv_create_qp(3): max_send_wr limits outstanding requests; one is "
		"outstanding until its completion, or a later one's, was polled. weft frees "
		"places earlier",
		"signal at least one request in each queue's length, and poll its "
		"completion" },
	[RL_LOST_WAKE_UP] = { "J303", "lost-wake-up", false,
		"ibv_req_notify_cq(3): the event is for the next completion added to the "
		"CQ, not for those that are in it",
		"poll the CQ until it is empty after ibv_req_notify_cq() and before waiting" },
	[RL_FIELD_AFTER_ERROR] = { "J304", "field-after-error", false,
		"ibv_poll_cq(3): if the status is not IBV_WC_SUCCESS only wr_id, status, "
		"qp_num and vendor_err are valid",
		"look at the status first, and find the request by wr_id" },
	[RL_READ_SINK] = { "J901", "read-sink", true,
		"RFC 5040 5.2.1: the sink of a Read is written like a Write's; iWARP "
		"adapters want IBV_ACCESS_REMOTE_WRITE",
		"register the sink with IBV_ACCESS_REMOTE_WRITE" },
	[RL_GID_INDEX_0] = { "J902", "gid-index-0", true,
		"GID 0 of a RoCE port is usually of RoCE v1 and link-local",
		"choose the index by the GID's type and address, with ibv_query_gid_ex()" },
};

#define ALL ((uint32_t)(1ull << RL_JUDGE_RULES) - 1)

static uint32_t rules_default(void)
{
	uint32_t on = 0, i;

	for (i = 0; i < RL_JUDGE_RULES; i++)
		if (!rl_judge_texts[i].is_off)
			on |= 1u << i;
	return on;
}

static bool rules_is_word(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(s, word, len);
}

/* 0: it is no rule. */
static uint32_t rules_of_word(const char *s, size_t len)
{
	uint32_t i;

	if (rules_is_word(s, len, "all"))
		return ALL;
	if (rules_is_word(s, len, "default"))
		return rules_default();
	for (i = 0; i < RL_JUDGE_RULES; i++)
		if (rules_is_word(s, len, rl_judge_texts[i].number) ||
		    rules_is_word(s, len, rl_judge_texts[i].name))
			return 1u << i;
	return 0;
}

bool rl_judge_parse(const char *list, uint32_t *on, const char **word, size_t *len)
{
	uint32_t some;
	bool minus;

	*on = *list == '-' ? rules_default() : 0;
	for (*word = list;; *word += *len + 1) {
		*len = strcspn(*word, ",");
		minus = **word == '-';
		some = rules_of_word(*word + minus, *len - minus);
		if (!some)
			return false;
		*on = minus ? *on & ~some : *on | some;
		if (!(*word)[*len])
			return true;
	}
}
