// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Epolls with sockets of ours. The program's epoll is the kernel's. For our sockets it waits for
 * what the streams await, with an address of ours as user data instead of the program's. An epoll
 * without such sockets is not in the table of descriptors.
 *
 * A wait looks at the items in the list: those that a call of the program has changed, that the
 * kernel has named, or that were ready when last reported (without EPOLLET).
 *
 * A stream that has begun is in the kernel's epoll by its hidden number: rl_sock_kernel_fd().
 *
 * Event loops remove a socket and add it again for each request. So a removed item stays in the
 * kernel's epoll until the kernel names it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "epoll.h"
#include "events.h"
#include "process/gate.h"
#include "process/guard.h"
#include "process/hook.h"
#include "process/raw.h"
#include "process/thread.h"
#include "signals.h"
#include "sock.h"
#include "waiter.h"

#define NS		1000000000ull
#define PLACES		(1 << 20)	/* numbers of descriptors */
#define BATCH		64
#define BEHAVIOUR	(EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE)
#define ASKED(ev)	((ev) & ~(u32)BEHAVIOUR)

/* A descriptor in an epoll. */
struct rl_item {
	struct rl_epoll *ep;
	struct rl_sock *sk;
	int fd;
	int kernel_fd;			/* the number that the kernel has it by */
	bool has_copy;			/* that is a hidden one of its own */
	u32 id;				/* there was none with this one before */
	struct epoll_event user;	/* what the program asked for */
	u32 registered;			/* what the kernel was asked for */
	u32 seen;			/* EPOLLET: told, and no reason since to tell it again */
	u32 told_in;			/* the last call that has told of it */
	bool spent;			/* EPOLLONESHOT: told */
	bool named;			/* by the kernel, maybe for good; TCP was not asked since */
	bool is_out;			/* the program has removed it, the kernel still has it */
	bool dirty;			/* in the list */
	struct list_head of_dirty;	/* dirty: the epoll's list */
	struct list_head of_sock;
	struct list_head of_out;	/* is_out */
};

struct rl_epoll {
	struct rl_file file;
	int fd;				/* a hidden name of it */
	int number;			/* what the program called it as it became ours */
	int eventfd;			/* hidden; in the epoll: wakes waiters; -1: none */
	struct rl_item **items;		/* by descriptor */
	int n_items;
	struct list_head dirty;
	u32 n_dirty, waiters;		/* atomic: read without the lock */
	pid_t maker;			/* a child shares it with its parent's sockets */
	bool ours_last;			/* atomic: one event per call: the kernel's is next */
};

static struct {
	pthread_mutex_t lock;		/* of all here; leaf. Not held over calls of streams */
	char *words;			/* PLACES addresses, and one: what the kernel calls ours */
	struct list_head out;		/* items */
	u32 ids, calls;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER, .out = LIST_HEAD_INIT(g.out) };

/* ---- words for the kernel ---- */

/* No object of the program's lies there. */
static bool have_words(void)
{
	void *p;

	if (g.words)
		return true;
	p = mmap(NULL, PLACES + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	g.words = p == MAP_FAILED ? NULL : p;
	return g.words;
}

static u64 word_of(int fd)
{
	return (u64)(uintptr_t)(g.words + fd);
}

/* The descriptor; PLACES: an eventfd; -1: the program's word. */
static int fd_of(u64 word)
{
	u64 at = word - (u64)(uintptr_t)g.words;

	return at <= PLACES ? (int)at : -1;
}

/* ---- items; with the lock ---- */

static struct rl_item *item_at(const struct rl_epoll *ep, int fd)
{
	return fd >= 0 && fd < ep->n_items ? ep->items[fd] : NULL;
}

static void mark(struct rl_item *it)
{
	if (it->dirty)
		return;
	it->dirty = true;
	list_add_tail(&it->of_dirty, &it->ep->dirty);
	it->ep->n_dirty++;
}

static void unmark(struct rl_item *it)
{
	if (!it->dirty)
		return;
	list_del(&it->of_dirty);
	it->dirty = false;
	it->ep->n_dirty--;
}

static struct rl_item *unmark_first(struct rl_epoll *ep)
{
	struct rl_item *it = list_first_entry_or_null(&ep->dirty, struct rl_item, of_dirty);

	if (it)
		unmark(it);
	return it;
}

static bool grow(struct rl_epoll *ep, int fd)
{
	int n = ep->n_items ?: 64;
	struct rl_item **items;

	if (fd < ep->n_items)
		return true;
	while (n <= fd)
		n *= 2;
	items = realloc(ep->items, (size_t)n * sizeof(*items));
	if (!items)
		return false;
	memset(items + ep->n_items, 0, (size_t)(n - ep->n_items) * sizeof(*items));
	ep->items = items;
	ep->n_items = n;
	return true;
}

static struct rl_item *add_item(struct rl_epoll *ep, struct rl_sock *sk, int fd)
{
	struct rl_item *it = grow(ep, fd) ? calloc(1, sizeof(*it)) : NULL;

	if (!it)
		return NULL;
	*it = (struct rl_item){ .ep = ep, .sk = sk, .fd = fd, .kernel_fd = fd, .id = ++g.ids };
	ep->items[fd] = it;
	list_add(&it->of_sock, &sk->items);
	__atomic_store_n(&sk->has_items, 1, __ATOMIC_RELEASE);
	return it;
}

static void go_out(struct rl_item *it)
{
	unmark(it);
	it->is_out = true;
	list_add(&it->of_out, &g.out);
}

static void come_in(struct rl_item *it)
{
	if (!it->is_out)
		return;
	it->is_out = false;
	list_del(&it->of_out);
}

static void item_close_copy(struct rl_item *it)
{
	if (it->has_copy)
		rl_fd_close_hidden(it->kernel_fd);
	it->has_copy = false;
}

static void drop_item(struct rl_item *it)
{
	unmark(it);
	come_in(it);
	it->ep->items[it->fd] = NULL;
	list_del(&it->of_sock);
	if (list_empty(&it->sk->items))
		__atomic_store_n(&it->sk->has_items, 0, __ATOMIC_RELAXED);
	item_close_copy(it);
	free(it);
}

static int tell_kernel(struct rl_epoll *ep, int op, int fd, u32 events, u64 word)
{
	struct epoll_event ev = { .events = events, .data.u64 = word };

	return (int)rl_raw(SYS_epoll_ctl, ep->fd, op, fd, &ev);
}

/* The kernel takes no EPOLLRDHUP for an exclusive one, and refuses the program's. */
static int item_tell(const struct rl_item *it, int op, u32 events, u64 word)
{
	if (it->user.events & EPOLLEXCLUSIVE & ~events)
		events = (events & ~(u32)EPOLLRDHUP) | EPOLLEXCLUSIVE;
	return tell_kernel(it->ep, op, it->kernel_fd, events, word);
}

static void item_delete(const struct rl_item *it)
{
	tell_kernel(it->ep, EPOLL_CTL_DEL, it->kernel_fd, 0, 0);
}

/* The kernel does not change an exclusive one. */
static int change(const struct rl_item *it, u32 events, u64 word)
{
	if (!(it->user.events & EPOLLEXCLUSIVE))
		return item_tell(it, EPOLL_CTL_MOD, events, word);
	item_delete(it);
	return item_tell(it, EPOLL_CTL_ADD, events, word);
}

/*
 * The kernel gets @it as it->registered. Two numbers of one stream share its own, and the kernel
 * has a socket once by each number: the second gets a copy.
 */
static int item_register(struct rl_item *it, int own)
{
	int rv;

	it->kernel_fd = own;
	rv = item_tell(it, EPOLL_CTL_ADD, it->registered, word_of(it->fd));
	if (rv != -EEXIST || own == it->fd)
		return rv;
	it->kernel_fd = rl_fd_copy_hidden(own);
	if (it->kernel_fd < 0)
		return -ENOMEM;
	it->has_copy = true;
	return item_tell(it, EPOLL_CTL_ADD, it->registered, word_of(it->fd));
}

/* With EPOLLET the kernel is asked once for everything: it names what comes, and no more. */
static void epoll_ask_kernel(struct rl_item *it, u32 awaits)
{
	u32 events = it->user.events & EPOLLET ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET : awaits;

	/* What would be reported at once, and always, as TCP's own end. */
	if (it->spent || !events)
		events = EPOLLET;
	if (events != it->registered && !change(it, events, word_of(it->fd)))
		it->registered = events;
}

/* ---- epolls ---- */

static void epoll_release(struct rl_file *f)
{
	struct rl_epoll *ep = container_of(f, struct rl_epoll, file);
	int i;

	pthread_mutex_lock(&g.lock);
	for (i = 0; i < ep->n_items; i++)
		if (ep->items[i])
			drop_item(ep->items[i]);
	pthread_mutex_unlock(&g.lock);
	if (ep->eventfd >= 0)
		rl_fd_close_hidden(ep->eventfd);
	if (ep->fd >= 0)
		rl_fd_close_hidden(ep->fd);
	free(ep->items);
	free(ep);
}

static void epoll_leave(struct rl_file *f, int fd)
{
	rl_waiter_reap(__builtin_frame_address(0));
}

static const struct rl_file_ops epoll_ops = {
	.leave = epoll_leave, .release = epoll_release, .is_shared = true,
};

static struct rl_epoll *epoll_begin(int fd)
{
	struct rl_file *f = rl_sock_is_candidate(fd) ? rl_call_begin(fd) : NULL;

	if (f && f->ops == &epoll_ops)
		return container_of(f, struct rl_epoll, file);
	if (f)
		rl_call_end(f);
	return NULL;
}

static void epoll_end(void *ep)
{
	rl_call_end(&((struct rl_epoll *)ep)->file);
}

static int epoll_add_eventfd(struct rl_epoll *ep)
{
	long fd = rl_raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);

	ep->eventfd = fd < 0 ? -1 : rl_fd_hide((int)fd);
	return ep->eventfd < 0 ? -ENOMEM :
		tell_kernel(ep, EPOLL_CTL_ADD, ep->eventfd, EPOLLIN, word_of(PLACES));
}

/* 0 or -errno: of a number that is no epoll's, the kernel's. */
static int epoll_fill(struct rl_epoll *ep, int fd)
{
	int rv;

	if (!ep)
		return -ENOMEM;
	rl_file_init(&ep->file, &epoll_ops, 0);
	INIT_LIST_HEAD(&ep->dirty);
	ep->eventfd = -1;
	ep->maker = rl_raw(SYS_getpid);
	ep->number = fd;
	ep->fd = rl_fd_copy_hidden(fd);
	rv = ep->fd < 0 ? ep->fd : epoll_add_eventfd(ep);
	return rv ?: rl_fd_attach(fd, &ep->file) ? 0 : -ENOMEM;
}

/*
 * The epoll @fd gets its first socket of ours. If threads add one each at once, the first makes the
 * epoll: a second one would replace it, and its items. NULL, and in *@got RL_SOCK_IS_PLAIN if the
 * kernel refuses the call, or -ENOMEM: the kernel alone would report octets of FPDUs.
 */
static struct rl_epoll *epoll_make(int fd, int *got)
{
	static pthread_mutex_t one_makes = PTHREAD_MUTEX_INITIALIZER;
	struct rl_epoll *ep;
	int rv = 0;

	rl_gate_enter();
	pthread_mutex_lock(&one_makes);
	ep = epoll_begin(fd);
	if (ep) {
		/* It is inside by that. */
		rl_gate_leave();
	} else {
		ep = have_words() ? calloc(1, sizeof(*ep)) : NULL;
		rv = epoll_fill(ep, fd);
	}
	pthread_mutex_unlock(&one_makes);
	if (!rv)
		return ep;
	if (ep)
		rl_file_put(&ep->file);
	rl_gate_leave();
	*got = rv == -EBADF || rv == -EINVAL || rv == -EPERM ? RL_SOCK_IS_PLAIN : -ENOMEM;
	return NULL;
}

/* ---- epoll_ctl ---- */

static const struct rl_sock_watcher epoll_watcher;

static int epoll_add(struct rl_epoll *ep, struct rl_sock *sk, int fd, const struct epoll_event *ev)
{
	struct rl_item *it = item_at(ep, fd);
	int rv;

	if (it && it->sk == sk)
		return -EEXIST;
	if (it)
		drop_item(it);
	it = add_item(ep, sk, fd);
	if (!it)
		return -ENOMEM;
	it->user = *ev;
	it->registered = ev->events;
	rv = item_register(it, rl_sock_kernel_fd(sk, fd));
	if (rv)
		drop_item(it);
	else
		mark(it);
	return rv;
}

static int epoll_modify(struct rl_epoll *ep, struct rl_item *it, const struct epoll_event *ev)
{
	if ((ev->events | it->user.events) & EPOLLEXCLUSIVE)
		return -EINVAL;
	it->user = *ev;
	it->seen = 0;
	it->spent = false;
	/* The kernel reports again what it knows to be ready. */
	if (rl_sock_phase_of(it->sk) == RL_SOCK_NEW || ev->events & EPOLLET) {
		it->registered = 0;
		if (rl_sock_phase_of(it->sk) == RL_SOCK_NEW &&
		    !item_tell(it, EPOLL_CTL_MOD, ev->events, word_of(it->fd)))
			it->registered = ev->events;
	}
	mark(it);
	return 0;
}

/* The kernel cannot change one that is exclusive. The epoll of a child is its parent's, too. */
static bool may_stay_behind(const struct rl_epoll *ep, const struct rl_item *it)
{
	return rl_sock_phase_of(it->sk) == RL_SOCK_STREAM && !(it->user.events & EPOLLEXCLUSIVE) &&
	       ep->file.born == rl_fd_forks();
}

static int epoll_take_out(struct rl_epoll *ep, struct rl_item *it)
{
	int rv;

	if (may_stay_behind(ep, it)) {
		go_out(it);
		return 0;
	}
	rv = tell_kernel(ep, EPOLL_CTL_DEL, it->kernel_fd, 0, 0);
	drop_item(it);
	return rv;
}

/* The kernel is not to name it any more. */
static void epoll_forget(struct rl_epoll *ep, struct rl_item *it)
{
	item_delete(it);
	drop_item(it);
}

/* Whoever looks at what it was before looks at another. */
static int put_in_again(struct rl_epoll *ep, struct rl_item *it, const struct epoll_event *ev)
{
	come_in(it);
	it->id = ++g.ids;
	it->told_in = 0;
	return epoll_modify(ep, it, ev);
}

/*
 * With the lock. RL_SOCK_IS_PLAIN: it is the kernel's. A socket is plain before watcher_leave()
 * runs: an item that was added later would stay. So an item is added only to a socket that is
 * watched, and not plain since.
 */
static int epoll_control(struct rl_epoll *ep, int op, struct rl_sock *sk, int fd,
			 const struct epoll_event *ev)
{
	struct rl_item *it = item_at(ep, fd);

	if (op == EPOLL_CTL_ADD && it && it->is_out) {
		if (it->sk == sk && !(ev->events & EPOLLEXCLUSIVE))
			return put_in_again(ep, it, ev);
		epoll_forget(ep, it);
	}
	if (op == EPOLL_CTL_ADD && sk)
		rl_sock_watch(sk, &epoll_watcher);
	if (op == EPOLL_CTL_ADD && sk && rl_sock_phase_of(sk) == RL_SOCK_PLAIN)
		return RL_SOCK_IS_PLAIN;
	if (op == EPOLL_CTL_ADD && sk)
		return epoll_add(ep, sk, fd, ev);
	if (!it || it->sk != sk)
		return RL_SOCK_IS_PLAIN;
	if (it->is_out)
		return -ENOENT;
	if (op == EPOLL_CTL_MOD)
		return epoll_modify(ep, it, ev);
	return op == EPOLL_CTL_DEL ? epoll_take_out(ep, it) : RL_SOCK_IS_PLAIN;
}

/*
 * What a child would take out of an epoll goes from its parent's. A handler that has interrupted
 * one of us may fork, and finds the lock taken.
 */
void rl_epoll_before_fork(void)
{
	struct rl_item *it, *next;

	if (pthread_mutex_trylock(&g.lock))
		return;
	list_for_each_entry_safe(it, next, &g.out, of_out)
		epoll_forget(it->ep, it);
	pthread_mutex_unlock(&g.lock);
}

/* Threads that wait in the kernel by numbers that were no epoll's of ours when they began. */
#define KERNEL_WAITERS	256
static u32 kernel_waiters[KERNEL_WAITERS];	/* atomic */

static u32 *kernel_waiters_at(int fd)
{
	return &kernel_waiters[(u32)fd % KERNEL_WAITERS];
}

static bool has_waiters(const struct rl_epoll *ep)
{
	return __atomic_load_n(&ep->waiters, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(kernel_waiters_at(ep->number), __ATOMIC_SEQ_CST);
}

/* Threads that wait in the kernel look again. With the lock. */
static void wake_waiters(struct rl_epoll *ep)
{
	u64 one = 1;

	if (has_waiters(ep))
		rl_raw(SYS_write, ep->eventfd, &one, sizeof(one));
}

static int control_of(struct rl_epoll *ep, int op, struct rl_sock *sk, int fd,
		      const struct epoll_event *ev)
{
	int rv;

	pthread_mutex_lock(&g.lock);
	rv = epoll_control(ep, op, sk, fd, ev);
	if (!rv && op != EPOLL_CTL_DEL)
		wake_waiters(ep);
	pthread_mutex_unlock(&g.lock);
	return rv;
}

bool rl_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev, int *rv)
{
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin_any(fd) : NULL;
	struct rl_epoll *ep = sk && !rl_sock_is_kept(sk) ? epoll_begin(epfd) : NULL;
	int got = RL_SOCK_IS_PLAIN;

	if (sk && !ep && op == EPOLL_CTL_ADD && ev && !rl_sock_is_kept(sk))
		ep = epoll_make(epfd, &got);
	if (ep && (ev || op == EPOLL_CTL_DEL))
		got = control_of(ep, op, sk, fd, ev);
	if (ep)
		epoll_end(ep);
	if (sk)
		rl_sock_end(sk);
	if (got == RL_SOCK_IS_PLAIN)
		return false;
	*rv = (int)rl_hook_result(got);
	return true;
}

/* ---- what happens to sockets ---- */

static void watcher_mark_ready(struct rl_sock *sk, u32 edges)
{
	struct rl_item *it;

	pthread_mutex_lock(&g.lock);
	list_for_each_entry(it, &sk->items, of_sock) {
		if (it->is_out)
			continue;
		it->seen &= ~edges;
		mark(it);
		wake_waiters(it->ep);
	}
	pthread_mutex_unlock(&g.lock);
}

/* It is the kernel's, by the program's number and as the program asked. */
static void give_back(struct rl_item *it)
{
	const u32 events = it->spent ? 0 : it->user.events;

	if (it->kernel_fd == it->fd) {
		change(it, events, it->user.data.u64);
		return;
	}
	item_delete(it);
	tell_kernel(it->ep, EPOLL_CTL_ADD, it->fd, events, it->user.data.u64);
}

static void watcher_leave(struct rl_sock *sk, int fd, bool closes)
{
	struct rl_item *it, *next;

	pthread_mutex_lock(&g.lock);
	list_for_each_entry_safe(it, next, &sk->items, of_sock) {
		if (fd >= 0 && it->fd != fd)
			continue;
		if (it->is_out || (closes && it->ep->maker == rl_raw(SYS_getpid)))
			item_delete(it);
		else if (!closes)
			give_back(it);
		drop_item(it);
	}
	pthread_mutex_unlock(&g.lock);
}

/* It is registered by the program's number, where it may be still. */
static void move_back(struct rl_item *it)
{
	if (it->kernel_fd == it->fd)
		return;
	item_delete(it);
	item_close_copy(it);
	item_register(it, it->fd);
}

/* The kernel gets the items of @sk by its own number, too. One added since it is bound has it. */
static bool register_all(struct rl_sock *sk)
{
	struct rl_item *it, *at;

	list_for_each_entry(it, &sk->items, of_sock) {
		if (it->kernel_fd != it->fd)
			continue;
		/* Another process's: what that has done with it since is not known. */
		if (it->ep->maker == rl_raw(SYS_getpid) && !item_register(it, sk->own_fd))
			continue;
		list_for_each_entry(at, &sk->items, of_sock) {
			move_back(at);
			if (at == it)
				return false;
		}
	}
	return true;
}

static bool watcher_move(struct rl_sock *sk)
{
	struct rl_item *it, *next;
	bool done;

	pthread_mutex_lock(&g.lock);
	list_for_each_entry_safe(it, next, &sk->items, of_sock)
		if (it->is_out)
			epoll_forget(it->ep, it);
	done = register_all(sk);
	list_for_each_entry(it, &sk->items, of_sock)
		if (done && it->kernel_fd != it->fd)
			tell_kernel(it->ep, EPOLL_CTL_DEL, it->fd, 0, 0);
	pthread_mutex_unlock(&g.lock);
	return done;
}

static const struct rl_sock_watcher epoll_watcher = {
	.mark_ready = watcher_mark_ready,
	.leave = watcher_leave,
	.move = watcher_move,
};

/* ---- epoll_wait ---- */

/* An item that is being looked at, without the lock. */
struct look {
	struct rl_sock *sk;		/* referenced */
	int fd;
	u32 id, events, kernel, call;
	int ev;
	unsigned int awaits;
	bool named_later;		/* the kernel will name what is in TCP */
	bool moves, told;
};

/* With the lock. */
static void look_begin(struct look *l, struct rl_item *it, u32 kernel, u32 call)
{
	const u32 how = it->user.events & (EPOLLET | EPOLLONESHOT);

	*l = (struct look){
		.sk = it->sk, .fd = it->fd, .id = it->id,
		.events = ASKED(it->user.events), .kernel = kernel, .call = call,
		 .named_later = how == EPOLLET, .moves = kernel || it->named,
	};
	it->named = false;
	rl_file_get(&it->sk->file);
}

static void epoll_look_at(struct look *l)
{
	u32 phase = rl_sock_phase_of(l->sk);

	if (phase == RL_SOCK_NEW || phase == RL_SOCK_PLAIN)
		l->ev = (int)l->kernel;
	else if (l->moves)
		l->ev = rl_sock_poll(l->sk, l->fd, l->events, &l->awaits);
	else if (l->named_later)
		l->ev = rl_sock_poll_cached(l->sk, l->fd, l->events, &l->awaits);
	else
		l->ev = rl_sock_poll_tcp(l->sk, l->fd, l->events, &l->awaits);
	/* Errors are always reported. The end of a connection is not the end of its stream. */
	if (!l->ev)
		l->ev = (int)(l->kernel & EPOLLERR);
	if (!l->ev && phase != RL_SOCK_STREAM)
		l->ev = (int)(l->kernel & EPOLLHUP);
}

/* Events of @it for the program; 0: none. With the lock. */
static u32 news(struct rl_item *it, const struct look *l)
{
	bool is_edge = it->user.events & EPOLLET;
	u32 ev = l->ev > 0 && !it->spent ? (u32)l->ev : 0;

	if (rl_sock_phase_of(it->sk) == RL_SOCK_NEW)
		return ev;
	/* Room of TCP's is no news of what the peer has said. */
	if (is_edge && l->kernel)
		it->seen &= l->kernel & ~(u32)EPOLLOUT ? 0 : ~(u32)(EPOLLOUT | EPOLLWRNORM);
	if (is_edge && !(ev & ~it->seen))
		ev = 0;
	it->seen = is_edge && ev ? ev : it->seen & (u32)(l->ev > 0 ? l->ev : 0);
	if (ev && it->user.events & EPOLLONESHOT)
		it->spent = true;
	if (!it->spent && ((ev && !is_edge) || rl_sock_deadline(it->sk, l->events)))
		mark(it);
	if (!ev || is_edge || it->spent)
		epoll_ask_kernel(it, l->awaits);
	return ev;
}

/* Returns whether *@out was filled. With the lock. */
static bool look_end(struct rl_epoll *ep, struct look *l, struct epoll_event *out)
{
	struct rl_item *it = item_at(ep, l->fd);
	u32 ev = it && it->id == l->id && !it->is_out && l->ev != RL_SOCK_IS_PLAIN ? news(it, l) :
		0;

	if (!ev)
		return false;
	*out = (struct epoll_event){ .events = ev, .data = it->user.data };
	it->told_in = l->call;
	return true;
}

/* The event did not reach the program: another call reports it. With the lock. */
static void epoll_take_back(struct rl_epoll *ep, const struct look *l)
{
	struct rl_item *it = item_at(ep, l->fd);

	if (!l->told)
		return;
	it->seen = 0;
	it->spent = false;
	mark(it);
}

/*
 * Looks at @n, of BATCH at most, and those that are ready come into @out, which is the program's:
 * their number, or
 * -EFAULT. Without the lock.
 */
static int look_all(struct rl_epoll *ep, struct look *l, int n, struct epoll_event *out)
{
	struct epoll_event own[BATCH];
	int i, told = 0;

	for (i = 0; i < n; i++)
		epoll_look_at(&l[i]);
	pthread_mutex_lock(&g.lock);
	for (i = 0; i < n; i++) {
		l[i].told = look_end(ep, &l[i], &own[told]);
		told += l[i].told;
	}
	if (!rl_guard_copy(out, own, (size_t)told * sizeof(*own))) {
		for (i = 0; i < n; i++)
			epoll_take_back(ep, &l[i]);
		told = -EFAULT;
	}
	pthread_mutex_unlock(&g.lock);
	for (i = 0; i < n; i++)
		rl_file_put(&l[i].sk->file);
	return told;
}

/* Of those that were dirty at the beginning: an item may be so again at once. Or -EFAULT. */
static int look_at_dirty(struct rl_epoll *ep, struct epoll_event *out, int max, u32 call)
{
	struct look l[BATCH];
	struct rl_item *it;
	u32 left = __atomic_load_n(&ep->n_dirty, __ATOMIC_RELAXED);
	int n, told = 0, rv;

	while (left && told < max) {
		pthread_mutex_lock(&g.lock);
		for (n = 0; left && n < BATCH && n < max - told; left--) {
			it = unmark_first(ep);
			if (!it)
				left = 1;
			else if (!it->spent)
				look_begin(&l[n++], it, 0, call);
			else
				epoll_ask_kernel(it, 0);
		}
		pthread_mutex_unlock(&g.lock);
		rv = look_all(ep, l, n, out + told);
		if (rv < 0)
			return told ? told : rv;
		told += rv;
	}
	return told;
}

/*
 * The kernel has named it, and another call looks. An edge it would not say twice. With the lock.
 */
static void look_later(struct rl_item *it)
{
	it->named = true;
	mark(it);
}

/*
 * @n events of the kernel's, of which ours become the program's, or go. Returns how many are left.
 */
static int translate(struct rl_epoll *ep, struct epoll_event *ev, int n, u32 call)
{
	struct look l[BATCH];
	struct rl_item *it;
	int i, k = 0, kept = 0, fd;
	u64 count;

	pthread_mutex_lock(&g.lock);
	for (i = 0; i < n; i++) {
		fd = fd_of(ev[i].data.u64);
		it = fd >= 0 ? item_at(ep, fd) : NULL;
		if (fd == PLACES)
			rl_raw(SYS_read, ep->eventfd, &count, sizeof(count));
		else if (fd < 0)
			ev[kept++] = ev[i];
		else if (it && it->is_out)
			epoll_forget(ep, it);
		else if (it && it->told_in == call && !(it->user.events & EPOLLET))
			continue;
		else if (it && it->told_in == call)
			look_later(it);
		else if (it && k < BATCH)
			look_begin(&l[k++], it, ev[i].events, call);
		else if (it) {
			it->seen = 0;
			look_later(it);
		}
	}
	pthread_mutex_unlock(&g.lock);
	k = look_all(ep, l, k, ev + kept);
	return k < 0 && !kept ? k : kept + (k > 0 ? k : 0);
}

/* When time makes one ready: ms; 0: never. With the lock. */
static u64 deadline_of(struct rl_epoll *ep)
{
	struct rl_item *it;
	u64 at, first = 0;

	list_for_each_entry(it, &ep->dirty, of_dirty) {
		at = rl_sock_deadline(it->sk, it->user.events);
		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

/* With the lock. */
static bool has_ready(const struct rl_epoll *ep)
{
	const struct rl_item *it;

	list_for_each_entry(it, &ep->dirty, of_dirty)
		if (!it->spent && !rl_sock_deadline(it->sk, it->user.events))
			return true;
	return false;
}

static bool may_be_ready(struct rl_epoll *ep)
{
	bool ready;

	pthread_mutex_lock(&g.lock);
	ready = has_ready(ep);
	pthread_mutex_unlock(&g.lock);
	return ready;
}

/* What a call of the program's has asked for, and found. */
struct patience {
	u64 until;			/* ns; 0: for ever */
	const sigset_t *mask;
	u32 signals;			/* whose handlers had run before */
};

struct sleeper {
	struct rl_epoll *ep;
	volatile bool out;
};

static void epoll_wake(void *arg)
{
	struct sleeper *s = arg;

	rl_signal_ends(NULL, NULL);
	if (s->out)
		rl_gate_enter();
	s->out = false;
	pthread_mutex_lock(&g.lock);
	__atomic_fetch_sub(&s->ep->waiters, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&g.lock);
}

/* As epoll_pwait2(), which old kernels and old libcs do not have: rounded up to ms. */
static int ms_of(const struct timespec *t)
{
	u64 ms;

	if (!t)
		return -1;
	ms = (u64)t->tv_sec * 1000 + ((u64)t->tv_nsec + 999999) / 1000000;
	return ms < 0x7fffffff ? (int)ms : 0x7fffffff;
}

/* If the thread is in the kernel already the next call finds the eventfd readable, and goes on. */
static void wake_up(void *eventfd)
{
	u64 one = 1;

	rl_raw(SYS_write, *(int *)eventfd, &one, sizeof(one));
}

/* A point of cancellation. */
static int ask_epoll(struct rl_epoll *ep, int epfd, struct epoll_event *ev, int max,
		     const struct patience *p,
		     bool at_once)
{
	struct sleeper s = { .ep = ep };
	struct timespec t = { 0 }, *left;
	bool sleeps;
	int rv = 0;

	pthread_mutex_lock(&g.lock);
	left = at_once || has_ready(ep) ? &t : rl_time_left(p->until, deadline_of(ep), &t);
	__atomic_fetch_add(&ep->waiters, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&g.lock);
	sleeps = !left || left->tv_sec || left->tv_nsec;
	pthread_cleanup_push(epoll_wake, &s);
	if (sleeps)
		rl_signal_ends(wake_up, &ep->eventfd);
	rl_gate_step_out(&s.out);
	if (sleeps && rl_signals_seen().all != p->signals)
		rv = -EINTR;
	else
		rv = RL_CALL(epoll_pwait, epfd, ev, max, ms_of(left), p->mask);
	rv = rv == -1 ? -errno : rv;
	pthread_cleanup_pop(1);
	return rv;
}

/* How many of @max places may go to ours before the kernel is asked. */
static int share(const struct rl_epoll *ep, int max)
{
	return max > 1 ? max - max / 2 : !__atomic_load_n(&ep->ours_last, __ATOMIC_RELAXED);
}

static int epoll_wait_once(struct rl_epoll *ep, int epfd, struct epoll_event *ev, int max,
			   const struct patience *p)
{
	u32 call = __atomic_add_fetch(&g.calls, 1, __ATOMIC_RELAXED);
	int told = look_at_dirty(ep, ev, share(ep, max), call), rv;

	__atomic_store_n(&ep->ours_last, told == max, __ATOMIC_RELAXED);
	if (told < 0 || told == max)
		return told;
	rv = ask_epoll(ep, epfd, ev + told, max - told, p, told);
	if (rv > 0)
		rv = translate(ep, ev + told, rv, call);
	return told ? told + (rv > 0 ? rv : 0) : rv;
}

/*
 * The wake-up may have been for several threads, of which this one has taken some events: the
 * others get the rest.
 */
static void epoll_pass_on(struct rl_epoll *ep)
{
	if (!has_waiters(ep))
		return;
	pthread_mutex_lock(&g.lock);
	if (has_ready(ep))
		wake_waiters(ep);
	pthread_mutex_unlock(&g.lock);
}

static int wait_for_events(struct rl_epoll *ep, int epfd, struct epoll_event *ev, int max,
			   const struct timespec *t, const sigset_t *mask)
{
	const struct patience p = {
		.until = t ? rl_now_ns() + (u64)t->tv_sec * NS + (u64)t->tv_nsec : 0, .mask = mask,
		.signals = rl_signals_seen().all,
	};
	bool is_last = t && !t->tv_sec && !t->tv_nsec;
	int rv;

	if (max <= 0)
		return -EINVAL;
	for (;;) {
		rv = epoll_wait_once(ep, epfd, ev, max, &p);
		if (rv > 0)
			epoll_pass_on(ep);
		if (rv || (is_last && !may_be_ready(ep)))
			return rv;
		is_last = p.until && rl_now_ns() >= p.until;
	}
}

bool rl_epoll_wait(int epfd, struct epoll_event *ev, int max, const struct timespec *t,
		   const sigset_t *mask, int *rv)
{
	struct rl_epoll *ep = epoll_begin(epfd);

	if (!ep)
		return false;
	rl_guard_begin();
	pthread_cleanup_push(epoll_end, ep);
	*rv = (int)rl_hook_result(wait_for_events(ep, epfd, ev, max, t, mask));
	pthread_cleanup_pop(1);
	return true;
}

void rl_epoll_kernel_begin(int fd)
{
	if (unlikely(rl_sockets_on))
		__atomic_fetch_add(kernel_waiters_at(fd), 1, __ATOMIC_SEQ_CST);
}

void rl_epoll_kernel_end(int fd)
{
	if (unlikely(rl_sockets_on))
		__atomic_fetch_sub(kernel_waiters_at(fd), 1, __ATOMIC_SEQ_CST);
}

bool rl_epoll_translate(int fd, struct epoll_event *ev, int n, int *rv)
{
	struct rl_epoll *ep = epoll_begin(fd);

	if (!ep)
		return false;
	rl_guard_begin();
	*rv = (int)rl_hook_result(translate(ep, ev, n,
					      __atomic_add_fetch(&g.calls, 1, __ATOMIC_RELAXED)));
	epoll_end(ep);
	return true;
}

bool rl_epoll_has_ready(int fd)
{
	struct rl_epoll *ep = epoll_begin(fd);
	bool ready;

	if (!ep)
		return false;
	ready = may_be_ready(ep);
	epoll_end(ep);
	return ready;
}
