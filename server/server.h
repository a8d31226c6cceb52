/* SPDX-License-Identifier: MIT */
/* What the parts of stormlog-server share. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/packs.h"
#include "server/tokens.h"

struct sl_work;

struct sl_server {
	char path[4096]; /* of the store */
	struct sl_packs packs;
	struct sl_tokens tokens;
	struct sl_work *work;
	bool open; /* who reaches us may read */
	const char *const *names;
	unsigned name_count;			     /* hosts that we answer to, beside numbers and localhost */
	uint64_t keep_age_s, keep_count, keep_bytes; /* of each project; 0: all */
	uint64_t project_bytes;			     /* at most, of each project; 0: no limit */
};

#endif
