/* SPDX-License-Identifier: MIT */
/* Copies of PJRT's table with some functions replaced, and what the rows of pjrt.def do.  plugin: index of the plugin's table. */
#pragma once

#include <stdint.h>

struct sl_pjrt_execute;

/* The table to hand out instead of `real`; `real` itself where its layout is not known. */
const void *sl_pjrt_table(const void *real);

void sl_pjrt_made(unsigned plugin, unsigned api, const void *buffer, const char *how);
void sl_pjrt_executed(unsigned plugin, unsigned api, const struct sl_pjrt_execute *args);
void sl_pjrt_gone(unsigned api, const void *buffer);
/* A framework asks for the code of an error of a call, or of one that failed later; one for want of memory is recorded. */
void sl_pjrt_refused(unsigned plugin, unsigned api, const void *error, int code);
void sl_pjrt_loaded(unsigned plugin, const void *executable);
void sl_pjrt_unloaded(const void *executable);
