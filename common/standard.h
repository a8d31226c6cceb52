/* SPDX-License-Identifier: MIT */
/* Standard input, output and error of a program that may have been started without them. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

/*
 * Takes the descriptors 0 to 2 that the caller closed, so that no file that is opened later gets what is printed.  Printing there
 * fails.  Call it before anything is opened.
 */
static inline void sl_standard_hold(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}
