/* SPDX-License-Identifier: MIT */
/* The part of a trace's header that says what the numbers of its events mean: the same whoever writes the trace. */
#pragma once

struct sl_definition;

/* Adds its keys and values. */
void sl_process_tables(struct sl_definition *map);
