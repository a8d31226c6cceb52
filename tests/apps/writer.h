/* SPDX-License-Identifier: MIT */
/*
 * Finds the agent's writer thread and waits for it.  A program that makes events faster than they are written and folded has
 * files of any size; one that waits for the writer has files of about the same size on every machine.
 */
#pragma once

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The thread that the first call started, in a process that started no thread itself.  0: there is none. */
static inline int writer_thread(void)
{
	DIR *threads = opendir("/proc/self/task");
	int found = 0;

	for (struct dirent *entry; threads && (entry = readdir(threads));)
		if (isdigit((unsigned char)*entry->d_name) && atoi(entry->d_name) != getpid())
			found = atoi(entry->d_name);
	if (threads)
		closedir(threads);
	return found;
}

/* The writer sleeps once nothing is left to be written or folded. */
static inline void wait_for_writer_to_sleep(int writer)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", writer);
	for (;; usleep(200)) {
		int fd = open(path, O_RDONLY);
		ssize_t size = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
		const char *state;

		close(fd);
		if (size <= 0)
			return;
		line[size] = 0;
		state = strrchr(line, ')'); /* "TID (NAME) S ..." */
		if (state && state[2] == 'S')
			return;
	}
}
