/* SPDX-License-Identifier: MIT */
/*
 * Recordings that obey a request in their ring's header.  They are woken and put to sleep without a signal and without any
 * right but to write the ring, a file that belongs to the recording's user.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ENDED: the process has ended, or its ring was removed, cut or replaced. */
enum sl_answer { SL_ANSWER_NONE, SL_ANSWER_DONE, SL_ANSWER_ENDED };

struct sl_sleeper {
	char path[4096]; /* of the ring */
	dev_t device;	 /* and its file */
	ino_t inode;
	long pid;	       /* as the recording numbers it */
	enum sl_answer answer; /* to the last turn */
};

struct sl_sleepers {
	struct sl_sleeper *item;
	size_t count, capacity;
};

/* The living recording of this process.  False: it has none that obeys; *why says what it has instead. */
bool sl_sleepers_add_process(struct sl_sleepers *list, long pid, const char **why);

/* Finds every living process whose ring lies in the folder, or whose ring is this file.  Returns how many; -1: no such folder. */
int sl_sleepers_add_folder(struct sl_sleepers *list, const char *path);

/* Asks all of them and waits until each has answered or ended.  Returns how many did neither within 10 s. */
unsigned sl_sleepers_turn(struct sl_sleepers *list, bool wake);

bool sl_sleepers_has(const struct sl_sleepers *list, long pid);

void sl_sleepers_free(struct sl_sleepers *list);
