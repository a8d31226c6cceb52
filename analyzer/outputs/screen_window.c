/* SPDX-License-Identifier: MIT */
/* The screen of snapshots of PyTorch's. */

#include "analyzer/base/escape.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/window.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/window_facts.h"

#define SHOWN	    6
#define PARTS	    5	/* sizes of what was made before the window, largest sum first */
#define LEAST_PART  100 /* a row that is smaller than one of so many parts is not drawn */
#define LEAST_REST  500 /* the same of smaller places together, and of rounding */
#define LARGE_PART  33	/* rows of at least one of so many parts are drawn beyond the first SHOWN */
#define SHOWN_LARGE 12
#define LAYERS	    4 /* a line that holds so many blocks of one stack at once keeps them for a backward pass */
#define RIGHT	    44
#define SPARK	    64
#define NOTES	    8

/* Bytes of tensors at the device's peak. */
static uint64_t requested_at_peak(const struct sl_device_state *device)
{
	return device->torch_at_peak.allocated_bytes - device->torch_at_peak.rounding;
}

/* The device on which most was asked for; NULL: nothing was. */
static const struct sl_device_state *fullest(const struct sl_process *process)
{
	const struct sl_device_state *most = NULL;

	for (int d = 1; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->known_peak && (!most || requested_at_peak(state) > requested_at_peak(most)))
			most = state;
	}
	return most;
}

void sl_screen_window_title(struct sl_screen_page *page)
{
	const struct sl_process *process = &page->report->processes[0];
	const struct sl_header *header = process->model->header;
	const struct sl_device_state *device = fullest(process);
	struct sl_window_facts facts = {0};
	char releases[40], window[160] = "", kind[120];
	bool npu = *sl_header_setting(header, "snapshot_npu");

	sl_window_facts(header, device ? device->device : 0, &facts);
	sl_screen_head(page, sl_stacks_program(header), SL_SCREEN_PLAIN);
	snprintf(kind, sizeof(kind), "a PyTorch snapshot (%s)",
		 npu ? "of torch_npu, for Ascend" : sl_window_releases(header, releases, sizeof(releases)));
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
	sl_screen_say(page, "   %s   device %d   %s", kind, device ? device->device : 0, window);
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

/* One row: a line or the name of an operation, with its purpose. */
struct row {
	char name[256], what[320];
	uint64_t bytes;
	unsigned parts; /* of what was made before the window */
	struct {
		/* once: of stacks that never replaced a block; gathered: also of those that held several at once, as layers do */
		uint64_t bytes, once, gathered, live;
	} of[SL_ROLE_COUNT];
	/* Bytes that were freed in the window, of an optimizer or of no known purpose. */
	uint64_t freed, freed_by_optimizer;
};

struct rows {
	SL_VECTOR(struct row) row;
	struct sl_map names; /* index + 1 */
	uint64_t before;     /* what was held before the window and still is, with a stack or without */
};

static struct row *row_of(struct rows *rows, const char *name)
{
	uintptr_t *at = sl_map_at(&rows->names, name);
	struct row *row;

	if (*at)
		return &rows->row.item[*at - 1];
	row = SL_PUSH(&rows->row);
	*row = (struct row){0};
	snprintf(row->name, sizeof(row->name), "%s", name);
	*at = rows->row.count;
	return row;
}

/* "108 of 25.0 MiB" where the file has no stack of blocks of this size; else the name. */
static const char *sized(char out[64], const struct sl_process *process, const struct sl_site *site, const char *name)
{
	static const char prefix[] = "blocks ";

	if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
		return name ?: "?";
	snprintf(out, 64, "%s %s", SL_NUMBER(sl_model_blocks_at_peak(process->model, site)), name + strlen(prefix));
	return out;
}

/*
 * False: the operator computes a value, which each step of an optimizer makes anew.  State is made by zeros_like and the like;
 * where the stack has no operator, that is assumed.
 */
static bool makes_state(const struct sl_stack_frame *frames, unsigned count)
{
	static const char *const makers[] = {"zeros", "empty", "full", "ones", "clone", "copy"};

	if (!count || frames[0].python || !frames[0].function)
		return true;
	for (size_t i = 0; i < SL_COUNT(makers); i++)
		if (strstr(frames[0].function, makers[i]))
			return true;
	return false;
}

static void add_site(struct rows *rows, struct sl_process *process, const struct sl_site *site, uint64_t bytes)
{
	const struct sl_track *track = &process->model->tracks.item[site->track];
	struct sl_stack_frame frames[SL_STACK_MAX];
	char name[256], part[64];
	enum sl_role role;
	struct row *row;

	unsigned count = sl_process_stack(process, frames, site->stack);

	if (count && frames[count - 1].function && !strcmp(frames[count - 1].function, "made before the window"))
		rows->before += bytes;
	if (count == 2 && frames[1].function && !strcmp(frames[1].function, "no stack in the file")) {
		row = row_of(rows, sized(part, process, site, frames[0].function));
		row->bytes += bytes;
		snprintf(row->what, sizeof(row->what), "no stack in the file");
		return;
	}
	if (sl_window_is_before(process, site->stack)) {
		row = row_of(rows, "made before the window");
		row->bytes += bytes;
		if (row->parts <= PARTS && frames[0].function && strcmp(frames[0].function, "other sizes") != 0)
			snprintf(row->what + strlen(row->what), sizeof(row->what) - strlen(row->what), "%s%s",
				 row->what[0] ? ", " : "",
				 row->parts++ < PARTS ? sized(part, process, site, frames[0].function) : "and more");
		return;
	}
	if (count && frames[0].function && !strcmp(frames[0].function, "copies of weights by autocast")) {
		row = row_of(rows, frames[0].function);
		row->bytes += bytes;
		snprintf(row->what, sizeof(row->what), "in half precision");
		return;
	}
	sl_owners_line(process, site->stack, 1, name, sizeof(name));
	if (strstr(name, " via "))
		*strstr(name, " via ") = 0;
	role = sl_roles_of(process, site);
	row = row_of(rows, name[0] ? name : "without a stack");
	row->bytes += bytes;
	if (2 * site->live_bytes < bytes && (role == SL_ROLE_OPTIMIZER || role == SL_ROLE_UNKNOWN)) {
		row->freed += bytes;
		row->freed_by_optimizer += role == SL_ROLE_OPTIMIZER ? bytes : 0;
		return;
	}
	row->of[role].bytes += bytes;
	row->of[role].gathered += track->births <= track->most_blocks || track->most_blocks >= LAYERS ? bytes : 0;
	if (track->births <= track->most_blocks && (role != SL_ROLE_OPTIMIZER || makes_state(frames, count)))
		row->of[role].once += bytes;
	row->of[role].live += site->live_bytes;
}

struct held {
	const struct sl_site *site;
	uint64_t bytes;
};

static int by_held(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: SL_RISING((uintptr_t)x->site, (uintptr_t)y->site);
}

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

/* Why the row has less than what was held before the window. */
static void add_before(struct rows *rows, uint64_t at_start)
{
	for (size_t i = 0; i < rows->row.count; i++) {
		struct row *row = &rows->row.item[i];
		size_t used = strlen(row->what);

		if (strcmp(row->name, "made before the window") != 0)
			continue;
		if (at_start > rows->before)
			used += (size_t)snprintf(row->what + used, sizeof(row->what) - used, "; %s more had been freed by then",
						 SL_SIZE(at_start - rows->before));
		if (rows->before > row->bytes)
			snprintf(row->what + used, sizeof(row->what) - used, "; %s more are counted at their lines, below",
				 SL_SIZE(rows->before - row->bytes));
	}
}

/* The role of most of the row's memory. */
static enum sl_role role_of(const struct row *row)
{
	enum sl_role role = SL_ROLE_UNKNOWN;

	for (enum sl_role r = 0; r < SL_ROLE_COUNT; r++)
		if (row->of[r].bytes > row->of[role].bytes)
			role = r;
	return role;
}

/* What a line of an optimizer keeps, and what it frees again, are two rows. */
static void part_optimizers(struct rows *rows)
{
	for (size_t i = rows->row.count; i--;) {
		struct row *row = &rows->row.item[i], freed = {.bytes = row->freed};
		enum sl_role role = role_of(row);

		if (role != SL_ROLE_OPTIMIZER && (row->of[role].bytes || 2 * row->freed_by_optimizer <= row->freed)) {
			row->of[SL_ROLE_OPTIMIZER].bytes += row->freed_by_optimizer;
			row->of[SL_ROLE_UNKNOWN].bytes += row->freed - row->freed_by_optimizer;
			continue;
		}
		snprintf(freed.name, sizeof(freed.name), "%s", row->name);
		snprintf(freed.what, sizeof(freed.what), "made and freed in the optimizer's step");
		row->bytes -= row->freed;
		if (!row->bytes)
			*row = freed;
		else if (freed.bytes)
			*SL_PUSH(&rows->row) = freed;
	}
}

/* The purpose of the memory, as far as one round of the program's loop shows it.  backward: the window has a backward pass. */
static const char *what_for(const struct row *row, bool window, bool backward)
{
	enum sl_role role = role_of(row);
	bool once, stays;

	if (row->what[0])
		return row->what;
	once = window && 2 * row->of[role].once >= row->of[role].bytes;
	stays = 2 * row->of[role].live >= row->of[role].bytes;
	switch (role) {
	case SL_ROLE_PARAMETERS:
	case SL_ROLE_WORKSPACE:
	case SL_ROLE_COMMUNICATION:
		return sl_roles_name(role);
	case SL_ROLE_GRADIENTS:
		return window && stays ? "gradients: made in backward, held" : "made in backward";
	case SL_ROLE_OPTIMIZER:
		return once ? "optimizer, made once" : window ? "made in the optimizer's step" : "optimizer";
	case SL_ROLE_ACTIVATIONS:
		return (backward ? 2 * row->of[role].gathered >= row->of[role].bytes : once && stays) && window
			       ? "activations: held for backward"
			       : "made in forward";
	default:
		return "";
	}
}

/* True: the window has a backward pass.  Where stacks have Python only, a block of autograd's thread has none. */
static bool has_backward(struct sl_process *process, int device)
{
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];

		if (site->device == device && site->kind == SL_KIND_block && site->api &&
		    (!site->stack.python || sl_roles_of(process, site) == SL_ROLE_GRADIENTS))
			return true;
	}
	return false;
}

/* True: the file has no stack of most of the memory. */
static bool put_rows(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device, bool window,
		     uint64_t at_start)
{
	struct rows rows = {0};
	uint64_t left = 0, unused = 0, rest = 0, more = 0, without = 0;
	const char *name = sl_model_rest_at_peak(process->model, device, &unused);
	bool backward = has_backward(process, device->device);
	SL_VECTOR(struct held) held = {0};
	unsigned places = 0;

	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes = site->device == device->device && site->kind == SL_KIND_block
					 ? sl_model_site_at_peak(process->model, site)
					 : 0;

		if (bytes && site->api)
			*SL_PUSH(&held) = (struct held){site, bytes};
		else
			left += bytes; /* rounding */
	}
	if (held.count)
		qsort(held.item, held.count, sizeof(*held.item), by_held);
	for (size_t i = 0; i < held.count; i++)
		add_site(&rows, process, held.item[i].site, held.item[i].bytes);
	SL_DROP(&held);
	part_optimizers(&rows);
	add_before(&rows, at_start);
	if (rows.row.count)
		qsort(rows.row.item, rows.row.count, sizeof(*rows.row.item), by_bytes);
	for (size_t i = 0; i < rows.row.count; i++)
		without += !strcmp(rows.row.item[i].what, "no stack in the file") ? rows.row.item[i].bytes : 0;
	for (size_t i = 0; i < rows.row.count; i++)
		if (i < (rows.row.item[i].bytes >= requested_at_peak(device) / LARGE_PART ? SHOWN_LARGE : SHOWN) &&
		    rows.row.item[i].bytes >= requested_at_peak(device) / LEAST_PART)
			sl_screen_owner(page, rows.row.item[i].bytes, rows.row.item[i].name,
					what_for(&rows.row.item[i], window, backward));
		else
			more += rows.row.item[i].bytes, places++;
	rest = more;
	if (rest >= requested_at_peak(device) / LEAST_REST) {
		char text[64];

		snprintf(text, sizeof(text), "%u smaller place%s", places, places == 1 ? "" : "s");
		sl_screen_owner(page, rest, text, "");
	}
	if (left >= requested_at_peak(device) / LEAST_REST)
		sl_screen_owner(page, left, "rounding of sizes", "");
	if (name)
		sl_screen_owner(page, unused, name, "");
	free(rows.row.item);
	sl_map_free(&rows.names);
	return without > requested_at_peak(device) / 2;
}

/* " at part1.py:109 work1"; "" where no line is known. */
static const char *at_line(char *out, size_t size, struct sl_process *process, struct sl_stack stack)
{
	char line[256];

	sl_owners_line(process, stack, 1, line, sizeof(line));
	snprintf(out, size, "%s%s", *line ? " at " : "", line);
	return out;
}

/* Of analyses/retried.c; NULL: none. */
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
	sl_screen_say(page, "     %s%s in tensors, %s reserved%s%s%s%s", who, SL_SIZE(requested_at_peak(device)),
		      SL_SIZE(device->torch_at_peak.reserved_bytes), when, *spark ? "   " : "", spark, others);
	no_stacks = put_rows(page, process, device, window, facts.requested);
	if (window)
		put_cache(page, process, device);
	if (!window && facts.waiting >= requested_at_peak(device) / LEAST_PART)
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
	char why[120], set[SL_FIT_SPAN_BYTES], to[SL_FIT_SPAN_BYTES];
	const char *other = "";

	sl_fit_ask(&subject, recording, &question);
	sl_screen_head(page, "FIT", SL_SCREEN_PLAIN);
	if (!subject.answers || subject.answers[0].high == SL_UNKNOWN) {
		sl_screen_say(page, "      no verdict: %s",
			      subject.answers ? SL_FIT_SPENT : sl_fit_why(&subject, why, sizeof(why)));
	} else {
		if (question.setting_count > 1 && subject.answers[1].high != SL_UNKNOWN)
			other = sl_fit_span(&subject.answers[1], to);
		sl_screen_say(page, "      PyTorch's allocator needs %s%s as set%s%s%s%s (replay exact)",
			      strstr(sl_fit_span(&subject.answers[0], set), " to ") ? ""
			      : recording->reserved_start || recording->ooms	    ? "at least "
										    : "",
			      set, *other ? ", " : "", other, *other ? " with expandable_segments:True" : "",
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
