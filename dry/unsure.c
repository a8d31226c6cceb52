/* SPDX-License-Identifier: MIT */
#include "dry/unsure.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "agent/include/stormlog.h"

void sl_dry_unsure(const char *what, int64_t bytes)
{
	static _Atomic int64_t reported;
	int64_t before = atomic_load(&reported);
	char key[64], value[24];

	while (bytes > before)
		if (atomic_compare_exchange_weak(&reported, &before, bytes)) {
			snprintf(key, sizeof(key), "dry.unsure.%s", what);
			snprintf(value, sizeof(value), "%" PRId64, bytes);
			stormlog_metadata(key, value);
			return;
		}
}
