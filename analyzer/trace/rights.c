/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/rights.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/base/confine.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/base/vector.h"
#include "analyzer/trace/siblings.h"
#include "analyzer/trace/names.h"
#include "common/base.h"
#include "common/ringfile.h"
#include "common/tracefile.h"

struct list {
	SL_VECTOR(const char *) paths;
};

static void add(struct list *list, const char *path)
{
	*SL_PUSH(&list->paths) = path ? strdup(path) : NULL;
}

/* A file that the user did not name. */
static void add_honest(struct list *list, const char *path, bool (*is)(const char *name))
{
	if (sl_paths_is_honest(path, is))
		add(list, path);
}

static const char *const sink[] = {"manifest.json", "rollups.json", "stormlog_run.json"};

static bool is_of_sink(const char *path)
{
	for (size_t i = 0; i < SL_COUNT(sink); i++)
		if (!strcmp(sl_paths_name(path), sink[i]))
			return true;
	return false;
}

/* Rings of traces on network file systems. */
static void add_remote_rings(struct list *list)
{
	glob_t found;

	if (glob(SL_REMOTE_RING "/" SL_REMOTE_RING_PREFIX "*" SL_RING_SUFFIX, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_honest(list, found.gl_pathv[i], sl_names_is_ring);
	globfree(&found);
}

/* The segments and ring of a trace; for a file of a telemetry sink the manifest and summary beside it, or the whole sink. */
static void add_beside(struct list *list, struct sl_beside *processes, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int folder = slash ? (int)(slash - path) : 1;
	const struct sl_beside_files *files;
	char *beside;

	if (!sl_names_is_trace(name)) {
		for (size_t i = 0; i <= SL_COUNT(sink); i++) {
			bool whole = i == SL_COUNT(sink);

			beside = sl_memory_print("%.*s/%s", folder, slash ? path : ".", whole ? "." : sink[i]);
			if (!whole)
				add_honest(list, beside, is_of_sink);
			else if (!strcmp(name, sink[0]))
				add(list, beside);
			free(beside);
		}
		return;
	}
	files = sl_siblings_once(processes, path);
	for (size_t i = 0; files && i < files->paths.count; i++)
		add_honest(list, files->paths.item[i], sl_names_is_trace);
}

static bool confine(const struct sl_rights *rights)
{
	struct list reads = {0}, writes = {0};
	struct sl_beside processes = {0};
	struct stat st;

	for (char *const *input = rights->inputs; input && *input; input++) {
		add(&reads, *input);
		if (rights->changes) {
			char *in = sl_memory_print("%s/.", *input);

			add(&writes, in);
			free(in);
		}
		if (!stat(*input, &st) && S_ISREG(st.st_mode))
			add_beside(&reads, &processes, *input);
	}
	for (size_t i = 0; i < SL_COUNT(rights->reads); i++)
		if (rights->reads[i])
			add(&reads, rights->reads[i]);
	if (rights->symbols)
		add(&reads, rights->symbols);
	add_remote_rings(&reads);
	sl_siblings_free(&processes);
	for (size_t i = 0; i < SL_COUNT(rights->writes); i++)
		if (rights->writes[i] && *rights->writes[i] && !sl_save_is_open(rights->writes[i]))
			add(&writes, rights->writes[i]);
	add(&reads, NULL);
	add(&writes, NULL);
	bool fine = sl_confine(reads.paths.item, writes.paths.item, rights->but);
	int error = errno;

	SL_DROP_EACH(&reads.paths);
	SL_DROP_EACH(&writes.paths);
	errno = error;
	return fine;
}

bool sl_rights_give_up(const struct sl_rights *rights, const char *program)
{
	bool fine = rights->node || confine(rights), ran_out = !fine && (errno == EMFILE || errno == ENFILE);

	if (rights->node)
		sl_confine_calls(rights->but);
	if (ran_out)
		sl_escape_print(stderr, "%s: descriptors ran out before anything was read (ulimit -n): %m\n", program);
	else if (!fine)
		sl_escape_print(stderr,
				"%s: this kernel has no Landlock: what reads the trace could read and write other files too\n",
				program);
	return !ran_out;
}
