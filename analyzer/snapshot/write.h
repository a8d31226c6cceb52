/* SPDX-License-Identifier: MIT */
/* Writes a trace (doc/trace-format.md), a thread of it for each device.  After a failure calls do nothing. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "common/maps.h"
#include "common/event.h"

struct sl_write;

struct sl_write *sl_write_open(FILE *out);
/* Maps that sl_definition_begin began: `header` writes a frame of its own, `define` adds to a shared one. */
void sl_write_header(struct sl_write *write, struct sl_definition *map);
void sl_write_define(struct sl_write *write, struct sl_definition *map);
/* thread: from 1.  Times of a thread rise. */
void sl_write_event(struct sl_write *write, uint32_t thread, const struct sl_event *event);
uint64_t sl_write_next(const struct sl_write *write, uint32_t thread); /* number of the thread's next event */
/* Writes what is left and the footer, and frees.  False: errno says what failed. */
bool sl_write_close(struct sl_write *write, uint64_t now_ns);
