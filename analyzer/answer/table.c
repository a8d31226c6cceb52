/* SPDX-License-Identifier: MIT */
/*
 * The table of a verdict: who held the memory, by role, then by library; what is unused; what is not the program's own.  Its rows
 * add up to the total.
 */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/window_facts.h"

#define LINES_SHOWN 2
#define LITTLE	    33	/* a line with less than one of so many parts of its row is not named */
#define LITTLE_ROW  200 /* less than one of so many parts of the total has no row of its own */
#define COURSE	    14

/* True: most of what a snapshot's site held at the peak is gone at its end. */
static bool is_freed(struct sl_process *process, const struct sl_site *site)
{
	return !process->model->recording.follows_process && 2 * site->live_bytes < sl_model_site_at_peak(process->model, site);
}

static const char earlier[] = "earlier";

/* Autocast copied a weight there, in half precision. */
static bool is_autocast_copy(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = process->model->recording.follows_process ? 0 : sl_process_stack(process, frames, stack);

	return count && frames[0].function && !strcmp(frames[0].function, "copies of weights by autocast");
}

/* What a row is called: the role, or the library where none is known. */
static const char *row_of(struct sl_process *process, const struct sl_site *site)
{
	static const char *const roles[SL_ROLE_COUNT] = {
		[SL_ROLE_PARAMETERS] = "parameters",	   [SL_ROLE_GRADIENTS] = "gradients", [SL_ROLE_OPTIMIZER] = "optimizer",
		[SL_ROLE_ACTIVATIONS] = "activations",	   [SL_ROLE_CACHE] = "cache",	      [SL_ROLE_KV_CACHE] = "KV cache",
		[SL_ROLE_COMMUNICATION] = "communication",
	};
	enum sl_role role = sl_roles_of(process, site);
	const char *library = sl_model_library(process->model, site);

	if (sl_window_is_before(process, site->stack))
		return earlier;
	if (is_autocast_copy(process, site->stack))
		return "autocast copies";
	if (sl_model_is_cublas(library))
		return "cuBLAS";
	if (role == SL_ROLE_OPTIMIZER && is_freed(process, site))
		return "optimizer step";
	if (roles[role])
		return roles[role];
	if (site->kind == SL_KIND_block)
		return role == SL_ROLE_WORKSPACE ? "workspaces" : "tensors";
	return library;
}

/* "no stack in the file": a snapshot has sizes only. */
static const char *line_of(char out[SL_MAKE_LINE], struct sl_process *process, const struct sl_site *site)
{
	const char *called = site->kind == SL_KIND_block ? sl_defs_text(process->model->defs, site->label) : NULL;

	sl_make_named(out, process, site->stack);
	if (!out[0])
		snprintf(out, SL_MAKE_LINE, "%s", called ? called : "no stack");
	return out;
}

static bool is_leak(struct sl_process *process, const struct sl_site *site, const struct sl_leak_list_place *leak)
{
	unsigned kind;

	if (!leak)
		return false;
	kind = leak->leak_line ? leak->leak_line->track->kind : leak->leak->kind;
	return site->kind == kind && sl_place_key(process, site->stack) == sl_place_key(process, leak->stack);
}

/* *leak_bytes: what of the leak is in no row yet; other blocks of its line are no part of it. */
static void add_site(struct sl_owners *owners, struct sl_process *process, const struct sl_site *site, uint64_t bytes, bool at_peak,
		     const struct sl_leak_list_place *leak, uint64_t *leak_bytes)
{
	char line[SL_MAKE_LINE];
	uint64_t workspace_bytes = at_peak ? sl_roles_workspaces(process, site, true).bytes : 0, part = 0;

	line_of(line, process, site);
	if (workspace_bytes)
		sl_owners_add(owners, (const char *[]){"cuBLAS", line}, 2, workspace_bytes, 0);
	bytes -= workspace_bytes < bytes ? workspace_bytes : bytes;
	if (is_leak(process, site, leak))
		part = bytes < *leak_bytes ? bytes : *leak_bytes;
	if (part)
		sl_owners_add(owners, (const char *[]){"this leak", line}, 2, part, 0);
	if (bytes > part)
		sl_owners_add(owners, (const char *[]){row_of(process, site), line}, 2, bytes - part, 0);
	*leak_bytes -= part;
}

/* What an allocator holds beyond blocks: "unused", CUDA graphs, JAX's pool. */
static void add_rests(struct sl_owners *owners, struct sl_process *process, const struct sl_torch *torch, const char *name,
		      uint64_t bytes)
{
	struct sl_rest rests[SL_RESTS_MAX];
	unsigned count = name ? sl_model_rests(process->model, torch, name, bytes, rests) : 0;

	for (unsigned i = 0; i < count; i++) {
		char line[SL_MAKE_LINE] = "";
		const char *called = strstr(rests[i].name, "JAX")		? "JAX's pool"
				     : strstr(rests[i].name, "graph")		? "CUDA graphs"
				     : strstr(rests[i].name, "kept by PyTorch") ? "unused"
										: rests[i].name;
		const char *names[2] = {called, line};

		sl_make_named(line, process, rests[i].stack);
		sl_owners_add(owners, names, line[0] ? 2 : 1, rests[i].bytes, 0);
	}
}

/* "train.py:99 Optimizer.step"; "2.50 train.py:79, 1.25 train.py:83". */
static void put_lines(char *out, size_t size, const struct sl_owners *owners, uint32_t row, uint64_t total)
{
	const struct sl_share *share = owners->share.item;
	uint32_t first = share[row].child, next = first ? share[first].sibling : 0;
	unsigned lines = 0, more = 0;
	uint64_t unit;
	size_t at = 0, cut;
	double whole;

	out[0] = 0;
	sl_answer_unit(total, &unit);
	whole = (double)total / (double)unit;
	if (first && (!next || share[next].bytes * LITTLE < share[row].bytes)) {
		snprintf(out, size, "%s", share[first].name);
		return;
	}
	for (uint32_t l = first; l; l = share[l].sibling) {
		const char *name = share[l].name;

		if (lines == LINES_SHOWN || share[l].bytes * LITTLE < share[row].bytes) {
			more++;
			continue;
		}
		cut = strcspn(name, " ");
		at += (size_t)snprintf(out + at, size - at, "%s%.*f %s%.*s", lines++ ? ", " : "",
				       unit == 1       ? 0
				       : whole < 9.995 ? 2
				       : whole < 99.95 ? 1
						       : 0,
				       (double)share[l].bytes / (double)unit, strncmp(name, "blocks ", 7) ? "" : "in ",
				       (int)(memchr(name, ':', cut) ? cut : strlen(name)), name);
	}
	if (more && at < size)
		snprintf(out + at, size - at, ", %u more", more);
}

static const char kept_unused[] = "kept by PyTorch for later requests";

bool sl_make_was_fuller(const struct sl_device_state *device)
{
	const struct sl_torch *peak = &device->torch_at_peak;

	return device->torch.peak_allocated_bytes > peak->allocated_bytes &&
	       2 * (device->torch.peak_allocated_bytes - peak->allocated_bytes) > peak->reserved_bytes - peak->allocated_bytes;
}

static void put_rows(struct sl_answer *answer, const struct sl_owners *owners, uint64_t total, const char *unused)
{
	const struct sl_share *share = owners->share.item;
	char text[400];

	answer->table.total = total;
	for (uint32_t row = share[0].child; row; row = share[row].sibling)
		if (strcmp(share[row].name, "unused") != 0 && share[row].bytes) {
			put_lines(text, sizeof(text), owners, row, total);
			sl_answer_row(answer, share[row].bytes, share[row].name, "%s%s",
				      !strcmp(share[row].name, earlier) ? "made before the recording, " : "", text);
		}
	for (uint32_t row = share[0].child; row; row = share[row].sibling)
		if (!strcmp(share[row].name, "unused") && share[row].bytes)
			sl_answer_row_fixed(answer, share[row].bytes, "unused", unused);
}

static void put_course(struct sl_answer *answer, const struct sl_line *line)
{
	uint32_t count;

	if (!line || !line->begun || line->bin < line->first)
		return;
	count = line->bin + 1 - line->first;
	for (uint32_t c = 0; c < COURSE && c < count; c++) {
		uint32_t columns = count < COURSE ? count : COURSE;
		uint64_t max_bytes = 0;

		for (uint32_t b = line->first + count * c / columns; b < line->first + count * (c + 1) / columns; b++)
			max_bytes = line->bins[b].max > max_bytes ? line->bins[b].max : max_bytes;
		*SL_PUSH(&answer->table.course) = max_bytes;
	}
}

void sl_make_peak(struct sl_make *make, struct sl_answer *answer, struct sl_process *process, const struct sl_device_state *device,
		  const struct sl_leak_list_place *leak)
{
	const struct sl_model *model = process->model;
	struct sl_owners owners;
	const char *rest;
	uint64_t left = 0, listed = 0, leak_bytes = leak ? answer->bytes : 0, bytes;

	if (!device || !device->known_peak)
		return;
	sl_owners_init(&owners);
	for (const struct sl_site *site = NULL; (site = sl_owners_next(process, device->device, SL_WEIGH_PEAK, site, &bytes));)
		add_site(&owners, process, site, bytes, true, leak, &leak_bytes);
	rest = sl_model_rest_at_peak(model, device, &left);
	add_rests(&owners, process, &device->torch_at_peak, rest, left);
	sl_owners_sort(&owners);
	for (uint32_t row = owners.share.item[0].child; row; row = owners.share.item[row].sibling)
		listed += owners.share.item[row].bytes;
	answer->table.moment = model->recording.lists_tensors	      ? "reserved, at the peak"
			       : sl_trace_lost_events(process->trace) ? "held at least, at the peak"
								      : "held, at the peak";
	put_rows(answer, &owners, answer->table.total + (listed > device->known_peak ? listed : device->known_peak),
		 sl_make_was_fuller(device)
			 ? sl_answers_text(make->to, "tensors held %s before", SL_ANSWER_SIZE(device->torch.peak_allocated_bytes))
			 : kept_unused);
	if (listed < device->known_peak)
		sl_answer_row(answer, device->known_peak - listed, "others", NULL);
	put_course(answer, device->line);
	sl_owners_free(&owners);
}

static uint64_t or_zero(uint64_t bytes)
{
	return bytes == SL_UNKNOWN ? 0 : bytes;
}

/* What of the card no call asked for: the context and its code, what no figure explains, and what is free. */
static void put_beside(struct sl_answer *answer, const struct sl_account *account, uint64_t free_bytes, uint64_t rest,
		       uint64_t total, uint64_t pool_most)
{
	const struct {
		uint64_t bytes;
		const char *name;
	} parts[] = {{or_zero(account->context), "CUDA context"},
		     {or_zero(account->modules), "code"},
		     {or_zero(account->aside), "set aside by a limit"},
		     {or_zero(account->rounding), "rounding"}};
	uint64_t unit, left = or_zero(free_bytes) < rest ? or_zero(free_bytes) : rest, sum = 0;
	const char *name = NULL;
	unsigned count = 0, at = 0;
	char text[200];

	sl_answer_unit(total, &unit);
	for (size_t i = 0; i < SL_COUNT(parts); i++) {
		double amount = (double)parts[i].bytes / (double)unit;

		if (amount < 0.005)
			continue;
		name = !name ? parts[i].name : i == 1 ? "context, code" : name;
		at += (unsigned)snprintf(text + at, sizeof(text) - at, "%s%.2f %s", count++ ? ", " : "", amount, parts[i].name);
		sum += parts[i].bytes;
	}
	rest -= left;
	if (name && (sum > rest || (rest - sum) * LITTLE_ROW < total))
		sum = rest;
	if (count > 1)
		sl_answer_row_bare(answer, sum, name, "%s", text);
	else if (name)
		sl_answer_row_bare(answer, sum, name, NULL);
	if (rest > sum)
		sl_answer_row_bare(answer, rest - sum, free_bytes == SL_UNKNOWN ? "free or not ours" : "not ours", NULL);
	if (left && pool_most)
		sl_answer_row_bare(answer, left, "free", "not for the pool");
	else if (left)
		sl_answer_row_bare(answer, left, "free", NULL);
}

void sl_make_full(struct sl_make *make, struct sl_answer *answer, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_account *account = sl_process_account(process, oom);
	const struct sl_device_state *device = oom->device >= 0 ? process->model->devices[oom->device + 1] : NULL;
	bool at_peak = device && device->known_peak == oom->live_bytes &&
		       device->torch_at_peak.allocated_bytes == oom->torch.allocated_bytes,
	     card = oom->total_bytes != SL_UNKNOWN && !account->own_limit;
	uint64_t own = 0, rest, limit = or_zero(account->own_limit), total = card ? oom->total_bytes : limit ?: oom->live_bytes, bytes;
	const struct sl_owner *owner = NULL;
	const struct sl_site *site = NULL;
	struct sl_owners owners;

	if (oom->scope == SL_SCOPE_HOST || !total || !oom->live_bytes)
		return;
	sl_owners_init(&owners);
	while (at_peak && (site = sl_owners_next(process, device->device, SL_WEIGH_PEAK, site, &bytes)))
		add_site(&owners, process, site, bytes, true, NULL, &(uint64_t){0});
	while (!at_peak && (owner = sl_owners_at_error(process, oom, owner, &site)))
		if (owner->bytes && sl_owners_shows(process, site))
			add_site(&owners, process, site, owner->bytes, false, NULL, &(uint64_t){0});
	if (or_zero(account->cached) && !oom->of_framework)
		add_rests(&owners, process, &oom->torch, sl_model_rest_name(&oom->torch), account->cached);
	sl_owners_sort(&owners);
	for (uint32_t row = owners.share.item[0].child; row; row = owners.share.item[row].sibling)
		own += owners.share.item[row].bytes;
	if (own < oom->live_bytes && !oom->of_framework) {
		sl_owners_add(&owners, (const char *[]){"others"}, 1, oom->live_bytes - own, 0);
		sl_owners_sort(&owners);
		own = oom->live_bytes;
	}
	if (own > total) { /* parts that exceed the whole are of no card */
		total = own;
		card = false;
		limit = 0;
	}
	answer->table.moment = oom->of_framework       ? "JAX's pool at the error"
			       : card && oom->injected ? "the limit (--limit) at the error"
			       : card		       ? "the card at the error"
			       : limit		       ? "PyTorch's limit at the error"
						       : "held, at the error";
	put_rows(answer, &owners, total, kept_unused);
	sl_owners_free(&owners);
	rest = total - own;
	for (unsigned i = 0; i < account->other_count && card && rest; i++) {
		uint64_t bytes = account->others[i].bytes < rest ? account->others[i].bytes : rest;
		char name[48];

		if (i == SL_NAMED && account->other_count > SL_NAMED + 1) {
			for (bytes = 0; i < account->other_count; i++)
				bytes += account->others[i].bytes;
			bytes = bytes < rest ? bytes : rest;
			snprintf(name, sizeof(name), "%u processes", account->other_count - SL_NAMED);
			sl_answer_row(answer, bytes, name, NULL);
		} else {
			const struct sl_process *other = account->others[i].process;

			snprintf(name, sizeof(name), "process %lld", (long long)account->others[i].pid);
			if (account->others[i].rank >= 0)
				sl_answer_row(answer, bytes, name, "rank %lld of this run%s", (long long)account->others[i].rank,
					      account->others[i].stray ? ", a stray context" : "");
			else
				sl_answer_row(answer, bytes, name, "%s",
					      other ? sl_stacks_program(&other->trace->header) : "not recorded");
		}
		rest -= bytes;
	}
	if (rest && (oom->of_framework || limit))
		sl_answer_row_bare(answer, rest, "free", NULL);
	else if (rest)
		put_beside(answer, account, oom->free_bytes, rest, total, oom->pool_most_bytes);
}
