// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sockets that go over iWARP, from connect() or accept() on. What is accepted is not looked at before the
 * program uses it: a server may accept in one process, and serve in a child, or in a program that it
 * executes. Two processes that both have such a socket share a word, and the first that uses it wins.
 */
#include <fcntl.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "process/gate.h"
#include "process/hook.h"
#include "process/options.h"
#include "process/raw.h"
#include "signals.h"
#include "sock.h"
#include "process/thread.h"

/* Descriptors that a program may get over an exec are among the first. */
#define FOUND_MAX	256
#define CLAIMS_SIZE	4096

/* Words that processes share, one for each socket that was fresh at a fork(). */
struct rl_claims {
	u32 *words;			/* atomic */
	u32 used, refs;			/* this process's; atomic refs */
};

bool rl_sockets_on;
static struct rl_rules rules;
static struct {
	pthread_mutex_t lock;		/* of the list; leaf */
	struct rl_sock *fresh;
	struct rl_claims *claims;	/* has room; of handlers of fork() alone */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct rl_file_ops sock_ops;

/* Whoever waits looks again. */
static void set_phase(struct rl_sock *sk, enum rl_sock_phase phase)
{
	__atomic_store_n(&sk->phase, phase, __ATOMIC_RELEASE);
	rl_sock_changed(sk, POLLIN | POLLOUT);
}

/* ---- claims ---- */

static void put_claims(struct rl_claims *c)
{
	if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	munmap(c->words, CLAIMS_SIZE);
	free(c);
}

static struct rl_claims *new_claims(void)
{
	struct rl_claims *c = calloc(1, sizeof(*c));
	void *words = c ? mmap(NULL, CLAIMS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0) : MAP_FAILED;

	if (words == MAP_FAILED) {
		free(c);
		return NULL;
	}
	*c = (struct rl_claims){ .words = words, .refs = 1 };
	return c;
}

static void lend_word(struct rl_sock *sk)
{
	struct rl_claims *c = all.claims;

	if (!c || c->used == CLAIMS_SIZE / sizeof(u32)) {
		put_claims(c);
		c = all.claims = new_claims();
	}
	if (!c)
		return;
	sk->claim = &c->words[c->used++];
	sk->claims = c;
	__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
}

/* Behind the gate's handler: nobody is inside. A socket that has a word is still nobody's. */
static void before_fork(void)
{
	struct rl_sock *sk;

	rl_epoll_before_fork();
	for (sk = all.fresh; sk; sk = sk->next)
		if (!sk->claim)
			lend_word(sk);
}

/* The parent goes on with the words that are free. */
static void in_child(void)
{
	put_claims(all.claims);
	all.claims = NULL;
	rl_turns_in_child();
}

static bool is_won(struct rl_sock *sk)
{
	u32 unused = 0;

	return !sk->claim || __atomic_compare_exchange_n(sk->claim, &unused, 1, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- life ---- */

static struct rl_sock *new_sock(enum rl_sock_phase phase, const struct rl_rule *rule)
{
	struct rl_sock *sk = calloc(1, sizeof(*sk));

	if (!sk)
		return NULL;
	rl_file_init(&sk->file, &sock_ops, 0);
	pthread_mutex_init(&sk->lock, NULL);
	pthread_mutex_init(&sk->bells, NULL);
	sk->own_fd = -1;
	sk->phase = phase;
	sk->rule = rule;
	return sk;
}

static void link_fresh(struct rl_sock *sk)
{
	pthread_mutex_lock(&all.lock);
	sk->next = all.fresh;
	sk->prev = &all.fresh;
	if (sk->next)
		sk->next->prev = &sk->next;
	all.fresh = sk;
	pthread_mutex_unlock(&all.lock);
}

static void unlink_fresh(struct rl_sock *sk)
{
	pthread_mutex_lock(&all.lock);
	if (sk->prev) {
		*sk->prev = sk->next;
		if (sk->next)
			sk->next->prev = sk->prev;
		sk->prev = NULL;
	}
	pthread_mutex_unlock(&all.lock);
}

static void release(struct rl_file *f)
{
	struct rl_sock *sk = container_of(f, struct rl_sock, file);

	unlink_fresh(sk);
	put_claims(sk->claims);
	rl_epoll_leave(sk, -1, true);
	if (sk->stream)
		rl_stream_close(sk->stream);
	pthread_mutex_destroy(&sk->bells);
	pthread_mutex_destroy(&sk->lock);
	free(sk);
}

struct rl_sock *rl_sock_begin_any(int fd)
{
	struct rl_file *f = rl_call_begin(fd);

	if (f && f->ops == &sock_ops)
		return container_of(f, struct rl_sock, file);
	if (f)
		rl_call_end(f);
	return NULL;
}

struct rl_sock *rl_sock_begin(int fd)
{
	struct rl_sock *sk = rl_sock_begin_any(fd);

	if (!sk || (rl_sock_phase_of(sk) != RL_SOCK_NEW && rl_sock_phase_of(sk) != RL_SOCK_PLAIN))
		return sk;
	rl_sock_end(sk);
	return NULL;
}

void rl_sock_end(void *sk)
{
	rl_call_end(&((struct rl_sock *)sk)->file);
}

/* ---- phases ---- */

/* With sk->lock. What the program has posted comes back by events, which are the stream's. */
static void become_plain(struct rl_sock *sk)
{
	if (sk->stream && !rl_stream_has_operations(sk->stream)) {
		rl_stream_close(sk->stream);
		sk->stream = NULL;
	}
	set_phase(sk, RL_SOCK_PLAIN);
}

/*
 * MPA's frames are no program's records: whoever waits is to hear of the first octet. A socket that turns out to
 * be plain gets back what it had.
 */
static void take_low_mark(struct rl_sock *sk, int fd)
{
	int mark = 0, one = 1;
	socklen_t len = sizeof(mark);

	rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &mark, &len);
	if (mark > 1 && !rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one)))
		sk->low_mark = mark;
}

/* Without it. The caller has a reference. */
static int leave_table(struct rl_sock *sk, int fd)
{
	fd = rl_fd_name_of(&sk->file, fd);
	if (sk->low_mark && fd >= 0)
		rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &sk->low_mark, sizeof(sk->low_mark));
	unlink_fresh(sk);
	rl_epoll_leave(sk, -1, false);
	if (sk->stream)
		__atomic_store_n(&sk->is_kept, true, __ATOMIC_RELEASE);
	else
		rl_fd_forget_all(&sk->file);
	return RL_SOCK_IS_PLAIN;
}

int rl_sock_make_plain(struct rl_sock *sk, int fd)
{
	pthread_mutex_lock(&sk->lock);
	become_plain(sk);
	pthread_mutex_unlock(&sk->lock);
	return leave_table(sk, fd);
}

/* What a program executes finds it closed, and no FPDUs. */
static void bind_to_process(int fd)
{
	long flags = rl_raw(SYS_fcntl, fd, F_GETFD);

	if (flags >= 0 && !(flags & FD_CLOEXEC))
		rl_raw(SYS_fcntl, fd, F_SETFD, flags | FD_CLOEXEC);
}

static void bind_all(struct rl_sock *sk)
{
	__atomic_store_n(&sk->is_bound, true, __ATOMIC_SEQ_CST);
	rl_fd_each(&sk->file, bind_to_process);
}

static int kill_sock(struct rl_sock *sk, int why)
{
	sk->why = -why;
	set_phase(sk, RL_SOCK_DEAD);
	if (rl_options()->trace)
		rl_complain("sockets: no stream: %s", strerror(sk->why));
	return why;
}

/* With sk->lock, if others know of it. */
static void go_over(struct rl_sock *sk, int fd, const char *why)
{
	if (rl_options()->trace)
		rl_complain("sockets: descriptor %d goes over iWARP, %s", fd, why);
	rl_stream_tell(sk->stream, rl_sock_changed, sk);
	__atomic_store_n(&sk->own_fd, rl_stream_fd(sk->stream), __ATOMIC_RELAXED);
	/* A client that has been asked may be plain yet. */
	if (rl_stream_has_begun(sk->stream))
		bind_all(sk);
	set_phase(sk, RL_SOCK_STREAM);
}

/* With sk->lock. TCP is connected, or never will be. */
static int start(struct rl_sock *sk, int fd, enum rl_stream_role role)
{
	struct rl_stream_options o = { .plain_allowed = role == RL_STREAM_RESPONDER };
	int rv;

	if (!is_won(sk))
		return kill_sock(sk, -EIO);
	if (role == RL_STREAM_INITIATOR)
		take_low_mark(sk, fd);
	rv = rl_stream_start(fd, role, &o, &sk->stream);
	if (rv == -ENOTCONN || rv == -EPROTOTYPE) {
		become_plain(sk);
		return RL_SOCK_IS_PLAIN;
	}
	if (rv)
		return kill_sock(sk, rv);
	go_over(sk, fd, role == RL_STREAM_INITIATOR ? "connected" : "accepted");
	return 0;
}

static unsigned int ask_kernel(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return rl_raw(SYS_poll, &p, 1, 0) > 0 ? (unsigned short)p.revents : 0;
}

/* With sk->lock. What went wrong the kernel is to say. */
static int decide_connecting(struct rl_sock *sk, int fd)
{
	unsigned int ev = ask_kernel(fd, POLLOUT);

	if (!ev)
		return -EAGAIN;
	if (!(ev & (POLLERR | POLLNVAL)))
		return start(sk, fd, RL_STREAM_INITIATOR);
	become_plain(sk);
	return RL_SOCK_IS_PLAIN;
}

/* With sk->lock. A client that says nothing is plain if the program is to speak first. */
static int decide_fresh(struct rl_sock *sk, int fd, bool speaks)
{
	u8 first;
	long n = rl_raw(SYS_recvfrom, fd, &first, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);

	if (n > 0)
		return start(sk, fd, RL_STREAM_RESPONDER);
	if (n == -EAGAIN && (!speaks || sk->rule->only || rl_now_ms() < sk->deadline))
		return -EAGAIN;
	if (n == -EAGAIN && !is_won(sk))
		return kill_sock(sk, -EIO);
	become_plain(sk);
	return RL_SOCK_IS_PLAIN;
}

/*
 * With sk->lock, without which @fd does not leave it (leave()): a number that was closed under the
 * caller may be another file's by now.
 */
static int decide_locked(struct rl_sock *sk, int fd, bool speaks)
{
	u32 phase = rl_sock_phase_of(sk);

	if (phase == RL_SOCK_CONNECTING || phase == RL_SOCK_FRESH)
		fd = rl_fd_name_of(&sk->file, fd);
	if (fd < 0)
		return -EBADF;
	switch (phase) {
	case RL_SOCK_CONNECTING:
		return decide_connecting(sk, fd);
	case RL_SOCK_FRESH:
		return decide_fresh(sk, fd, speaks);
	case RL_SOCK_STREAM:
		return 0;
	case RL_SOCK_DEAD:
		return -sk->why;
	}
	return RL_SOCK_IS_PLAIN;
}

int rl_sock_decide(struct rl_sock *sk, int fd, bool speaks)
{
	int rv;

	if (likely(__atomic_load_n(&sk->is_open, __ATOMIC_ACQUIRE)))
		return 0;
	pthread_mutex_lock(&sk->lock);
	rv = decide_locked(sk, fd, speaks);
	pthread_mutex_unlock(&sk->lock);
	if (rv == RL_SOCK_IS_PLAIN)
		return leave_table(sk, fd);
	if (rv != -EAGAIN)
		unlink_fresh(sk);
	return rv;
}

bool rl_sock_give_up(struct rl_sock *sk, int fd)
{
	bool done;

	pthread_mutex_lock(&sk->lock);
	fd = rl_fd_name_of(&sk->file, fd);
	done = rl_sock_phase_of(sk) == RL_SOCK_FRESH && sk->rule->only && fd >= 0;
	if (done) {
		rl_raw(SYS_shutdown, fd, SHUT_RDWR);
		kill_sock(sk, -ENOTCONN);
	}
	pthread_mutex_unlock(&sk->lock);
	if (done)
		unlink_fresh(sk);
	return done;
}

/* Until MPA's exchange is through nobody else is to find the stream gone. */
bool rl_sock_step_begin(struct rl_sock *sk)
{
	if (likely(__atomic_load_n(&sk->is_open, __ATOMIC_ACQUIRE)))
		return false;
	pthread_mutex_lock(&sk->lock);
	return true;
}

/* With sk->lock. The client's first octets are no Request. */
static int refuse_plain(struct rl_sock *sk, int fd)
{
	become_plain(sk);
	fd = rl_fd_name_of(&sk->file, fd);
	if (fd >= 0)
		rl_raw(SYS_shutdown, fd, SHUT_RDWR);
	return kill_sock(sk, -ECONNRESET);
}

/* With sk->lock. What became of the stream, if it is none. */
static int look_at_phase(struct rl_sock *sk, int fd)
{
	enum rl_stream_phase phase;

	if (!sk->stream)
		return rl_sock_phase_of(sk) == RL_SOCK_DEAD ? -sk->why : RL_SOCK_IS_PLAIN;
	phase = rl_stream_phase(sk->stream);
	if (phase == RL_STREAM_PLAIN && sk->rule->only)
		return refuse_plain(sk, fd);
	if (phase == RL_STREAM_PLAIN) {
		become_plain(sk);
		return RL_SOCK_IS_PLAIN;
	}
	if (!sk->is_bound && rl_stream_has_begun(sk->stream))
		bind_all(sk);
	if (phase != RL_STREAM_STARTING)
		__atomic_store_n(&sk->is_open, true, __ATOMIC_RELEASE);
	return 0;
}

int rl_sock_step_end(struct rl_sock *sk, int fd, bool locked)
{
	int rv;

	if (!locked)
		return 0;
	rv = look_at_phase(sk, fd);
	pthread_mutex_unlock(&sk->lock);
	return rv == RL_SOCK_IS_PLAIN ? leave_table(sk, fd) : rv;
}

/* ---- what poll() says ---- */

u64 rl_sock_deadline(const struct rl_sock *sk, unsigned int events)
{
	return events & POLLOUT && rl_sock_phase_of(sk) == RL_SOCK_FRESH && !sk->rule->only ? sk->deadline : 0;
}

static unsigned int with_aliases(unsigned int events)
{
	return events | (events & POLLRDNORM ? POLLIN : 0) | (events & POLLWRNORM ? POLLOUT : 0);
}

static int say(struct rl_sock *sk, bool moves, unsigned int events, unsigned int *awaits)
{
	unsigned int ev = rl_stream_look(sk->stream, moves, awaits);

	if (ev & POLLOUT || (with_aliases(events) & POLLOUT && !__atomic_exchange_n(&sk->told, true, __ATOMIC_RELAXED)))
		ev |= POLLOUT | POLLWRNORM;
	if (ev & POLLIN)
		ev |= POLLRDNORM;
	ev &= events | POLLERR | POLLHUP;
	if (ev)
		*awaits = 0;
	return (int)ev;
}

int rl_sock_poll(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits)
{
	bool is_connecting = rl_sock_phase_of(sk) == RL_SOCK_CONNECTING;
	int rv;

	*awaits = is_connecting ? POLLOUT : POLLIN;
	rv = rl_sock_decide(sk, fd, with_aliases(events) & POLLOUT);
	if (!rv)
		rv = (int)rl_sock_step(sk, fd, say(sk, true, events, awaits));
	if (rv == -EAGAIN)
		return 0;
	if (rv < 0 && rv != RL_SOCK_IS_PLAIN)
		return (int)((POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM) & events) | POLLERR | POLLHUP;
	return rv;
}

int rl_sock_glance(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits)
{
	if (!__atomic_load_n(&sk->is_open, __ATOMIC_ACQUIRE))
		return rl_sock_poll(sk, fd, events, awaits);
	return say(sk, false, events, awaits);
}

int rl_sock_look(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits)
{
	const unsigned int hears = POLLIN | POLLRDNORM | POLLRDHUP;
	int ev = rl_sock_glance(sk, fd, events, awaits), more;

	if (ev <= 0 || (unsigned int)ev & hears || !(events & hears))
		return ev;
	more = rl_sock_poll(sk, fd, events, awaits);
	return more < 0 ? more : ev | more;
}

/* ---- what to wait for ---- */

int rl_sock_fd(const struct rl_sock *sk, int fd)
{
	int own = __atomic_load_n(&sk->own_fd, __ATOMIC_RELAXED);

	return own < 0 ? rl_fd_name_of(&sk->file, fd) : own;
}

struct pollfd rl_sock_awaits(struct rl_sock *sk, int fd, unsigned int events)
{
	struct pollfd p = { .fd = rl_sock_fd(sk, fd), .events = POLLIN };
	int awaits;

	if (rl_sock_phase_of(sk) == RL_SOCK_CONNECTING) {
		p.events = POLLOUT;
	} else if (rl_sock_phase_of(sk) == RL_SOCK_STREAM) {
		awaits = (int)rl_sock_step(sk, fd, rl_stream_awaits(sk->stream, events));
		p.events = awaits < 0 ? POLLIN : (short)awaits;
	}
	return p;
}

/* ---- how sockets come, and go ---- */

/* @sk is the table's from now on. False: there is no place for it. */
static bool attach(int fd, struct rl_sock *sk)
{
	bool done;

	if (!sk)
		return false;
	rl_gate_enter();
	if (rl_sock_phase_of(sk) == RL_SOCK_FRESH)
		link_fresh(sk);
	done = rl_fd_attach(fd, &sk->file);
	if (done && sk->stream) {
		pthread_mutex_lock(&sk->lock);
		go_over(sk, fd, "asked for");
		pthread_mutex_unlock(&sk->lock);
	}
	rl_file_put(&sk->file);
	rl_gate_leave();
	return done;
}

/* The program asked for it, and the table has it for another reason. With sk->lock. */
int rl_sock_take(struct rl_sock *sk, int fd, struct rl_stream *s)
{
	if (!is_won(sk)) {
		rl_stream_close(s);
		return kill_sock(sk, -EIO);
	}
	sk->stream = s;
	go_over(sk, fd, "asked for");
	unlink_fresh(sk);
	return 0;
}

int rl_sock_adopt(int fd, struct rl_stream *s)
{
	static const struct rl_rule none;
	struct rl_sock *sk = new_sock(RL_SOCK_STREAM, &none);

	if (!sk) {
		rl_stream_close(s);
		return -ENOMEM;
	}
	sk->told = true;
	sk->stream = s;
	return attach(fd, sk) ? 0 : -EMFILE;
}

static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
		protocol == IPPROTO_TCP;
}

void rl_sock_made(int fd, int domain, int type, int protocol)
{
	bool may_be = (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM &&
		(!protocol || protocol == IPPROTO_TCP);

	if (fd >= 0 && may_be)
		attach(fd, new_sock(RL_SOCK_NEW, NULL));
}

const struct rl_rule *rl_sock_rule_to(int fd, const struct sockaddr *a, socklen_t len)
{
	struct sockaddr_storage peer = { 0 };

	if (!a || len < sizeof(struct sockaddr_in) || len > sizeof(peer))
		return NULL;
	memcpy(&peer, a, len);
	if (peer.ss_family == AF_INET6 && len < sizeof(struct sockaddr_in6))
		return NULL;
	return rl_rules_find(&rules, RL_CONNECTS, rl_rules_port(&peer), &peer);
}

/* One that is connecting already is asked again by programs that do not poll. */
static void note_connect(struct rl_sock *sk, int fd, const struct rl_rule *rule, bool done)
{
	u32 phase = rl_sock_phase_of(sk);

	if (phase == RL_SOCK_NEW && !rule) {
		rl_sock_make_plain(sk, fd);
		return;
	}
	if (phase == RL_SOCK_NEW) {
		pthread_mutex_lock(&sk->lock);
		sk->rule = rule;
		set_phase(sk, RL_SOCK_CONNECTING);
		pthread_mutex_unlock(&sk->lock);
	}
	if (done) {
		__atomic_store_n(&sk->told, true, __ATOMIC_RELAXED);
		rl_sock_decide(sk, fd, true);
		if (rl_sock_phase_of(sk) == RL_SOCK_STREAM)
			rl_sock_step(sk, fd, rl_stream_poll(sk->stream));
	}
	rl_epoll_stir(sk, 0);
}

int rl_sock_connected(int fd, const struct rl_rule *rule, int rv)
{
	int saved = errno;
	bool goes_on = rv && (errno == EINPROGRESS || errno == EINTR);
	struct rl_sock *sk = !rv || goes_on ? rl_sock_begin_any(fd) : NULL;

	if (sk) {
		note_connect(sk, fd, rule, !rv);
		rl_sock_end(sk);
	}
	errno = saved;
	return rv;
}

static const struct rl_rule *rule_from(int fd, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof(own);

	if (rl_raw(SYS_getsockname, fd, &own, &len) < 0)
		return NULL;
	return rl_rules_find(&rules, RL_ACCEPTS, rl_rules_port(&own), peer);
}

static void accepted(int fd, const struct sockaddr_storage *peer, bool strange)
{
	int saved = errno;
	const struct rl_rule *rule = rule_from(fd, peer);
	struct rl_sock *sk = rule && is_tcp(fd) ? new_sock(RL_SOCK_FRESH, rule) : NULL;

	if (sk) {
		sk->told = true;
		sk->strange = strange;
		sk->deadline = rl_now_ms() + rule->wait_ms;
		take_low_mark(sk, fd);
		attach(fd, sk);
	}
	errno = saved;
}

void rl_sock_accepted(int fd, const struct sockaddr_storage *peer)
{
	accepted(fd, peer, false);
}

/* Nobody has sent on it, and nothing that came was read. */
static bool is_untouched(int fd)
{
	struct tcp_info i = { 0 };
	socklen_t len = sizeof(i);
	int queued = 0;

	return !rl_raw(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &i, &len) && i.tcpi_state == 1 &&
		rl_raw(SYS_ioctl, fd, FIONREAD, &queued) >= 0 && !i.tcpi_bytes_sent &&
		i.tcpi_bytes_received == (u64)queued;
}

void rl_sock_found(int fd)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	if (!rl_fd_is_used(fd) && !rl_raw(SYS_getpeername, fd, &peer, &len) && rule_from(fd, &peer) &&
	    is_tcp(fd) && is_untouched(fd))
		accepted(fd, &peer, true);
}

bool rl_sock_goes_out(int fd)
{
	struct rl_sock *sk = rl_sock_may(fd) ? rl_sock_begin_any(fd) : NULL;
	bool may;

	if (!sk)
		return true;
	may = rl_sock_phase_of(sk) != RL_SOCK_CONNECTING && rl_sock_phase_of(sk) != RL_SOCK_STREAM &&
		rl_sock_phase_of(sk) != RL_SOCK_DEAD;
	if (may)
		__atomic_store_n(&sk->strange, true, __ATOMIC_RELAXED);
	rl_sock_end(sk);
	return may;
}

void rl_sock_listens(int fd)
{
	struct rl_sock *sk = rl_sock_begin_any(fd);

	if (!sk)
		return;
	if (rl_sock_phase_of(sk) == RL_SOCK_NEW)
		rl_sock_make_plain(sk, fd);
	rl_sock_end(sk);
}

/* No number names it any more. With sk->lock, or it is open. */
static bool takes_back(struct rl_sock *sk)
{
	return sk->stream && rl_fd_name_of(&sk->file, -1) < 0 && rl_stream_take_back(sk->stream);
}

/*
 * The number was the last, and a call of this very thread keeps the socket: it may never come back (siglongjmp()).
 * The peer hears of the end now. With sk->lock, or it is open.
 */
static void end_for_sleeper(struct rl_sock *sk)
{
	if (sk->stream && rl_turn_is_sleeping(sk) && rl_fd_name_of(&sk->file, -1) < 0)
		rl_stream_shutdown(sk->stream, SHUT_RDWR);
}

/* Without sk->lock @fd does not leave the table. */
static void leave(struct rl_file *f, int fd)
{
	struct rl_sock *sk = container_of(f, struct rl_sock, file);
	bool locked;

	rl_turn_reap(__builtin_frame_address(0));
	locked = rl_sock_step_begin(sk);
	if (sk->has_items)
		rl_epoll_leave(sk, fd, true);
	rl_fd_forget(fd);
	end_for_sleeper(sk);
	/*
	 * The kernel wakes nobody, and whoever waits by this number would wait for another's octets. What was
	 * posted, and ranges, do not wait for who sleeps.
	 */
	if (takes_back(sk) || locked)
		rl_sock_changed(sk, 0);
	if (locked)
		pthread_mutex_unlock(&sk->lock);
}

static bool is_bound(const struct rl_sock *sk)
{
	switch (rl_sock_phase_of(sk)) {
	case RL_SOCK_NEW:
	case RL_SOCK_PLAIN:
	case RL_SOCK_FRESH:
		return false;
	case RL_SOCK_STREAM:
		return __atomic_load_n(&sk->is_bound, __ATOMIC_SEQ_CST);
	}
	return true;
}

bool rl_sock_is_bound(int fd)
{
	struct rl_sock *sk = rl_sock_may(fd) ? rl_sock_begin_any(fd) : NULL;
	bool is = sk && is_bound(sk);

	if (sk)
		rl_sock_end(sk);
	return is;
}

/* No other program is to find the FPDUs of a stream. */
static void copied(struct rl_file *f, int fd)
{
	if (is_bound(container_of(f, struct rl_sock, file)))
		bind_to_process(fd);
}

static const struct rl_file_ops sock_ops = {
	.leave = leave, .copied = copied, .release = release, .is_shared = true,
};

/* ---- the process ---- */

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("WEFT_SOCKETS"), *why;
	unsigned int line;
	int fd;

	if (!name || !*name)
		return;
	why = rl_rules_load(name, &rules, &line);
	if (why) {
		rl_complain("WEFT_SOCKETS=%s is ignored: line %u: %s", name, line, why);
		return;
	}
	/* Of the environment, which some programs empty. */
	rl_options();
	rl_sock_flags_begin();
	pthread_atfork(before_fork, NULL, in_child);
	rl_sockets_on = true;
	rl_signals_begin();
	for (fd = 0; fd < FOUND_MAX; fd++)
		rl_sock_found(fd);
}

__attribute__((destructor)) static void finish(void)
{
	if (rl_sockets_on)
		rl_stream_exit();
}
