// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Starts commands: starter PORT. Each connection is a shell of its own, any number at once. Only
 * for the lab, whose machines cannot be reached from outside.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void shell(int fd)
{
	int i;

	for (i = 0; i < 3; i++)
		dup2(fd, i);
	close(fd);
	execl("/bin/sh", "sh", (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1, c;

	sin.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 128)) {
		perror("starter");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	while ((c = accept(fd, NULL, NULL)) >= 0) {
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			shell(c);
		}
		close(c);
	}
	return 1;
}
