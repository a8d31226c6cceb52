/* SPDX-License-Identifier: MIT */
/* What the facts amount to: which failure is told, its verdict and its cause. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/terminal.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

/* What other sentences tell of it.  The old form has what is reserved, the new one what of it is unused. */
static void complete_figures(const struct sl_log *log, struct sl_log_failure *f)
{
	if (log->warned == f->row->form) /* TensorRT tells the size in a warning */
		OF(f, asked) = sl_log_known_or(OF(f, asked), OF(log, asked));
	if (f->row->form == SL_LOG_FORM_tf) /* of the allocator's account behind the failure */
		OF(f, allocated) = sl_log_known_or(OF(f, allocated), OF(log, allocated));
	if (SL_LOG_KNOWN(OF(f, reserved)) && SL_LOG_KNOWN(OF(f, allocated)) &&
	    (f->row->form == SL_LOG_FORM_torch_old || f->row->form == SL_LOG_FORM_hip))
		OF(f, unallocated) =
			sl_log_known_or(OF(f, unallocated), sl_log_known_or(sl_log_minus(OF(f, reserved), OF(f, allocated)), 0));
}

static uint64_t held_of(const struct sl_log_failure *f)
{
	return sl_log_known_or(OF(f, allocated), 0) + sl_log_known_or(OF(f, unallocated), 0);
}

/*
 * In a container PyTorch does not find itself in the driver's list, so "Process N" may be this process: where it does not name
 * itself, the smallest one that covers what PyTorch reserved.
 */
static void find_itself(struct sl_log_failure *f)
{
	struct sl_log_facts *facts = &f->facts;
	uint64_t used = held_of(f);
	unsigned best = facts->others;

	if (SL_LOG_KNOWN(OF(f, process)) || !SL_LOG_KNOWN(OF(f, allocated)))
		return;
	for (unsigned i = 0; i < facts->others; i++)
		if (facts->other[i].bytes >= used - used / 256 &&
		    (best == facts->others || facts->other[i].bytes < facts->other[best].bytes))
			best = i;
	if (best == facts->others)
		return;
	OF(f, process) = facts->other[best].bytes;
	facts->others--;
	memmove(&facts->other[best], &facts->other[best + 1], (facts->others - best) * sizeof(facts->other[0]));
}

uint64_t sl_log_others(const struct sl_log_facts *facts)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < facts->others; i++)
		sum += facts->other[i].bytes;
	return sum;
}

uint64_t sl_log_outside(const struct sl_log_failure *f)
{
	uint64_t process = sl_log_known_or(OF(f, process), 0), used = held_of(f);

	if (!SL_LOG_KNOWN(OF(f, free)) || !SL_LOG_KNOWN(OF(f, allocated)))
		return 0;
	used = sl_log_others(&f->facts) + (process > used ? process : used); /* a driver that cannot tell says 0 bytes */
	return sl_log_known_or(sl_log_minus(OF(f, total), OF(f, free) + used), 0);
}

static enum sl_log_cause cause_of_trtllm(const struct sl_log *log, const struct sl_log_failure *f)
{
	const char *component = f->facts.text[SL_LOG_TEXT_component];
	uint64_t asked = OF(f, asked), weights = OF(log, weights);

	if (*component)
		return !strncmp(component, "KV", 2)  ? SL_LOG_CAUSE_server_budget_over_free
		       : !strcmp(component, "Model") ? SL_LOG_CAUSE_weights_do_not_fit
						     : SL_LOG_CAUSE_sampler_or_graph_after_cache;
	/* TensorRT: an engine's weights are one request of the engine's size, another one is its context */
	return !SL_LOG_KNOWN(asked) ? SL_LOG_CAUSE_figureless
	       : SL_LOG_KNOWN(weights) && asked > weights - weights / 8 && asked < weights + weights / 8
		       ? SL_LOG_CAUSE_weights_do_not_fit
		       : SL_LOG_CAUSE_compute_buffer;
}

static enum sl_log_cause cause_of_figures(const struct sl_log_failure *f)
{
	uint64_t asked = OF(f, asked), free = OF(f, free), total = OF(f, total), allocated = sl_log_known_or(OF(f, allocated), 0),
		 unused = sl_log_known_or(OF(f, unallocated), 0), others = sl_log_others(&f->facts),
		 limit = sl_log_known_or(OF(f, allowed), OF(f, limit));

	if (!SL_LOG_KNOWN(asked))
		return *f->facts.text[SL_LOG_TEXT_shape] ? SL_LOG_CAUSE_card_full_by_own_tensors : SL_LOG_CAUSE_figureless;
	if (SL_LOG_KNOWN(total) && asked > total)
		return SL_LOG_CAUSE_request_larger_than_card;
	if (SL_LOG_KNOWN(total) && (allocated > total || sl_log_known_or(OF(f, process), 0) > total + total / 64))
		return f->trace.windows || f->row->form == SL_LOG_FORM_torch_old ? SL_LOG_CAUSE_windows_spill
										 : SL_LOG_CAUSE_unknown;
	if (SL_LOG_KNOWN(limit) && free >= asked && limit < total)
		return SL_LOG_CAUSE_own_limit_fraction;
	if (SL_LOG_KNOWN(free) && others && free + others >= asked && SL_LOG_KNOWN(total) && others >= total / 8)
		return SL_LOG_CAUSE_neighbour_processes;
	if (SL_LOG_KNOWN(free) && free >= asked + (asked >> 3) && SL_LOG_KNOWN(total) && free > total / 64)
		return SL_LOG_CAUSE_unknown; /* it was there, and the driver refused */
	/* a request that a piece more would have met is not the pieces' fault: the program would have failed at the next one */
	if (unused >= asked && unused >= allocated / 20)
		return SL_LOG_CAUSE_reserved_but_fragmented;
	if (sl_log_outside(f) >= (SL_LOG_KNOWN(total) ? total / 4 : 1) && sl_log_outside(f) > allocated / 2)
		return SL_LOG_CAUSE_neighbour_processes;
	return f->trace.doing == SL_LOG_DOING_weights ? SL_LOG_CAUSE_weights_do_not_fit : SL_LOG_CAUSE_card_full_by_own_tensors;
}

static enum sl_log_cause cause_of(const struct sl_log *log, const struct sl_log_failure *f)
{
	bool figures = SL_LOG_KNOWN(OF(f, asked));
	enum sl_log_form form = f->row->form;

	if (f->trace.doing == SL_LOG_DOING_pinned && !figures)
		return SL_LOG_CAUSE_pinned_or_host_memory;
	if (f->cause != SL_LOG_CAUSE_none && (f->cause != SL_LOG_CAUSE_figureless || !figures))
		return f->cause;
	if (form == SL_LOG_FORM_trtllm)
		return cause_of_trtllm(log, f);
	if (form == SL_LOG_FORM_xla &&
	    (SL_LOG_KNOWN(OF(f, temp)) || SL_LOG_KNOWN(sl_log_minus(OF(log, projected), OF(log, limit)))))
		return SL_LOG_CAUSE_executable_too_large;
	if (form == SL_LOG_FORM_ort && !figures)
		return SL_LOG_CAUSE_unknown;
	if (form == SL_LOG_FORM_ggml_buffer || form == SL_LOG_FORM_ollama)
		return SL_LOG_KNOWN(OF(log, kv_cache)) ? SL_LOG_CAUSE_compute_buffer : SL_LOG_CAUSE_weights_do_not_fit;
	return cause_of_figures(f);
}

/* The text itself names the first rank.  Else clocks tell which failure is the first, or the order of lines. */
static const struct sl_log_failure *first_failure(const struct sl_log *log)
{
	const struct sl_log_failure *first = NULL, *earliest = NULL;
	bool clocks = true;

	for (unsigned i = 0; i < log->failures; i++) {
		const struct sl_log_failure *f = &log->failure[i];

		if (f->handled)
			continue;
		if (f->from.rank >= 0 && (uint64_t)f->from.rank == OF(log, rank))
			return f;
		clocks &= SL_LOG_KNOWN(f->from.time_ms);
		first = first ?: f;
		earliest = earliest && earliest->from.time_ms <= f->from.time_ms ? earliest : f;
	}
	return clocks ? earliest : first;
}

/* A warning after which the program went on, and ended without an exception, was handled too. */
static void find_handled(struct sl_log *log)
{
	uint64_t well = log->last[SL_LOG_WELL], retry = log->last[SL_LOG_RETRY];

	for (unsigned i = 0; i < log->failures; i++) {
		struct sl_log_failure *f = &log->failure[i];
		bool calm = !f->raised && f->from.severity && f->from.severity <= SL_LOG_WARNING;

		f->handled |= calm && log->lines > f->last + 2 && log->last_exception < f->last;
		f->handled |= well > f->last && log->last_exception <= f->last && f->row->form != SL_LOG_FORM_comfy &&
			      (!f->raised || (f->from.rank < 0 && well > f->last + 8));
		/* words of a retry with nothing behind them are no program that went on */
		if (well < f->last && (log->lines <= f->last + 1 + f->raised || (f->raised && retry && log->lines < retry + 2)))
			f->handled = false;
	}
}

static bool is_server(enum sl_log_form form)
{
	return sl_log_forms[form].weight >= sl_log_forms[SL_LOG_FORM_ggml_buffer].weight;
}

static enum sl_log_verdict verdict_of(const struct sl_log *log, const struct sl_log_failure *f)
{
	if (f->row->form == SL_LOG_FORM_host || log->cause == SL_LOG_CAUSE_pinned_or_host_memory)
		return SL_LOG_VERDICT_host_memory;
	return (is_server(f->row->form) || is_server(log->server)) && !f->late ? SL_LOG_VERDICT_does_not_start
									       : SL_LOG_VERDICT_out_of_memory;
}

/* What the failure says, and what the server said of itself: its parts of the failing device, where it names devices. */
static void take_figures(struct sl_log *log)
{
	const uint64_t *own = (log->first ? &log->first->facts : &log->facts)->figure, *parts = log->facts.figure, *on;
	uint64_t device = own[SL_LOG_device], *figure = log->figure;

	on = log->on[device < SL_LOG_DEVICES ? device : 0].figure;
	if (device < SL_LOG_DEVICES && (SL_LOG_KNOWN(on[SL_LOG_weights]) || SL_LOG_KNOWN(on[SL_LOG_kv_cache])))
		parts = on;
	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT; i++)
		figure[i] = i <= SL_LOG_unallocated /* of the card at the error: the server's account is of another moment */
				    ? own[i]
				    : sl_log_known_or(own[i],
						      (i < SL_LOG_weights || i > SL_LOG_non_torch ? log->facts.figure : parts)[i]);
	if (log->first && log->form == SL_LOG_FORM_trtllm)
		figure[SL_LOG_weights] =
			sl_log_known_or(sl_log_minus(own[SL_LOG_before], own[SL_LOG_after]), figure[SL_LOG_weights]);
	figure[SL_LOG_weights] = sl_log_known_or(figure[SL_LOG_weights], sl_log_minus(parts[SL_LOG_before], parts[SL_LOG_after]));
	if (log->server == SL_LOG_FORM_sglang_static && SL_LOG_KNOWN(parts[SL_LOG_more]) && SL_LOG_KNOWN(figure[SL_LOG_kv_cache]))
		figure[SL_LOG_kv_cache] += parts[SL_LOG_more]; /* keys and values */
	log->program = sl_log_forms[log->form].program ?: sl_log_forms[log->server].program;
}

void sl_log_judge(struct sl_log *log)
{
	const struct sl_log_failure *f;

	find_handled(log);
	for (unsigned i = 0; i < log->failures; i++) {
		complete_figures(log, &log->failure[i]);
		find_itself(&log->failure[i]);
		log->count += !log->failure[i].handled;
	}
	log->first = f = first_failure(log);
	if (f) {
		log->form = f->row->form ?: SL_LOG_FORM_host; /* a launcher knows the signal alone */
		log->cause = cause_of(log, f);
		log->verdict = verdict_of(log, f);
	} else if (log->failures || log->warned) {
		log->form = log->failures ? log->failure[log->failures - 1].row->form : log->warned;
		log->cause =
			log->form == SL_LOG_FORM_ggml_buffer ? SL_LOG_CAUSE_pinned_or_host_memory : SL_LOG_CAUSE_harmless_warning;
		log->verdict = SL_LOG_VERDICT_not_an_error;
	} else if (is_server(log->server)) {
		log->form = SL_LOG_FORM_server_log;
		log->cause = log->last[SL_LOG_PRESS] ? SL_LOG_CAUSE_server_budget_too_small_for_cache : SL_LOG_CAUSE_none;
		log->verdict = log->last[SL_LOG_PRESS] ? SL_LOG_VERDICT_nearly : SL_LOG_VERDICT_nothing_about_memory;
	}
	take_figures(log);
}

struct sl_log *sl_log_new(void)
{
	struct sl_log *log = sl_memory_must(calloc(1, sizeof(*log)));

	memset(log->facts.figure, 0xff, sizeof(log->facts.figure));
	for (unsigned i = 0; i < SL_LOG_DEVICES; i++)
		memset(log->on[i].figure, 0xff, sizeof(log->on[i].figure));
	return log;
}

struct sl_log *sl_log_of(char *const *paths, bool quiet)
{
	struct sl_log *log = sl_log_new();
	bool shown = !quiet && sl_terminal_rewrites(STDERR_FILENO);

	for (; *paths; paths++) {
		FILE *file = strcmp(*paths, "-") ? sl_paths_open_file(*paths) : stdin;
		const char *why = file ? sl_log_read(log, file, *paths, shown) : strerror(errno);

		if (file && file != stdin)
			fclose(file);
		if (why) {
			sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", *paths, why);
			free(log);
			return NULL;
		}
	}
	sl_log_judge(log);
	return log;
}
