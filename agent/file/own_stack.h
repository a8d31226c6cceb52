/* SPDX-License-Identifier: MIT */
/* A stack of our own for what is too much for a program's threads, which may have 16 KiB: encoding and compression. */
#ifndef AGENT_FILE_OWN_STACK_H
#define AGENT_FILE_OWN_STACK_H

#include <stdbool.h>

/* Once for each process image, before anything runs there.  False: no memory. */
bool sl_own_stack_prepare(void);

/* The calling thread does it there.  One at a time, with the program's signals blocked. */
void sl_own_stack_run(void (*work)(void));

#endif
