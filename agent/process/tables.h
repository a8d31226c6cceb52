/* SPDX-License-Identifier: MIT */
/* The part of a trace's header that says what the numbers of its events mean: the same whoever writes the trace. */
#ifndef AGENT_PROCESS_TABLES_H
#define AGENT_PROCESS_TABLES_H

struct sl_pack;

/* Keys and values into a map that is being made; how many keys. */
unsigned sl_process_tables(struct sl_pack *out);

#endif
