/* SPDX-License-Identifier: MIT */
/* Questions to a plugin about what a call made; used by pjrt.c. */
#pragma once

#include <stddef.h>

#define SL_PJRT_PLUGINS 4
#define SL_PJRT_NAME	192u /* bytes; longer names of arrays are cut */

struct sl_pjrt_api;

/* pjrt_table.c: the plugin's own table. */
const struct sl_pjrt_api *sl_pjrt_real(unsigned plugin);

/* Indexes in the table of the functions that are asked; a plugin that lacks one is left alone. */
extern const unsigned sl_pjrt_question[];
extern const size_t sl_pjrt_questions;
