/* SPDX-License-Identifier: MIT */
/*
 * The summary on the terminal: numbers first, the line of code beside each, what to do next, and nothing that
 * the trace does not prove.  A quiet run is three lines.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/devices.h"
#include "analyzer/outputs/format.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/owners.h"

#define OOMS_SHOWN   3
#define OWNERS_SHOWN 5
#define LINES_SHOWN  3

struct page {
	struct sl_report *report;
	FILE *out;
	const struct sl_text_style *style;
	bool said; /* something to report */
	unsigned indent; /* columns the heading of this line took */
};

/* ---- laying out */

/* Columns a text takes: its code points. */
static unsigned width(const char *text)
{
	unsigned columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

static void put(struct page *page, const char *text, unsigned columns)
{
	unsigned done = 0;

	for (; *text && (done < columns || ((unsigned char)*text & 0xc0) == 0x80); text++) {
		unsigned char c = (unsigned char)*text;

		done += (c & 0xc0) != 0x80;
		if (c < 0x20 || c == 0x7f)
			fputc('?', page->out); /* names in a trace do not steer the terminal */
		else if (page->style->ascii && c >= 0x80)
			fputs((c & 0xc0) == 0xc0 ? "?" : "", page->out);
		else
			fputc(c, page->out);
	}
}

/* A line with a part on the right, which starts at column `at` or after the left part. */
static void line(struct page *page, unsigned at, const char *left, const char *right)
{
	unsigned used = width(left), columns = page->style->columns - page->indent;

	page->indent = 0;
	put(page, left, columns);
	if (right && *right && used + 2 < columns) {
		do
			fputc(' ', page->out);
		while (++used < at);
		if (used == width(left) + 1 && used > at)
			fputc(' ', page->out), used++;
		put(page, right, columns - used);
	}
	fputc('\n', page->out);
}

static void head(struct page *page, const char *title, bool bad)
{
	page->indent = width(title);
	if (page->style->colour)
		fprintf(page->out, "\033[1%sm%s\033[0m", bad ? ";31" : "", title);
	else
		fputs(title, page->out);
}

/* A line that was printed piece by piece ends. */
static void end_line(struct page *page)
{
	page->indent = 0;
	fputc('\n', page->out);
}

static const char *rank_name(char *out, const struct sl_process *process)
{
	const struct sl_header *header = &process->trace->header;

	if (header->rank >= 0)
		snprintf(out, 48, "rank %lld", (long long)header->rank);
	else
		snprintf(out, 48, "pid %lld", (long long)header->pid);
	return out;
}

static const char *program_of(const struct sl_header *header)
{
	for (unsigned i = 0; i < header->argc; i++) {
		const char *base = sl_stacks_basename(header->argv[i]);
		size_t size = strlen(base);

		if (size > 3 && !strcmp(base + size - 3, ".py"))
			return base;
		if (!strcmp(header->argv[i], "-m") && i + 1 < header->argc)
			return header->argv[i + 1];
	}
	return header->argc ? sl_stacks_basename(header->argv[0]) : header->exe ? sl_stacks_basename(header->exe) : "?";
}

/* ---- first line */

static void put_statuses(char *out, size_t size, const struct sl_report *report)
{
	static const char *const words[] = {"completed", "killed", "running", "ended unknown"};
	static const enum sl_status order[] = {SL_STATUS_INTERRUPTED, SL_STATUS_RUNNING, SL_STATUS_UNKNOWN,
					       SL_STATUS_COMPLETED};
	size_t at = 0;

	out[0] = 0;
	for (unsigned o = 0; o < SL_COUNT(order) && at < size; o++) {
		unsigned count = 0;
		char name[48];

		for (unsigned i = 0; i < report->process_count; i++)
			if (report->processes[i].trace->status == order[o] && !count++)
				rank_name(name, &report->processes[i]);
		if (!count)
			continue;
		if (report->process_count == 1)
			at += (size_t)snprintf(out + at, size - at, "%s", words[order[o]]);
		else if (count == 1 && order[o] != SL_STATUS_COMPLETED)
			at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", name, words[order[o]]);
		else
			at += (size_t)snprintf(out + at, size - at, "%s%u %s", at ? ", " : "", count, words[order[o]]);
	}
}

static void put_title(struct page *page)
{
	const struct sl_report *report = page->report;
	const struct sl_process *first = &report->processes[0];
	uint64_t started = UINT64_MAX, ended = 0;
	unsigned hosts = 0, ranks = 0;
	char text[512], status[256], span[SL_FORMAT_BYTES], who[64];

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];
		bool known = false;

		started = p->started_unix_ns < started ? p->started_unix_ns : started;
		ended = p->ended_unix_ns > ended ? p->ended_unix_ns : ended;
		ranks += p->trace->header.rank >= 0;
		for (unsigned k = 0; k < i && !known; k++)
			known = p->trace->header.host && report->processes[k].trace->header.host &&
				!strcmp(p->trace->header.host, report->processes[k].trace->header.host);
		hosts += !known;
	}
	put_statuses(status, sizeof(status), report);
	if (report->process_count == 1)
		rank_name(who, first);
	else
		snprintf(who, sizeof(who), "%u %s", report->process_count,
			 ranks == report->process_count ? "ranks" : "processes");
	if (hosts == 1)
		snprintf(text, sizeof(text), "  %s on %s  %s  %s", who, first->trace->header.host ? first->trace->header.host : "?",
			 sl_format_duration(span, ended > started ? ended - started : 0), status);
	else
		snprintf(text, sizeof(text), "  %s on %u hosts  %s  %s", who, hosts,
			 sl_format_duration(span, ended > started ? ended - started : 0), status);
	head(page, program_of(&first->trace->header), false);
	line(page, 0, text, "");
}

/* ---- out of memory */

static const char *size_word(char *out, uint64_t bytes)
{
	return sl_format_size(out, bytes);
}

/* One holder of the device at that moment. */
static void put_owner(struct page *page, uint64_t bytes, const char *name, const char *right)
{
	char size[SL_FORMAT_BYTES], left[256];

	snprintf(left, sizeof(left), "%12s  %s", size_word(size, bytes), name);
	line(page, 44, left, right);
}

struct owner_sum {
	const char *name;
	uint64_t bytes, blocks, top_bytes;
	const struct sl_site *top;
};

static void put_owners(struct page *page, struct sl_process *process, const struct sl_oom *oom)
{
	struct owner_sum sums[SL_OWNERS_MAX];
	uint64_t listed = 0;
	unsigned count = 0, shown = 0;
	char where[256], cached[64], size[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];
		const char *name = sl_model_library(process->model, site);
		unsigned at = 0;

		/* PyTorch's segments are shown as tensors and what it keeps unused */
		if (oom->torch.used && site->kind != SL_KIND_block && strstr(name, "c10_"))
			continue;
		while (at < count && strcmp(sums[at].name, name))
			at++;
		if (at == count)
			sums[count++] = (struct owner_sum){.name = name};
		sums[at].bytes += oom->owners[i].bytes;
		sums[at].blocks += oom->owners[i].blocks;
		if (oom->owners[i].bytes > sums[at].top_bytes) {
			sums[at].top_bytes = oom->owners[i].bytes;
			sums[at].top = site;
		}
	}
	for (unsigned i = 0; i < count && shown < OWNERS_SHOWN; i++, shown++) {
		sl_owners_line(process, sums[i].top->python, sums[i].top->native, sums[i].top->caller, 2, where, sizeof(where));
		put_owner(page, sums[i].bytes, strcmp(sums[i].name, "PyTorch tensors") ? sums[i].name : "tensors", where);
		listed += sums[i].bytes;
	}
	if (oom->torch.used && oom->torch.reserved_bytes > oom->torch.allocated_bytes) {
		if (oom->largest_cached != SL_UNKNOWN)
			snprintf(cached, sizeof(cached), "largest piece %s", size_word(size, oom->largest_cached));
		put_owner(page, oom->torch.reserved_bytes - oom->torch.allocated_bytes, "kept by PyTorch, unused",
			  oom->largest_cached != SL_UNKNOWN ? cached : "");
	}
	if (oom->total_bytes != SL_UNKNOWN && oom->free_bytes <= oom->total_bytes && oom->scope == SL_SCOPE_VRAM &&
	    oom->total_bytes - oom->free_bytes > oom->live_bytes)
		put_owner(page, oom->total_bytes - oom->free_bytes - oom->live_bytes, "outside its allocations",
			  "contexts, code, other processes");
}

static void put_oom(struct page *page, struct sl_process *process, const struct sl_oom *oom, unsigned attempts)
{
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
	char who[48], text[512], a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES], c[SL_FORMAT_BYTES], where[256];
	uint64_t start = process->model->header->monotonic_ns;
	size_t at;

	head(page, "OUT OF MEMORY", true);
	at = (size_t)snprintf(text, sizeof(text), "   %s", rank_name(who, process));
	if (oom->device >= 0)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "  device %d", oom->device);
	at += (size_t)snprintf(text + at, sizeof(text) - at, "  at %s",
			       sl_format_duration(a, oom->time_ns > start ? oom->time_ns - start : 0));
	if (oom->label && sl_defs_text(process->model->defs, oom->label))
		at += (size_t)snprintf(text + at, sizeof(text) - at, ", in %s", sl_defs_text(process->model->defs, oom->label));
	if (oom->injected)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "  (injected)");
	if (attempts > 1)
		snprintf(text + at, sizeof(text) - at, "  %u attempts", attempts);
	line(page, 0, text, "");
	at = (size_t)snprintf(text, sizeof(text), "  %s asked %s", hook ? hook->plain : "?", size_word(a, oom->requested_bytes));
	if (oom->free_bytes != SL_UNKNOWN && oom->total_bytes != SL_UNKNOWN)
		snprintf(text + at, sizeof(text) - at, " with %s free of %s", size_word(b, oom->free_bytes),
			 size_word(c, oom->total_bytes));
	else
		snprintf(text + at, sizeof(text) - at, ", it held %s", size_word(b, oom->live_bytes));
	sl_owners_line(process, oom->python, oom->native, oom->caller, 2, where, sizeof(where));
	line(page, 44, text, where);
	put_owners(page, process, oom);
}

static void put_ooms(struct page *page)
{
	unsigned shown = 0, more = 0, cured = 0;

	for (unsigned i = 0; i < page->report->process_count; i++) {
		struct sl_process *process = &page->report->processes[i];
		const struct sl_model *model = process->model;

		for (size_t k = 0; k < model->ooms.count; k++) {
			const struct sl_oom *oom = &model->ooms.item[k];
			unsigned attempts = 0;

			for (size_t m = k; m < model->ooms.count; m++)
				attempts += model->ooms.item[m].group == oom->group;
			if (oom->recovered == 1)
				cured++;
			if (oom->recovered == 1 || oom->group != k)
				continue;
			if (shown == OOMS_SHOWN) {
				more++;
				continue;
			}
			put_oom(page, process, oom, attempts);
			shown++;
		}
	}
	if (more)
		fprintf(page->out, "  and %u more, in report.json\n", more);
	if (shown)
		fputc('\n', page->out);
	if (cured) {
		head(page, "RETRIED", false);
		fprintf(page->out, "  %u failed allocation%s, got over by trying again", cured, cured == 1 ? "" : "s");
		end_line(page);
	}
	page->said |= shown || cured;
}

/* ---- peak */

static void put_spark(struct page *page, const struct sl_process *process, const struct sl_line *known)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
	const char *const *marks = page->style->ascii ? plain : blocks;
	uint32_t bins = known->bin + 1, columns = bins < 14 ? bins : 14;
	uint64_t top = 1;

	for (uint32_t b = known->first; b < bins; b++)
		top = known->bins[b].max > top ? known->bins[b].max : top;
	for (uint32_t c = 0; c < columns; c++) {
		uint32_t from = bins * c / columns, to = bins * (c + 1) / columns;
		uint64_t max = 0;

		for (uint32_t b = from; b < to; b++)
			if (b >= known->first && known->bins[b].max > max)
				max = known->bins[b].max;
		fputs(marks[max ? 1 + (unsigned)((double)max / (double)top * 7.999) % 8 : 0], page->out);
	}
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
static void put_others(struct page *page, const struct sl_process *but)
{
	uint64_t least = UINT64_MAX, most = 0;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < page->report->process_count; i++) {
		uint64_t peak = 0;

		if (&page->report->processes[i] == but)
			continue;
		for (size_t d = 1; d < SL_COUNT(but->model->devices); d++) {
			const struct sl_device_state *state = page->report->processes[i].model->devices[d];

			peak = state && state->known_peak > peak ? state->known_peak : peak;
		}
		least = peak < least ? peak : least;
		most = peak > most ? peak : most;
	}
	if (most)
		fprintf(page->out, "   others %s .. %s", size_word(a, least), size_word(b, most));
}

static void put_peak_owners(struct page *page, struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_owners owners;
	unsigned libraries = 0;

	sl_owners_init(&owners);
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes = sl_model_site_at_peak(process->model, site);
		const char *names[2];
		char where[256];

		if (!bytes || site->device != device->device || !sl_model_is_known(site->kind))
			continue;
		sl_owners_line(process, site->python, site->native, site->caller, 2, where, sizeof(where));
		names[0] = sl_model_library(process->model, site);
		names[1] = where[0] ? where : "no stack";
		sl_owners_add(&owners, names, 2, bytes, 0);
	}
	sl_owners_sort(&owners);
	for (uint32_t l = owners.share.item[0].child; l && libraries < OWNERS_SHOWN; l = owners.share.item[l].sibling, libraries++) {
		unsigned lines = 0;
		uint32_t f = owners.share.item[l].child;
		bool one = f && !owners.share.item[f].sibling;

		put_owner(page, owners.share.item[l].bytes, owners.share.item[l].name, one ? owners.share.item[f].name : "");
		for (; f && !one && lines < LINES_SHOWN; f = owners.share.item[f].sibling, lines++) {
			char size[SL_FORMAT_BYTES], left[128];

			snprintf(left, sizeof(left), "%12s  %12s", "", size_word(size, owners.share.item[f].bytes));
			line(page, 28, left, owners.share.item[f].name);
		}
	}
	sl_owners_free(&owners);
}

static void put_peak(struct page *page)
{
	const struct sl_device_state *device;
	struct sl_process *process = peak_of(page->report, &device);
	char who[48], size[SL_FORMAT_BYTES];

	if (!process)
		return;
	head(page, "PEAK", false);
	fprintf(page->out, "     %s", rank_name(who, process));
	fprintf(page->out, "   %s   ", size_word(size, device->known_peak));
	put_spark(page, process, device->line);
	if (page->report->process_count > 1)
		put_others(page, process);
	end_line(page);
	put_peak_owners(page, process, device);
}

/* ---- growth, leaks, hidden, in flight */

static void put_growth(struct page *page)
{
	struct sl_process *process = NULL;
	const struct sl_growth *growth = NULL;
	const struct sl_label *label;
	char size[SL_FORMAT_BYTES], who[48], text[256];

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; k < page->report->processes[i].growth.count; k++) {
			const struct sl_growth *g = &page->report->processes[i].growth.item[k];

			if (!g->verdict || strcmp(g->verdict, "growing"))
				continue;
			if (growth && g->slope <= growth->slope)
				continue;
			growth = g;
			process = &page->report->processes[i];
		}
	if (!growth)
		return;
	label = &process->model->labels.item[growth->label];
	head(page, "GROWTH", false);
	snprintf(text, sizeof(text), "   +%s per %s, %s %.2f over %llu entries   %s", size_word(size, (uint64_t)growth->slope),
		 sl_defs_text(process->model->defs, label->text) ? sl_defs_text(process->model->defs, label->text) : "?",
		 page->style->ascii ? "r2" : "r²", growth->r_squared, (unsigned long long)label->entries,
		 page->report->process_count > 1 ? rank_name(who, process) : "");
	line(page, 0, text, "");
	page->said = true;
}

static void put_leaks(struct page *page)
{
	struct sl_process *process = NULL;
	const struct sl_leak *largest = NULL;
	uint64_t bytes = 0;
	unsigned places = 0;
	char size[SL_FORMAT_BYTES], each[SL_FORMAT_BYTES], where[200], left[128], right[512];

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; k < page->report->processes[i].leaks.count; k++) {
			const struct sl_leak *leak = &page->report->processes[i].leaks.item[k];

			if (strcmp(leak->verdict, "live_at_exit") && strcmp(leak->verdict, "growing"))
				continue;
			places++;
			bytes += leak->bytes;
			if (!largest || leak->bytes > largest->bytes) {
				largest = leak;
				process = &page->report->processes[i];
			}
		}
	if (!places)
		return;
	sl_owners_line(process, largest->python, largest->native, largest->caller, 1, where, sizeof(where));
	head(page, "LEAKS", false);
	snprintf(left, sizeof(left), "    %u place%s, %s", places, places == 1 ? "" : "s", size_word(size, bytes));
	snprintf(right, sizeof(right), "%s%s, %s in %llu block%s%s", places > 1 ? "largest: " : "",
		 where[0] ? where : largest->library, size_word(each, largest->bytes), (unsigned long long)largest->blocks,
		 largest->blocks == 1 ? "" : "s", largest->growing ? ", growing" : "");
	line(page, 30, left, right);
	page->said = true;
}

static void put_hidden(struct page *page)
{
	uint64_t least = UINT64_MAX, most = 0;
	unsigned count = 0;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < page->report->device_count; i++) {
		uint64_t hidden = page->report->devices[i].hidden_peak_bytes;

		if (hidden == SL_UNKNOWN || !hidden)
			continue;
		least = hidden < least ? hidden : least;
		most = hidden > most ? hidden : most;
		count++;
	}
	if (!count)
		return;
	head(page, "HIDDEN", false);
	if (count == 1 || least == most)
		fprintf(page->out, "   %s%s at most, outside recorded allocations", size_word(a, most),
			count > 1 ? " per device" : "");
	else
		fprintf(page->out, "   %s .. %s per device at most, outside recorded allocations", size_word(a, least),
			size_word(b, most));
	end_line(page);
}

static void put_in_flight(struct page *page)
{
	for (unsigned i = 0; i < page->report->process_count; i++) {
		const struct sl_process *process = &page->report->processes[i];

		for (size_t k = 0; k < process->model->in_flight.count && k < LINES_SHOWN; k++) {
			const struct sl_in_flight *call = &process->model->in_flight.item[k];
			const struct sl_hook *hook = sl_header_hook(process->model->header, call->api);
			char who[48], size[SL_FORMAT_BYTES];

			head(page, "IN FLIGHT", false);
			fprintf(page->out, "  %s", rank_name(who, process));
			fprintf(page->out, "  %s", hook ? hook->plain : "?");
			if (call->bytes)
				fprintf(page->out, " of %s", size_word(size, call->bytes));
			fprintf(page->out, " had not returned");
			end_line(page);
			page->said = true;
		}
	}
}

static void put_warnings(struct page *page)
{
	const struct sl_report *report = page->report;

	for (size_t i = 0; i < report->warnings.count && i < 8; i++)
		fprintf(page->out, "note: %s\n", report->warnings.item[i]);
	if (report->warnings.count > 8)
		fprintf(page->out, "note: %zu more in report.json\n", report->warnings.count - 8);
	for (unsigned i = 0; i < report->images.run_count; i++)
		if (i != report->run && report->images.runs[i].id[0])
			fprintf(page->out, "other run here: --run %s  (%u process%s)\n", report->images.runs[i].id,
				report->images.runs[i].images, report->images.runs[i].images == 1 ? "" : "es");
}

static void put_end(struct page *page)
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
	if (!page->said && !damaged)
		fputs("nothing to report\n", page->out);
	else
		fputc('\n', page->out);
	fprintf(page->out, "%s: %s events, %s lost", damaged || lost ? "incomplete" : "complete", sl_format_count(a, events),
		sl_format_count(b, lost));
	if (page->style->saved)
		fprintf(page->out, "   report: %s/report.json", page->style->saved);
	fputc('\n', page->out);
	if (page->said)
		fprintf(page->out, "next: stormlog-analyze tree --at %s %s\n", oom ? "oom" : "peak", report->path);
}

void sl_text_report(struct sl_report *report, FILE *out, const struct sl_text_style *style)
{
	struct page page = {report, out, style, false};

	put_title(&page);
	fputc('\n', out);
	put_ooms(&page);
	put_peak(&page);
	put_growth(&page);
	put_leaks(&page);
	put_hidden(&page);
	put_in_flight(&page);
	put_warnings(&page);
	put_end(&page);
}
