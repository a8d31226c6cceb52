/* SPDX-License-Identifier: MIT */
/* Standard input, output and error of a program that may have been started without them. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Takes the descriptors 0 to 2 that the caller closed, so that no file that is opened later gets what is printed.  Printing there
 * fails.  Call it before anything is opened.  flags: O_CLOEXEC, so that what we become finds them closed, or 0.
 */
static inline void sl_standard_hold(int flags)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | flags);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/*
 * The last thing before a program ends: its exit status, which is `failed` instead of 0 where not all that was printed arrived.
 * That is said, unless it is a pipe whose reader has gone.
 */
static inline int sl_standard_told(const char *program, int status, int failed)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (poll(&out, 1, 0) <= 0 || !(out.revents & POLLERR))
		fprintf(stderr, "%s: standard output: not all could be written (is the disk full?)\n", program);
	return status ? status : failed;
}
