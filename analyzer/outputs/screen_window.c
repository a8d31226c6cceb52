/* SPDX-License-Identifier: MIT */
/* The screen of snapshots of PyTorch's. */

#include "analyzer/base/escape.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/window.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/window_facts.h"

#define SPARK 64
#define NOTES 8

uint64_t sl_screen_window_held(const struct sl_device_state *device)
{
	return device->torch_at_peak.allocated_bytes - device->torch_at_peak.rounding;
}

/* The device on which most was asked for; NULL: nothing was. */
static const struct sl_device_state *fullest(const struct sl_process *process)
{
	const struct sl_device_state *most = NULL;

	for (int d = 1; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->known_peak && (!most || sl_screen_window_held(state) > sl_screen_window_held(most)))
			most = state;
	}
	return most;
}

void sl_screen_window_words(char *out, size_t size, const struct sl_process *process)
{
	const struct sl_header *header = process->model->header;
	const struct sl_device_state *device = fullest(process);
	struct sl_window_facts facts = {0};
	char releases[40], window[160] = "";
	bool npu = *sl_header_setting(header, "snapshot_npu");

	sl_window_facts(header, device ? device->device : 0, &facts);
	if (facts.events < SL_WINDOW_FEW)
		snprintf(window, sizeof(window), "no window: this is the state at its end");
	else if (facts.span_ns)
		snprintf(window, sizeof(window), "window %s, %s events", SL_SPAN(facts.span_ns), SL_NUMBER(facts.events));
	else
		snprintf(window, sizeof(window), "window of %s events", SL_NUMBER(facts.events));
	if (facts.events >= SL_WINDOW_FEW && facts.trimmed)
		strncat(window, "; the events do not lead to the file's final state: figures are of the events alone",
			sizeof(window) - strlen(window) - 1);
	else if (facts.events >= SL_WINDOW_FEW)
		snprintf(window + strlen(window), sizeof(window) - strlen(window),
			 facts.requested ? "; %s were held before it" : "; it begins with an empty allocator",
			 SL_SIZE(facts.requested));
	snprintf(out, size, "a PyTorch snapshot (%s)   device %d   %s",
		 npu ? "of torch_npu, for Ascend" : sl_window_releases(header, releases, sizeof(releases)),
		 device ? device->device : 0, window);
}

void sl_screen_window_title(struct sl_screen_page *page)
{
	const struct sl_header *header = page->report->processes[0].model->header;
	char words[320];

	sl_screen_window_words(words, sizeof(words), &page->report->processes[0]);
	sl_screen_head(page, sl_stacks_program(header), SL_SCREEN_PLAIN);
	sl_screen_say(page, "   %s", words);
	if (*sl_header_setting(header, "snapshot_unknown"))
		sl_screen_say(page, "  passed over, as unknown here: %s", sl_header_setting(header, "snapshot_unknown"));
	if (page->report->images.run_count > 1 && !sl_images_is_all(page->report->options.run))
		sl_screen_say(page,
			      page->report->path_count > 1
				      ? "  the newest of %u runs here: --run all shows all"
				      : "  the newest of %u runs here: name its file for another one, or --run all",
			      page->report->images.run_count);
}

bool sl_screen_is_windows(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (!report->processes[i].model->snapshot)
			return false;
	return report->process_count > 0;
}

/* " at part1.py:109 work1"; "" where no line is known. */
static const char *at_line(char *out, size_t size, struct sl_process *process, struct sl_stack stack)
{
	char line[256];

	sl_owners_line(process, stack, 1, line, sizeof(line));
	snprintf(out, size, "%s%s", *line ? " at " : "", line);
	return out;
}

/* The finding of analyses/retried.c; NULL: none. */
static const struct sl_finding *finding_of(const struct sl_screen_page *page, const struct sl_process *process, int device)
{
	const struct sl_report *report = page->report;

	for (size_t i = 0; i < report->findings.count; i++) {
		const struct sl_finding *finding = &report->findings.item[i];

		if (!strcmp(finding->id, "memory.retried") && finding->process == (int)(process - report->processes) &&
		    finding->device == device)
			return finding;
	}
	return NULL;
}

/* A request found no memory, and got it once the cache was given back.  Where one failed for good, OUT OF MEMORY is told. */
static void put_retry(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_window_cache cache;
	const struct sl_finding *finding = finding_of(page, process, device->device);
	char when[80] = "", times[60] = "";

	if (!finding || !sl_window_cache(process->model->header, device->device, &cache))
		return;
	if (cache.retried > 1)
		snprintf(times, sizeof(times), "   %s times; most", SL_NUMBER(cache.retried));
	if (cache.retry_ns)
		snprintf(when, sizeof(when), "%s at %s of the window", *times ? "" : "  ", SL_SPAN(cache.retry_ns));
	sl_screen_head(page, "NEARLY OUT OF MEMORY", SL_SCREEN_WARNING);
	sl_screen_say(page, "%s%s", times, when);
	sl_screen_say(page, "  %s", finding->text);
	fputc('\n', page->out);
}

/* What was reserved where it was most at another moment, and what empty_cache() gave back. */
static void put_cache(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_window_cache cache;
	char line[300], when[80] = "";

	if (!sl_window_cache(process->model->header, device->device, &cache))
		return;
	if (strcmp(SL_SIZE(cache.peak), SL_SIZE(device->torch_at_peak.reserved_bytes)) != 0) {
		if (cache.peak_ns)
			snprintf(when, sizeof(when), " at %s of the window", SL_SPAN(cache.peak_ns));
		sl_screen_say(page, "  reserved was most%s: %s, with %s in tensors", when, SL_SIZE(cache.peak),
			      SL_SIZE(cache.peak_tensors));
	}
	if (cache.emptied)
		sl_screen_say(page, "  empty_cache() gave back %s in %s%s%s", SL_SIZE(cache.emptied_bytes),
			      cache.emptied > 1 ? SL_NUMBER(cache.emptied) : "one call", cache.emptied > 1 ? " calls, most" : "",
			      at_line(line, sizeof(line), process, cache.emptied_stack));
}

/* True: the file has no stack of most of what was held. */
static bool put_peak(struct sl_screen_page *page, struct sl_process *process)
{
	const struct sl_device_state *device = fullest(process);
	struct sl_window_facts facts = {0};
	char spark[SPARK] = "", who[80] = "", others[120] = "", when[40] = "";
	unsigned devices = 0;
	bool window, no_stacks;

	if (!device)
		return false;
	sl_window_facts(process->model->header, device->device, &facts);
	window = facts.events >= SL_WINDOW_FEW;
	for (int d = 1; d <= SL_DEVICES_MAX; d++)
		devices += process->model->devices[d] && process->model->devices[d]->known_peak;
	if (window && device->torch.allocated && device->torch.allocated->begun)
		sl_screen_spark(spark, sizeof(spark), page, device->torch.allocated);
	if (window)
		put_retry(page, process, device);
	if (page->report->process_count > 1)
		snprintf(who, sizeof(who), "%s, device %d   ", sl_stacks_program(process->model->header), device->device);
	if (devices > 1)
		snprintf(others, sizeof(others), "   %u other devices held less", devices - 1);
	sl_screen_head(page, window ? "PEAK" : "HELD", SL_SCREEN_PLAIN);
	if (window && facts.span_ns)
		snprintf(when, sizeof(when), ", at %s",
			 SL_SPAN(sl_process_unix(process, device->known_peak_ns) - process->started_unix_ns));
	sl_screen_say(page, "     %s%s in tensors, %s reserved%s%s%s%s", who, SL_SIZE(sl_screen_window_held(device)),
		      SL_SIZE(device->torch_at_peak.reserved_bytes), when, *spark ? "   " : "", spark, others);
	no_stacks = sl_screen_window_rows(page, process, device, window, facts.requested);
	if (window)
		put_cache(page, process, device);
	if (!window && facts.waiting >= sl_screen_window_held(device) / SL_SCREEN_LEAST_PART)
		sl_screen_say(page, "      %s of it was freed, and waits for other streams (record_stream)",
			      SL_SIZE(facts.waiting));
	if (!window && facts.free_pieces)
		sl_screen_say(page, "      free at the end: %s pieces, the largest %s", SL_NUMBER(facts.free_pieces),
			      SL_SIZE(facts.free_largest));
	page->said = true;
	return no_stacks;
}

#define FIT_REQUESTS   300000u	/* a window with more is left to the verb fit */
#define FIT_OPERATIONS 1000000u /* of one search */

static void put_fit_of(struct sl_screen_page *page, const struct sl_fit_recording *recording)
{
	struct sl_fit_question question = {.settings = {NULL, "expandable_segments:True"},
					   .setting_count = recording->settings.expandable ? 1 : 2,
					   .of_allocator = true,
					   .scan_max = FIT_OPERATIONS,
					   .ties = SL_FIT_GIVEN};
	struct sl_fit_subject subject;
	char why[120], set[SL_FORMAT_SPAN_BYTES], to[SL_FORMAT_SPAN_BYTES];
	const char *other = "";
	bool least;

	sl_fit_ask(&subject, recording, &question);
	sl_screen_head(page, "FIT", SL_SCREEN_PLAIN);
	if (!subject.answers || subject.answers[0].high == SL_UNKNOWN) {
		sl_screen_say(page, "      no verdict: %s",
			      subject.answers ? SL_FIT_SPENT : sl_fit_why(&subject, why, sizeof(why)));
	} else {
		if (question.setting_count > 1 && subject.answers[1].high != SL_UNKNOWN)
			other = sl_fit_span(&subject.answers[1], to);
		least = (recording->reserved_start || recording->ooms) &&
			!strcmp(SL_SIZE(subject.answers[0].low), SL_SIZE(subject.answers[0].high));
		sl_screen_say(page, "      PyTorch's allocator needs %s%s as set%s%s%s%s (replay exact)", least ? "at least " : "",
			      sl_fit_span(&subject.answers[0], set), *other ? ", " : "", other,
			      *other ? " with expandable_segments:True" : "",
			      recording->ooms		  ? " to get past the request that was refused"
			      : recording->reserved_start ? " for this window"
							  : "");
	}
	sl_fit_subject_free(&subject);
}

/* The smallest capacities for the device that held most. */
static void put_fit(struct sl_screen_page *page, struct sl_process *process)
{
	const struct sl_device_state *device = fullest(process);
	struct sl_window_facts facts;
	struct sl_fit_process fit;

	if (!device || !sl_window_facts(process->model->header, device->device, &facts) || facts.events < SL_WINDOW_FEW)
		return;
	sl_fit_record(&fit, process->trace, process->session_id, true);
	for (unsigned i = 0; i < fit.count; i++)
		if (fit.recordings[i].device == device->device && fit.recordings[i].requests <= FIT_REQUESTS) {
			put_fit_of(page, &fit.recordings[i]);
		} else if (fit.recordings[i].device == device->device) {
			sl_screen_head(page, "FIT", SL_SCREEN_PLAIN);
			sl_screen_say(page, "      %s requests take a while: stormlog-analyze fit %s",
				      SL_NUMBER(fit.recordings[i].requests), page->report->paths[0]);
		}
	sl_fit_forget(&fit);
}

bool sl_screen_windows(struct sl_screen_page *page)
{
	struct sl_report *report = page->report;
	bool stacks = false;

	if (!sl_screen_is_windows(report))
		return false;
	for (unsigned i = 0; i < report->process_count; i++) {
		if (i)
			fputc('\n', page->out);
		stacks |= !put_peak(page, &report->processes[i]);
	}
	if (report->process_count == 1)
		put_fit(page, &report->processes[0]);
	if (!page->said && !page->leaks_shown)
		sl_screen_say(page, "  PyTorch's allocator held nothing: CUDA was not used, or all had been freed and given back");
	sl_screen_growth(page);
	for (size_t i = 0; i < report->damage_lines && i < NOTES; i++)
		sl_screen_say(page, "note: %s", report->warnings.item[i]);
	fputc('\n', page->out);
	if (page->style->saved)
		sl_escape_print(page->out, "report: %s/report.html\n", page->style->saved);
	if (page->said && stacks)
		sl_screen_go_on(page, NULL);
	else if (page->said)
		sl_screen_say(
			page,
			"next: torch.cuda.memory._record_memory_history() before the model is made: the file then has stacks");
	sl_screen_say(page, "stormlog-run -- python ... also sees contexts, NCCL, code, other processes");
	return true;
}
