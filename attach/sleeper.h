/* SPDX-License-Identifier: MIT */
/*
 * Recordings that obey the word in their ring's header: woken and put to rest without a signal, a descriptor of theirs or a right
 * beyond that to write to the ring, which is its owner's file.
 */
#ifndef ATTACH_SLEEPER_H
#define ATTACH_SLEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct sl_ringfile;

struct sl_sleeper {
	struct sl_ringfile *head; /* mapped */
	char path[4096];	  /* of the ring */
	long pid;		  /* as the recording counts */
};

struct sl_sleepers {
	struct sl_sleeper *item;
	size_t count, capacity;
};

/* The living recording of this process; false: it has none that obeys.  *why then says what there is instead. */
bool sl_sleepers_add_process(struct sl_sleepers *list, long pid, const char **why);

/* Every living process whose ring lies in the folder, or of this ring alone.  -1: no such folder; else how many. */
int sl_sleepers_add_folder(struct sl_sleepers *list, const char *path);

/* Ask all of them, and wait until each has answered or ended.  The number of those that did neither within 10 s. */
unsigned sl_sleepers_turn(struct sl_sleepers *list, bool wake);

bool sl_sleepers_has(const struct sl_sleepers *list, long pid);

void sl_sleepers_free(struct sl_sleepers *list);

#endif
