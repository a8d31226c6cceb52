/* SPDX-License-Identifier: MIT */
/* What the facts amount to: which failure is told, its verdict and its cause. */
#include <string.h>

#include "analyzer/logs/lines.h"
#include "analyzer/logs/log.h"
#include "common/base.h"

static const struct {
	const char *name, *program;
	unsigned weight;
} forms[] = {
#define FORM(name, program, weight) {#name, program, weight},
	SL_LOG_FORMS(FORM)
#undef FORM
};
#define NAME(name) #name,
static const char *const causes[] = {SL_LOG_CAUSES(NAME)}, *const verdicts[] = {SL_LOG_VERDICTS(NAME)},
			 *const figures[] = {SL_LOG_FIGURES(NAME)};
#undef NAME

const char *sl_log_form_name(enum sl_log_form form)
{
	return forms[form].name;
}

const char *sl_log_form_program(enum sl_log_form form)
{
	return forms[form].program;
}

unsigned sl_log_form_weight(enum sl_log_form form)
{
	return forms[form].weight;
}

const char *sl_log_cause_name(enum sl_log_cause cause)
{
	return causes[cause];
}

const char *sl_log_verdict_name(enum sl_log_verdict verdict)
{
	return verdicts[verdict];
}

const char *sl_log_figure_name(enum sl_log_figure figure)
{
	return figures[figure];
}

#define KNOWN(figure) ((figure) != SL_LOG_UNKNOWN)

static uint64_t known_or(uint64_t figure, uint64_t otherwise)
{
	return KNOWN(figure) ? figure : otherwise;
}

/* The old form has what is reserved, the new one what of it is unused. */
static void complete_figures(const struct sl_log *log, struct sl_log_failure *f)
{
	uint64_t *figure = f->figure;

	if (log->warned == f->form) /* TensorRT tells the size in a warning */
		figure[SL_LOG_asked] = known_or(figure[SL_LOG_asked], log->fact[SL_LOG_asked]);
	if (f->form == SL_LOG_FORM_tf) /* of the allocator's account behind the failure */
		figure[SL_LOG_allocated] = known_or(figure[SL_LOG_allocated], log->fact[SL_LOG_allocated]);

	if (!KNOWN(figure[SL_LOG_unallocated]) && KNOWN(figure[SL_LOG_reserved]) && KNOWN(figure[SL_LOG_allocated]) &&
	    (f->form == SL_LOG_FORM_torch_old || f->form == SL_LOG_FORM_hip))
		figure[SL_LOG_unallocated] =
			figure[SL_LOG_reserved] > figure[SL_LOG_allocated] ? figure[SL_LOG_reserved] - figure[SL_LOG_allocated] : 0;
}

/*
 * In a container PyTorch does not find itself in the driver's list, so "Process N" may be this process: where it does not name
 * itself, the smallest one that covers what PyTorch reserved.
 */
static void find_itself(struct sl_log_failure *f)
{
	uint64_t held = known_or(f->figure[SL_LOG_allocated], 0) + known_or(f->figure[SL_LOG_unallocated], 0);
	unsigned best = f->others;

	if (KNOWN(f->figure[SL_LOG_process]) || !KNOWN(f->figure[SL_LOG_allocated]))
		return;
	for (unsigned i = 0; i < f->others; i++)
		if (f->other[i].bytes >= held - held / 256 && (best == f->others || f->other[i].bytes < f->other[best].bytes))
			best = i;
	if (best == f->others)
		return;
	f->figure[SL_LOG_process] = f->other[best].bytes;
	memmove(&f->other[best], &f->other[best + 1], (f->others - best - 1) * sizeof(f->other[0]));
	f->others--;
}

static uint64_t others_of(const struct sl_log_failure *f)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < f->others; i++)
		sum += known_or(f->other[i].bytes, 0);
	return sum;
}

uint64_t sl_log_outside(const struct sl_log_failure *f)
{
	uint64_t total = f->figure[SL_LOG_total], free = f->figure[SL_LOG_free],
		 held = known_or(f->figure[SL_LOG_allocated], 0) + known_or(f->figure[SL_LOG_unallocated], 0);

	if (known_or(f->figure[SL_LOG_process], 0) > held) /* a driver that cannot tell says 0 bytes */
		held = f->figure[SL_LOG_process];
	held += others_of(f);
	return KNOWN(total) && KNOWN(free) && KNOWN(f->figure[SL_LOG_allocated]) && total > free + held ? total - free - held : 0;
}

static enum sl_log_cause cause_of_trtllm(const struct sl_log *log, const struct sl_log_failure *f)
{
	const char *component = f->text[SL_LOG_TEXT_component];

	if (!component) { /* TensorRT: an engine's weights are one request of the engine's size, another one is its context */
		uint64_t asked = f->figure[SL_LOG_asked], weights = log->fact[SL_LOG_weights];

		if (!KNOWN(asked))
			return SL_LOG_CAUSE_figureless;
		return KNOWN(weights) && asked > weights - weights / 8 && asked < weights + weights / 8
			       ? SL_LOG_CAUSE_weights_do_not_fit
			       : SL_LOG_CAUSE_compute_buffer;
	}
	return !strncmp(component, "KV", 2)  ? SL_LOG_CAUSE_server_budget_over_free
	       : !strcmp(component, "Model") ? SL_LOG_CAUSE_weights_do_not_fit
					     : SL_LOG_CAUSE_sampler_or_graph_after_cache;
}

/* What the figures of an allocator's text tell. */
static enum sl_log_cause cause_of_figures(const struct sl_log_failure *f)
{
	uint64_t asked = f->figure[SL_LOG_asked], free = f->figure[SL_LOG_free], total = f->figure[SL_LOG_total],
		 allocated = known_or(f->figure[SL_LOG_allocated], 0), unused = known_or(f->figure[SL_LOG_unallocated], 0),
		 others = others_of(f), limit = f->figure[SL_LOG_allowed];

	limit = KNOWN(limit) ? limit : f->figure[SL_LOG_limit];
	if (!KNOWN(asked))
		return f->text[SL_LOG_TEXT_shape] ? SL_LOG_CAUSE_card_full_by_own_tensors : SL_LOG_CAUSE_figureless;
	if (KNOWN(total) && asked > total)
		return SL_LOG_CAUSE_request_larger_than_card;
	if (KNOWN(total) && (allocated > total || known_or(f->figure[SL_LOG_process], 0) > total + total / 64))
		return f->windows || f->form == SL_LOG_FORM_torch_old ? SL_LOG_CAUSE_windows_spill : SL_LOG_CAUSE_unknown;
	if (KNOWN(limit) && (!KNOWN(free) || free >= asked) && (!KNOWN(total) || limit < total))
		return SL_LOG_CAUSE_own_limit_fraction;
	if (KNOWN(free) && others && free + others >= asked && KNOWN(total) && others >= total / 8)
		return SL_LOG_CAUSE_neighbour_processes;
	if (KNOWN(free) && free >= asked + (asked >> 3) && KNOWN(total) && free > total / 64)
		return SL_LOG_CAUSE_unknown; /* it was there, and the driver refused */
	/* a request that a piece more would have met is not the pieces' fault: the program would have failed at the next one */
	if (unused >= asked && unused >= allocated / 20)
		return SL_LOG_CAUSE_reserved_but_fragmented;
	if (sl_log_outside(f) >= (KNOWN(total) ? total / 4 : 1) && sl_log_outside(f) > allocated / 2)
		return SL_LOG_CAUSE_neighbour_processes;
	if (f->doing == SL_LOG_DOING_WEIGHTS)
		return SL_LOG_CAUSE_weights_do_not_fit;
	return SL_LOG_CAUSE_card_full_by_own_tensors;
}

static enum sl_log_cause cause_of(const struct sl_log *log, const struct sl_log_failure *f)
{
	bool figures = KNOWN(f->figure[SL_LOG_asked]);

	if (f->doing == SL_LOG_DOING_PINNED && !figures)
		return SL_LOG_CAUSE_pinned_or_host_memory;
	if (f->cause != SL_LOG_CAUSE_none && (f->cause != SL_LOG_CAUSE_figureless || !figures))
		return f->cause;
	if (f->form == SL_LOG_FORM_trtllm)
		return cause_of_trtllm(log, f);
	if (f->form == SL_LOG_FORM_xla &&
	    (KNOWN(f->figure[SL_LOG_temp]) ||
	     (KNOWN(log->fact[SL_LOG_projected]) && log->fact[SL_LOG_projected] > log->fact[SL_LOG_limit])))
		return SL_LOG_CAUSE_executable_too_large;
	if (f->form == SL_LOG_FORM_ort && !figures)
		return SL_LOG_CAUSE_unknown;
	if (f->form == SL_LOG_FORM_ggml_buffer || f->form == SL_LOG_FORM_ollama)
		return KNOWN(log->fact[SL_LOG_kv_cache]) ? SL_LOG_CAUSE_compute_buffer : SL_LOG_CAUSE_weights_do_not_fit;
	return cause_of_figures(f);
}

/* The failure that is told: the one that the text itself calls the first, of a rank, by its clock, else in the order of lines. */
static struct sl_log_failure *first_failure(struct sl_log *log)
{
	struct sl_log_failure *best = NULL;
	bool clocks = true;

	for (unsigned i = 0; i < log->failures; i++) {
		if (log->failure[i].handled)
			continue;
		clocks &= KNOWN(log->failure[i].time_ms);
		if (log->root >= 0 && log->failure[i].rank == log->root)
			return &log->failure[i];
	}
	for (unsigned i = 0; i < log->failures; i++) {
		struct sl_log_failure *f = &log->failure[i];

		if (!f->handled && (!best || (clocks && f->time_ms < best->time_ms)))
			best = f;
	}
	return best;
}

/* A warning after which the program went on, and ended without an exception, was handled too. */
static void find_handled(struct sl_log *log)
{
	for (unsigned i = 0; i < log->failures; i++) {
		struct sl_log_failure *f = &log->failure[i];
		bool calm = !f->raised && f->severity && f->severity <= SL_LOG_WARNING;

		if (calm && log->lines > f->last + 2 && log->last_exception < f->last)
			f->handled = true;
		if (log->last_well > f->last && log->last_exception <= f->last && f->form != SL_LOG_FORM_comfy &&
		    (!f->raised || (f->rank < 0 && log->last_well > f->last + 8)))
			f->handled = true;
		/* words of a retry with nothing behind them are no program that went on */
		if (f->handled && log->lines <= f->last + 1 + f->raised && log->last_well < f->last)
			f->handled = false;
		if (f->handled && f->raised && log->last_retry && log->lines < log->last_retry + 2 && log->last_well < f->last)
			f->handled = false;
	}
}

static bool is_server(enum sl_log_form form)
{
	return forms[form].weight >= forms[SL_LOG_FORM_ggml_buffer].weight;
}

static enum sl_log_verdict verdict_of(const struct sl_log *log, const struct sl_log_failure *f)
{
	if (f->form == SL_LOG_FORM_host || log->cause == SL_LOG_CAUSE_pinned_or_host_memory)
		return SL_LOG_VERDICT_host_memory;
	if ((is_server(f->form) || is_server(log->server)) && !f->late)
		return SL_LOG_VERDICT_does_not_start;
	return SL_LOG_VERDICT_out_of_memory;
}

/* What the server said of itself: of the failing device, where it names devices. */
static void make_ledger(struct sl_log *log)
{
	static const enum sl_log_figure parts[] = {SL_LOG_weights, SL_LOG_kv_cache, SL_LOG_activations, SL_LOG_graphs,
						   SL_LOG_non_torch};
	const uint64_t *own = log->told ? log->told->figure : log->fact, *fact = log->fact;

	if (KNOWN(own[SL_LOG_device]) && own[SL_LOG_device] < SL_LOG_DEVICES &&
	    (KNOWN(log->on_device[own[SL_LOG_device]][SL_LOG_weights]) ||
	     KNOWN(log->on_device[own[SL_LOG_device]][SL_LOG_kv_cache])))
		fact = log->on_device[own[SL_LOG_device]];
	for (unsigned i = 0; i < SL_COUNT(parts); i++)
		log->ledger[parts[i]] = known_or(own[parts[i]], fact[parts[i]]);
	if (log->told && log->form == SL_LOG_FORM_trtllm && KNOWN(own[SL_LOG_before]) && KNOWN(own[SL_LOG_after]))
		log->ledger[SL_LOG_weights] = own[SL_LOG_before] - own[SL_LOG_after];
	if (!KNOWN(log->ledger[SL_LOG_weights]) && KNOWN(fact[SL_LOG_before]) && KNOWN(fact[SL_LOG_after]) &&
	    fact[SL_LOG_before] > fact[SL_LOG_after])
		log->ledger[SL_LOG_weights] = fact[SL_LOG_before] - fact[SL_LOG_after];
	if (log->server == SL_LOG_FORM_sglang_static && KNOWN(fact[SL_LOG_more]) && KNOWN(log->ledger[SL_LOG_kv_cache]))
		log->ledger[SL_LOG_kv_cache] += fact[SL_LOG_more]; /* keys and values */
}

void sl_log_judge(struct sl_log *log)
{
	struct sl_log_failure *f;

	find_handled(log);
	for (unsigned i = 0; i < log->failures; i++) {
		complete_figures(log, &log->failure[i]);
		find_itself(&log->failure[i]);
		log->count += !log->failure[i].handled;
	}
	log->told = f = first_failure(log);
	if (f) {
		log->form = f->form;
		log->cause = cause_of(log, f);
		log->verdict = verdict_of(log, f);
	} else if (log->failures || log->warned) {
		log->form = log->failures ? log->failure[log->failures - 1].form : log->warned;
		log->cause =
			log->form == SL_LOG_FORM_ggml_buffer ? SL_LOG_CAUSE_pinned_or_host_memory : SL_LOG_CAUSE_harmless_warning;
		log->verdict = SL_LOG_VERDICT_not_an_error;
	} else if (is_server(log->server)) {
		log->form = SL_LOG_FORM_server_log;
		log->cause = log->pressure ? SL_LOG_CAUSE_server_budget_too_small_for_cache : SL_LOG_CAUSE_none;
		log->verdict = log->pressure ? SL_LOG_VERDICT_nearly : SL_LOG_VERDICT_nothing_about_memory;
	}
	make_ledger(log);
}
