/* SPDX-License-Identifier: MIT */
/* PJRT's table with some functions for ours, and what the rows of pjrt.def say of a call.  plugin: number of its table. */
#ifndef AGENT_HOOKS_PJRT_H
#define AGENT_HOOKS_PJRT_H

#include <stdint.h>

struct sl_pjrt_execute;

/* The table to hand out instead of `real`; that itself where it is not one that we know. */
const void *sl_pjrt_table(const void *real);

void sl_pjrt_made(unsigned plugin, unsigned api, const void *buffer, const char *how);
void sl_pjrt_executed(unsigned plugin, unsigned api, const struct sl_pjrt_execute *args);
void sl_pjrt_gone(unsigned api, const void *buffer);
void sl_pjrt_loaded(unsigned plugin, const void *executable);
void sl_pjrt_unloaded(const void *executable);

#endif
