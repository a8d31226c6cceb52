/* SPDX-License-Identifier: MIT */
/*
 * The summary on the terminal: numbers first, with the line of code beside each and what to do next, and nothing that the trace
 * does not prove. An uneventful run gives three lines.
 */

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/place.h"

#define CALLS_SHOWN    3
#define FINDINGS_SHOWN 6
#define RUNS_MAX       8 /* other runs that are told */

static void put_in_flight(struct sl_screen_page *page)
{
	for (unsigned i = 0; i < page->report->process_count; i++) {
		const struct sl_process *process = &page->report->processes[i];

		for (size_t k = 0; k < process->model->in_flight.count && k < CALLS_SHOWN; k++) {
			const struct sl_in_flight *call = &process->model->in_flight.item[k];
			const struct sl_hook *hook = sl_header_hook(process->model->header, call->api);

			sl_screen_head(page, "IN FLIGHT", SL_SCREEN_PLAIN);
			sl_screen_say(page, "  %s  %s%s%s had not returned", SL_WHO(process), hook ? hook->plain : "?",
				      call->bytes ? " of " : "", call->bytes ? SL_SIZE(call->bytes) : "");
			page->said = true;
		}
	}
}

static bool has_a_block(const char *id)
{
	static const char *const ids[] = {"ranks.first",  "ranks.role",	  "leak.growing",  "leak.kept", "label.growing",
					  "hidden.place", "memory.spike", "memory.handles" /* in report.json only */};

	for (size_t i = 0; i < SL_COUNT(ids); i++)
		if (!strcmp(id, ids[i]))
			return true;
	return !strncmp(id, "oom.", 4);
}

/* True: the finding printed before it is of the same kind and ends with the same advice. */
static bool repeats(const struct sl_finding *before, const struct sl_finding *finding)
{
	return before && !strcmp(before->id, finding->id) && before->advice && finding->advice &&
	       !strcmp(before->advice, finding->advice);
}

/* The process of a finding, as it is called; "": it is about the run, which may be of one process, or names its process itself. */
static const char *process_of(char *who, struct sl_report *report, const struct sl_finding *finding)
{
	who[0] = 0;
	if (finding->process >= 0 && report->process_count > 1)
		sl_process_who(who, &report->processes[finding->process]);
	if (strstr(finding->text, who))
		who[0] = 0;
	return who;
}

/* True: two processes have the same finding, of as many bytes at one line. */
static bool is_shared(struct sl_report *report, const struct sl_finding *a, const struct sl_finding *b)
{
	char who[48];

	return a->process != b->process && a->bytes == b->bytes && !strcmp(a->id, b->id) && !strcmp(a->severity, b->severity) &&
	       *process_of(who, report, a) && *process_of(who, report, b) &&
	       sl_place_key(&report->processes[a->process], a->stack) == sl_place_key(&report->processes[b->process], b->stack);
}

static bool was_told(struct sl_report *report, const struct sl_finding *const *told, unsigned count,
		     const struct sl_finding *finding)
{
	for (unsigned i = 0; i < count; i++)
		if (is_shared(report, told[i], finding))
			return true;
	return false;
}

/* "rank 3", or "8 processes" where others have the same finding. */
static void put_who(char *who, size_t size, struct sl_report *report, size_t index)
{
	const struct sl_finding *finding = &report->findings.item[index];
	unsigned processes = 1;

	if (!*process_of(who, report, finding))
		return;
	for (size_t i = index + 1; i < report->findings.count; i++)
		processes += is_shared(report, finding, &report->findings.item[i]);
	if (processes > 1)
		snprintf(who, size, "%u processes", processes);
}

/* True: a guess about what filled the device, of which OUT OF MEMORY has told above. */
static bool is_of_error(const struct sl_report *report, const struct sl_finding *finding)
{
	const struct sl_process *process = finding->process >= 0 ? &report->processes[finding->process] : NULL;
	size_t count = process ? process->model->ooms.count : 0;

	return count && !strcmp(finding->id, "memory.only_taken") && !sl_oom_got_over(&process->model->ooms.item[count - 1]) &&
	       process->accounts[count - 1].cause_text;
}

/* Prints the findings that have no block of their own above. */
static void put_findings(struct sl_screen_page *page)
{
	const struct sl_finding *before = NULL, *told[FINDINGS_SHOWN];
	unsigned shown = 0, more = 0;

	for (size_t i = 0; i < page->report->findings.count; i++) {
		const struct sl_finding *finding = &page->report->findings.item[i];

		if (has_a_block(finding->id) || is_of_error(page->report, finding) || was_told(page->report, told, shown, finding))
			continue;
		enum sl_screen_tone tone = !strcmp(finding->severity, "critical") ? SL_SCREEN_BAD
					   : strcmp(finding->severity, "info")	  ? SL_SCREEN_WARNING
										  : SL_SCREEN_PLAIN;
		char who[48];

		if (shown == FINDINGS_SHOWN) {
			more++;
			continue;
		}
		sl_screen_head(page, tone ? "FOUND" : "NOTE", tone);
		put_who(who, sizeof(who), page->report, i);
		if (finding->advice && !repeats(before, finding))
			sl_screen_say(page, "    %s%s%s: %s", who, *who ? ": " : "", finding->text, finding->advice);
		else
			sl_screen_say(page, "    %s%s%s", who, *who ? ": " : "", finding->text);
		before = told[shown] = finding;
		page->said |= tone != SL_SCREEN_PLAIN;
		page->noted |= tone == SL_SCREEN_PLAIN;
		shown++;
	}
	if (more)
		sl_screen_say(page, "  and %u more, in report.json", more);
}

/* True: a runtime did not accept the driver, and so refused every call; this is printed. */
static bool put_refused(struct sl_screen_page *page)
{
	const struct sl_report *report = page->report;
	uint64_t made = 0, failed = 0, ooms = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_model *model = report->processes[i].model;

		ooms += model->ooms.count;
		for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
			for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
				made += sl_model_row(model, kind, d)->allocations;
				failed += sl_model_row(model, kind, d)->failed_allocations;
			}
	}
	if (made || ooms || !failed)
		return false;
	sl_screen_head(page, "REFUSED", SL_SCREEN_BAD);
	sl_screen_say(page, "  every allocation failed, %llu in all, but not for want of memory", (unsigned long long)failed);
	sl_screen_say(page, "  what this machine lacks: stormlog-run --check -- COMMAND; the codes are in the events");
	return true;
}

static void put_other_runs(struct sl_screen_page *page)
{
	const struct sl_images *images = &page->report->images;
	const struct sl_run *ours = &images->runs[page->report->run];
	unsigned others = 0, ranks = 0;

	for (unsigned i = 0; i < images->run_count; i++) {
		const struct sl_run *run = &images->runs[i];

		if (run == ours || !run->id[0])
			continue;
		ranks += ours->rank >= 0 && run->rank >= 0 && run->rank != ours->rank;
		if (others++ < RUNS_MAX)
			sl_screen_say(page, "other run here: --run %s  (%u process%s)", run->id, run->images,
				      run->images == 1 ? "" : "es");
	}
	if (others > RUNS_MAX)
		sl_screen_say(page, "other runs here: %u more, listed by stormlog-analyze runs", others - RUNS_MAX);
	if (ranks)
		sl_screen_say(page, "ranks of one run? --run all shows them, stormlog-run --job-id makes them one");
}

static void put_warnings(struct sl_screen_page *page)
{
	struct sl_report *report = page->report;

	sl_report_warn_of_symbols(report);
	for (size_t i = 0; i < report->warnings.count && i < 8; i++)
		sl_screen_say(page, "note: %s", report->warnings.item[i]);
	if (report->warnings.count > 8)
		sl_screen_say(page, "note: %zu more in report.json", report->warnings.count - 8);
	if (!sl_images_is_all(report->options.run))
		put_other_runs(page);
}

/* For a run without a device, or a killed one, prints the process with the most resident memory. */
static bool put_host(struct sl_screen_page *page)
{
	const struct sl_process *most = NULL;
	char text[200], right[160] = "";

	for (unsigned i = 0; i < page->report->process_count; i++) {
		const struct sl_process *p = &page->report->processes[i];

		if (page->report->device_count && p->trace->status != SL_STATUS_INTERRUPTED)
			continue;
		if (p->model->host.rss_peak != SL_UNKNOWN && (!most || p->model->host.rss_peak > most->model->host.rss_peak))
			most = p;
	}
	if (!most)
		return false;
	sl_screen_head(page, "HOST", SL_SCREEN_PLAIN);
	snprintf(text, sizeof(text), "     %s   %s resident at most", SL_WHO(most), SL_SIZE(most->model->host.rss_peak));
	if (most->model->host.cgroup_limit != SL_UNKNOWN && most->model->host.cgroup_peak != SL_UNKNOWN)
		snprintf(right, sizeof(right), "cgroup %s of %s", SL_SIZE(most->model->host.cgroup_peak),
			 SL_SIZE(most->model->host.cgroup_limit));
	sl_screen_line(page, 40, text, right);
	page->said = true;
	return true;
}

static void note_nothing(void *context, bool damaged, const char *subject, const char *message)
{
}

static void put_end(struct sl_screen_page *page, bool refused, bool host)
{
	const struct sl_report *report = page->report;
	uint64_t events = 0, lost = 0;
	bool whole = !sl_missing_tell(report, note_nothing, NULL); /* as check --strict has it */
	struct sl_missing absent;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];

		events += p->model->events;
		lost += sl_trace_lost_events(p->trace);
	}
	if (!page->said && whole && !refused)
		fputs(page->noted ? "no other finding\n" : "nothing to report\n", page->out);
	else
		fputc('\n', page->out);
	sl_escape_print(page->out, "%s: %s events, %s lost", whole ? "complete" : "incomplete", SL_NUMBER(events), SL_NUMBER(lost));
	if (sl_missing_ranks(report, &absent))
		sl_escape_print(page->out, ", without %llu of %llu ranks", (unsigned long long)absent.ranks,
				(unsigned long long)absent.of);
	if (page->style->saved)
		sl_escape_print(page->out, "   report: %s/report.html", page->style->saved);
	fputc('\n', page->out);
	if (refused || host || page->said)
		sl_screen_go_on(page, refused ? "dump" : NULL);
}

void sl_screen_report(struct sl_report *report, FILE *out, const struct sl_screen_style *style)
{
	struct sl_screen_page page = {.report = report, .out = out, .style = style};

	sl_leak_list_take(&page.leaking, report);
	sl_screen_dry(&page);
	if (style->only_oom) {
		sl_screen_ooms(&page);
		sl_leak_list_free(&page.leaking);
		return;
	}
	sl_screen_title(&page);
	fputc('\n', out);
	sl_screen_ooms(&page);
	sl_screen_need(&page);
	sl_screen_reads(&page);
	sl_screen_kept(&page);
	if (sl_screen_windows(&page)) {
		sl_leak_list_free(&page.leaking);
		return;
	}
	sl_screen_peak(&page);
	sl_screen_ranks(&page);
	sl_screen_growth(&page);
	sl_screen_leaks(&page);
	sl_screen_hidden(&page);
	put_findings(&page);
	put_in_flight(&page);
	bool host = put_host(&page);
	bool refused = put_refused(&page);

	put_warnings(&page);
	put_end(&page, refused, host && !report->device_count);
	sl_leak_list_free(&page.leaking);
}
