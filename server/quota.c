/* SPDX-License-Identifier: MIT */
#include "server/quota.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/base/door.h"
#include "server/course.h"
#include "server/folder.h"
#include "server/places.h"

/* The packs that were refused most recently; an older one would be uploaded and removed once more. */
#define REFUSED_MAX 256

static struct refused {
	char pack[SL_PACKS_NAME + 1], project[SL_CARD_TEXT + 1];
	bool named; /* the run has a project */
	uint64_t bytes;
} refused[REFUSED_MAX];
static unsigned refusals;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct sum {
	const struct sl_server *server;
	const char *but;
	uint64_t bytes;
};

uint64_t sl_quota_taken(const struct sl_server *server, const char *pack)
{
	char path[SL_PACKS_NAME + 64];
	struct stat st;
	int fd = sl_packs_is_name(pack) ? sl_packs_read(&server->packs, pack, &st) : -1;

	if (fd < 0)
		return 0;
	close(fd);
	sl_places_of(pack, "", path);
	return (uint64_t)st.st_size + sl_folder_bytes(server->packs.folder, path);
}

static bool add(void *context, const struct sl_card *card)
{
	struct sum *sum = context;

	if (strcmp(card->identity, sum->but))
		sum->bytes += sl_quota_taken(sum->server, card->identity);
	return true;
}

static bool has_room(const struct sl_server *server, struct sl_store *store, const char *project, const char *pack, uint64_t bytes)
{
	struct sum sum = {.server = server, .but = pack, .bytes = bytes};
	struct sl_query query;
	struct sl_store_ask ask = {.query = &query, .order = -1};

	sl_course_project(&query, project);
	sl_store_runs(store, &ask, add, &sum);
	sl_query_free(&query);
	return sum.bytes <= server->project_bytes;
}

bool sl_quota_admits(struct sl_server *server, struct sl_store *store, const char *project, const char *pack)
{
	uint64_t bytes = sl_quota_taken(server, pack);
	struct refused *at;
	int64_t run = 0;

	if (!server->project_bytes || (sl_store_find(store, pack, &run) && run) || has_room(server, store, project, pack, bytes))
		return true;
	pthread_mutex_lock(&mutex);
	at = &refused[refusals++ % REFUSED_MAX];
	*at = (struct refused){.named = project, .bytes = bytes};
	snprintf(at->pack, sizeof(at->pack), "%s", pack);
	snprintf(at->project, sizeof(at->project), "%s", project ? project : "");
	pthread_mutex_unlock(&mutex);
	sl_packs_remove(&server->packs, pack);
	sl_door_print(stderr, "stormlog-server: pack %s of project %s: " SL_QUOTA_FULL "\n", pack, project ? project : "?");
	return false;
}

bool sl_quota_refuses(const struct sl_server *server, struct sl_store *store, const char *pack)
{
	struct refused found;
	bool known = false;

	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < REFUSED_MAX && !known; i++)
		if (!strcmp(refused[i].pack, pack)) {
			found = refused[i];
			known = true;
		}
	pthread_mutex_unlock(&mutex);
	return known && store && !has_room(server, store, found.named ? found.project : NULL, pack, found.bytes);
}
