/* SPDX-License-Identifier: MIT */
/* Built without SQLite: nothing can be opened, so nothing else is ever called. */
#include <stdio.h>

#include "analyzer/catalogue/store.h"

struct sl_store *sl_store_open(const char *path, bool write, char *why)
{
	snprintf(why, SL_STORE_WHY, "this stormlog-analyze was built without SQLite");
	return NULL;
}

void sl_store_close(struct sl_store *store)
{
}

const char *sl_store_why(const struct sl_store *store)
{
	return "";
}

bool sl_store_put(struct sl_store *store, const struct sl_card *card, int64_t *run)
{
	return false;
}

bool sl_store_runs(struct sl_store *store, const struct sl_store_ask *ask, sl_store_each_card *each, void *context)
{
	return false;
}

bool sl_store_card(struct sl_store *store, int64_t run, struct sl_card *card)
{
	return false;
}

bool sl_store_find(struct sl_store *store, const char *identity, int64_t *run)
{
	return false;
}

bool sl_store_metrics(struct sl_store *store, const struct sl_query *query, const char *of, const char *text, int64_t limit,
		      sl_store_each_metric *each, void *context)
{
	return false;
}

bool sl_store_metric(struct sl_store *store, int64_t metric, char *text, size_t size)
{
	return false;
}

bool sl_store_history(struct sl_store *store, const struct sl_query *query, int64_t metric, int field, sl_store_each_point *each,
		      void *context)
{
	return false;
}

bool sl_store_file_known(struct sl_store *store, const struct sl_store_file *file, bool *known, sl_store_each_run *each,
			 void *context)
{
	return false;
}

bool sl_store_file_put(struct sl_store *store, const struct sl_store_file *file, const int64_t *runs, size_t count)
{
	return false;
}

bool sl_store_files(struct sl_store *store, int64_t run, sl_store_each_file *each, void *context)
{
	return false;
}
