/* SPDX-License-Identifier: MIT */
#include "analyzer/report/dry.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/answer/make.h"
#include "analyzer/outputs/output.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/window_facts.h"

static int by_oddness(const void *a, const void *b, void *oddness)
{
	unsigned i = *(const unsigned *)a, k = *(const unsigned *)b;
	const uint64_t *odd = oddness;

	return SL_FALLING(odd[i], odd[k]) ?: SL_RISING(i, k);
}

/* Which processes keep their detail: out of memory first, then killed, then by distance from the median peak. */
static void order_processes(struct sl_page *page)
{
	unsigned count = page->report->process_count;
	uint64_t *peaks = sl_memory_must(calloc(count + 1, sizeof(*peaks))), *odd = sl_memory_must(calloc(count + 1, sizeof(*odd))),
		 median;

	for (unsigned i = 0; i < count; i++)
		peaks[i] = sl_devices_peak(&page->report->processes[i]);
	qsort(peaks, count, sizeof(*peaks), sl_stats_by_number);
	median = peaks[count / 2];
	for (unsigned i = 0; i < count; i++) {
		const struct sl_process *p = &page->report->processes[i];
		uint64_t peak = sl_devices_peak(p);

		page->order[i] = i;
		odd[i] = (peak > median ? peak - median : median - peak) >> 8;
		odd[i] |= p->model->ooms.count ? 1ull << 63 : p->trace->status == SL_STATUS_INTERRUPTED ? 1ull << 62 : 0;
	}
	qsort_r(page->order, count, sizeof(*page->order), by_oddness, odd);
	free(peaks);
	free(odd);
}

static int process_of(const struct sl_page *page, int64_t rank, int64_t pid)
{
	for (unsigned i = 0; i < page->process_count; i++) {
		const struct sl_header *header = &page->report->processes[i].trace->header;

		if ((header->rank < 0 ? 0 : header->rank) == rank && (pid < 0 || header->pid == pid))
			return (int)i;
	}
	return -1;
}

/* What pools keep unused: the words that fit every process. */
static const char *rest_name(const struct sl_report *report)
{
	struct sl_torch all = {0};

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t d = 1; d < SL_COUNT(report->processes[i].model->devices); d++) {
			const struct sl_device_state *device = report->processes[i].model->devices[d];

			all.pooled |= device && device->torch.pooled;
			all.told |= device && device->torch.told;
		}
	return sl_model_rest_name(&all);
}

/* The head of a page of snapshots, which tell neither host nor exit; nil for others. */
static void put_window(struct sl_page *page)
{
	struct sl_answers *answers = sl_answer_is_windows(page->report) ? sl_answer_title(page->report) : NULL;

	sl_page_put_text(page, "window", answers ? answers->title : NULL);
	sl_answers_free(answers);
}

static void begin(struct sl_page *page, struct sl_report *report, const struct sl_page_budget *budget, uint32_t keys)
{
	const struct sl_header *first = report->process_count ? &report->processes[0].trace->header : NULL;

	sl_page_begin(page, report->process_count, budget);
	page->report = report;
	page->emit = report->options.emit;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];

		page->timelines[i] = (struct sl_page_timeline){&p->model->timeline, (int64_t)(sl_process_unix(p, 1) - 1)};
	}
	page->t0_unix_ns = report->started_unix_ns;
	page->t1_unix_ns = report->ended_unix_ns;
	page->timeless = first && sl_header_is_snapshot(first) && !sl_window_is_timed(first);
	order_processes(page);
	sl_page_open(page, keys, "trace", first ? sl_stacks_program(first) : report->path, first ? first->run_id : NULL,
		     first ? first->tag : NULL, sl_dry_report(report));
}

void sl_page_build_lines(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	begin(page, of->report, budget, 15);
	sl_page_lines(page);
	sl_page_close(page);
}

void sl_page_build(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	struct sl_report *report = of->report;

	begin(page, report, budget, SL_PAGE_KEYS + 12);
	sl_page_put_text(page, "rest", rest_name(report));
	put_window(page);
	sl_page_processes(page);
	sl_page_tables(page);
	sl_page_lines(page);
	sl_page_heat(page);
	sl_page_moments(page);
	sl_page_places(page);
	sl_page_marks(page);
	sl_page_segments(page);
	sl_page_fit(page, of->fits);
	sl_page_changes(page);
	sl_page_reads(page);
	sl_page_tensors(page);
	sl_page_answer(page, of->text);
	if (of->telemetry && of->telemetry->selected)
		sl_page_session_findings(page, of->telemetry->selected, process_of);
	sl_page_put_findings(page);
	sl_report_warn_of_symbols(report);
	sl_page_put_array(page, "warnings", (uint32_t)report->warnings.count);
	for (size_t i = 0; i < report->warnings.count; i++)
		sl_page_put_warning(page, report->warnings.item[i]);
	sl_page_close(page);
}
