/* SPDX-License-Identifier: MIT */
/* Questions to a plugin, of what a call made; in pjrt.c. */
#ifndef AGENT_HOOKS_PJRT_ASK_H
#define AGENT_HOOKS_PJRT_ASK_H

#include <stddef.h>

#define SL_PJRT_PLUGINS 4
#define SL_PJRT_NAME	192u /* what an array is called is cut there */

struct sl_pjrt_api;

/* pjrt_table.c: the plugin's own table. */
const struct sl_pjrt_api *sl_pjrt_real(unsigned plugin);

/* Places in the table of what is asked: a plugin without one of them is left alone. */
extern const unsigned sl_pjrt_question[];
extern const size_t sl_pjrt_questions;

#endif
