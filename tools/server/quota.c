/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <unistd.h>

#include "analyzer/base/escape.h"

/* The packs that were refused most recently; an older one would be uploaded and removed once more. */
#define REFUSED_MAX 256

static struct refused {
	char pack[SL_PACKS_NAME + 1], project[SL_CARD_TEXT + 1];
	bool named; /* the run has a project */
	uint64_t bytes;
} refused[REFUSED_MAX];
static unsigned refusals;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* What each run takes, and each project together: reading it from the disk at each upload would take longer with each run. */
static struct {
	struct sl_map packs, projects; /* number in the lists, from 1; a pack that went stays, with no bytes */
	SL_VECTOR(struct {
		uint64_t bytes;
		size_t project;
	})
	runs;
	SL_VECTOR(uint64_t) sums;
	bool is_read;
} usage;

uint64_t sl_quota_taken(const struct sl_server *server, const char *pack)
{
	char path[SL_PACKS_NAME + 64];
	struct stat st;
	int fd = sl_packs_is_name(pack) ? sl_packs_read(&server->packs, pack, &st) : -1;

	if (fd < 0)
		return 0;
	close(fd);
	sl_places_of(pack, "", path);
	return (uint64_t)st.st_size + sl_server_folder_bytes(server->packs.folder, path);
}

/* The caller holds the mutex, here and below. */
static size_t project_number(const char *project)
{
	uintptr_t *number = sl_map_at(&usage.projects, project ? project : "");

	if (!*number) {
		*SL_PUSH(&usage.sums) = 0;
		*number = usage.sums.count;
	}
	return *number - 1;
}

static void hold(const char *pack, size_t project, uint64_t bytes)
{
	uintptr_t *number = sl_map_at(&usage.packs, pack);

	if (!*number) {
		memset(SL_PUSH(&usage.runs), 0, sizeof(*usage.runs.item));
		*number = usage.runs.count;
	}
	usage.sums.item[usage.runs.item[*number - 1].project] -= usage.runs.item[*number - 1].bytes;
	usage.sums.item[project] += bytes;
	usage.runs.item[*number - 1].project = project;
	usage.runs.item[*number - 1].bytes = bytes;
}

static bool add(void *context, const struct sl_card *card)
{
	hold(card->identity, project_number(card->project), sl_quota_taken(context, card->identity));
	return true;
}

/* False: the catalogue does not answer. */
static bool know(struct sl_server *server, struct sl_store *store)
{
	struct sl_store_ask all = {.order = -1};

	usage.is_read = usage.is_read || sl_store_runs(store, &all, add, server);
	return usage.is_read;
}

/* True also where the catalogue does not answer.  takes: a run that fits is counted from now on. */
static bool has_room(struct sl_server *server, struct sl_store *store, const char *project, const char *pack, uint64_t bytes,
		     bool takes)
{
	uint64_t others;
	uintptr_t number;
	size_t to;
	bool fine;

	pthread_mutex_lock(&mutex);
	fine = know(server, store);
	to = project_number(project);
	number = sl_map_find(&usage.packs, pack);
	others =
		usage.sums.item[to] - (number && usage.runs.item[number - 1].project == to ? usage.runs.item[number - 1].bytes : 0);
	fine = !fine || others + bytes <= server->project_bytes;
	if (fine && takes)
		hold(pack, to, bytes);
	pthread_mutex_unlock(&mutex);
	return fine;
}

void sl_quota_changed(const struct sl_server *server, const char *pack)
{
	uintptr_t number;

	pthread_mutex_lock(&mutex);
	number = sl_map_find(&usage.packs, pack);
	if (number)
		hold(pack, usage.runs.item[number - 1].project, sl_quota_taken(server, pack));
	pthread_mutex_unlock(&mutex);
}

bool sl_quota_admits(struct sl_server *server, struct sl_store *store, const char *project, const char *pack)
{
	uint64_t bytes = server->project_bytes ? sl_quota_taken(server, pack) : 0;
	struct refused *at;
	int64_t run = 0;

	if (!server->project_bytes || !sl_store_find(store, pack, &run) || run ||
	    has_room(server, store, project, pack, bytes, true))
		return true;
	pthread_mutex_lock(&mutex);
	at = &refused[refusals++ % REFUSED_MAX];
	*at = (struct refused){.named = project, .bytes = bytes};
	snprintf(at->pack, sizeof(at->pack), "%s", pack);
	snprintf(at->project, sizeof(at->project), "%s", project ? project : "");
	pthread_mutex_unlock(&mutex);
	sl_packs_remove(&server->packs, pack);
	return sl_escape_fail("stormlog-server", false, "pack %s of project %s: " SL_QUOTA_FULL, pack, project ? project : "?");
}

bool sl_quota_refuses(struct sl_server *server, struct sl_store *store, const char *pack)
{
	struct refused found;
	bool is_refused = false;

	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < REFUSED_MAX && !is_refused; i++)
		if (!strcmp(refused[i].pack, pack)) {
			found = refused[i];
			is_refused = true;
		}
	pthread_mutex_unlock(&mutex);
	return is_refused && store && !has_room(server, store, found.named ? found.project : NULL, pack, found.bytes, false);
}
