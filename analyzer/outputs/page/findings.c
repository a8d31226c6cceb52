/* SPDX-License-Identifier: MIT */
/* Out-of-memory errors, leaks and findings, as the cards show them. */
#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/owners.h"

static bool is_owner(const struct sl_model *model, const struct sl_oom *oom, const struct sl_owner *owner)
{
	return oom->device < 0 || sl_page_is_shown(model, &model->sites.item[owner->site], oom->device);
}

/* The place that the terminal names, with what it is for: up to `frames` frames. */
static void put_place(struct sl_page *page, unsigned process, struct sl_stack stack, unsigned frames)
{
	char where[512];

	sl_owners_line(&page->report->processes[process], stack, frames, where, sizeof(where));
	sl_page_put_text(page, "place", where[0] ? where : NULL);
}

static void put_owners(struct sl_page *page, unsigned process, const struct sl_oom *oom)
{
	const struct sl_model *model = page->report->processes[process].model;
	struct sl_rest rests[SL_RESTS_MAX];
	uint64_t unused;
	const char *name = sl_model_unused(&oom->torch, &unused);
	unsigned rest_count = sl_model_rests(model, &oom->torch, name, unused, rests);
	uint32_t count = rest_count;

	for (unsigned i = 0; i < oom->owner_count; i++)
		count += is_owner(model, oom, &oom->owners[i]);
	sl_page_put_array(page, "owners", count);
	for (unsigned i = 0; i < rest_count; i++) {
		msgpack_pack_map(&page->pack.pk, 4);
		sl_page_put_text(page, "name", rests[i].name);
		sl_page_put_known(page, "bytes", rests[i].bytes);
		sl_page_put_known(page, "blocks", 0);
		sl_page_put_known(page, "stack", 0);
	}
	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = &model->sites.item[oom->owners[i].site];

		if (!is_owner(model, oom, &oom->owners[i]))
			continue;
		msgpack_pack_map(&page->pack.pk, 5);
		put_place(page, process, site->stack, 2);
		sl_page_put_text(page, "name", sl_model_library(model, site));
		sl_page_put_known(page, "bytes", oom->owners[i].bytes);
		sl_page_put_known(page, "blocks", oom->owners[i].blocks);
		sl_page_put_uint(page, "stack", sl_page_site(page, process, oom->owners[i].site));
	}
}

/* Why the request failed, and the other holders of the device. */
static void put_account(struct sl_page *page, const struct sl_account *account)
{
	sl_page_put_text(page, "cause", account->cause_text);
	sl_page_put_text(page, "advice", account->advice);
	sl_page_put_known(page, "cached", account->cached);
	sl_page_put_known(page, "largest_cached", account->largest_cached);
	sl_page_put_known(page, "context", account->context);
	sl_page_put_text(page, "context_bound", account->context_bound);
	sl_page_put_known(page, "modules", account->modules);
	sl_page_put_known(page, "rounding", account->rounding);
	sl_page_put_known(page, "aside", account->aside);
	sl_page_put_known(page, "unexplained", account->unexplained);
}

static void put_oom(struct sl_page *page, unsigned process, size_t index)
{
	const struct sl_oom *oom = &page->report->processes[process].model->ooms.item[index];

	static const char *const scopes[] = {"vram", "host", "address_space", "context", "code"};
	const struct sl_hook *hook = sl_header_hook(page->report->processes[process].model->header, oom->api);

	sl_page_row(page, 26, process);
	sl_page_put_index(page, "device", oom->device);
	sl_page_put_time(page, "at", process, oom->time_ns);
	sl_page_put_uint(page, "attempts", page->report->processes[process].accounts[index].attempts_before + 1);
	sl_page_put_text(page, "api", hook ? hook->plain : NULL);
	sl_page_put_text(page, "scope", scopes[oom->scope]);
	sl_page_put_uint(page, "requested", oom->requested_bytes); /* a program may ask for -1 bytes */
	sl_page_put_known(page, "live", oom->live_bytes);
	sl_page_put_known(page, "free", oom->free_bytes);
	sl_page_put_known(page, "total", oom->total_bytes);
	sl_page_key(page, "recovered");
	if (oom->recovered < 0 && !oom->less_bytes)
		msgpack_pack_nil(&page->pack.pk);
	else
		sl_packed_bool(&page->pack, sl_oom_got_over(oom));
	sl_page_put_bool(page, "injected", oom->injected);
	sl_page_put_uint(page, "stack", sl_page_stack(page, process, oom->stack));
	put_place(page, process, oom->stack, 3);
	sl_page_put_array(page, "said", oom->pair_count);
	for (unsigned i = 0; i < oom->pair_count; i++)
		sl_packed_string(&page->pack, sl_defs_text(page->report->processes[process].model->defs, oom->pairs[i]));
	put_owners(page, process, oom);
	put_account(page, &page->report->processes[process].accounts[index]);
}

static void put_leak(struct sl_page *page, unsigned process, const struct sl_leak *leak)
{
	sl_page_row(page, 16, process);
	sl_page_put_index(page, "device", leak->device);
	sl_page_put_text(page, "kind", sl_event_kinds[leak->kind].name);
	sl_page_put_known(page, "bytes", leak->bytes);
	sl_page_put_known(page, "blocks", leak->blocks);
	sl_page_put_text(page, "verdict", leak->verdict);
	sl_page_put_text(page, "severity", leak->severity);
	sl_page_put_double(page, "growth", leak->growing ? leak->bytes_per_second : NAN);
	sl_page_put_text(page, "step", leak->step ? sl_defs_text(page->report->processes[process].model->defs, leak->step) : NULL);
	sl_page_put_double(page, "step_growth", leak->growing && leak->step ? leak->bytes_per_step : NAN);
	sl_page_put_double(page, "confidence", leak->growing ? leak->r_squared : NAN);
	sl_page_put_time(page, "first", process, leak->first_ns);
	sl_page_put_time(page, "last", process, leak->last_ns);
	sl_page_put_text(page, "suggestion", leak->suggestion);
	sl_page_put_text(page, "library", leak->library);
	sl_page_put_uint(page, "stack", sl_page_stack(page, process, leak->stack));
}

/* Evenly from all processes: each gives its first ones until the budget is spent. */
static size_t share_of(const struct sl_page *page, size_t count)
{
	size_t each = page->report->process_count ? page->budget.cards / page->report->process_count : 0;

	each = each ? each : 1;
	return count < each ? count : each;
}

/* One for each error, with its last attempt. */
static void put_ooms(struct sl_page *page, unsigned index, const struct sl_process *process)
{
	size_t count = process->model->ooms.count, left = share_of(page, count);

	for (size_t k = 0; k < count && left; k++)
		if (!process->accounts[k].told_later) {
			put_oom(page, index, k);
			left--;
		}
}

/* Errors, leaks and growing labels have cards of their own, which say the same. */
static bool has_card(const struct sl_finding *finding)
{
	static const char *const own[] = {"oom.", "leak.growing", "label."};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strncmp(finding->id, own[i], strlen(own[i])))
			return true;
	return false;
}

static void take_finding(struct sl_page *page, const struct sl_finding *finding)
{
	struct sl_page_finding *to = sl_page_find(page, finding->id, finding->severity);

	snprintf(to->text, sizeof(to->text), "%s", finding->text);
	to->advice = finding->advice;
	to->process = finding->process;
	to->device = finding->device;
	to->from_unix = to->to_unix = finding->unix_ns;
	to->bytes = finding->bytes;
	if (finding->bytes != SL_UNKNOWN) {
		snprintf(to->evidence[0].name, sizeof(to->evidence[0].name), "memory");
		sl_format_size(to->evidence[0].value, finding->bytes);
		to->evidence_count = 1;
	}
	if (finding->process >= 0)
		to->node = sl_page_stack(page, (unsigned)finding->process, finding->stack);
}

/* How much leaks, as the terminal counts it, and the largest in words. */
static void put_leaking(struct sl_page *page)
{
	struct sl_leak_list leaking = {0};
	const struct sl_leak_list_place *largest;
	char *text = NULL;

	sl_leak_list_take(&leaking, page->report);
	largest = leaking.place.count ? leaking.place.item : NULL;
	if (largest && largest->kept)
		text = sl_leak_words_sentence(&page->report->processes[largest->process], largest->kept);
	else if (largest)
		text = sl_leak_list_sentence(&page->report->processes[largest->process], largest->leak);
	sl_page_put_map(page, "leaking", 3);
	sl_page_put_known(page, "places", leaking.place.count);
	sl_page_put_known(page, "bytes", sl_leak_list_bytes(&leaking));
	sl_page_put_text(page, "text", text);
	free(text);
	sl_leak_list_free(&leaking);
}

void sl_page_findings(struct sl_page *page)
{
	const struct sl_report *report = page->report;

	sl_page_begin_rows(page, "ooms");
	for (unsigned i = 0; i < report->process_count; i++)
		put_ooms(page, i, &report->processes[i]);
	sl_page_end_rows(page);
	sl_page_begin_rows(page, "leaks");
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < share_of(page, report->processes[i].leaks.count); k++)
			put_leak(page, i, &report->processes[i].leaks.item[k]);
	sl_page_end_rows(page);
	put_leaking(page);
	for (size_t i = 0; i < report->findings.count && i < page->budget.cards; i++)
		if (!has_card(&report->findings.item[i]))
			take_finding(page, &report->findings.item[i]);
}
