/* SPDX-License-Identifier: MIT */
/* Which files below a path are telemetry: sinks and bundles by their manifests, the rest by their names. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/upstream/files/files.h"

struct walk {
	struct sl_telemetry *t;
	SL_VECTOR(const char *) folders; /* with a manifest */
	SL_VECTOR(const char *) files;	 /* telemetry by name */
	struct sl_map bundles;		 /* folders of OOM bundles */
	size_t found;
	uint64_t looked_at; /* files and folders */
};

static bool first_time(struct sl_telemetry *t, const char *path)
{
	char *real = realpath(path, NULL);
	bool first = (*sl_map_at(&t->seen, real ? real : path))++ == 0;
	struct stat status;
	int fd = first ? sl_paths_open_regular(path, &status) : -1;

	if (fd >= 0) {
		t->disk_bytes += sl_budget_size(fd);
		close(fd);
	}
	free(real);
	return first;
}

static bool is_regular(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length >= tail && strcasecmp(name + length - tail, suffix) == 0;
}

static bool is_telemetry_name(const char *name)
{
	static const char *const words[] = {"event", "track", "telemetry"};

	if (has_suffix(name, ".jsonl"))
		return true;
	if ((!has_suffix(name, ".json") && !has_suffix(name, ".csv")) || strcmp(name, "telemetry_timeline.json") == 0)
		return false;
	for (size_t i = 0; i < 3; i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static bool load_timeline(struct sl_telemetry *t, const char *folder)
{
	if (!is_regular(sl_arena_printf(&t->arena, "%s/telemetry_timeline.json", folder)))
		return false;
	sl_diagnose_load(t, folder);
	return true;
}

static bool has_segments(const char *folder)
{
	DIR *dir = opendir(folder);
	bool hit = false;

	for (struct dirent *entry; dir && !hit && (entry = readdir(dir));)
		hit = strncmp(entry->d_name, "segment-", 8) == 0 && has_suffix(entry->d_name, ".jsonl");
	if (dir)
		closedir(dir);
	return hit;
}

/* Files of a sink are read with the sink, those of an OOM bundle with the bundle. */
static void mark_segments(struct sl_telemetry *t, const char *folder)
{
	DIR *dir = opendir(folder);

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (has_suffix(entry->d_name, ".jsonl"))
			first_time(t, sl_arena_printf(&t->arena, "%s/%s", folder, entry->d_name));
	if (dir)
		closedir(dir);
}

static bool load_folder(struct walk *w, const char *folder, const char *name_of_sink)
{
	struct sl_telemetry *t = w->t;
	const char *path = sl_arena_printf(&t->arena, "%s/manifest.json", folder);
	struct sl_value_error error;
	const struct sl_value *manifest = is_regular(path) ? sl_value_read(&t->arena, path, &error) : NULL;
	enum sl_manifest_kind kind = sl_manifest_kind_of(manifest);

	if (kind == SL_MANIFEST_NONE && has_segments(folder))
		kind = SL_MANIFEST_SINK; /* the ledger is missing, but the records are there */
	if (kind == SL_MANIFEST_NONE) {
		if (!manifest && is_regular(path) && first_time(t, path))
			sl_telemetry_problem(t, SL_SOURCE_FILE, path, error.line, error.reason);
		return load_timeline(t, folder);
	}
	if (!first_time(t, path))
		return true;
	if (kind == SL_MANIFEST_OOM) {
		sl_bundle_load(t, folder, manifest);
		*sl_map_at(&w->bundles, folder) = 1;
	} else if (kind == SL_MANIFEST_DIAGNOSE) {
		sl_diagnose_load(t, folder);
	} else {
		mark_segments(t, folder);
		sl_telemetry_load_sink(t, name_of_sink, SL_SESSION_SINK);
	}
	return true;
}

static void walk_into(struct walk *w, const char *folder, int depth)
{
	DIR *dir = opendir(folder);
	bool manifest = false;

	if (!dir) {
		sl_telemetry_problem(w->t, SL_SOURCE_FILE, folder, 0, strerror(errno));
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *name = entry->d_name, *path = sl_arena_printf(&w->t->arena, "%s/%s", folder, name);
		struct stat status;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || lstat(path, &status) != 0)
			continue;
		if (w->looked_at++ == sl_budget_files())
			sl_telemetry_problem(w->t, SL_SOURCE_FILE, folder, 0,
					     "too many files and folders; from here on they are not read");
		if (w->looked_at > sl_budget_files())
			break;
		/* We wrote analysis/ ourselves.  Links could lead in circles. */
		if (S_ISDIR(status.st_mode) && depth < 32 && strcmp(name, "analysis") != 0)
			walk_into(w, path, depth + 1);
		if (!is_regular(path))
			continue;
		manifest = manifest || strcmp(name, "manifest.json") == 0 || strcmp(name, "telemetry_timeline.json") == 0;
		if (is_telemetry_name(name))
			*SL_PUSH(&w->files) = path;
	}
	closedir(dir);
	if (manifest)
		*SL_PUSH(&w->folders) = folder;
}

static size_t load_file(struct sl_telemetry *t, const char *path)
{
	if (!first_time(t, path))
		return 0;
	switch (sl_source_form(path)) {
	case SL_SOURCE_CSV:
		sl_telemetry_load_file(t, path, SL_SESSION_CSV);
		break;
	case SL_SOURCE_JSON:
		sl_telemetry_load_file(t, path, SL_SESSION_JSON);
		break;
	default:
		sl_telemetry_load_sink(t, path, SL_SESSION_LINES);
		break;
	}
	return 1;
}

/* Files inside an out-of-memory bundle belong to the bundle. */
static bool is_in_bundle(const struct walk *w, const char *file)
{
	char *folder = sl_memory_copy(file), *slash;
	bool found = false;

	while (!found && (slash = strrchr(folder, '/'))) {
		*slash = 0;
		found = sl_map_find(&w->bundles, folder);
	}
	free(folder);
	return found;
}

static void walk_folder(struct walk *w, const char *folder)
{
	if (load_folder(w, folder, folder))
		w->found++;
	walk_into(w, folder, 0);
	if (w->folders.count)
		qsort(w->folders.item, w->folders.count, sizeof(*w->folders.item), sl_stats_by_text);
	if (w->files.count)
		qsort(w->files.item, w->files.count, sizeof(*w->files.item), sl_stats_by_text);
	for (size_t i = 0; i < w->folders.count; i++)
		if (strcmp(w->folders.item[i], folder) != 0 && load_folder(w, w->folders.item[i], w->folders.item[i]))
			w->found++;
	for (size_t i = 0; i < w->files.count; i++)
		if (!is_in_bundle(w, w->files.item[i]))
			w->found += load_file(w->t, w->files.item[i]);
}

size_t sl_telemetry_add_path(struct sl_telemetry *t, const char *path, bool full_names)
{
	struct walk w = {.t = t};
	struct stat status;
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	path = sl_arena_strndup(&t->arena, path, length);
	if (stat(path, &status) != 0) {
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, 0, strerror(errno));
		return 0;
	}
	const char *name = sl_paths_name(path);

	t->root = NULL;
	if (S_ISDIR(status.st_mode)) {
		t->root = full_names ? NULL : path;
		walk_folder(&w, path);
	} else {
		const char *folder = dirname(sl_arena_strdup(&t->arena, path));

		t->root = full_names ? NULL : folder;
		if (strcmp(name, "manifest.json") == 0)
			w.found = load_folder(&w, folder, path);
		else if (strcmp(name, "telemetry_timeline.json") == 0)
			w.found = load_timeline(t, folder);
		else
			w.found = load_file(t, path);
	}
	t->root = NULL;
	free(w.folders.item);
	free(w.files.item);
	sl_map_free(&w.bundles);
	return w.found;
}
