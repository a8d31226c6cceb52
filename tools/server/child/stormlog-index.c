/* SPDX-License-Identifier: MIT */
/*
 * stormlog-index OUT PACK makes what the server keeps of a pack or log: OUT/page, report.json and card.json.  It may come from a
 * stranger.  stormlog-index OUT PACK FROM TO makes OUT/page with only the lines over time from FROM to TO (ns since the run
 * began), in finer bins.  stormlog-index OUT BEFORE AFTER NAME NAME makes OUT/page of a comparison.  The server runs it in a
 * folder that it removes afterwards, so a failure here does no harm elsewhere.
 */
#include <errno.h>
#include <sys/stat.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/library.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/sandbox.h"
#include "analyzer/catalogue/catalogue.h"
#include "analyzer/outputs/output.h"
#include "analyzer/pipeline/pipeline.h"
#include "tools/server/child/cage.h"
#include "tools/server/child/child.h"

static FILE *make(const char *folder, const char *name)
{
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	out = fopen(path, "wxe");
	if (!out) {
		sl_escape_print(stderr, "%s: %s\n", path, strerror(errno));
		exit(SL_CHILD_FAILED);
	}
	return out;
}

/* Packs are unpacked before the cage closes; this uses zstd and file names but parses no trace. */
static void enter(const char *folder, char *const *packs)
{
	const char *const writes[] = {folder, NULL};

	if (!sl_cage_limits())
		exit(SL_CHILD_FAILED);
	sl_library_refuse(); /* this host's libraries are not the run's, and the uploader must not learn about them */
	sl_sandbox((const char *const *)packs, writes, 0);
	sl_archive_go_on();
	for (; *packs; packs++)
		if (sl_log_kind_of_file(*packs) != SL_LOG_IS_TEXT && !sl_archive_open(*packs)) {
			if (sl_archive_unsaved()) /* EFBIG is the cage's limit, which will be there the next time too */
				exit(sl_archive_unsaved() == EFBIG ? SL_CHILD_FAILED : SL_CHILD_FULL);
			fputs("this is no pack that can be unpacked\n", stderr);
			exit(SL_CHILD_UNREADABLE);
		}
	if (sl_cage_close())
		return;
	sl_escape_print(stderr, "seccomp: %s\n", strerror(errno));
	exit(SL_CHILD_FAILED);
}

static bool finish(FILE *out, bool fine)
{
	struct stat st;

	fine = !fflush(out) && !ferror(out) && fine;
	if (!fine && !fstat(fileno(out), &st) && (unsigned long long)st.st_size >= SL_CAGE_FILE_MAX)
		fputs("the page or report of this pack is longer than the 64 MiB that the server keeps\n", stderr);
	return !fclose(out) && fine;
}

static bool write_card(struct sl_report *report, const struct sl_log *log, FILE *out)
{
	struct sl_json *json = sl_json_new(out, SL_JSON_COMPACT);
	struct sl_card card;

	sl_card_init(&card);
	if (log)
		sl_card_take_log(&card, log, NULL, -1);
	else
		sl_card_take(&card, report, NULL);
	card.identity = "pack"; /* the server replaces it */
	sl_card_write(json, NULL, &card, true);
	sl_card_free(&card);
	return sl_json_close(json);
}

static int index_pack(const char *folder, char *pack)
{
	FILE *page = make(folder, "page"), *json = make(folder, "report.json"), *out = make(folder, "card.json");
	char *packs[] = {pack, NULL};
	struct sl_report report = {0};
	struct sl_pipeline_options options = {.threads = 1};
	struct sl_log *log;
	struct stat st;
	bool fine;

	enter(folder, packs);
	log = sl_card_read_log(pack, &st);
	if (log) {
		report.answers = sl_answer_log(log, "log"); /* a report without processes: its page is the answer */
		report.symbols = sl_symbols_new();
	} else if (sl_pipeline_run(&report, packs, 1, &options) != SL_PIPELINE_FINE) {
		fputs("no trace of this pack can be read\n", stderr);
		return SL_CHILD_UNREADABLE;
	}
	fine = finish(page, sl_html_data(&report, page));
	fine = finish(json, sl_json_report(&report, json)) && fine;
	fine = finish(out, write_card(&report, log, out)) && fine;
	return fine ? SL_CHILD_FINE : SL_CHILD_FAILED;
}

static uint64_t clock_of(const struct sl_process *process, uint64_t unix_ns)
{
	uint64_t booted = sl_process_unix(process, 1) - 1;

	return unix_ns > booted ? unix_ns - booted : 0;
}

/* The first replay tells when each process ran, the second draws the part of it. */
static int look_closer(const char *folder, char *pack, uint64_t from_ns, uint64_t to_ns)
{
	FILE *page = make(folder, "page");
	char *packs[] = {pack, NULL};
	struct sl_report whole = {0}, part = {0};
	struct sl_pipeline_options options = {.threads = 1}, closer = {.threads = 1};
	struct sl_window *windows;
	unsigned count;

	enter(folder, packs);
	if (sl_pipeline_run(&whole, packs, 1, &options) != SL_PIPELINE_FINE) {
		fputs("no trace of this pack can be read\n", stderr);
		return SL_CHILD_UNREADABLE;
	}
	closer.windows = windows = sl_memory_must(calloc(whole.images.image_count + 1, sizeof(*windows)));
	for (unsigned i = 0; i < whole.process_count; i++)
		windows[whole.processes[i].image] =
			(struct sl_window){clock_of(&whole.processes[i], whole.started_unix_ns + from_ns),
					   clock_of(&whole.processes[i], whole.started_unix_ns + to_ns)};
	count = whole.process_count;
	sl_report_free(&whole);
	if (sl_pipeline_run(&part, packs, 1, &closer) != SL_PIPELINE_FINE || part.process_count != count)
		return SL_CHILD_FAILED;
	return finish(page, sl_html_lines(&part, page)) ? SL_CHILD_FINE : SL_CHILD_FAILED;
}

static bool take_side(struct sl_side *side, struct sl_html_changes *page, char *pack, bool after)
{
	struct sl_pipeline_options options = {.threads = 1};
	struct sl_report report = {0};
	bool fine = sl_pipeline_run(&report, &pack, 1, &options) == SL_PIPELINE_FINE;

	if (fine) {
		SL_ROOM(&side->runs);
		sl_measures_take(&side->runs.item[side->runs.count++], &report);
		for (unsigned i = 0; i < report.process_count; i++)
			sl_html_changes_add(page, &report.processes[i], after, 1.0);
	}
	sl_report_free(&report);
	return fine;
}

/* names: how the page calls the two runs */
static int compare(const char *folder, char **packs, char *const *names)
{
	static const unsigned counts[] = {1, 1};
	FILE *out = make(folder, "page");
	struct sl_html_changes *page;
	struct sl_side sides[2] = {0};
	struct sl_differences differences;
	bool fine;

	enter(folder, packs);
	page = sl_html_changes_new();
	for (unsigned i = 0; i < 2; i++)
		if (!take_side(&sides[i], page, packs[i], i)) {
			fputs("one of these packs holds no readable trace\n", stderr);
			return SL_CHILD_UNREADABLE;
		}
	sl_diff(&differences, &sides[0], &sides[1]);
	fine = sl_html_changes_data(page, &differences, names, counts, out);
	sl_differences_free(&differences);
	return finish(out, fine) ? SL_CHILD_FINE : SL_CHILD_FAILED;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return index_pack(argv[1], argv[2]);
	if (argc == 5)
		return look_closer(argv[1], argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	if (argc == 6) {
		char *packs[] = {argv[2], argv[3], NULL};

		return compare(argv[1], packs, argv + 4);
	}
	fputs("usage: stormlog-index OUT PACK [FROM TO] | OUT BEFORE AFTER NAME NAME\n", stderr);
	return SL_CHILD_FAILED;
}
