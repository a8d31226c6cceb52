/* SPDX-License-Identifier: MIT */
/* report.html: one file that opens without a network.  Its data is reduced until the page fits its size. */
#include <limits.h>
#include <stdlib.h>

#include "analyzer/outputs/html/template.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/upstream/sessions.h"

/* Reduced step by step, from everything to a budget that always fits; the first that fits is used. */
static const struct sl_page_budget budgets[] = {
	{.bins = 2048,
	 .samples = 2000,
	 .moments = 64,
	 .detailed = 4096,
	 .heat = 512,
	 .blocks = 20000,
	 .cards = 2000,
	 .stays = 60000},
	{.bins = 1024,
	 .samples = 1000,
	 .moments = 32,
	 .detailed = 1024,
	 .heat = 512,
	 .blocks = 10000,
	 .cards = 1000,
	 .stays = 30000},
	{.bins = 512, .samples = 500, .moments = 32, .detailed = 256, .heat = 256, .blocks = 5000, .cards = 500, .stays = 15000},
	{.bins = 256, .samples = 250, .moments = 16, .detailed = 128, .heat = 256, .blocks = 2500, .cards = 250, .stays = 6000},
	{.bins = 128, .samples = 120, .moments = 8, .detailed = 64, .heat = 256, .blocks = 1200, .cards = 250, .stays = 3000},
	{.bins = 64, .samples = 60, .moments = 4, .detailed = 32, .heat = 128, .blocks = 600, .cards = 100, .stays = 1000},
	{.bins = 32, .samples = 30, .moments = 2, .detailed = 16, .heat = 64, .blocks = 300, .cards = 50, .stays = 200},
};

#define BUDGETS (sizeof(budgets) / sizeof(budgets[0]))

/* Estimates the lines' size before compression; a budget that is far too large is not tried. */
static double estimate(const struct sl_report *report, const struct sl_page_budget *budget)
{
	double bytes = (double)report->process_count * budget->heat;

	for (unsigned i = 0; i < report->process_count; i++) {
		unsigned lines = report->processes[i].model->timeline.line_count;

		bytes += (double)(i < budget->detailed ? lines : lines ? 1 : 0) * budget->bins * 25;
	}
	return bytes;
}

static bool fits(uint64_t most, size_t zipped)
{
	return sl_html_before_size + sl_html_after_size + zipped / 3 * 4 + 4 <= most;
}

static bool put_page(FILE *out, const unsigned char *zipped, size_t size)
{
	return fwrite(sl_html_before, 1, sl_html_before_size, out) == sl_html_before_size && !sl_packed_base64(zipped, size, out) &&
	       fwrite(sl_html_after, 1, sl_html_after_size, out) == sl_html_after_size;
}

static bool write_html(struct sl_report *report, FILE *out)
{
	uint64_t most = sl_html_most(report->html_max_bytes);
	struct sl_arena arena = {0};
	struct sl_telemetry *telemetry = sl_sessions_telemetry(report, &arena);
	struct sl_page_fits *asked = sl_page_fits_new(report);
	unsigned char *zipped = NULL;
	size_t size = 0;
	bool fine;

	for (unsigned i = 0; i < BUDGETS && (!zipped || !fits(most, size)); i++) {
		struct sl_page page;

		if (i + 1 < BUDGETS && estimate(report, &budgets[i]) > (double)most * 24)
			continue;
		free(zipped);
		sl_page_build(&page, report, telemetry, asked, &budgets[i]);
		zipped = sl_packed_gzip(&page.pack, &size);
		sl_page_free(&page);
	}
	sl_page_fits_free(asked);
	sl_telemetry_free(telemetry);
	sl_arena_free(&arena);
	fine = put_page(out, zipped, size);
	free(zipped);
	return fine;
}

bool sl_html_telemetry(const struct sl_telemetry *telemetry, const char *path, const struct sl_emit_options *emit,
		       uint64_t max_bytes, FILE *out)
{
	uint64_t most = sl_html_most(max_bytes);
	unsigned char *zipped = NULL;
	size_t size = 0;
	bool fine;

	for (unsigned i = 0; i < BUDGETS && (!zipped || !fits(most, size)); i++) {
		struct sl_page page;

		free(zipped);
		sl_page_build_telemetry(&page, telemetry, path, emit, &budgets[i]);
		zipped = sl_packed_gzip(&page.pack, &size);
		sl_page_free(&page);
	}
	fine = put_page(out, zipped, size);
	free(zipped);
	return fine;
}

struct sl_html_changes {
	struct sl_page_changes stacks;
};

struct sl_html_changes *sl_html_changes_new(void)
{
	struct sl_html_changes *changes = sl_memory_must(malloc(sizeof(*changes)));

	sl_page_changes_begin(&changes->stacks);
	return changes;
}

void sl_html_changes_add(struct sl_html_changes *changes, struct sl_process *process, bool after, double share)
{
	sl_page_changes_add(&changes->stacks, process, after, share);
}

bool sl_html_changes_write(struct sl_html_changes *changes, const struct sl_differences *differences, char *const *paths,
			   const unsigned *counts, uint64_t max_bytes, FILE *out)
{
	static const struct sl_page_budget whole = {.samples = UINT_MAX, .cards = UINT_MAX};
	uint64_t most = sl_html_most(max_bytes);
	unsigned char *zipped = NULL;
	size_t size = 0;
	bool fine;

	for (unsigned i = 0; i <= BUDGETS && (!zipped || !fits(most, size)); i++) {
		struct sl_page page;

		free(zipped);
		sl_page_changes_build(&page, &changes->stacks, differences, paths, counts, i ? &budgets[i - 1] : &whole);
		zipped = sl_packed_gzip(&page.pack, &size);
		sl_page_free(&page);
	}
	fine = put_page(out, zipped, size);
	free(zipped);
	return fine;
}

void sl_html_changes_free(struct sl_html_changes *changes)
{
	if (changes)
		sl_page_changes_free(&changes->stacks);
	free(changes);
}

const struct sl_output sl_output_html = {.name = "report.html", .file = write_html};
