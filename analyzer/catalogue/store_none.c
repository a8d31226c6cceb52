/* SPDX-License-Identifier: MIT */
/* Built without SQLite: nothing can be opened, so nothing else is ever called. */
#include <stdio.h>

#include "analyzer/catalogue/store.h"

struct sl_store *sl_store_open(const char *path, bool write, char *why)
{
	(void)path, (void)write;
	snprintf(why, SL_STORE_WHY, "this stormlog-analyze was built without SQLite");
	return NULL;
}
