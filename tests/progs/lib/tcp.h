/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* TCP sockets that tests put beside a device. What goes wrong ends the program: conn.h. */
#ifndef TCP_H
#define TCP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct sockaddr_in tcp_address(const char *ip, int port);
int tcp_listen(const void *own, socklen_t len, int backlog);
/* Connects to @to and sends an MPA Request, of revision 1 with CRC and no private data. */
int tcp_send_request(const struct sockaddr_in *to);
bool tcp_is_readable(int fd, int timeout_ms);

#endif
