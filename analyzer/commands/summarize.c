/* SPDX-License-Identifier: MIT */
/* stormlog-analyze summarize PATH...: what was replayed, as one file that `report` and `summarize` read like the traces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/door.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/summary/summary.h"
#include "analyzer/trace/summaries.h"

static const struct sl_option table[] = {
	{"--output", 'o', "FILE", "where it goes; the name ends in .summary"},
	{"--run", 0, "ID|all", "which run of a folder with several (default: all)"},
	{"--threads", 'j', "N", "threads (default: as many as there are cores)"},
	{"--quiet", 'q', NULL, "no progress"},
	{0},
};
enum { OUTPUT, RUN, THREADS, QUIET };

static const char about[] =
	"Takes traces and summaries alike.  A summary of summaries is the summary of all their traces, byte for byte, in whatever\n"
	"order and groups they were made.  Other verbs than report and summarize need the traces.";

struct settings {
	const char *path;
	struct sl_pipeline_options drive;
};

static bool take(void *context, int option, const char *value)
{
	struct settings *s = context;
	long number;

	if (option == OUTPUT)
		s->path = value;
	else if (option == RUN)
		s->drive.run = value;
	else if (option == QUIET)
		s->drive.quiet = true;
	else if (!sl_arguments_number(value, 1, 1024, &number))
		return false;
	else
		s->drive.threads = (unsigned)number;
	return true;
}

struct parts {
	struct sl_summary_frame *frames;
	struct sl_header *identities;
	size_t capacity;
};

static char *text_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* What stands in the index; texts are of `identity` then. */
static void identify(struct sl_header *identity, const struct sl_header *from)
{
	*identity = (struct sl_header){.run_id = text_of(from->run_id),
				       .host = text_of(from->host),
				       .boot_id = text_of(from->boot_id),
				       .pid = from->pid,
				       .rank = from->rank,
				       .process_start = from->process_start,
				       .started_ns = from->started_ns,
				       .monotonic_ns = from->monotonic_ns};
}

static void pack_one(void *context, unsigned index, struct sl_process *process, const struct sl_image *image,
		     const struct sl_damage *damage)
{
	static const struct sl_header unknown = {.rank = -1};
	struct parts *parts = context;
	struct sl_summary_frame *frame = &parts->frames[index];
	struct sl_damage unsaid = {0};

	identify(&parts->identities[index], process->trace ? &process->trace->header : &unknown);
	frame->name = image->name;
	frame->identity = &parts->identities[index];
	frame->size = image->bytes;
	if (image->summary) /* as it is: merging changes no process */
		frame->bytes = sl_summaries_frame(image, &unsaid);
	else
		frame->bytes = sl_summary_pack(process, image, damage, &frame->size);
	sl_damage_free(&unsaid);
	if (!frame->bytes)
		frame->size = 0;
	sl_process_free(process);
	*process = (struct sl_process){0};
}

static void free_parts(struct parts *parts, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		free(parts->frames[i].bytes);
		free((void *)parts->identities[i].run_id);
		free((void *)parts->identities[i].host);
		free((void *)parts->identities[i].boot_id);
	}
	free(parts->frames);
	free(parts->identities);
}

static int save(const struct settings *s, const struct sl_summary_frame *frames, unsigned count)
{
	struct sl_save file;

	if (sl_save_begin(&file, s->path, false) && sl_save_end(&file, sl_summaries_write(file.out, frames, count)))
		return SL_EXIT_FINE;
	sl_door_print(stderr, "stormlog-analyze: %s: %s\n", s->path, strerror(errno));
	return SL_EXIT_UNSAVED;
}

/* As many parts as there are images at most, before the first comes. */
static int count_images(char **paths, unsigned *count)
{
	struct sl_images images = {0};
	int status = sl_native_images(&images, paths);

	*count = images.image_count;
	sl_images_free(&images);
	return status;
}

static int summarize(struct settings *s, char **paths, unsigned path_count)
{
	struct sl_report report = {0};
	struct parts parts = {0};
	unsigned most = 0;
	int status = count_images(paths, &most);

	if (status >= 0)
		return status;
	parts.frames = calloc(most + 1, sizeof(*parts.frames));
	parts.identities = calloc(most + 1, sizeof(*parts.identities));
	if (!parts.frames || !parts.identities)
		abort();
	s->drive.each = pack_one;
	s->drive.each_context = &parts;
	status = sl_native_open(&report, paths, path_count, &s->drive);
	if (status == SL_EXIT_FINE)
		status = save(s, parts.frames, report.process_count);
	free_parts(&parts, most);
	sl_report_free(&report);
	return status;
}

static int run(int argc, char **argv)
{
	struct sl_arguments parsed = {
		.usage = "summarize [options] PATH... -o FILE.summary", .about = about, .table = table, .argc = argc, .argv = argv};
	struct settings s = {.drive.run = "all"};
	int status = sl_arguments_parse(&parsed, take, &s);

	if (status < 0 && (!s.path || !sl_summaries_named(s.path))) {
		sl_door_print(stderr, "stormlog-analyze: summarize needs -o and a name that ends in " SL_SUMMARY_SUFFIX "\n");
		status = SL_EXIT_USAGE;
	}
	if (status < 0)
		status = summarize(&s, parsed.paths, parsed.path_count);
	sl_arguments_free(&parsed);
	return status;
}

const struct sl_command sl_command_summarize = {"summarize", "what was replayed as one file, to merge and to report", run};
