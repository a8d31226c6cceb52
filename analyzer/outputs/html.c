/* SPDX-License-Identifier: MIT */
/* report.html: one file that opens without a network.  Its data is reduced until the page fits its size. */

#include <zlib.h>

#include "analyzer/outputs/html/template.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/upstream/upstream.h"

/* Reduced step by step to a budget that always fits; the first that fits is used.  Only a diff can be without any limit. */
static const struct sl_page_budget budgets[] = {
	{.samples = UINT_MAX, .cards = UINT_MAX},
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

#define DATA "<script id=\"data\" type=\"text/plain\">"

static bool fits(const struct sl_page_matter *of, uint64_t max_bytes, size_t zipped)
{
	return sl_html_before_size + sl_html_after_size + (of->text ? strlen(of->text) : 0) + sizeof(DATA "</script>\n") +
		       zipped / 3 * 4 + 4 <=
	       max_bytes;
}

/* Writes the compressed data of a page. */
typedef bool put_how(FILE *out, const struct sl_page_matter *of, const unsigned char *zipped, size_t size);

/* gzips the data into a buffer of the caller's (free); its size in *size. */
static unsigned char *pack_page(struct sl_page *page, size_t *size)
{
	size_t length;
	const char *packed = sl_json_text(page->j, &length);
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)packed, .avail_in = (uInt)length};
	unsigned char *out;

	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	*size = deflateBound(&z, length);
	out = sl_memory_must(malloc(*size));
	z.next_out = out;
	z.avail_out = (uInt)*size;
	deflate(&z, Z_FINISH);
	*size = z.total_out;
	deflateEnd(&z);
	return out;
}

/* As base64 without line breaks; 0 on success. */
static int write_base64(const unsigned char *data, size_t size, FILE *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) |
				 (i + 2 < size ? data[i + 2] : 0);
		char four[4] = {letters[three >> 18], letters[three >> 12 & 63], i + 1 < size ? letters[three >> 6 & 63] : '=',
				i + 2 < size ? letters[three & 63] : '='};

		if (fwrite(four, 4, 1, out) != 1)
			return -1;
	}
	return 0;
}

static bool put_page(FILE *out, const struct sl_page_matter *of, const unsigned char *zipped, size_t size)
{
	fputs(sl_html_before, out);
	fprintf(out, "%s" DATA, of->text ?: "");
	write_base64(zipped, size, out);
	fprintf(out, "</script>%s", sl_html_after);
	return !ferror(out);
}

/* The lines' size before compression, estimated to skip budgets that are far too large.  A diff has no lines. */
static double estimate(const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	unsigned count = of->report ? of->report->process_count : of->ranks;
	double bytes = (double)count * budget->heat;

	for (unsigned i = 0; i < count; i++) {
		unsigned lines =
			of->report ? of->report->processes[i].model->timeline.line_count : of->devices[i] * SL_PAGE_TELEMETRY_LINES;
		unsigned least = of->report ? lines > 0 : of->devices[i];

		bytes += (double)(i < budget->detailed ? lines : least) * budget->bins * 25;
	}
	return bytes;
}

/* The compressed data of a page, reduced until it fits; the caller frees it. */
static unsigned char *zip(const struct sl_page_matter *of, uint64_t max_bytes, size_t *size)
{
	unsigned char *zipped = NULL;

	for (unsigned i = of->stacks ? 0 : 1; i < SL_COUNT(budgets) && (!zipped || !fits(of, max_bytes, *size)); i++) {
		struct sl_page page;

		if (i + 1 < SL_COUNT(budgets) && estimate(of, &budgets[i]) > (double)max_bytes * 24)
			continue;
		free(zipped);
		of->build(&page, of, &budgets[i]);
		zipped = pack_page(&page, size);
		sl_page_free(&page);
	}
	return zipped;
}

static bool put(const struct sl_page_matter *of, uint64_t max_bytes, put_how *how, FILE *out)
{
	size_t size = 0;
	unsigned char *zipped = zip(of, max_bytes, &size);
	bool fine = how(out, of, zipped, size);

	free(zipped);
	return fine;
}

static bool put_data(FILE *out, const struct sl_page_matter *of, const unsigned char *zipped, size_t size)
{
	return fwrite(zipped, 1, size, out) == size;
}

static bool put_report(struct sl_report *report, const char *text, put_how *how, FILE *out)
{
	struct sl_telemetry *telemetry = sl_sessions_telemetry(report);
	struct sl_page_fits *asked = sl_page_fits_new(report);
	struct sl_page_matter of = {sl_page_build, .report = report, .text = text, .telemetry = telemetry, .fits = asked};
	bool fine = put(&of, sl_html_most(report->html_max_bytes), how, out);

	sl_page_fits_free(asked);
	return fine;
}

/* The summary of the terminal as HTML; free it. */
static char *text_of(struct sl_report *report)
{
	const struct sl_face_style style = {.columns = 120};
	char *text = NULL, *html = NULL;
	size_t size = 0;
	FILE *words = sl_memory_must(open_memstream(&text, &size)), *out = sl_memory_must(open_memstream(&html, &size));

	sl_screen_report(report, words, &style);
	sl_memory_must(fclose(words) ? NULL : text);
	fputs("<pre class=\"undrawn\">", out);
	for (const char *at = text; *at; at++)
		if (*at == '<' || *at == '&')
			fputs(*at == '<' ? "&lt;" : "&amp;", out);
		else
			fputc(*at, out);
	fputs("</pre>\n", out);
	sl_memory_must(fclose(out) ? NULL : html);
	free(text);
	return html;
}

static bool write_html(struct sl_report *report, FILE *out)
{
	char *text = text_of(report);
	bool fine = put_report(report, text, put_page, out);

	free(text);
	return fine;
}

bool sl_html_data(struct sl_report *report, FILE *out)
{
	return put_report(report, NULL, put_data, out);
}

bool sl_html_lines(struct sl_report *report, FILE *out)
{
	struct sl_page_matter of = {sl_page_build_lines, .report = report};

	return put(&of, sl_html_most(report->html_max_bytes), put_data, out);
}

bool sl_html_telemetry(const struct sl_telemetry *telemetry, const char *path, uint64_t max_bytes, FILE *out)
{
	struct sl_page_matter of = {sl_page_build_telemetry, .telemetry = telemetry, .path = path};
	unsigned *devices = sl_page_telemetry_devices(telemetry, &of.ranks);
	bool fine;

	of.devices = devices;
	fine = put(&of, sl_html_most(max_bytes), put_page, out);
	free(devices);
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

bool sl_html_changes_write(struct sl_html_changes *changes, const struct sl_differences *differences,
			   const struct sl_because *because, char *const *paths, const unsigned *counts, uint64_t max_bytes,
			   FILE *out)
{
	struct sl_page_matter of = {
		sl_page_build_changes, .stacks = &changes->stacks, .differences = differences, .because = because, .paths = paths,
		.counts = counts};

	return put(&of, sl_html_most(max_bytes), put_page, out);
}

bool sl_html_changes_data(struct sl_html_changes *changes, const struct sl_differences *differences, char *const *paths,
			  const unsigned *counts, FILE *out)
{
	struct sl_page_matter of = {sl_page_build_changes, .stacks = &changes->stacks, .differences = differences, .paths = paths,
				    .counts = counts};

	return put(&of, sl_html_most(0), put_data, out);
}

void sl_html_changes_free(struct sl_html_changes *changes)
{
	if (changes)
		sl_page_changes_free(&changes->stacks);
	free(changes);
}

const struct sl_output sl_output_html = {.name = "report.html", .file = write_html};
