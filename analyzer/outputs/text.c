/* SPDX-License-Identifier: MIT */
/*
 * The summary on the terminal: numbers first, the line of code beside each, what to do next, and nothing that
 * the trace does not prove.  A quiet run is three lines.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/door.h"
#include "analyzer/report/devices.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/kept.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/spark.h"
#include "analyzer/outputs/text_page.h"

#define CALLS_SHOWN    3
#define KEPT_SHOWN     3
#define FULL_IN_MIN    10 /* seconds: a program that lives shorter is not stopped by it */
#define FULL_IN_MAX    (30 * 86400)
#define RIGHT	       40
#define LEAK_RIGHT     64
#define FINDINGS_SHOWN 6

/* A line of text, cut between words. */
static SL_PRINTF(2, 3) void say(struct sl_text_page *page, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_text_line(page, 0, text, "");
}

/* ---- first line */

#define FAILED (SL_STATUS_UNKNOWN + 1) /* it ended by itself, and not with 0 */

static unsigned end_of(const struct sl_trace *trace)
{
	return trace->status == SL_STATUS_COMPLETED && trace->exited > 1 ? FAILED : trace->status;
}

static void put_statuses(char *out, size_t size, const struct sl_report *report)
{
	static const char *const words[] = {"completed", "killed", "running", "ended unknown", "failed"};
	static const unsigned order[] = {SL_STATUS_INTERRUPTED, FAILED, SL_STATUS_RUNNING, SL_STATUS_UNKNOWN, SL_STATUS_COMPLETED};
	size_t at = 0;

	out[0] = 0;
	for (unsigned o = 0; o < SL_COUNT(order) && at < size; o++) {
		unsigned count = 0;
		char name[48];

		for (unsigned i = 0; i < report->process_count; i++)
			if (end_of(report->processes[i].trace) == order[o] && !count++)
				sl_text_rank(name, &report->processes[i]);
		if (!count)
			continue;
		if (report->process_count == 1 && order[o] == FAILED)
			at += (size_t)snprintf(out + at, size - at, "exit status %u", report->processes[0].trace->exited - 1);
		else if (report->process_count == 1)
			at += (size_t)snprintf(out + at, size - at, "%s", words[order[o]]);
		else if (count == 1 && order[o] != SL_STATUS_COMPLETED)
			at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", name, words[order[o]]);
		else
			at += (size_t)snprintf(out + at, size - at, "%s%u %s", at ? ", " : "", count, words[order[o]]);
	}
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;

	return strcmp(x, y);
}

/* An unknown one is like no other. */
static unsigned hosts_of(const struct sl_report *report)
{
	const char **names = sl_memory_must(calloc(report->process_count + 1, sizeof(*names)));
	unsigned known = 0, hosts = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].trace->header.host)
			names[known++] = report->processes[i].trace->header.host;
		else
			hosts++;
	qsort(names, known, sizeof(*names), by_name);
	for (unsigned i = 0; i < known; i++)
		hosts += !i || strcmp(names[i], names[i - 1]) != 0;
	free(names);
	return hosts;
}

static void put_title(struct sl_text_page *page)
{
	const struct sl_report *report = page->report;
	const struct sl_process *first = &report->processes[0];
	uint64_t span_ns = report->ended_unix_ns - report->started_unix_ns;
	unsigned hosts = hosts_of(report), ranks = 0;
	char text[512], status[256], span[SL_FORMAT_BYTES], who[64];

	for (unsigned i = 0; i < report->process_count; i++)
		ranks += report->processes[i].trace->header.rank >= 0;
	put_statuses(status, sizeof(status), report);
	if (report->process_count == 1)
		sl_text_rank(who, first);
	else
		snprintf(who, sizeof(who), "%u %s", report->process_count, ranks == report->process_count ? "ranks" : "processes");
	if (hosts == 1)
		snprintf(text, sizeof(text), "  %s on %s  %s  %s", who, first->trace->header.host ? first->trace->header.host : "?",
			 sl_format_duration(span, span_ns), status);
	else
		snprintf(text, sizeof(text), "  %s on %u hosts  %s  %s", who, hosts, sl_format_duration(span, span_ns), status);
	sl_text_head(page, sl_stacks_program(&first->trace->header), SL_TEXT_PLAIN);
	sl_text_line(page, 0, text, "");
}

/* ---- peak */

#define SPARK 14

static void draw_spark(char *out, size_t size, const struct sl_text_page *page, const struct sl_line *known)
{
	uint32_t bins = known->bin + 1, count = bins - known->first, columns = count < SPARK ? count : SPARK;
	uint64_t most[SPARK] = {0};

	for (uint32_t c = 0; c < columns; c++) {
		uint32_t from = known->first + count * c / columns, to = known->first + count * (c + 1) / columns;

		for (uint32_t b = from; b < to; b++)
			most[c] = known->bins[b].max > most[c] ? known->bins[b].max : most[c];
	}
	sl_spark(out, size, most, columns, page->style->ascii);
}

static struct sl_process *peak_of(const struct sl_report *report, const struct sl_device_state **device)
{
	struct sl_process *found = NULL;

	*device = NULL;
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t d = 1; d < SL_COUNT(report->processes[i].model->devices); d++) {
			const struct sl_device_state *state = report->processes[i].model->devices[d];

			if (state && state->known_peak && (!*device || state->known_peak > (*device)->known_peak)) {
				*device = state;
				found = &report->processes[i];
			}
		}
	return found;
}

/* The range of other processes' peaks on any device. */
static void describe_others(char *out, size_t size, const struct sl_text_page *page, const struct sl_process *but)
{
	uint64_t least = UINT64_MAX, most = 0;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];
	bool ranks = true;

	for (unsigned i = 0; i < page->report->process_count; i++) {
		uint64_t peak = 0;

		ranks &= page->report->processes[i].trace->header.rank >= 0;
		if (&page->report->processes[i] == but)
			continue;
		for (size_t d = 1; d < SL_COUNT(but->model->devices); d++) {
			const struct sl_device_state *state = page->report->processes[i].model->devices[d];

			peak = state && state->known_peak > peak ? state->known_peak : peak;
		}
		least = peak < least ? peak : least;
		most = peak > most ? peak : most;
	}
	if (!most)
		return;
	sl_format_size(a, least);
	sl_format_size(b, most);
	if (strcmp(a, b))
		snprintf(out, size, "   other %s %s .. %s", ranks ? "ranks" : "processes", a, b);
	else
		snprintf(out, size, "   other %s %s", ranks ? "ranks" : "processes", b);
}

static void put_peak_owners(struct sl_text_page *page, struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_owners owners;
	const char *rest;
	uint64_t left;

	sl_owners_init(&owners);
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes = sl_model_site_at_peak(process->model, site);
		const char *called = site->kind == SL_KIND_block ? sl_defs_text(process->model->defs, site->label) : NULL,
			   *names[2];
		char where[256];

		if (!bytes || site->device != device->device || !sl_owners_shows(process, site))
			continue;
		sl_owners_line(process, site->python, site->native, site->caller, 2, where, sizeof(where));
		names[0] = site->kind == SL_KIND_block ? "tensors" : sl_model_library(process->model, site);
		names[1] = where[0] ? where : called ? called : "no stack";
		sl_owners_add(&owners, names, 2, bytes, 0);
	}
	rest = sl_model_rest_at_peak(process->model, device, &left);
	if (rest)
		sl_owners_add(&owners, &rest, 1, left, 0);
	sl_owners_sort(&owners);
	sl_text_shares(page, &owners);
	sl_owners_free(&owners);
}

/* What the program itself calls its memory, the largest at their own peaks. */
static void put_names(struct sl_text_page *page, const struct sl_model *model)
{
	enum { SHOWN = 5 };
	uint64_t last = UINT64_MAX;
	char right[64], size[SL_FORMAT_BYTES];

	for (unsigned shown = 0; shown < SHOWN && shown < model->called.count;) {
		uint64_t most = 0;

		for (size_t i = 0; i < model->called.count; i++)
			if (model->called.item[i].peak_bytes < last && model->called.item[i].peak_bytes > most)
				most = model->called.item[i].peak_bytes;
		for (size_t i = 0; i < model->called.count && most && shown < SHOWN; i++) {
			const struct sl_called *called = &model->called.item[i];

			if (called->peak_bytes != most)
				continue;
			snprintf(right, sizeof(right), "so named by the program; %s at the end",
				 sl_format_size(size, called->live_bytes));
			sl_text_owner(page, most, sl_defs_text(model->defs, called->text), right);
			shown++;
		}
		if (!most)
			break;
		last = most;
	}
}

/* An error that is shown above came at the peak: its owners are the peak's. */
static bool fell_there(const struct sl_text_page *page, const struct sl_process *process, const struct sl_device_state *device)
{
	const struct sl_oom *first = process->model->ooms.item, *end = first + process->model->ooms.count;

	for (unsigned i = 0; i < SL_TEXT_OOMS; i++) {
		const struct sl_oom *oom = page->ooms[i];

		if (oom && oom >= first && oom < end && oom->device == device->device && oom->live_bytes == device->known_peak)
			return true;
	}
	return false;
}

/* What the peak was for, largest first; nothing where nothing is known of it. */
static void put_roles(struct sl_text_page *page, struct sl_process *process, const struct sl_device_state *device)
{
	uint64_t bytes[SL_ROLE_COUNT], all = 0;
	char text[256] = "      for";
	size_t at = strlen(text);
	unsigned shown = 0;

	if (!sl_roles_at_peak(process, device, bytes))
		return;
	for (int role = 0; role < SL_ROLE_COUNT; role++)
		all += bytes[role];
	for (;; shown++) {
		int most = SL_ROLE_UNKNOWN;

		for (int role = 0; role < SL_ROLE_COUNT; role++)
			most = bytes[role] > bytes[most] ? role : most;
		if (!bytes[most] || at >= sizeof(text))
			break;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s %.0f%%", shown ? "," : "",
				       sl_roles_name((enum sl_role)most), 100 * (double)bytes[most] / (double)all);
		bytes[most] = 0;
	}
	sl_text_line(page, 0, text, "");
}

static void put_peak(struct sl_text_page *page)
{
	const struct sl_device_state *device;
	struct sl_process *process = peak_of(page->report, &device);
	char who[48], size[SL_FORMAT_BYTES], spark[64] = "", others[128] = "", text[512];

	if (!process)
		return;
	sl_text_head(page, "PEAK", SL_TEXT_PLAIN);
	draw_spark(spark, sizeof(spark), page, device->line);
	if (page->report->process_count > 1)
		describe_others(others, sizeof(others), page, process);
	snprintf(text, sizeof(text), "     %s   %s   %s%s", sl_text_rank(who, process), sl_format_size(size, device->known_peak),
		 spark, others);
	if (fell_there(page, process, device)) {
		sl_text_line(page, RIGHT, text, "held as when memory ran out, above");
	} else {
		sl_text_line(page, 0, text, "");
		put_peak_owners(page, process, device);
	}
	put_roles(page, process, device);
	sl_text_said(page, "memory.spike", (int)(process - page->report->processes), device->device);
	put_names(page, process->model);
}

/* ---- growth, leaks, hidden, in flight */

/* The slope that it has by its own error. */
static double at_least(const struct sl_growth *growth)
{
	return 2 * growth->slope - growth->at_most;
}

/* A block LEAK above names the place. */
static bool is_told(struct sl_process *process, uint32_t python, uint32_t native, uint64_t caller)
{
	char place[300], other[300];

	sl_owners_line(process, python, native, caller, 1, place, sizeof(place));
	for (size_t i = 0; i < process->kept.count && process->kept.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_track *track = process->kept.item[i].track;

		sl_owners_line(process, track->python, track->native, track->caller, 1, other, sizeof(other));
		if (!strcmp(place, other))
			return i < KEPT_SHOWN;
	}
	return false;
}

static void put_growth(struct sl_text_page *page)
{
	struct sl_process *process = NULL;
	const struct sl_growth *growth = NULL;
	const struct sl_label *label;
	struct sl_owners owners;
	char size[SL_FORMAT_BYTES], who[48], text[256], where[256];

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; k < page->report->processes[i].growth.count; k++) {
			const struct sl_growth *g = &page->report->processes[i].growth.item[k];

			if (!g->verdict || strcmp(g->verdict, "growing") || !g->credited)
				continue;
			if (growth && at_least(g) <= at_least(growth))
				continue;
			growth = g;
			process = &page->report->processes[i];
		}
	if (!growth || (growth->holder_count == 1 &&
			is_told(process, growth->holders[0].python, growth->holders[0].native, growth->holders[0].caller)))
		return; /* one story */
	label = &process->model->labels.item[growth->label];
	sl_text_head(page, "GROWTH", SL_TEXT_WARNING);
	snprintf(text, sizeof(text), "   +%s per %s, %s %.2f over %llu entries%s%s", sl_format_size(size, (uint64_t)growth->slope),
		 sl_defs_text(process->model->defs, label->text) ? sl_defs_text(process->model->defs, label->text) : "?",
		 page->style->ascii ? "r2" : "r²", growth->r_squared, (unsigned long long)label->points,
		 page->report->process_count > 1 ? "   " : "", page->report->process_count > 1 ? sl_text_rank(who, process) : "");
	sl_text_line(page, 0, text, "");
	sl_owners_init(&owners);
	for (unsigned i = 0; i < growth->holder_count; i++) {
		const struct sl_holder_of_growth *holder = &growth->holders[i];
		const char *names[2] = {holder->library, where};

		sl_owners_line(process, holder->python, holder->native, holder->caller, 2, where, sizeof(where));
		sl_owners_add(&owners, names, where[0] ? 2 : 1, (uint64_t)holder->bytes_per_entry, 0);
	}
	sl_owners_sort(&owners);
	sl_text_shares(page, &owners);
	sl_owners_free(&owners);
	page->said = true;
}

/* Where it is made, what is known of it, and what comes of it. */
static void put_kept_one(struct sl_text_page *page, struct sl_process *process, const struct sl_kept *kept)
{
	const struct sl_track *track = kept->track;
	char rate[200], what[200], text[600], where[512], place[300], *via, who[SL_FORMAT_BYTES], time[SL_FORMAT_BYTES];
	double full_in = sl_kept_full_in(process, kept);
	const char *label = sl_kept_label(process, kept);
	bool beside;
	size_t rest;

	sl_owners_line(process, track->python, track->native, track->caller, 3, where, sizeof(where));
	sl_kept_rate(rate, sizeof(rate), process, kept);
	sl_kept_amount(what, sizeof(what), kept);
	sl_text_head(page, "LEAK", SL_TEXT_BAD);
	snprintf(text, sizeof(text), "     %s%s%s, %s%s%s", page->report->process_count > 1 ? sl_text_rank(who, process) : "",
		 page->report->process_count > 1 ? "  " : "", rate, what, label ? ", in " : "", label ? label : "");
	sl_owners_line(process, track->python, track->native, track->caller, 1, place, sizeof(place));
	if ((via = strstr(place, " via ")))
		*via = 0;
	beside = page->indent + strlen(text) + 2 + strlen(place) <= page->style->columns && !strncmp(where, place, strlen(place));
	sl_text_line(page, LEAK_RIGHT, text, beside ? place : "");
	rest = beside ? strlen(place) : 0;
	if (where[rest]) {
		snprintf(text, sizeof(text), "     %s%s", rest ? "" : " ", where + rest);
		sl_text_line(page, 0, text, "");
	}
	snprintf(text, sizeof(text), "      since %s; %s", sl_format_duration(time, track->first_ns - process->model->first_ns),
		 kept->left ? "never freed" : "not freed before the program ended");
	if (process->iterations.count && !process->iterations.by_label)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "; %llu iterations by the program's own period",
			 (unsigned long long)process->iterations.count);
	if (full_in >= FULL_IN_MIN && full_in <= FULL_IN_MAX)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "; at this rate device %d is full in %s", track->device,
			 sl_format_duration(time, (uint64_t)(full_in * 1e9)));
	sl_text_line(page, 0, text, "");
}

/* The largest kept memory among all processes. */
static void put_kept(struct sl_text_page *page)
{
	struct sl_process *process;
	const struct sl_kept *shown[KEPT_SHOWN] = {NULL};
	unsigned owner[KEPT_SHOWN], count = 0, more = 0;

	for (unsigned i = 0; i < page->report->process_count; i++) {
		process = &page->report->processes[i];
		for (size_t k = 0; k < process->kept.count && process->kept.item[k].verdict == SL_KEPT_GROWING; k++) {
			const struct sl_kept *one = &process->kept.item[k];
			unsigned at = count < KEPT_SHOWN ? count++ : KEPT_SHOWN - 1;

			more += shown[at] != NULL;
			if (shown[at] && sl_kept_weight(shown[at]) >= sl_kept_weight(one))
				continue;
			for (; at && sl_kept_weight(shown[at - 1]) < sl_kept_weight(one); at--) {
				shown[at] = shown[at - 1];
				owner[at] = owner[at - 1];
			}
			shown[at] = one;
			owner[at] = i;
		}
	}
	for (unsigned i = 0; i < count; i++)
		put_kept_one(page, &page->report->processes[owner[i]], shown[i]);
	if (more)
		say(page, "  and %u more places that leak, in report.json", more);
	page->said |= count > 0;
}

/* What grows will be the largest one day: it comes first. */
static void put_leaks(struct sl_text_page *page)
{
	struct sl_process *process = NULL;
	const struct sl_leak *worst = NULL;
	uint64_t bytes = 0;
	unsigned places = 0, growing = 0;
	char size[SL_FORMAT_BYTES], each[SL_FORMAT_BYTES], who[48], where[200], left[128], right[512];

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; k < page->report->processes[i].leaks.count; k++) {
			const struct sl_leak *leak = &page->report->processes[i].leaks.item[k];

			if (strcmp(leak->verdict, "live_at_exit") && strcmp(leak->verdict, "growing"))
				continue;
			if (is_told(&page->report->processes[i], leak->python, leak->native, leak->caller))
				continue;
			places++;
			growing += leak->growing;
			bytes += leak->bytes;
			if (!worst || (leak->growing == worst->growing ? leak->bytes > worst->bytes : leak->growing)) {
				worst = leak;
				process = &page->report->processes[i];
			}
		}
	if (!places)
		return;
	sl_owners_line(process, worst->python, worst->native, worst->caller, 1, where, sizeof(where));
	sl_text_head(page, growing ? "LEAKS" : "LEFT", growing ? SL_TEXT_WARNING : SL_TEXT_PLAIN);
	snprintf(left, sizeof(left), "%s   %s never freed, %u place%s", growing ? "" : " ", sl_format_size(size, bytes), places,
		 places == 1 ? "" : "s");
	if (growing && places > 1)
		snprintf(left + strlen(left), sizeof(left) - strlen(left), ", %u growing", growing);
	if (page->report->process_count > 1)
		snprintf(left + strlen(left), sizeof(left) - strlen(left), places > 1 ? ", the worst in %s:" : "   %s",
			 sl_text_rank(who, process));
	snprintf(right, sizeof(right), "%s%s, %s in %llu block%s%s",
		 places > 1 && page->report->process_count == 1 ? "worst: " : "", where[0] ? where : worst->library,
		 sl_format_size(each, worst->bytes), (unsigned long long)worst->blocks, worst->blocks == 1 ? "" : "s",
		 worst->growing ? ", growing" : "");
	sl_text_line(page, 30, left, right);
	page->said |= growing > 0;
}

static void put_in_flight(struct sl_text_page *page)
{
	for (unsigned i = 0; i < page->report->process_count; i++) {
		const struct sl_process *process = &page->report->processes[i];

		for (size_t k = 0; k < process->model->in_flight.count && k < CALLS_SHOWN; k++) {
			const struct sl_in_flight *call = &process->model->in_flight.item[k];
			const struct sl_hook *hook = sl_header_hook(process->model->header, call->api);
			char who[48], size[SL_FORMAT_BYTES], text[256];

			sl_text_head(page, "IN FLIGHT", SL_TEXT_PLAIN);
			snprintf(text, sizeof(text), "  %s  %s%s%s had not returned", sl_text_rank(who, process),
				 hook ? hook->plain : "?", call->bytes ? " of " : "",
				 call->bytes ? sl_format_size(size, call->bytes) : "");
			sl_text_line(page, 0, text, "");
			page->said = true;
		}
	}
}

static bool has_a_block(const char *id)
{
	static const char *const ids[] = {"ranks.first",   "leak.growing", "leak.kept",
					  "label.growing", "hidden.place", "memory.spike"};

	for (size_t i = 0; i < SL_COUNT(ids); i++)
		if (!strcmp(id, ids[i]))
			return true;
	return !strncmp(id, "oom.", 4);
}

/* What has no block of its own above. */
static void put_findings(struct sl_text_page *page)
{
	unsigned shown = 0, more = 0;

	for (size_t i = 0; i < page->report->findings.count; i++) {
		const struct sl_finding *finding = &page->report->findings.item[i];

		if (has_a_block(finding->id))
			continue;
		enum sl_text_tone tone = !strcmp(finding->severity, "critical") ? SL_TEXT_BAD
					 : strcmp(finding->severity, "info")	? SL_TEXT_WARNING
										: SL_TEXT_PLAIN;
		char who[48] = "";

		if (shown == FINDINGS_SHOWN) {
			more++;
			continue;
		}
		sl_text_head(page, tone ? "FOUND" : "NOTE", tone);
		if (finding->process >= 0 && page->report->process_count > 1)
			sl_text_rank(who, &page->report->processes[finding->process]);
		if (strstr(finding->text, who))
			who[0] = 0; /* it says so itself, or of the run */
		say(page, "    %s%s%s%s%s", who, *who ? ": " : "", finding->text, finding->advice ? ": " : "",
		    finding->advice ? finding->advice : "");
		page->said |= strcmp(finding->severity, "info") != 0;
		shown++;
	}
	if (more)
		say(page, "  and %u more, in report.json", more);
}

/* A runtime without a driver it accepts refuses everything, and not for want of memory. */
static bool put_refused(struct sl_text_page *page)
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
	sl_text_head(page, "REFUSED", SL_TEXT_BAD);
	say(page, "  every allocation failed, %llu in all, and none for want of memory", (unsigned long long)failed);
	say(page, "  what this machine lacks: stormlog-run --check -- COMMAND; the codes: stormlog-analyze dump %s", report->path);
	return true;
}

static void put_warnings(struct sl_text_page *page)
{
	struct sl_report *report = page->report;
	bool all = report->options.run && !strcmp(report->options.run, "all");

	sl_report_warn_of_symbols(report);
	for (size_t i = 0; i < report->warnings.count && i < 8; i++)
		say(page, "note: %s", report->warnings.item[i]);
	if (report->warnings.count > 8)
		say(page, "note: %zu more in report.json", report->warnings.count - 8);
	for (unsigned i = 0; i < report->images.run_count && !all; i++)
		if (i != report->run && report->images.runs[i].id[0])
			say(page, "other run here: --run %s  (%u process%s)", report->images.runs[i].id,
			    report->images.runs[i].images, report->images.runs[i].images == 1 ? "" : "es");
}

/* A run without a device: show the process with the most resident memory. */
static bool put_host(struct sl_text_page *page)
{
	const struct sl_process *most = NULL;
	char who[SL_FORMAT_BYTES], a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES], text[200], right[160] = "";

	for (unsigned i = 0; i < page->report->process_count; i++) {
		const struct sl_process *p = &page->report->processes[i];

		if (p->model->host.rss_peak != SL_UNKNOWN && (!most || p->model->host.rss_peak > most->model->host.rss_peak))
			most = p;
	}
	if (page->report->device_count || !most)
		return false;
	sl_text_head(page, "HOST", SL_TEXT_PLAIN);
	snprintf(text, sizeof(text), "     %s   %s resident at most", sl_text_rank(who, most),
		 sl_format_size(a, most->model->host.rss_peak));
	if (most->model->host.cgroup_limit != SL_UNKNOWN && most->model->host.cgroup_peak != SL_UNKNOWN)
		snprintf(right, sizeof(right), "cgroup %s of %s", sl_format_size(a, most->model->host.cgroup_peak),
			 sl_format_size(b, most->model->host.cgroup_limit));
	sl_text_line(page, 40, text, right);
	page->said = true;
	return true;
}

static void put_end(struct sl_text_page *page, bool refused, bool host)
{
	const struct sl_report *report = page->report;
	uint64_t events = 0, lost = 0;
	bool damaged = false, oom = false;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];

		events += p->model->events;
		lost += p->trace->gap_events + p->trace->damage.lost_events;
		damaged |= p->trace->damage.damaged;
		oom |= p->model->ooms.count > 0;
	}
	if (!page->said && !damaged && !refused)
		fputs("nothing to report\n", page->out);
	else
		fputc('\n', page->out);
	sl_door_print(page->out, "%s: %s events, %s lost", damaged || lost ? "incomplete" : "complete", sl_format_count(a, events),
		      sl_format_count(b, lost));
	if (page->style->saved)
		sl_door_print(page->out, "   report: %s/report.html", page->style->saved);
	fputc('\n', page->out);
	if (host)
		sl_door_print(page->out, "next: stormlog-analyze timeline %s\n", report->path);
	else if (page->said)
		sl_door_print(page->out, "next: stormlog-analyze tree --at %s %s%s%s\n", oom ? "oom" : "peak", report->path,
			      report->process_count > 1 ? "   stormlog-analyze ranks " : "",
			      report->process_count > 1 ? report->path : "");
}

void sl_text_report(struct sl_report *report, FILE *out, const struct sl_text_style *style)
{
	struct sl_text_page page = {.report = report, .out = out, .style = style};

	put_title(&page);
	fputc('\n', out);
	sl_text_ooms(&page);
	put_kept(&page);
	put_peak(&page);
	sl_text_ranks(&page);
	put_growth(&page);
	put_leaks(&page);
	sl_text_hidden(&page);
	put_findings(&page);
	put_in_flight(&page);
	bool host = put_host(&page);
	bool refused = put_refused(&page);

	put_warnings(&page);
	put_end(&page, refused, host);
}
