/* SPDX-License-Identifier: MIT */
/* Out of memory: the request, the holders of the device, why it did not fit, and the first rank. */

#include "analyzer/base/escape.h"
#include "analyzer/analyses/oom_causes.h"
#include "analyzer/base/format.h"
#include "analyzer/report/change.h"
#include "analyzer/report/merge_lines.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/window_facts.h"
#include "analyzer/outputs/screen_page.h"

#define RIGHT 40

/* The largest sites at the error, by library. */
static void put_owners(struct sl_screen_page *page, struct sl_process *process, const struct sl_oom *oom)
{
	long long communicators = (long long)sl_collectives_communicators(process->model);
	const char *rest = "smaller parts";
	uint64_t listed = 0;
	struct sl_owners owners;

	sl_owners_init(&owners);
	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];
		const char *names[2] = {sl_model_library(process->model, site)};
		uint64_t taken = 0, blocks;
		char where[512], line[600];

		if (oom->scope != SL_SCOPE_HOST && !sl_owners_shows(process, site))
			continue;
		sl_screen_place(process, site, where, sizeof(where));
		snprintf(line, sizeof(line), "%s", where[0] ? where : "no stack");
		if (strstr(names[0], "nccl") && communicators > 1)
			snprintf(line, sizeof(line), "%lld communicators  %s", communicators, where);
		if (!strcmp(names[0], "PyTorch tensors"))
			names[0] = "tensors";
		names[1] = line;
		if (oom->owners[i].bytes == sl_model_site_at_peak(process->model, site))
			taken = sl_roles_workspaces(process, site, &blocks);
		if (taken)
			sl_owners_add(&owners, (const char *[]){SL_SCREEN_WORKSPACES, line}, 2, taken, blocks);
		sl_owners_add(&owners, names, 2, oom->owners[i].bytes - taken,
			      sl_screen_blocks(process, site, oom->owners[i].blocks));
		listed += oom->owners[i].bytes;
	}
	if (oom->owner_count == SL_OWNERS_MAX && !oom->torch.used && listed < oom->live_bytes)
		sl_owners_add(&owners, &rest, 1, oom->live_bytes - listed, 0);
	sl_owners_sort(&owners);
	sl_screen_shares(page, &owners);
	sl_owners_free(&owners);
}

static size_t add_part(char *out, size_t size, size_t at, const char *name, uint64_t bytes)
{
	if (bytes == SL_UNKNOWN || !bytes || at >= size)
		return at;
	return at + (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", name, SL_SIZE(bytes));
}

static void say_other(char *out, size_t size, const struct sl_account *account, unsigned i)
{
	struct sl_process *process = account->others[i].process;
	char where[200] = "";

	if (!process || account->others[i].rank < 0) {
		snprintf(out, size, "%s", process ? "of this run" : "not recorded");
		return;
	}
	if (account->others[i].stray)
		sl_owners_line(process, account->others[i].state->context_stack, 2, where, sizeof(where));
	snprintf(out, size, "%srank %lld of this run%s%s%s", sl_process_is_rank(process) ? "" : "a child of ",
		 (long long)account->others[i].rank, account->others[i].stray ? ": stray context" : "",
		 where[0] ? ", made at " : "", where);
}

/* Prints the other processes on the device; those with the same words share a line. */
static void put_others(struct sl_screen_page *page, const struct sl_account *account)
{
	char name[64], each[SL_FORMAT_BYTES], what[2][256], text[320];
	unsigned shown = 0, i, k;
	uint64_t bytes, more = 0;

	for (i = 0; i < account->other_count && shown < SL_NEIGHBOURS_MAX; i = k, shown++) {
		say_other(what[0], sizeof(what[0]), account, i);
		sl_format_size(each, account->others[i].bytes);
		for (bytes = 0, k = i; k < account->other_count; bytes += account->others[k++].bytes) {
			say_other(what[1], sizeof(what[1]), account, k);
			if (strcmp(what[0], what[1]) != 0 || strcmp(each, SL_SIZE(account->others[k].bytes)) != 0)
				break;
		}
		if (k == i + 1) {
			snprintf(name, sizeof(name), "process %lld", (long long)account->others[i].pid);
			sl_screen_owner(page, bytes, name, what[0]);
			continue;
		}
		snprintf(name, sizeof(name), "%u processes", k - i);
		snprintf(text, sizeof(text), "%s, %s each", what[0], each);
		sl_screen_owner(page, bytes, name, text);
	}
	for (k = i; k < account->other_count; k++)
		more += account->others[k].bytes;
	if (more) {
		snprintf(name, sizeof(name), "%u more processes", account->other_count - i);
		sl_screen_owner(page, more, name, "");
	}
}

/* What allocators hold beyond blocks. */
static void put_kept(struct sl_screen_page *page, struct sl_process *process, const struct sl_oom *oom,
		     const struct sl_account *account)
{
	struct sl_rest rests[SL_RESTS_MAX];
	unsigned count = account->cached == SL_UNKNOWN ? 0
						       : sl_model_rests(process->model, &oom->torch,
									sl_model_rest_name(&oom->torch), account->cached, rests);

	for (unsigned i = 0; i < count; i++) {
		const struct sl_site site = {.stack = rests[i].stack};
		bool cut = account->cause == SL_CAUSE_FRAGMENTED;
		char right[256];

		if (rests[i].bytes <= oom->live_bytes / 100)
			continue;
		sl_screen_place(process, &site, right, sizeof(right));
		if (!right[0] && account->largest_cached != SL_UNKNOWN && account->largest_cached <= rests[i].bytes)
			snprintf(right, sizeof(right), "%slargest piece %s", cut ? "fragmented: " : "",
				 SL_SIZE(account->largest_cached));
		sl_screen_owner(page, rests[i].bytes, rests[i].name, right);
	}
}

/*
 * Memory that is not from the program's own calls.  pools: their unused memory cannot be told from the rest.
 */
static void put_rest(struct sl_screen_page *page, const struct sl_account *account, bool pools)
{
	char right[256] = "", context[32];
	size_t at = 0;

	if (account->hidden != SL_UNKNOWN && account->hidden) {
		snprintf(context, sizeof(context), "context%s%s", account->context_bound ? " " : "",
			 account->context_bound ? account->context_bound : "");
		at = add_part(right, sizeof(right), at, context, account->context);
		at = add_part(right, sizeof(right), at, "code", account->modules);
		at = add_part(right, sizeof(right), at, "rounding to 2 MiB about", account->rounding);
		at = add_part(right, sizeof(right), at, "set aside by its limit", account->aside);
		if (at)
			add_part(right, sizeof(right), at, pools ? "kept by pools or unexplained" : "unexplained",
				 account->unexplained);
		sl_screen_owner(page, account->hidden, "hidden", at ? right : "contexts, code, other processes");
	}
	put_others(page, account);
}

/* "step_#" with 412 is "step 412". */
static void put_label(char *out, size_t size, const struct sl_process *process, const struct sl_oom *oom)
{
	const char *label = oom->label ? sl_label_words(sl_defs_text(process->model->defs, oom->label)) : NULL;
	char step[32] = "";

	if (oom->step != SL_UNKNOWN)
		snprintf(step, sizeof(step), ", step %llu", (unsigned long long)oom->step);
	if (!label || !strncmp(label, "step", 4))
		snprintf(out, size, "%s", step);
	else
		snprintf(out, size, "%s, in %s", step, label);
}

static void put_title(struct sl_screen_page *page, const struct sl_process *process, const struct sl_oom *oom, unsigned attempts)
{
	uint64_t start = page->report->started_unix_ns, at_ns = sl_process_unix(process, oom->time_ns);
	bool dry = process->trace->header.dry_count;
	char device[24] = "", label[400], more[24] = "";

	if (oom->device >= 0)
		snprintf(device, sizeof(device), "  device %d", oom->device);
	if (attempts > 1)
		snprintf(more, sizeof(more), "  %u attempts", attempts);
	put_label(label, sizeof(label), process, oom);
	sl_screen_head(page, "OUT OF MEMORY", SL_SCREEN_BAD);
	if (process->model->snapshot) {
		sl_screen_say(page, " %s  at %s of the window%s", device, SL_SPAN(at_ns - start), label);
		return;
	}
	sl_screen_say(page, "   %s%s%s%s%s%s", SL_WHO(process), device, dry ? "" : "  at ",
		      dry ? "" : SL_SPAN(at_ns > start ? at_ns - start : 0), label, more);
}

/* Prints the caller, since the change may be there: beside the request, or on a line of its own. */
static void put_asked(struct sl_screen_page *page, const char *asked, const char *where)
{
	bool fits = strlen(asked) + 2 + strlen(where) <= page->style->columns;

	sl_screen_line(page, RIGHT, asked, fits ? where : "");
	if (!fits)
		sl_screen_say(page, "      %s", where);
}

void sl_screen_oom(struct sl_screen_page *page, struct sl_process *process, size_t index)
{
	const struct sl_oom *oom = &process->model->ooms.item[index];
	const struct sl_account *account = &process->accounts[index];
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
	char text[1024], a[SL_FORMAT_BYTES], where[512];
	size_t at;

	put_title(page, process, oom, account->attempts_before + 1);
	at = (size_t)snprintf(text, sizeof(text), "  asked %s", sl_format_size(a, oom->asked_bytes));
	if (!oom->asked_bytes)
		at = (size_t)snprintf(text, sizeof(text), "  %s", hook ? hook->plain : "a call");
	if (oom->free_bytes != SL_UNKNOWN && oom->total_bytes != SL_UNKNOWN)
		snprintf(text + at, sizeof(text) - at, " with %s%s free of %s", account->about ? "about " : "",
			 SL_SIZE(oom->free_bytes), SL_SIZE(oom->total_bytes));
	else if (oom->free_bytes != SL_UNKNOWN)
		snprintf(text + at, sizeof(text) - at, " with %s free on the device and %s reserved by PyTorch",
			 SL_SIZE(oom->free_bytes), SL_SIZE(oom->torch.reserved_bytes));
	else
		snprintf(text + at, sizeof(text) - at, " while it held %s", SL_SIZE(oom->live_bytes));
	sl_owners_line(process, oom->stack, 3, where, sizeof(where));
	put_asked(page, text, where);
	put_owners(page, process, oom);
	put_kept(page, process, oom, account);
	put_rest(page, account, sl_model_row(process->model, SL_KIND_pool, oom->device + 1)->frees > 0);
	if (account->cause_text) {
		sl_screen_say(page, "  %s", account->cause_text);
		sl_screen_leaks_within(page, process, account->cause_text);
	}
	if (account->advice)
		sl_screen_say(page, "  %s", account->advice);
	if (process->changes && process->changes->failed && process->changes->device == oom->device && !sl_oom_got_over(oom))
		sl_screen_changes(page, process);
}

/* Prints the sentence of analyses/ranks.c about this process. */
/* "rank 2 was first; 1 other ran out too, 2 ms later"; NULL: not of ranks, or none was first. */
static const char *who_was_first(const struct sl_report *report)
{
	for (size_t i = 0; i < report->findings.count; i++)
		if (!strcmp(report->findings.item[i].id, "ranks.first"))
			return report->findings.item[i].text;
	return NULL;
}

/* Indexes of the errors to show, of all processes, by the clock. */
struct shown {
	struct sl_process *process;
	size_t index;
	uint64_t unix_ns;
	unsigned alike, again; /* later errors like it: in other processes; in its own, for the same leak */
};

/*
 * True: another process failed at the same line, or the same process at any line while it leaks; the same line held most, and
 * the cause is the same but for its figures.
 */
static bool are_alike(const struct shown *one, const struct shown *other)
{
	const struct shown *both[2] = {one, other};
	char text[2048], asked[512], held[512], *words[2];
	bool same, own = one->process == other->process;
	const struct sl_kept *leak = sl_oom_causes_leak(one->process, &one->process->model->ooms.item[one->index]);

	if (own && (!leak || leak->verdict != SL_KEPT_GROWING))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		struct sl_process *process = both[i]->process;
		const struct sl_oom *oom = &process->model->ooms.item[both[i]->index];
		const char *cause = process->accounts[both[i]->index].cause_text;
		struct sl_stack most = oom->owner_count ? process->model->sites.item[oom->owners[0].site].stack : oom->stack;

		sl_owners_line(process, oom->stack, 3, asked, sizeof(asked));
		sl_owners_line(process, most, 2, held, sizeof(held));
		snprintf(text, sizeof(text), "%s | %s | %s", own ? "" : asked, held, cause ? cause : "");
		words[i] = sl_report_without_amounts(text);
	}
	same = !strcmp(words[0], words[1]);
	free(words[0]);
	free(words[1]);
	return same;
}

/* Errors that the program got over. */
struct cured {
	unsigned count, attempts;
	struct sl_process *process; /* of the error with the largest request */
	const struct sl_oom *most;
};

static void add_cured(struct cured *cured, struct sl_process *process, const struct sl_oom *oom)
{
	cured->attempts += 1 + process->accounts[oom - process->model->ooms.item].attempts_before;
	if (!cured->count++ || oom->asked_bytes > cured->most->asked_bytes) {
		cured->process = process;
		cured->most = oom;
	}
}

static void put_cured(struct sl_screen_page *page, const struct cured *cured)
{
	char where[200], asked[256] = "", attempts[40] = "";

	sl_screen_head(page, "RETRIED", SL_SCREEN_PLAIN);
	sl_owners_line(cured->process, cured->most->stack, 1, where, sizeof(where));
	if (where[0])
		snprintf(asked, sizeof(asked), ", %s%s at %s", cured->count == 1 ? "" : "up to ", SL_SIZE(cured->most->asked_bytes),
			 where);
	if (cured->attempts > cured->count)
		snprintf(attempts, sizeof(attempts), ", %u attempts", cured->attempts);
	sl_screen_say(page, "  %u failed allocation%s%s%s: the program went on", cured->count, cured->count == 1 ? "" : "s",
		      attempts, asked);
}

static unsigned choose(const struct sl_report *report, struct shown *shown, unsigned *more, struct cured *cured)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct sl_model *model = process->model;

		for (size_t k = 0; k < model->ooms.count; k++) {
			struct shown one = {process, k, sl_process_unix(process, model->ooms.item[k].time_ns), 0, 0};
			unsigned at;

			if (process->accounts[k].told_later)
				continue;
			if (sl_oom_got_over(&model->ooms.item[k])) {
				add_cured(cured, process, &model->ooms.item[k]);
				continue;
			}
			for (at = 0; at < count && !are_alike(&shown[at], &one); at++)
				;
			if (at < count) {
				bool own = shown[at].process == process;

				one.alike = shown[at].alike + !own;
				one.again = shown[at].again + own;
				if (shown[at].unix_ns <= one.unix_ns) {
					shown[at].alike = one.alike;
					shown[at].again = one.again;
					continue;
				}
				for (count--; at < count; at++)
					shown[at] = shown[at + 1];
			}
			*more += count == SL_SCREEN_OOMS;
			if (count == SL_SCREEN_OOMS && shown[count - 1].unix_ns <= one.unix_ns)
				continue;
			at = count < SL_SCREEN_OOMS ? count++ : count - 1;
			for (; at && shown[at - 1].unix_ns > one.unix_ns; at--)
				shown[at] = shown[at - 1];
			shown[at] = one;
		}
	}
	return count;
}

void sl_screen_ooms(struct sl_screen_page *page)
{
	struct shown shown[SL_SCREEN_OOMS];
	struct cured cured = {0};
	unsigned more = 0, count = choose(page->report, shown, &more, &cured);
	const char *first = who_was_first(page->report);

	for (unsigned i = 0; i < count; i++) {
		sl_screen_oom(page, shown[i].process, shown[i].index);
		if (shown[i].again)
			sl_screen_say(page, "  %u more request%s of it failed for the same leak", shown[i].again,
				      shown[i].again == 1 ? "" : "s");
		if (shown[i].alike && !(first && count == 1)) /* the line about who was first counts them */
			sl_screen_say(page, "  %u other%s ran out alike", shown[i].alike, shown[i].alike == 1 ? "" : "s");
		page->ooms[i] = &shown[i].process->model->ooms.item[shown[i].index];
	}
	if (more)
		sl_escape_print(page->out, "  and %u more, in report.json\n", more);
	if (count) {
		if (first)
			sl_screen_say(page, "  %s", first);
		fputc('\n', page->out);
	}
	if (cured.count)
		put_cured(page, &cured);
	page->said |= count || cured.count;
}
