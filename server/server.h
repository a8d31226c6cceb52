/* SPDX-License-Identifier: MIT */
/* State and settings that the parts of stormlog-server share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/packs.h"
#include "server/tokens.h"

struct sl_work;

struct sl_server {
	char path[4096]; /* of the store's folder */
	struct sl_packs packs;
	struct sl_tokens tokens;
	struct sl_work *work;
	bool open; /* reading needs no token */
	const char *const *names;
	unsigned name_count;			     /* --host: names that the server answers to, besides numbers and localhost */
	uint64_t keep_age_s, keep_count, keep_bytes; /* limits for each project; 0: no limit */
	uint64_t project_bytes;			     /* limit for what a project's runs take; 0: no limit */
};
