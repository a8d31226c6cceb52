/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "analyzer/base/escape.h"

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

/* NULL: the reason was printed, and errno is sl_store_open's. */
static struct sl_store *open_store(const struct sl_server *server)
{
	char path[4200], why[SL_STORE_WHY];
	struct sl_store *store;
	int error;

	snprintf(path, sizeof(path), "%s/" SL_STORE_NAME, server->path);
	store = sl_store_open(path, true, why);
	error = errno;
	if (!store)
		sl_escape_print(stderr, "stormlog-server: %s: %s\n", path, why);
	errno = error;
	return store;
}

bool sl_runs_examine(const struct sl_server *server)
{
	struct sl_store *store = open_store(server);
	bool fine = store && sl_store_examine(store), wrong = !fine && errno == EINVAL; /* without a catalogue packs are read */
	bool closed = !fine && errno == EACCES;

	if (store && !fine)
		sl_escape_print(stderr, "stormlog-server: %s/" SL_STORE_NAME ": %s%s\n", server->path, sl_store_why(store),
				wrong ? " (but for pins and notes)" : "");
	sl_store_close(store);
	return !wrong && !closed;
}

struct sl_store *sl_runs_store(struct sl_server *server)
{
	struct sl_store *store;

	pthread_once(&once, make_key);
	store = pthread_getspecific(key);
	if (store)
		return store;
	store = open_store(server);
	pthread_setspecific(key, store);
	return store;
}

enum sl_runs_put sl_runs_put(struct sl_server *server, const char *pack, const char *text, size_t size,
			     char project[SL_CARD_TEXT + 1])
{
	struct sl_store *store = sl_runs_store(server);
	bool is_card, busy = !store && errno == EBUSY;
	struct sl_arena arena = {0};
	struct sl_value_error error = {0};
	const struct sl_value *value = sl_value_parse(&arena, text, size, 1, &error);
	struct sl_card card;
	enum sl_runs_put outcome;
	int64_t run = 0;

	sl_card_init(&card);
	is_card = value && sl_card_read(&card, value);
	card.identity = pack; /* the pack's own claim is not trusted: it cannot stand for another pack */
	card.source = pack;
	outcome = !is_card						? SL_RUNS_NO_CARD
		  : !store						? SL_RUNS_LATER
		  : !sl_quota_admits(server, store, card.project, pack) ? SL_RUNS_FULL
		  : !sl_store_put(store, &card, &run)			? SL_RUNS_LATER
									: SL_RUNS_PUT;
	if (outcome == SL_RUNS_LATER && (store ? sl_store_is_busy(store) : busy))
		outcome = SL_RUNS_BUSY;
	if (outcome == SL_RUNS_NO_CARD)
		sl_escape_print(stderr, "stormlog-server: pack %s: no card of it\n", pack);
	if (outcome == SL_RUNS_LATER || outcome == SL_RUNS_BUSY)
		sl_escape_print(stderr, "stormlog-server: pack %s: %s: it is read again later\n", pack,
				store ? sl_store_why(store) : "the catalogue cannot be opened");
	snprintf(project, SL_CARD_TEXT + 1, "%s", card.project ? card.project : "");
	sl_card_free(&card);
	sl_arena_free(&arena);
	return outcome;
}

bool sl_runs_known(struct sl_server *server, const char *pack, bool *is_known)
{
	struct sl_store *store = sl_runs_store(server);
	int64_t run = 0;
	bool fine = store && sl_store_find(store, pack, &run);

	*is_known = fine && run;
	if (store && !fine)
		sl_escape_print(stderr, "stormlog-server: pack %s: %s\n", pack, sl_store_why(store));
	return fine;
}
