/* SPDX-License-Identifier: MIT */
/* Writes the part of a trace's header that says what the numbers in events mean.  The agent and stormlog-attach write the same. */
#pragma once

struct sl_definition;

/* Adds the keys and values of that part. */
void sl_tables_pack(struct sl_definition *map);
