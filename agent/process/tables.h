/* SPDX-License-Identifier: MIT */
/* The part of a trace's header with the meanings of its events' numbers, which is the same for all that write traces. */
#pragma once

struct sl_definition;

/* Adds its keys and values. */
void sl_tables_pack(struct sl_definition *map);
