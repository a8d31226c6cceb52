/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/stats.h"

struct run {
	int64_t run;
	char pack[SL_PACKS_NAME + 1];
	uintptr_t project; /* project number, from 1 */
	bool pinned;
};

struct project {
	uint64_t count, bytes;
};

struct keeping {
	struct sl_server *server;
	struct sl_map names;
	SL_VECTOR(struct run) runs; /* newest first */
	SL_VECTOR(struct project) projects;
	/* Runs on both sides of a change of a project's peak, and the run that confirmed the change; ascending */
	SL_VECTOR(int64_t) adjacent;
};

static bool take(void *context, const struct sl_card *card)
{
	struct keeping *k = context;
	uintptr_t *project = sl_map_at(&k->names, card->project ? card->project : "");
	struct run *run;

	if (!sl_packs_is_name(card->identity))
		return true;
	if (!*project) {
		*SL_PUSH(&k->projects) = (struct project){0};
		*project = k->projects.count;
	}
	run = SL_PUSH(&k->runs);
	*run = (struct run){.run = card->run, .project = *project, .pinned = card->pinned > 0};
	snprintf(run->pack, sizeof(run->pack), "%s", card->identity);
	return true;
}

static bool take_adjacent(struct keeping *k, struct sl_store *store, const char *project)
{
	struct sl_query query;
	struct sl_course course;
	bool fine;

	sl_course_project(&query, *project ? project : NULL);
	fine = sl_course_read(&course, store, &query, 0, sl_card_field("peak"));
	if (fine)
		for (size_t i = 0; i < course.change_count; i++)
			for (size_t at = course.changes[i].at - 1; at <= course.changes[i].at + 1 && at < course.points.count; at++)
				*SL_PUSH(&k->adjacent) = course.points.item[at].run;
	sl_course_free(&course);
	sl_query_free(&query);
	return fine;
}

/* False: the catalogue did not tell all that decides what may go. */
static bool take_all(struct keeping *k, struct sl_store *store)
{
	struct sl_store_ask all = {.order = -1};
	bool fine = sl_store_runs(store, &all, take, k);
	const char *name;

	for (size_t at = 0; fine && (name = sl_map_next(&k->names, &at));)
		fine = take_adjacent(k, store, name);
	if (k->adjacent.count)
		qsort(k->adjacent.item, k->adjacent.count, sizeof(*k->adjacent.item), sl_stats_by_number);
	return fine;
}

static bool is_adjacent(const struct keeping *k, int64_t run)
{
	return k->adjacent.count && bsearch(&run, k->adjacent.item, k->adjacent.count, sizeof(run), sl_stats_by_number);
}

/* Age counts from arrival at the server, since the clocks of recorded machines may be wrong. */
static bool is_old(const struct sl_server *server, const struct stat *st)
{
	return server->keep_days && (uint64_t)(time(NULL) - st->st_mtime) > (uint64_t)server->keep_days * SL_DAY_S;
}

/* Comparisons say as much of a run as its own pages. */
static void remove_comparisons(const struct sl_server *server, const char *pack)
{
	DIR *folder = sl_server_folder_open(server->packs.folder, "pages/compare", O_NOFOLLOW);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (strstr(entry->d_name, pack))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
}

static void remove_pages(struct sl_server *server, const char *pack)
{
	char path[SL_PACKS_NAME + 64];
	int folder = server->packs.folder;
	uint64_t before = sl_server_folder_bytes(folder, "pages/compare");

	remove_comparisons(server, pack);
	sl_places_of(pack, "", path);
	before += sl_server_folder_bytes(folder, path);
	sl_server_folder_remove(folder, path);
	__atomic_fetch_sub(&server->packs.used, before - sl_server_folder_bytes(folder, "pages/compare"), __ATOMIC_RELAXED);
}

static void consider(struct keeping *k, struct sl_store *store, const struct run *run)
{
	struct sl_server *server = k->server;
	struct project *project = &k->projects.item[run->project - 1];
	uint64_t bytes = sl_quota_taken(server, run->pack);
	struct stat st;
	int fd = sl_packs_read(&server->packs, run->pack, &st);

	if (fd < 0)
		return; /* somebody else removed the pack; its run can still be found */
	close(fd);
	project->count++;
	project->bytes += bytes;
	if (run->pinned || is_adjacent(k, run->run) ||
	    !(is_old(server, &st) || (server->keep_count && project->count > server->keep_count) ||
	      (server->keep_bytes && project->bytes > server->keep_bytes)))
		return;
	project->count--;
	project->bytes -= bytes;
	/* Stores the run first, so that a reader who finds the run also finds its pack. */
	if (!sl_store_remove(store, run->run))
		return;
	remove_pages(server, run->pack);
	sl_packs_remove(&server->packs, run->pack);
	sl_quota_changed(server, run->pack);
	sl_escape_print(stderr, "stormlog-server: run %" PRId64 " (pack %s) was let go\n", run->run, run->pack);
}

/* Takes packs that were read and contain no run. */
static void consider_failed(void *context, const char *name, const struct stat *st)
{
	struct sl_server *server = context;
	char path[SL_PACKS_NAME + 64];
	struct stat failed;
	bool is_known;

	sl_places_of(name, "failed", path);
	if (!is_old(server, st) || fstatat(server->packs.folder, path, &failed, AT_SYMLINK_NOFOLLOW) ||
	    !sl_runs_known(server, name, &is_known) || is_known)
		return;
	remove_pages(server, name);
	sl_packs_remove(&server->packs, name);
	sl_quota_changed(server, name);
}

void sl_keep(struct sl_server *server)
{
	struct keeping k = {.server = server};
	struct sl_store *store = sl_runs_store(server);
	bool fine;

	if (!store || !(server->keep_days || server->keep_count || server->keep_bytes))
		return;
	fine = take_all(&k, store);
	if (!fine)
		sl_escape_print(stderr, "stormlog-server: no run is let go: %s\n", sl_store_why(store));
	for (size_t i = 0; fine && i < k.runs.count; i++)
		consider(&k, store, &k.runs.item[i]);
	if (fine && server->keep_days)
		sl_packs_each(&server->packs, consider_failed, server);
	SL_DROP(&k.runs);
	SL_DROP(&k.projects);
	SL_DROP(&k.adjacent);
	sl_map_free(&k.names);
}
