/* SPDX-License-Identifier: MIT */
/* telemetry/NAME/: a sink of TelemetryEventV3 per process, which Python Stormlog opens as its own. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/outputs/output.h"
#include "analyzer/upstream/upstream.h"

static bool write_sinks(struct sl_report *report, const char *path)
{
	struct sl_arena arena = {0};
	struct sl_map folder_counts = {0}; /* how many folders with a number each name has */
	bool fine = !mkdir(path, 0700) || errno == EEXIST;

	sl_outputs_limit(report);
	for (unsigned i = 0; i < report->process_count && fine; i++) {
		const char *name = sl_paths_name(report->processes[i].trace->name);
		struct sl_session session;
		const struct sl_session *one = &session;
		const char *stem = sl_arena_strndup(&arena, name, strcspn(name, "."));
		uintptr_t *count = sl_map_at(&folder_counts, stem);
		char folder[PATH_MAX];

		/* the same name in two folders: runs apart */
		snprintf(folder, sizeof(folder), "%s/%s", path, stem);
		while (!access(folder, F_OK))
			snprintf(folder, sizeof(folder), "%s/%s-%u", path, stem, 2 + (unsigned)(*count)++);
		sl_sessions_make(report, &report->processes[i], &arena, &session);
		fine = sl_sink_write(folder, &one, 1, NULL);
		free(session.events);
	}
	sl_map_free(&folder_counts);
	sl_arena_free(&arena);
	return fine;
}

const struct sl_output sl_output_telemetry = {.name = "telemetry", .folder = write_sinks};
