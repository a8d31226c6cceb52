/* SPDX-License-Identifier: MIT */
/*
 * stormlog-analyze summarize PATH...: writes replayed processes as one file, which `report` and `summarize` read like the
 * traces.
 */
#include <malloc.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/merge_lines.h"
#include "analyzer/summary/summary.h"

static const char about[] =
	"Takes traces and summaries alike.  A summary of summaries is the summary of all their traces, byte for byte, in whatever\n"
	"order and groups they were made.  dump, export, fit, pack, push, flame, entries of a label and other moments than the\n"
	"end need the traces.\n"
	"\n"
	"  srun -n 64 stormlog-analyze summarize traces/ -o parts/%s.summary && stormlog-analyze parts/\n"
	"\n"
	"is the report of traces/: each task takes its part.  So do those of mpirun (Open MPI, MPICH, Intel MPI, Flux, jsrun)\n"
	"and of a Slurm array.";

struct settings {
	const char *pattern;
	const char *wrong;   /* value of --shard, if it is invalid */
	char path[PATH_MAX]; /* the output pattern with %s and %h replaced */
	struct sl_shard shard;
	struct sl_pipeline_options drive;
	bool json;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--output", 'o', "FILE",
	 "where it goes; the name ends in .summary.  %s in it is the part, %h the host, %% a per cent sign", SL_TO_TEXT(pattern)},
	{"--shard", 0, "I/N",
	 "only the I-th of N parts of about the same size (default: with %s in the name, as srun, mpirun or a job array says)"},
	{"--run", 0, "ID|all", "which run of a folder with several (default: all)", SL_TO_TEXT(drive.run)},
	{"--threads", 'j', "N", "threads (default: as many as there are cores)", SL_TO_COUNT(drive.threads, 1, 1024)},
	{"--quiet", 'q', NULL, "no progress", SL_TO_FLAG(drive.quiet)},
	SL_OPTION_SYMBOLS,
	{"--json", 0, NULL, "print the result as one JSON object (schemas/done.schema.json)", SL_TO_FLAG(json)},
	{0},
};

static bool take(void *context, int option, const char *value)
{
	struct settings *s = context;

	(void)option; /* --shard */
	s->wrong = sl_shard_parse(&s->shard, value) ? s->wrong : value;
	return true;
}

struct parts {
	struct sl_summary_frame *frames;
	struct sl_header *identities;
	bool *newer; /* for each: an agent that is newer wrote its trace */
	struct sl_damage *damage;
	unsigned count;
	struct sl_summary_commons commons;
	_Atomic bool lost; /* a frame could not be read */
};

static void make_room(void *context, unsigned count)
{
	struct parts *parts = context;

	parts->count = count;
	parts->frames = sl_memory_must(calloc(count + 1, sizeof(*parts->frames)));
	parts->identities = sl_memory_must(calloc(count + 1, sizeof(*parts->identities)));
	parts->newer = sl_memory_must(calloc(count + 1, sizeof(*parts->newer)));
	parts->damage = sl_memory_must(calloc(count + 1, sizeof(*parts->damage)));
}

static char *text_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* The index of the file; its texts then belong to `identity`. */
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
		     struct sl_damage *damage)
{
	static const struct sl_header unknown = {.rank = -1};
	struct parts *parts = context;
	struct sl_summary_frame *frame = &parts->frames[index];
	struct sl_damage *seen = process->trace ? &process->trace->damage : damage;

	identify(&parts->identities[index], image->summary ? image->identity : process->trace ? &process->trace->header : &unknown);
	frame->name = image->name;
	frame->identity = &parts->identities[index];
	frame->listing = image->listing;
	parts->newer[index] = process->trace && sl_missing_newer(process->trace);
	if (image->summary) /* a summary is copied unchanged */
		sl_summary_copy(frame, &parts->commons, image, damage);
	else
		sl_summary_pack(frame, &parts->commons, process, damage);
	parts->damage[index] = *seen;
	*seen = (struct sl_damage){0};
	if (!frame->bytes)
		parts->lost = true;
	sl_process_free(process);
	*process = (struct sl_process){0};
	sl_summary_next(&parts->commons);
}

static void free_parts(struct parts *parts)
{
	for (unsigned i = 0; i < parts->count; i++) {
		free(parts->frames[i].bytes);
		free((void *)parts->identities[i].run_id);
		free((void *)parts->identities[i].host);
		free((void *)parts->identities[i].boot_id);
		sl_damage_free(&parts->damage[i]);
	}
	free(parts->frames);
	free(parts->identities);
	free(parts->newer);
	free(parts->damage);
}

/* Threads come in any order, so it is reported in the order of the traces.  True: something cannot be read. */
static bool say_damage(const struct parts *parts, struct sl_report *report)
{
	size_t first = report->warnings.count;
	bool torn = false;

	for (unsigned i = 0; i < parts->count; i++) {
		torn |= sl_missing_torn(&parts->damage[i]);
		for (unsigned k = 0; k < parts->damage[i].lines; k++)
			sl_report_warn(report, "%s", parts->damage[i].line[k]);
	}
	sl_report_join_warnings(report, first);
	sl_native_say(report, first, report->warnings.count);
	return torn;
}

/* The first in the order of the traces is named. */
static void say_newer(const struct parts *parts)
{
	unsigned i = 0;

	while (i < parts->count && !parts->newer[i])
		i++;
	if (i < parts->count)
		sl_escape_print(stderr, "stormlog-analyze: %s: " SL_ABSENT_NEWER "\n", sl_paths_name(parts->frames[i].name));
}

static int save(const struct settings *s, const struct sl_summary_frame *frames, unsigned count)
{
	struct sl_save file;

	if (sl_paths_make_parents(s->path) && sl_save_begin(&file, s->path, false) &&
	    sl_save_end(&file, sl_summaries_write(file.out, frames, count)))
		return SL_EXIT_FINE;
	sl_paths_failed(s->path);
	return SL_EXIT_UNSAVED;
}

static void tell(const struct settings *s, unsigned processes)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.summarize", 1);
	sl_native_tell_file(j, s->path);
	sl_json_uint(j, "processes", processes);
	sl_json_nonzero(j, "part", s->shard.part);
	sl_json_nonzero(j, "parts", s->shard.parts);
	sl_json_finish(j);
}

static int summarize(struct settings *s, char **paths, unsigned path_count)
{
	struct sl_report report = {0};
	struct parts parts = {0};
	bool torn;
	int status;

	/* Keeps freed memory for the next rank; otherwise the kernel would clear new pages for each of them. */
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	sl_summary_begin(&parts.commons);
	s->drive.begin = make_room;
	s->drive.each = pack_one;
	s->drive.each_context = &parts;
	s->drive.part = s->shard.part;
	s->drive.parts = s->shard.parts;
	status = sl_native_open(&report, paths, path_count, &s->drive);
	torn = say_damage(&parts, &report);
	say_newer(&parts);
	if (status == SL_EXIT_FINE)
		status = parts.lost ? SL_EXIT_UNREADABLE : save(s, parts.frames, parts.count);
	if (s->json && status == SL_EXIT_FINE)
		tell(s, parts.count);
	/* mpirun ends the other tasks, of parts or of hosts, when one fails; the report says it */
	if (status == SL_EXIT_FINE && torn && !s->shard.parts && !strstr(s->pattern, "%h"))
		status = sl_native_partly(s->path);
	else if (status == SL_EXIT_UNREADABLE && report.images.image_count)
		sl_escape_print(
			stderr,
			"stormlog-analyze: %s was not written, since a summary must be whole: name the traces that can be read\n",
			s->path);
	free_parts(&parts);
	sl_report_free(&report);
	sl_summary_end(&parts.commons);
	return status;
}

/* Determines the part and the name of its file.  Returns an exit status, or -1: go on. */
static int settle(struct settings *s, char *const *paths)
{
	bool asked = s->pattern && sl_shard_is_asked(s->pattern);

	if (s->wrong)
		return sl_command_fail(SL_EXIT_USAGE, "--shard: \"%s\" is not a part from 1/N to N/N", s->wrong);
	if (!s->pattern || !sl_summaries_named(s->pattern))
		return sl_command_fail(SL_EXIT_USAGE, "summarize needs -o and a name that ends in " SL_SUMMARY_SUFFIX);
	if (asked && !s->shard.parts && !sl_shard_from_environment(&s->shard))
		return sl_command_fail(SL_EXIT_USAGE, "%s names a part of an unknown number of parts: add --shard I/N",
				       s->shard.by);
	if (!sl_shard_name(&s->shard, s->pattern, s->path, sizeof(s->path)))
		return sl_command_fail(SL_EXIT_USAGE,
				       "in a name, only %%s (the part), %%h (the host) and %%%% (a per cent sign) are known");
	/* An output folder that is also read would contain the outputs of other parts. */
	if (s->shard.parts && sl_paths_make_parents(s->path) && sl_sandbox_is_inside(s->path, paths))
		return sl_command_fail(SL_EXIT_USAGE, "parts do not go where the traces are read from; -o names another folder");
	if (s->shard.by && s->shard.part == 1 && !s->drive.quiet)
		sl_escape_print(stderr, "stormlog-analyze: one of %u parts, says %s\n", s->shard.parts, s->shard.by);
	return -1;
}

static int run(struct sl_arguments *parsed)
{
	struct settings s = {.drive.run = "all"};
	int status = sl_arguments_parse(parsed, take, &s);

	if (status < 0)
		status = settle(&s, parsed->paths);
	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths, .writes = {s.path}, .symbols = parsed->symbols});
	if (status < 0)
		status = summarize(&s, parsed->paths, parsed->path_count);
	return status;
}

const struct sl_command sl_command_summarize = {"summarize",
						"write the replayed run as one small file, to merge and to report",
						"summarize [options] PATH... -o FILE.summary",
						about,
						table,
						run};
