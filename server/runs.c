/* SPDX-License-Identifier: MIT */
#include "server/runs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/base/door.h"
#include "server/quota.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void close_store(void *store)
{
	sl_store_close(store);
}

static void make_key(void)
{
	pthread_key_create(&key, close_store);
}

struct sl_store *sl_runs_store(struct sl_server *server)
{
	struct sl_store *store;
	char path[4200], why[SL_STORE_WHY];

	pthread_once(&once, make_key);
	store = pthread_getspecific(key);
	if (store)
		return store;
	snprintf(path, sizeof(path), "%s/" SL_RUNS_FILE, server->path);
	store = sl_store_open(path, true, why);
	if (!store)
		sl_door_print(stderr, "stormlog-server: %s: %s\n", path, why);
	pthread_setspecific(key, store);
	return store;
}

bool sl_runs_put(struct sl_server *server, const char *pack, const char *text, size_t size, char project[SL_CARD_TEXT + 1],
		 bool *full)
{
	struct sl_store *store = sl_runs_store(server);
	struct sl_arena arena = {0};
	struct sl_value_error error = {0};
	const struct sl_value *value = sl_value_parse(&arena, text, size, 1, &error);
	struct sl_card card;
	int64_t run = 0;
	bool fine;

	sl_card_init(&card);
	fine = value && sl_card_read(&card, value);
	card.identity = pack; /* the pack's own claim is not trusted: it cannot stand for another pack */
	card.source = pack;
	fine = fine && store;
	*full = fine && !sl_quota_admits(server, store, card.project, pack);
	fine = fine && !*full && sl_store_put(store, &card, &run);
	if (!fine && !*full)
		sl_door_print(stderr, "stormlog-server: pack %s: %s\n", pack,
			      store && value ? sl_store_why(store) : "no card of it");
	snprintf(project, SL_CARD_TEXT + 1, "%s", card.project ? card.project : "");
	sl_card_free(&card);
	sl_arena_free(&arena);
	return fine;
}

bool sl_runs_known(struct sl_server *server, const char *pack, bool *known)
{
	struct sl_store *store = sl_runs_store(server);
	int64_t run = 0;
	bool fine = store && sl_store_find(store, pack, &run);

	*known = fine && run;
	if (store && !fine)
		sl_door_print(stderr, "stormlog-server: pack %s: %s\n", pack, sl_store_why(store));
	return fine;
}
