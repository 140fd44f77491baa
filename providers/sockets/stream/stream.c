// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Streams: life, and the calls. stream/start.c and stream/qp.c do the work. */
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "process/gate.h"
#include "process/guard.h"
#include "process/options.h"
#include "process/raw.h"
#include "conn.h"

#define WINDOW (1024 * 1024)
/* What is left of a read, that it is worth a call of TCP where there may be more. */
#define WORTH 4096

/* Closed ones that are looked at for a descriptor. */
#define SWEEP 64

/* All that there are, closed ones until their connections have ended. A leaf. */
static struct {
	pthread_mutex_t lock;
	struct list_head list;
	u32 rounds;			/* atomic: of streams that a process leaves */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .list = LIST_HEAD_INIT(all.list) };

/* ---- life ---- */

static void enlist(struct rl_stream *s)
{
	pthread_mutex_lock(&all.lock);
	list_add(&s->of_all, &all.list);
	pthread_mutex_unlock(&all.lock);
}

static void stream_unlist(struct rl_stream *s)
{
	pthread_mutex_lock(&all.lock);
	list_del(&s->of_all);
	pthread_mutex_unlock(&all.lock);
}

void rl_stream_get(struct rl_stream *s)
{
	__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
}

/* With all.lock. False: its last reference is gone, and it is about to leave the list. */
static bool stream_get_live(struct rl_stream *s)
{
	u32 refs = __atomic_load_n(&s->refs, __ATOMIC_RELAXED);

	while (refs && !__atomic_compare_exchange_n(&s->refs, &refs, refs + 1, true,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return refs;
}

void rl_stream_put(struct rl_stream *s)
{
	if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	stream_unlist(s);
	if (s->fd >= 0)
		rl_fd_close_hidden(s->fd);
	if (s->conn)
		rl_conn_put(s->conn);
	rl_octets_fini(&s->in);
	if (s->ops)
		s->options.operations->free(s->ops);
	rl_early_free(&s->early);
	free(s->kept);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* A connected TCP socket: 0, or why it is none. */
static int check_socket(int fd, struct sockaddr_in6 *peer)
{
	int type = 0, protocol = 0, rv;
	socklen_t len = sizeof(type);

	rv = rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len);
	if (!rv)
		rv = rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	if (!rv && (type != SOCK_STREAM || protocol != IPPROTO_TCP))
		return -EPROTOTYPE;
	len = sizeof(*peer);
	return rv ? rv : rl_raw(SYS_getpeername, fd, peer, &len);
}

static struct rl_stream *stream_make(enum rl_stream_role role, const struct rl_stream_options *o)
{
	struct rl_stream *s = aligned_alloc(64, (sizeof(*s) + 63) & ~63ul);
	u32 window = o && o->window ? o->window : WINDOW;

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	window = max_t(u32, RL_STREAM_WINDOW_MIN, min_t(u32, window, RL_STREAM_WINDOW_MAX));
	s->refs = 1;
	s->fd = -1;
	s->role = role;
	s->least = 1;
	if (o)
		s->options = *o;
	s->peers = (struct rl_stream_credit){ .window = window, .limit = window };
	s->forks = rl_fd_forks();
	pthread_mutex_init(&s->lock, NULL);
	rl_stream_init_qp(s);
	enlist(s);
	if (rl_octets_init(&s->in, window + RL_STREAM_BEFORE) &&
	    (!s->options.operations || s->options.operations->init(s, s->options.depth)))
		return s;
	rl_stream_put(s);
	return NULL;
}

/*
 * The oldest that are closed, referenced: how many. They become the youngest: those that stay do
 * not keep the others from being looked at next time.
 */
static u32 oldest_closed(struct rl_stream *list[], u32 most)
{
	struct list_head *at, *before, *first = NULL;
	struct rl_stream *s;
	u32 n = 0;

	pthread_mutex_lock(&all.lock);
	for (at = all.list.prev; at != &all.list && at != first && n < most; at = before) {
		before = at->prev;
		s = list_entry(at, struct rl_stream, of_all);
		if (!s->closed || s->over || !stream_get_live(s))
			continue;
		if (!n)
			first = at;
		list[n++] = s;
		list_move(at, &all.list);
	}
	pthread_mutex_unlock(&all.lock);
	return n;
}

/*
 * Descriptors of closed streams. The kernel sends what the peer's TCP does not have yet, as after
 * any close(). A peer that sends credit would make it reset the connection instead.
 */
static void free_descriptors(void)
{
	struct rl_stream *list[SWEEP];
	u32 n = oldest_closed(list, SWEEP), i;

	for (i = 0; i < n; i++) {
		if (!rl_stream_is_foreign(list[i]) && !pthread_mutex_trylock(&list[i]->lock)) {
			if (list[i]->conn && !list[i]->ops) {
				rl_conn_lock(list[i]->conn);
				rl_ulp_leave_now(list[i]->conn, !list[i]->awaited &&
						 rl_stream_peer_is_quiet(list[i]));
				rl_conn_unlock(list[i]->conn);
			}
			pthread_mutex_unlock(&list[i]->lock);
		}
		rl_stream_put(list[i]);
	}
}

static int stream_start(int fd, enum rl_stream_role role, const struct rl_stream_options *o,
		 struct rl_stream **out)
{
	struct sockaddr_in6 peer = {};
	struct rl_stream *s;
	int rv = check_socket(fd, &peer);

	if (rv)
		return rv;
	s = stream_make(role, o);
	if (!s)
		return -ENOMEM;
	s->peer = peer;
	if (rl_fd_are_short())
		free_descriptors();
	rv = s->fd = rl_fd_copy_hidden(fd);
	if (rv < 0) {
		rl_stream_put(s);
		return rv;
	}
	*out = s;
	return 0;
}

int rl_stream_start(int fd, enum rl_stream_role role, const struct rl_stream_options *o,
		    struct rl_stream **out)
{
	struct rl_stream *s = NULL;
	int rv;

	rl_gate_enter();
	rl_guard_begin();
	rv = stream_start(fd, role, o, &s);
	if (!rv && role != RL_STREAM_RESPONDER) {
		pthread_mutex_lock(&s->lock);
		rl_stream_go_on(s);
		pthread_mutex_unlock(&s->lock);
	}
	rl_gate_leave();
	if (!rv)
		*out = s;
	return rv;
}

/* ---- news ---- */

static bool stream_is_open(const struct rl_stream *s)
{
	return s->phase == RL_STREAM_OPEN && !s->over;
}

/* Octets may be sent, or kept until they may be. */
static bool may_speak(struct rl_stream *s)
{
	if (likely(stream_is_open(s) && rl_stream_is_idle(s)))
		return rl_stream_credit(&s->own) && !s->early.len;
	return rl_stream_is_early(s) && rl_stream_has_early_room(s);
}

/* POLL bits, without asking TCP. */
static unsigned int events_now(struct rl_stream *s)
{
	unsigned int events = 0;
	bool ends = s->peer_fin || s->read_shut || s->over;

	if (s->ops && s->phase != RL_STREAM_PLAIN)
		return s->options.operations->events(s);
	if (s->in.len >= s->least || ends || s->phase == RL_STREAM_PLAIN)
		events |= POLLIN;
	if (ends)
		events |= POLLRDHUP;
	if (s->over || s->phase == RL_STREAM_PLAIN || s->fin_due || may_speak(s))
		events |= POLLOUT;
	if ((s->over && !s->half) || (ends && s->fin_due))
		events |= POLLHUP;
	if (s->error)
		events |= POLLERR;
	return events;
}

/*
 * What was said without iWARP has no room, and what it waits for is behind it: the program is to
 * read.
 */
static bool is_stuck(const struct rl_stream *s)
{
	return s->phase == RL_STREAM_STARTING && !s->begun && !s->over &&
		s->in.len >= RL_STREAM_BEFORE;
}

/* Octets that have come, or operations that are over, in all. */
static u32 all_news(const struct rl_stream *s)
{
	return s->in.added + (s->ops ? s->options.operations->all_events(s) : 0);
}

/* Waiters looked before they slept. Duplicate wake-ups are harmless. */
void rl_stream_news(struct rl_stream *s)
{
	unsigned int events, news;

	rl_stream_count(s);
	events = events_now(s);
	news = (events & ~s->told) | (all_news(s) != s->told_octets ? POLLIN : 0);
	/* An end is an edge of all that there is, as in TCP. */
	if ((s->told_stuck && !is_stuck(s)) || news & (POLLRDHUP | POLLHUP | POLLERR))
		news |= POLLIN | POLLOUT;
	s->told = events;
	s->told_octets = all_news(s);
	s->told_stuck = is_stuck(s);
	if (news && s->changed)
		s->changed(s->changed_arg, news);
}

/* ---- a call ---- */

static int stream_begin(struct rl_stream *s)
{
	u32 forks;

	rl_gate_enter();
	forks = rl_fd_forks();
	pthread_mutex_lock(&s->lock);
	if (unlikely(s->forks != forks)) {
		if (s->conn || s->begun || s->in.len || s->ops) {
			pthread_mutex_unlock(&s->lock);
			rl_gate_leave();
			return -EIO;
		}
		s->forks = forks;
	}
	if (s->conn)
		rl_conn_lock(s->conn);
	if (likely(s->phase != RL_STREAM_STARTING))
		return 0;
	if (s->conn)
		rl_conn_unlock(s->conn);
	rl_stream_go_on(s);
	if (s->conn)
		rl_conn_lock(s->conn);
	return 0;
}

/* The locks alone: MPA's exchange goes on with no call of ours but the program's. */
static void stream_hold(struct rl_stream *s)
{
	rl_gate_enter();
	pthread_mutex_lock(&s->lock);
	if (s->conn)
		rl_conn_lock(s->conn);
}

/* What another process has is its to go on with: the locks alone. */
static void stream_end(struct rl_stream *s)
{
	if (s->conn && unlikely(rl_stream_is_foreign(s)))
		rl_conn_release(s->conn);
	else if (s->conn)
		rl_conn_unlock(s->conn);
	else
		rl_stream_news(s);
	pthread_mutex_unlock(&s->lock);
	rl_gate_leave();
}

int rl_stream_begin(struct rl_stream *s)
{
	return stream_begin(s);
}

void rl_stream_end(struct rl_stream *s)
{
	stream_end(s);
}

/*
 * A call as stream_begin() and stream_end() have it, and what is between: how it began is what its
 * end needs. The stream's own lock guards what changes until it is open; from then on the
 * connection's does.
 */
enum { BY_BOTH_LOCKS, BY_CONNECTION };

static int stream_enter(struct rl_stream *s)
{
	if (!__atomic_load_n(&s->is_settled, __ATOMIC_ACQUIRE))
		return stream_begin(s);
	rl_gate_enter();
	if (unlikely(rl_stream_is_foreign(s))) {
		rl_gate_leave();
		return -EIO;
	}
	rl_conn_lock(s->conn);
	return BY_CONNECTION;
}

static void stream_leave(struct rl_stream *s, int how)
{
	if (how == BY_CONNECTION) {
		rl_conn_unlock(s->conn);
		rl_gate_leave();
		return;
	}
	if (s->conn && s->phase == RL_STREAM_OPEN && !s->ops)
		__atomic_store_n(&s->is_settled, true, __ATOMIC_RELEASE);
	stream_end(s);
}

/* The same of a call that has changed nothing. */
static void look_away(struct rl_stream *s, int how)
{
	if (how != BY_CONNECTION) {
		stream_leave(s, how);
		return;
	}
	rl_conn_release(s->conn);
	rl_gate_leave();
}

/* What became due is done, which the caller is to see. */
static void settle(struct rl_stream *s)
{
	if (s->conn)
		rl_conn_settle(s->conn);
}

static int take_error(struct rl_stream *s)
{
	int err = s->error;

	s->error = 0;
	return err;
}

void rl_stream_tell(struct rl_stream *s, void (*changed)(void *arg, unsigned int events), void *arg)
{
	stream_hold(s);
	s->changed = changed;
	s->changed_arg = arg;
	stream_end(s);
}

int rl_stream_fd(struct rl_stream *s)
{
	int fd;

	stream_hold(s);
	fd = !s->conn ? s->fd : s->conn->fd >= 0 ? s->conn->fd : s->conn->kept_fd;
	stream_end(s);
	return fd;
}

enum rl_stream_phase rl_stream_phase(struct rl_stream *s)
{
	enum rl_stream_phase phase = RL_STREAM_FAILED;

	if (stream_begin(s))
		return phase;
	phase = s->phase;
	stream_end(s);
	return phase;
}

bool rl_stream_has_begun(struct rl_stream *s)
{
	bool has_begun;

	if (stream_begin(s))
		return false;
	has_begun = s->begun || !s->options.plain_allowed || s->role == RL_STREAM_INITIATOR;
	stream_end(s);
	return has_begun;
}

u64 rl_stream_frame_by(struct rl_stream *s)
{
	u64 by;

	stream_hold(s);
	by = s->frame_by;
	stream_end(s);
	return by;
}

/* No more than half of what the peer may send: TCP gives its queue room for the double, too. */
void rl_stream_set_low_mark(struct rl_stream *s, u32 octets)
{
	stream_hold(s);
	s->least = max_t(u32, 1, min_t(u32, octets, s->peers.window / 2));
	stream_end(s);
}

/* ---- receiving ---- */

static size_t stream_total(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (; n > 0; n--, iov++)
		sum += iov->iov_len;
	return sum;
}

/* What is left of @iov behind @done octets: in @rest, of @max entries. How many. */
static int rest_of(const struct iovec *iov, int n, size_t done, struct iovec *rest, int max)
{
	int i, k = 0;

	for (i = 0; i < n && k < max; i++) {
		size_t over = done < iov[i].iov_len ? done : iov[i].iov_len;

		done -= over;
		if (over == iov[i].iov_len)
			continue;
		rest[k++] = (struct iovec){
			.iov_base = (u8 *)iov[i].iov_base + over,
			.iov_len = iov[i].iov_len - over,
		};
	}
	return k;
}

/* Nothing is left to read: why. */
static ssize_t at_end(struct rl_stream *s)
{
	/* That of a send after the peer's end is not the reader's. */
	if (s->error && s->error != EPIPE)
		return -take_error(s);
	if (s->phase == RL_STREAM_PLAIN)
		return -EPROTO;
	return s->peer_fin || s->read_shut || s->over ? 0 : -EAGAIN;
}

static ssize_t peek(struct rl_stream *s, const struct iovec *iov, int n, size_t max, bool all)
{
	if (s->in.len < max && stream_is_open(s)) {
		rl_stream_take_in(s, NULL, 0);
		settle(s);
	}
	/* More may come: the peer has credit. */
	if (all && s->in.len < max && stream_is_open(s) && !s->error && !s->peer_fin &&
	    !s->read_shut &&
	    rl_stream_credit(&s->peers))
		return -EAGAIN;
	return s->in.len ? rl_octets_copy(&s->in, iov, n, max) : at_end(s);
}

/* There are octets from before the operations alone. */
static ssize_t receive_before(struct rl_stream *s, const struct iovec *iov, int n, size_t max,
			      int flags)
{
	ssize_t rv;

	if (!s->in.len)
		return s->phase == RL_STREAM_STARTING ? at_end(s) : -EOPNOTSUPP;
	rv = rl_octets_copy(&s->in, iov, n, max);
	if (rv > 0 && !(flags & MSG_PEEK))
		rl_octets_drop(&s->in, rv);
	return rv;
}

static ssize_t take_queued(struct rl_stream *s, const struct iovec *iov, int n, size_t max)
{
	ssize_t done = s->in.len ? rl_octets_copy(&s->in, iov, n, max) : 0;

	if (done >= 0)
		rl_stream_drop(s, done);
	return done;
}

/* From the queue, and if that was not all, straight from TCP. */
static ssize_t receive(struct rl_stream *s, const struct iovec *iov, int n, size_t max)
{
	struct iovec rest[WEFT_MAX_SGE];
	ssize_t done;

	rl_stream_count(s);
	done = take_queued(s, iov, n, max);
	if (done < 0)
		return done;
	if (stream_is_open(s) && (!done || (max - done >= WORTH && s->conn->unread))) {
		done += rl_stream_take_in(s, rest, rest_of(iov, n, done, rest, WEFT_MAX_SGE));
		settle(s);
		/*
		 * A step that was due may have read the last octets, and found the end behind them.
		 */
		if (!done)
			done = take_queued(s, iov, n, max);
	} else if (stream_is_open(s)) {
		rl_stream_push(s);
	}
	return done ? done : at_end(s);
}

ssize_t rl_stream_recv(struct rl_stream *s, const struct iovec *iov, int n, int flags)
{
	size_t max = stream_total(iov, n);
	int how = stream_enter(s);
	ssize_t rv;

	if (how < 0)
		return how;
	if (!max)
		rv = 0;
	else if (s->ops && s->phase != RL_STREAM_PLAIN)
		rv = receive_before(s, iov, n, max, flags);
	else if (flags & MSG_PEEK)
		rv = peek(s, iov, n, max, flags & MSG_WAITALL);
	else
		rv = receive(s, iov, n, max);
	stream_leave(s, how);
	return rv;
}

size_t rl_stream_inq(struct rl_stream *s)
{
	size_t n;

	if (stream_begin(s))
		return 0;
	if (stream_is_open(s)) {
		rl_stream_take_in(s, NULL, 0);
		settle(s);
	}
	n = s->in.len;
	stream_end(s);
	return n;
}

/* ---- sending ---- */

/* Why nothing can be sent; 0: something may be. */
static int no_send(struct rl_stream *s)
{
	if (s->error)
		return -take_error(s);
	if (s->phase == RL_STREAM_PLAIN)
		return -EPROTO;
	if (s->over || s->fin_due)
		return -EPIPE;
	return s->phase == RL_STREAM_OPEN ? 0 : -EAGAIN;
}

/*
 * Makes room: credit that has come, and TCP's. The peer may do the same, so what it has sent is
 * taken in.
 */
static bool may_go_on(struct rl_stream *s)
{
	if (rl_stream_is_idle(s) && !s->early.len && rl_stream_credit(&s->own))
		return true;
	rl_stream_take_in(s, NULL, 0);
	settle(s);
	return stream_is_open(s) && rl_stream_is_idle(s) && !s->early.len &&
		rl_stream_credit(&s->own);
}

static ssize_t stream_send_all(struct rl_stream *s, const struct iovec *iov, int n, size_t max)
{
	size_t done = 0;
	ssize_t rv = 0;

	while (done < max && may_go_on(s)) {
		rv = rl_stream_say(s, iov, n, done, max - done);
		if (rv <= 0)
			break;
		done += rv;
	}
	if (done)
		return done;
	if (rv < 0)
		return rv;
	if (rl_stream_is_early(s))
		return rl_stream_say_early(s, iov, max);
	rv = no_send(s);
	return rv ? rv : -EAGAIN;
}

/* The peer has closed: it would drop them, and reset the connection. */
static ssize_t send_to_closed(struct rl_stream *s, size_t max)
{
	if (max) {
		s->half = false;
		s->error = EPIPE;
	}
	return min_t(size_t, max, 1u << 30);
}

ssize_t rl_stream_send(struct rl_stream *s, const struct iovec *iov, int n, int flags)
{
	size_t max = stream_total(iov, n);
	int how = stream_enter(s);
	ssize_t rv;

	if (how < 0)
		return how;
	rv = s->ops && s->phase != RL_STREAM_PLAIN ? -EOPNOTSUPP : no_send(s);
	if (s->half && rv == -EPIPE)
		rv = send_to_closed(s, max);
	else if (rv == -EAGAIN && rl_stream_is_early(s))
		rv = max ? rl_stream_say_early(s, iov, max) : 0;
	else if (!rv && max)
		rv = stream_send_all(s, iov, n, max);
	stream_leave(s, how);
	return rv;
}

/* ---- the rest ---- */

bool rl_stream_has_operations(const struct rl_stream *s)
{
	return s->options.operations;
}

static unsigned int awaited(struct rl_stream *s)
{
	unsigned int awaits = POLLIN;

	if (stream_is_open(s) && s->ops)
		awaits = s->options.operations->awaits(s);
	else if (s->over)
		awaits = 0;
	/* TCP's own end alone, which is always reported. */
	else if (is_stuck(s))
		awaits = POLLERR;
	/* What was taken of the program's is owed, whether it asks or not. */
	else if (stream_is_open(s) && s->conn->full)
		awaits |= POLLOUT;
	return awaits;
}

unsigned int rl_stream_look(struct rl_stream *s, bool moves, unsigned int *awaits)
{
	int how = stream_enter(s);
	unsigned int events;

	*awaits = POLLIN;
	if (how < 0)
		return POLLIN | POLLOUT | POLLERR;
	if (moves && stream_is_open(s)) {
		rl_stream_take_in(s, NULL, 0);
		settle(s);
	}
	events = events_now(s);
	*awaits = awaited(s);
	if (moves)
		stream_leave(s, how);
	else
		look_away(s, how);
	return events;
}

unsigned int rl_stream_poll(struct rl_stream *s)
{
	unsigned int awaits;

	return rl_stream_look(s, true, &awaits);
}

unsigned int rl_stream_has(struct rl_stream *s)
{
	unsigned int awaits;

	return rl_stream_look(s, false, &awaits);
}

unsigned int rl_stream_awaits(struct rl_stream *s, unsigned int events)
{
	unsigned int awaits = POLLIN;
	int how = stream_enter(s);

	if (how < 0)
		return awaits;
	awaits = awaited(s);
	look_away(s, how);
	return awaits;
}

int rl_stream_error(struct rl_stream *s)
{
	int err;

	if (stream_begin(s))
		return EIO;
	err = take_error(s);
	stream_end(s);
	return err;
}

int rl_stream_shutdown(struct rl_stream *s, int how)
{
	int rv = stream_begin(s);

	if (rv)
		return rv;
	if ((s->over && !s->half) || s->phase == RL_STREAM_PLAIN)
		rv = -ENOTCONN;
	else if (s->ops)
		rv = -EOPNOTSUPP;
	if (!rv && how != SHUT_WR)
		s->read_shut = true;
	if (!rv && how != SHUT_RD)
		s->fin_due = true;
	s->half &= !s->fin_due;
	s->debt |= !rv && rl_stream_is_early(s);
	if (!rv)
		rl_stream_push(s);
	stream_end(s);
	return rv;
}

/* ---- the end ---- */

static void stream_finish(struct rl_stream *s)
{
	if (s->resets && s->conn && !s->ops) {
		s->closed = true;
		s->conn->reset = s->conn->step_due = true;
		rl_conn_watch(s->conn);
		return;
	}
	rl_stream_finish(s);
	if (!s->conn)
		return;
	if (s->phase == RL_STREAM_STARTING)
		rl_stream_give_up(s);
	rl_conn_watch(s->conn);
}

bool rl_stream_take_back(struct rl_stream *s)
{
	bool does = s->ops && !rl_stream_is_foreign(s);

	if (!does)
		return false;
	stream_hold(s);
	if (!s->closed)
		stream_finish(s);
	stream_end(s);
	pthread_mutex_lock(&s->lock);
	s->options.operations->deregister_all(s);
	pthread_mutex_unlock(&s->lock);
	return true;
}

void rl_stream_close(struct rl_stream *s)
{
	rl_gate_enter();
	stream_hold(s);
	s->changed = NULL;
	/* What another process has is its to end. */
	if (!rl_stream_is_foreign(s))
		stream_finish(s);
	stream_end(s);
	/* No other thread makes calls any more. */
	if (s->ops && !rl_stream_is_foreign(s))
		s->options.operations->deregister_all(s);
	rl_stream_put(s);
	rl_gate_leave();
}

/*
 * A process ends, and its sockets with it. TCP would send RST for what it has unread, which may be
 * credit, and forget what it has not sent.
 */
static bool has_arrived(struct rl_conn *c)
{
	struct weft_tcp_view v;

	if (c->link.state == WEFT_LINK_DEAD)
		return true;
	rl_conn_view(c, &v);
	return v.delivered || v.closed;
}

void rl_stream_reset_at_close(struct rl_stream *s)
{
	stream_hold(s);
	s->resets = true;
	stream_end(s);
}

void rl_stream_reset(struct rl_stream *s)
{
	stream_hold(s);
	s->resets = true;
	if (!rl_stream_is_foreign(s))
		stream_finish(s);
	stream_end(s);
}

bool rl_stream_lingers(struct rl_stream *s)
{
	bool lingers;

	stream_hold(s);
	lingers = s->closed && s->conn && !has_arrived(s->conn);
	stream_end(s);
	return lingers;
}

void rl_stream_await_end(struct rl_stream *s)
{
	stream_hold(s);
	s->awaited = true;
	rl_stream_get(s);
	stream_end(s);
}

void rl_stream_let_go(struct rl_stream *s)
{
	stream_hold(s);
	s->awaited = false;
	stream_end(s);
	rl_gate_enter();
	rl_stream_put(s);
	rl_gate_leave();
}

bool rl_stream_half_peer(struct rl_stream *s, struct sockaddr_in6 *peer)
{
	bool is_half;

	stream_hold(s);
	is_half = s->half;
	*peer = s->peer;
	stream_end(s);
	return is_half;
}

/* Of one that is not closed: TCP has all that was sent, and the peer's, too. */
static bool has_taken_all(struct rl_stream *s)
{
	int left = 0;

	return s->over ||
		(rl_stream_is_idle(s) && !s->debt &&
		 !rl_raw(SYS_ioctl, s->conn->fd, SIOCOUTQ, &left) && !left);
}

static void wait_a_little(void)
{
	const struct timespec soon = { .tv_nsec = 1000000 };

	rl_raw(SYS_ppoll, NULL, 0, &soon, NULL, 0);
}

/* A process, or its program, is about to end. */
struct leaving {
	bool ends, amid;		/* the process; it leaves in the middle of a call of ours */
	u64 until;
	u32 round;
};

/* Another has a lock for a moment; but who leaves amid a call may have it himself. */
static bool may_try_again(const struct leaving *l)
{
	if (l->amid || rl_now_ms() >= l->until)
		return false;
	wait_a_little();
	return true;
}

static bool lock_until(pthread_mutex_t *lock, const struct leaving *l)
{
	while (pthread_mutex_trylock(lock))
		if (!may_try_again(l))
			return false;
	return true;
}

static bool lock_conn_until(struct rl_conn *c, const struct leaving *l)
{
	while (!rl_lock_try(&c->lock))
		if (!may_try_again(l))
			return false;
	return true;
}

/* It has something to send, now or once the peer's program accepts. */
static bool may_owe(const struct rl_stream *s)
{
	return s->conn && (s->phase == RL_STREAM_OPEN ||
			   (s->phase == RL_STREAM_STARTING && s->debt));
}

/* Closes, if it ends; true: the peer's TCP has all, or that is unknown. */
static bool is_done(struct rl_stream *s, const struct leaving *l)
{
	bool done = true;

	if (rl_stream_is_foreign(s) || !lock_until(&s->lock, l))
		return true;
	if (may_owe(s) && lock_conn_until(s->conn, l)) {
		/* Posted operations are sent first. */
		if (l->ends && !s->closed && (!s->ops || s->options.operations->is_quiet(s)))
			stream_finish(s);
		rl_stream_seek_reply(s);
		rl_conn_receive(s->conn);
		s->conn->step_due = s->conn->tx_due = true;
		rl_conn_unlock(s->conn);
		rl_conn_lock(s->conn);
		done = s->closed ? has_arrived(s->conn) : has_taken_all(s);
		rl_conn_unlock(s->conn);
	}
	pthread_mutex_unlock(&s->lock);
	return done;
}

/* Between looks it is outside the gate: signals come. */
static void await_done(struct rl_stream *s, const struct leaving *l)
{
	bool done;

	for (;;) {
		rl_gate_enter();
		done = is_done(s, l) || rl_now_ms() >= l->until;
		if (done)
			rl_stream_put(s);
		rl_gate_leave();
		if (done)
			return;
		wait_a_little();
	}
}

/*
 * With all.lock; referenced. Node by node: the head is not aligned as a stream is, which sanitizers
 * report.
 */
static struct rl_stream *find_leaving(u32 round)
{
	struct rl_stream *s;
	struct list_head *at;

	for (at = all.list.next; at != &all.list; at = at->next) {
		s = list_entry(at, struct rl_stream, of_all);
		if (s->left_in != round && stream_get_live(s))
			return s;
	}
	return NULL;
}

/* One that was not awaited yet in this round, referenced. */
static struct rl_stream *next_leaving(const struct leaving *l)
{
	struct rl_stream *found = NULL;

	rl_gate_enter();
	if (lock_until(&all.lock, l)) {
		found = find_leaving(l->round);
		if (found)
			found->left_in = l->round;
		pthread_mutex_unlock(&all.lock);
	}
	rl_gate_leave();
	return found;
}

static void await_all(bool ends, bool amid)
{
	const struct leaving l = {
		.ends = ends, .amid = amid,
		.until = rl_now_ms() + rl_options()->close_ms,
		.round = __atomic_add_fetch(&all.rounds, 1, __ATOMIC_RELAXED),
	};
	struct rl_stream *s;

	while ((s = next_leaving(&l)))
		await_done(s, &l);
}

void rl_stream_exit(void)
{
	await_all(true, rl_gate_is_inside());
}

/* By the progress thread, which is in no call of ours. */
static void await_before_exit(void)
{
	await_all(true, false);
}

static void await_before_exec(void)
{
	await_all(false, false);
}

void rl_stream_leave(bool ends)
{
	/* Without the lock, which a call may have that was interrupted. */
	if (__atomic_load_n(&all.list.next, __ATOMIC_RELAXED) != &all.list)
		rl_thread_do(ends ? await_before_exit : await_before_exec, rl_now_ms() +
			     rl_options()->close_ms);
}

__attribute__((destructor)) static void end_streams(void)
{
	rl_stream_exit();
}
