/* SPDX-License-Identifier: MIT */
/* report.html: one file that opens without a network.  Its data is made smaller until the page fits. */
#include <stdlib.h>

#include "analyzer/outputs/html/template.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/page/page.h"

/* From all there is to what always fits; the first that the page is small enough with. */
static const struct sl_page_budget budgets[] = {
	{.bins = 2048, .samples = 2000, .moments = 64, .detailed = 4096, .heat = 512, .blocks = 20000, .cards = 2000},
	{.bins = 1024, .samples = 1000, .moments = 32, .detailed = 1024, .heat = 512, .blocks = 10000, .cards = 1000},
	{.bins = 512, .samples = 500, .moments = 32, .detailed = 256, .heat = 256, .blocks = 5000, .cards = 500},
	{.bins = 256, .samples = 250, .moments = 16, .detailed = 128, .heat = 256, .blocks = 2500, .cards = 250},
	{.bins = 128, .samples = 120, .moments = 8, .detailed = 64, .heat = 256, .blocks = 1200, .cards = 250},
	{.bins = 64, .samples = 60, .moments = 4, .detailed = 32, .heat = 128, .blocks = 600, .cards = 100},
	{.bins = 32, .samples = 30, .moments = 2, .detailed = 16, .heat = 64, .blocks = 300, .cards = 50},
};

#define HTML_MAX_BYTES (8u << 20)
#define BUDGETS (sizeof(budgets) / sizeof(budgets[0]))

/* What the lines alone come to before they are compressed: not worth trying when it is far beyond. */
static double estimate(const struct sl_report *report, const struct sl_page_budget *budget)
{
	double bytes = (double)report->process_count * budget->heat;

	for (unsigned i = 0; i < report->process_count; i++) {
		unsigned lines = report->processes[i].model->timeline.line_count;

		bytes += (double)(i < budget->detailed ? lines : lines ? 1 : 0) * budget->bins * 25;
	}
	return bytes;
}

static bool write_html(struct sl_report *report, FILE *out)
{
	uint64_t most = report->html_max_bytes ? report->html_max_bytes : HTML_MAX_BYTES;
	size_t frame = sl_html_before_size + sl_html_after_size, size = 0;
	unsigned char *zipped = NULL;
	bool fine;

	for (unsigned i = 0; i < BUDGETS; i++) {
		struct sl_page page;

		if (i + 1 < BUDGETS && estimate(report, &budgets[i]) > (double)most * 24)
			continue;
		free(zipped);
		sl_page_build(&page, report, &budgets[i]);
		zipped = sl_pack_gzip(&page.pack, &size);
		sl_page_free(&page);
		if (frame + size / 3 * 4 + 4 <= most)
			break;
	}
	fine = fwrite(sl_html_before, 1, sl_html_before_size, out) == sl_html_before_size &&
	       !sl_pack_base64(zipped, size, out) && fwrite(sl_html_after, 1, sl_html_after_size, out) == sl_html_after_size;
	free(zipped);
	return fine;
}

const struct sl_output sl_output_html = {.name = "report.html", .file = write_html};
