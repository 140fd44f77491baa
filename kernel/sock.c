// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The TCP socket under a connection: how it is made, set up and closed.
 *
 * Sockets live in the device's network namespace and hold no reference on it: netns.c.
 */
#include <linux/in6.h>
#include <linux/security.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "compat/net.h"
#include "conn.h"
#include "core/alive.h"

/*
 * Locks of their own class: the locks held around a user's socket lock and around ours differ.
 * (sock_lock_init_class_and_name() would also hold a reference on this module for the socket's
 * life, and rmmod would wait for it instead of closing it.)
 */
static void set_lock_class(struct sock *sk)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	static struct lock_class_key slock_key[2], lock_key[2];
	bool v6 = sk->sk_family == AF_INET6;

	if (!sock_allow_reclassification(sk))
		return;
	lockdep_set_class_and_name(&sk->sk_lock.slock, &slock_key[v6],
				   v6 ? "slock-AF_INET6-WEFT" : "slock-AF_INET-WEFT");
	lockdep_init_map(&sk->sk_lock.dep_map,
			 v6 ? "sk_lock-AF_INET6-WEFT" : "sk_lock-AF_INET-WEFT",
			 &lock_key[v6], 0);
#endif
}

static int set_option(struct socket *sock, int level, int name, int value)
{
	return sock->ops->setsockopt(sock, level, name, KERNEL_SOCKPTR(&value), sizeof(value));
}

/*
 * FPDUs are multiples of four octets: with such segments they can fill them.
 * A larger MTU than TCP lets us ask for (that of lo) is left as it is.
 */
static void set_segment_size(struct socket *sock, int family, u32 mtu)
{
	u32 headers = sizeof(struct tcphdr) +
		      (family == AF_INET6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	u32 mss = (mtu - headers) & ~3u;

	if (mtu > headers && mss >= TCP_MIN_MSS && mss <= MAX_TCP_WINDOW)
		set_option(sock, SOL_TCP, TCP_MAXSEG, (int)mss);
}

static void set_tos(struct socket *sock, int family, const struct iw_cm_id *id)
{
	if (!id->tos_set)
		return;
	ip_sock_set_tos(sock->sk, id->tos);
	if (family == AF_INET6)
		set_option(sock, SOL_IPV6, IPV6_TCLASS, id->tos);
}

/* Options that a listener's children inherit, too. */
static void set_options(struct socket *sock, int family, const struct iw_cm_id *id, u32 mtu)
{
	struct sock *sk = sock->sk;

	sock_set_reuseaddr(sk);
	tcp_sock_set_nodelay(sk);
	set_tos(sock, family, id);
	set_segment_size(sock, family, mtu);
	if (family == AF_INET6 && id->afonly)
		ip6_sock_set_v6only(sk);
}

/* A BPF program may have given a new socket to a sockmap, or somebody a ULP. */
static bool is_taken(const struct sock *sk)
{
	return sk->sk_user_data || inet_csk(sk)->icsk_ulp_ops;
}

/* Directs the callbacks to @conn; @saved are the socket's own. False if it is another's. */
static bool hook(struct weft_conn *conn, struct socket *sock,
		 const struct weft_sk_callbacks *saved)
{
	struct sock *sk = sock->sk;
	bool ours;

	write_lock_bh(&sk->sk_callback_lock);
	ours = !is_taken(sk);
	if (!ours)
		goto out;
	conn->sock = sock;
	conn->sk = sk;
	conn->saved = *saved;
	sk->sk_state_change = weft_conn_callbacks.state_change;
	sk->sk_data_ready = weft_conn_callbacks.data_ready;
	sk->sk_write_space = weft_conn_callbacks.write_space;
	sk->sk_error_report = weft_conn_callbacks.error_report;
	/* A child of this socket must not be taken for this connection. */
	__rcu_assign_sk_user_data_with_flags(sk, conn, SK_USER_DATA_NOCOPY);
out:
	write_unlock_bh(&sk->sk_callback_lock);
	return ours;
}

/* Sending runs in softirq, so it must not sleep or borrow from a task. */
static void set_context(struct sock *sk)
{
	sk->sk_allocation = GFP_ATOMIC;
	weft_sk_no_task_frag(sk);
}

void weft_sock_serve_reclaim(struct weft_conn *conn)
{
	sk_set_memalloc(conn->sk);
}

bool weft_sock_serves_reclaim(const struct weft_conn *conn)
{
	return sock_flag(conn->sk, SOCK_MEMALLOC);
}

/*
 * May the caller create a socket, according to LSMs and its cgroup's programs? They are not asked
 * for kernel sockets, and a user socket would keep its namespace alive. So we create a user socket
 * for a moment, and ours gets its label. Its cgroups are the caller's.
 */
static int ask_hooks(struct sock *sk)
{
	/* A user's socket holds it, and it may be ending. */
	struct net *net = maybe_get_net(sock_net(sk));
	struct socket *his;
	int err;

	if (!net)
		return -ENODEV;
	err = __sock_create(net, sk->sk_family, SOCK_STREAM, IPPROTO_TCP, &his, 0);
	put_net(net);
	if (err)
		return err;
	security_sk_clone(his->sk, sk);
	/* It is not published: its lock is taken under ours, and nothing is reclaimed under it. */
	set_lock_class(his->sk);
	sock_release(his);
	return 0;
}

static int create(struct weft_conn *conn, struct net *net, int family, struct socket **sock)
{
	int err = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, sock);

	if (err || !conn->user)
		return err;
	err = ask_hooks((*sock)->sk);
	if (err)
		sock_release(*sock);
	return err;
}

/*
 * Routes and the addresses of other netdevs decide which way octets take, as for all of TCP: a
 * connection to this machine's own addresses runs over lo. Unless the administrator wants them to
 * use the device's netdev alone.
 */
static int bind_to_netdev(struct weft_conn *conn, struct sock *sk)
{
	if (!READ_ONCE(conn->dev->bind_netdev))
		return 0;
	return sock_bindtoindex(sk, READ_ONCE(conn->dev->ifindex), true);
}

static int create_and_set_up(struct weft_conn *conn, int family, const struct iw_cm_id *id,
			     struct socket **new)
{
	struct net_device *nd = weft_dev_netdev(conn->dev);
	struct socket *sock;
	int err;

	if (!nd)
		return -ENODEV;
	err = create(conn, conn->dev->net, family, &sock);
	if (!err) {
		set_lock_class(sock->sk);
		set_context(sock->sk);
		set_options(sock, family, id, READ_ONCE(nd->mtu));
		err = bind_to_netdev(conn, sock->sk);
		if (err)
			sock_release(sock);
		else
			*new = sock;
	}
	dev_put(nd);
	return err;
}

static int take(struct weft_conn *conn, struct socket *sock)
{
	struct weft_sk_callbacks own = {
		.state_change	= sock->sk->sk_state_change,
		.data_ready	= sock->sk->sk_data_ready,
		.write_space	= sock->sk->sk_write_space,
		.error_report	= sock->sk->sk_error_report,
	};

	if (hook(conn, sock, &own))
		return 0;
	sock_release(sock);
	return -EBUSY;
}

int weft_sock_open(struct weft_conn *conn, int family, const struct iw_cm_id *id)
{
	struct socket *sock;
	int err = create_and_set_up(conn, family, id, &sock);

	return err ?: take(conn, sock);
}

int weft_sock_make_spares(struct weft_conn *conn, int family, const struct iw_cm_id *id)
{
	int i, err = 0;

	for (i = 0; i < WEFT_SPARES && !err; i++)
		err = create_and_set_up(conn, family, id, &conn->spare[i]);
	return err;
}

int weft_sock_open_spare(struct weft_conn *conn, struct weft_conn *old)
{
	struct socket *sock = NULL;
	int i;

	for (i = 0; i < WEFT_SPARES; i++) {
		swap(conn->spare[i], old->spare[i]);
		if (!sock)
			swap(sock, conn->spare[i]);
	}
	conn->user = old->user;
	return sock ? take(conn, sock) : -ECONNABORTED;
}

void weft_sock_drop_spares(struct weft_conn *conn)
{
	int i;

	for (i = 0; i < WEFT_SPARES; i++) {
		if (conn->spare[i])
			sock_release(conn->spare[i]);
		conn->spare[i] = NULL;
	}
}

/* Until now the child had its listener's callbacks: the listener saved its own. */
bool weft_sock_adopt(struct weft_conn *conn, struct weft_conn *listener, struct socket *sock)
{
	set_lock_class(sock->sk);
	set_context(sock->sk);
	return hook(conn, sock, &listener->saved);
}

void weft_sock_set_keepalive(struct weft_conn *conn, u32 dead_ms)
{
	struct weft_keepalive k;

	if (conn->keepalive_ms == dead_ms)
		return;
	conn->keepalive_ms = dead_ms;
	k = weft_alive_keepalive(dead_ms, 0);
	tcp_sock_set_keepidle(conn->sk, k.idle_s);
	tcp_sock_set_keepintvl(conn->sk, k.interval_s);
	tcp_sock_set_keepcnt(conn->sk, k.count);
	sock_set_keepalive(conn->sk);
}

void weft_sock_unhook(struct weft_conn *conn)
{
	struct sock *sk = conn->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_state_change = conn->saved.state_change;
	sk->sk_data_ready = conn->saved.data_ready;
	sk->sk_write_space = conn->saved.write_space;
	sk->sk_error_report = conn->saved.error_report;
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
}

/* ---- listening, connecting ---- */

static int address_len(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					: sizeof(struct sockaddr_in);
}

bool weft_sock_is_wildcard(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return ipv6_addr_any(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static void set_port(struct sockaddr_storage *a, __be16 port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = port;
	else
		((struct sockaddr_in *)a)->sin_port = port;
}

/* (void *): kernel_bind() and kernel_connect() changed the type of their address. */
static int bind_to(struct weft_conn *conn, struct sockaddr_storage *a)
{
	return kernel_bind(conn->sock, (void *)a, address_len(a));
}

/* The ULP's backlog does not limit how many peers may connect at once. */
#define TCP_QUEUE_MIN	128

/* One socket serves a wildcard listen on this device; other devices have their own. */
int weft_sock_listen(struct weft_conn *conn, const struct iw_cm_id *id, int backlog)
{
	struct sockaddr_storage own = id->local_addr;
	int err = 0;

	if (weft_sock_is_wildcard(&own))
		err = sock_bindtoindex(conn->sk, READ_ONCE(conn->dev->ifindex), true);
	if (!err)
		err = bind_to(conn, &own);
	if (!err)
		err = kernel_listen(conn->sock, max(backlog, TCP_QUEUE_MIN));
	return err;
}

static int connect_from(struct weft_conn *conn, struct sockaddr_storage *own,
			struct sockaddr_storage *peer)
{
	int err = bind_to(conn, own);

	if (!err)
		err = kernel_connect(conn->sock, (void *)peer, address_len(peer), O_NONBLOCK);
	return err == -EINPROGRESS ? 0 : err;
}

/*
 * The port is one that rdma_cm chose among those it knows of: if TCP has given
 * it away already, any other will do.
 */
int weft_sock_connect(struct weft_conn *conn, const struct iw_cm_id *id, bool any_port)
{
	struct sockaddr_storage own = id->local_addr, peer = id->m_remote_addr;
	int err = -EADDRINUSE;

	if (!any_port)
		err = connect_from(conn, &own, &peer);
	if (err != -EADDRINUSE)
		return err;
	set_port(&own, 0);
	set_option(conn->sock, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	return connect_from(conn, &own, &peer);
}

static void put_ipv4(struct sockaddr_storage *a, __be32 ip, __be16 port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = ip;
	in->sin_port = port;
}

static void put_ipv6(struct sockaddr_storage *a, const struct sock *sk, const struct in6_addr *ip,
		     __be16 port)
{
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)a;

	in->sin6_family = AF_INET6;
	in->sin6_addr = *ip;
	in->sin6_port = port;
	in->sin6_scope_id = ipv6_iface_scope_id(ip, sk->sk_bound_dev_if);
}

/*
 * Reads the socket's fields, which are constant once connected: getname would take the socket's
 * lock and not check WEFT_CF_PENDING afterwards.
 */
void weft_sock_names(struct weft_conn *conn, struct sockaddr_storage *own,
		     struct sockaddr_storage *peer)
{
	const struct sock *sk = conn->sk;
	const struct inet_sock *inet = inet_sk(sk);

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		put_ipv6(own, sk, &sk->sk_v6_rcv_saddr, inet->inet_sport);
		put_ipv6(peer, sk, &sk->sk_v6_daddr, inet->inet_dport);
		return;
	}
#endif
	put_ipv4(own, inet->inet_rcv_saddr, inet->inet_sport);
	put_ipv4(peer, inet->inet_daddr, inet->inet_dport);
}

/* ---- closing ---- */

void weft_sock_shutdown(struct weft_conn *conn)
{
	kernel_sock_shutdown(conn->sock, SHUT_WR);
	/* Data that arrived while shutdown had the lock. */
	weft_conn_lock(conn);
	weft_conn_unlock(conn);
}

/*
 * Without linger an unfinished connection would go on in the background, on
 * timers, in a namespace that may end.
 */
void weft_sock_close(struct weft_conn *conn)
{
	if (weft_sock_serves_reclaim(conn)) {
		lock_sock(conn->sk);
		sk_clear_memalloc(conn->sk);
		release_sock(conn->sk);
	}
	if (conn->sk->sk_state != TCP_CLOSE)
		sock_no_linger(conn->sk);
	sock_release(conn->sock);
}
