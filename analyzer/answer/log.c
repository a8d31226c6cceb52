/* SPDX-License-Identifier: MIT */
/*
 * What is said of a log: the sentences of log.def with the figures of the text, with three digits.  What the text cannot tell is
 * said too, and the command that would.
 */
#include "analyzer/answer/log.h"

#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "common/base.h"

#define KNOWN(figure) ((figure) != SL_LOG_UNKNOWN)

struct told {
	const struct sl_log *log;
	const struct sl_log_failure *f; /* NULL: nothing failed */
	const uint64_t *figure;		/* of f, or of the server */
	struct sl_answer *answer;
	const char *who, *at; /* "attention.py:38", "rank 5", "the program"; the same line as " at ...", or "" */
	const char *how;      /* what did not fail: "nearly", "handled", "warned", "nothing"; NULL */
};

static const struct row {
	enum sl_log_cause cause;
	const char *when;
	enum said { headline, why, fix, open } said;
	unsigned slot;
	const char *text;
} rows[] = {
#define SAY(cause, when, said, slot, text) {SL_LOG_CAUSE_##cause, when, said, slot, text},
#include "analyzer/answer/log.def"
#undef SAY
};
static const enum sl_said_as labels[] = {[why] = SL_LABEL_WHY, [fix] = SL_LABEL_FIX, [open] = SL_LABEL_OPEN};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');

	return slash && slash > back ? slash + 1 : back ? back + 1 : path;
}

static uint64_t known_of(const struct told *told, enum sl_log_figure figure)
{
	uint64_t own = told->figure[figure];

	if (KNOWN(own) || figure <= SL_LOG_unallocated) /* of the card at the error: the server's account is of another moment */
		return own;
	return KNOWN(told->log->ledger[figure]) ? told->log->ledger[figure] : told->log->fact[figure];
}

/* Shares are rounded down to hundredths, as a knob takes them. */
static const char *say_share(struct sl_answers *answers, double share)
{
	return share > 0.1 && share < 1 ? sl_answers_text(answers, "%.2f", (double)(unsigned)(share * 100 + 1e-6) / 100) : NULL;
}

/* Figures that follow from others. */
static const char *derived(const struct told *told, const char *name, struct sl_answers *answers)
{
	uint64_t fraction = known_of(told, SL_LOG_fraction), free = known_of(told, SL_LOG_free),
		 total = known_of(told, SL_LOG_total), seqs = known_of(told, SL_LOG_seqs), ubatch = known_of(told, SL_LOG_ubatch),
		 before = told->log->fact[SL_LOG_before], weights = known_of(told, SL_LOG_weights),
		 longest = known_of(told, SL_LOG_longest), asked = known_of(told, SL_LOG_asked),
		 room = known_of(told, SL_LOG_kv_cache), sum = 0;
	const struct sl_log_failure *f = told->f;
	unsigned most = 0;

	for (unsigned i = 0; f && i < f->others; i++) {
		most = f->other[i].bytes > f->other[most].bytes ? i : most;
		sum += f->other[i].bytes;
	}
	if (!strcmp(name, "fraction_less"))
		return KNOWN(fraction) ? say_share(answers, (double)fraction / 1e6 - 0.05) : NULL;
	if (!strcmp(name, "free_share"))
		return KNOWN(free) && KNOWN(total) ? say_share(answers, (double)free / (double)total - 0.02) : NULL;
	if (!strncmp(name, "weights_share", 13) && KNOWN(before) && KNOWN(weights) && before)
		return say_share(answers, (double)weights / (double)before + (name[13] ? 0.11 : 0.01));
	if (!strcmp(name, "used"))
		return KNOWN(free) && KNOWN(total) ? sl_answers_text(answers, "%s", SL_SIZE(total - free)) : NULL;
	if (!strcmp(name, "enough"))
		return KNOWN(free) && asked <= free ? sl_answers_text(answers, "%s", SL_SIZE(asked)) : NULL;
	if (!strcmp(name, "outside"))
		return f && sl_log_outside(f) ? sl_answers_text(answers, "%s", SL_SIZE(sl_log_outside(f))) : NULL;
	if (!strcmp(name, "seqs_less"))
		return KNOWN(seqs) && seqs >= 8 ? sl_answers_text(answers, "%llu", (unsigned long long)seqs / 4) : NULL;
	if (!strcmp(name, "ubatch_less"))
		return KNOWN(ubatch) && ubatch > 1
			       ? sl_answers_text(answers, "%llu", ubatch > 512 ? 512ull : (unsigned long long)ubatch / 2)
			       : NULL;
	if (!strcmp(name, "cache_half"))
		return KNOWN(asked) && KNOWN(room) && asked / 2 <= room ? sl_answers_text(answers, "%s", SL_SIZE(asked / 2)) : NULL;
	if (!strcmp(name, "longest_plain"))
		return KNOWN(longest) && longest ? sl_answers_text(answers, "%llu", (unsigned long long)longest) : NULL;
	if (!strcmp(name, "idle"))
		return told->log->idle ? sl_answers_text(answers, "%d", __builtin_ctzll(told->log->idle)) : NULL;
	if (!strcmp(name, "neighbours"))
		return sum && f->others > 1 ? sl_answers_text(answers, "%u", f->others) : NULL;
	if (!strcmp(name, "neighbours_bytes"))
		return sum ? sl_answers_text(answers, "%s", SL_SIZE(sum)) : NULL;
	if (!strcmp(name, "neighbour"))
		return sum ? sl_answers_text(answers, "%lld", (long long)f->other[most].pid) : NULL;
	if (!strcmp(name, "neighbour_bytes"))
		return sum ? sl_answers_text(answers, "%s", SL_SIZE(f->other[most].bytes)) : NULL;
	return NULL;
}

static const char *named(const struct told *told, const char *name, struct sl_answers *answers)
{
	const char *const *text = told->f ? told->f->text : told->log->text;

	if (!strcmp(name, "who"))
		return told->who;
	if (!strcmp(name, "at"))
		return told->at;
	if (!strcmp(name, "shape"))
		return text[SL_LOG_TEXT_shape];
	if (!strcmp(name, "component"))
		return text[SL_LOG_TEXT_component];
	if (!strcmp(name, "place"))
		return text[SL_LOG_TEXT_file] && KNOWN(told->figure[SL_LOG_line])
			       ? sl_answers_text(answers, "%s:%llu", base_of(text[SL_LOG_TEXT_file]),
						 (unsigned long long)told->figure[SL_LOG_line])
			       : NULL;
	if (!strcmp(name, "part"))
		return told->f->form == SL_LOG_FORM_sglang_graph ? "the capture of CUDA graphs"
		       : told->f->form == SL_LOG_FORM_trtllm	 ? "a part behind the model"
								 : "the sampler's warm-up";
	return derived(told, name, answers);
}

/* The value of a name as it is said; NULL: not known. */
static const char *value_of(const struct told *told, const char *name)
{
	struct sl_answers *answers = told->answer->of;

	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT; i++) {
		uint64_t value;

		if (strcmp(sl_log_figure_name(i), name))
			continue;
		value = known_of(told, i);
		return !KNOWN(value)	      ? NULL
		       : i == SL_LOG_fraction ? sl_answers_text(answers, "%.2f", (double)value / 1e6)
		       : i >= SL_LOG_device   ? sl_answers_text(answers, "%s", SL_NUMBER(value))
					      : sl_answers_text(answers, "%s", SL_SIZE(value));
	}
	return named(told, name, answers);
}

/* The row's text with its values, up to `stop`; false: a name is not known. */
static bool fill(const struct told *told, const char *text, char stop, char *out, size_t room)
{
	size_t size = 0;

	for (; *text && *text != stop && size + 1 < room; text++) {
		const char *end = strchr(text, *text == '[' ? ']' : '}'), *value;
		char part[256];

		if (*text == '[' && end) {
			if (fill(told, text + 1, ']', part, sizeof(part)))
				size += (size_t)snprintf(out + size, room - size, "%s", part);
			text = end;
		} else if (*text == '{' && end) {
			snprintf(part, sizeof(part), "%.*s", (int)(end - text - 1), text + 1);
			value = value_of(told, part);
			if (!value)
				return false;
			size += (size_t)snprintf(out + size, room - size, "%s", value);
			text = end;
		} else {
			text += *text == '\\';
			out[size++] = *text;
		}
		size = size < room ? size : room - 1;
	}
	out[size] = 0;
	return true;
}

static bool is_program(enum sl_log_form form, const char *when)
{
	const char *program = sl_log_form_program(form);

	return program && !strcmp(program, when);
}

static bool applies(const struct told *told, const struct row *row)
{
	static const char *const doing[] = {"", "weights", "optimizer", "backward", "scores", "logits", "decode", "pinned", "save"};

	if (told->how ? row->cause != SL_LOG_CAUSE_none || strcmp(told->how, row->when)
		      : row->cause != told->log->cause && (row->cause != SL_LOG_CAUSE_none || *row->when))
		return false;
	return told->how || !*row->when || is_program(told->f->form, row->when) || is_program(told->log->server, row->when) ||
	       strstr(told->f->source, row->when) || strstr(told->f->pattern, row->when) ||
	       ((told->f->frames || !told->log->server) && !strcmp(doing[told->f->doing], row->when)); /* not a server's own work */
}

/* The defaults have cause none; they stand first in the table and are said last, if no headline was. */
static void say_all(struct told *told)
{
	bool said[open + 1][4] = {0};
	char text[600];

	for (unsigned turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < SL_COUNT(rows); i++) {
			const struct row *row = &rows[i];

			if ((row->cause == SL_LOG_CAUSE_none && !told->how) != turn || said[row->said][row->slot] ||
			    !applies(told, row) || !fill(told, row->text, 0, text, sizeof(text)))
				continue;
			said[row->said][row->slot] = true;
			if (row->said == headline)
				sl_answer_headline(told->answer, "%s", text);
			else
				sl_answer_say(told->answer, labels[row->said], "%s", text);
		}
}

static void put_stack(struct told *told)
{
	for (unsigned i = 0; told->f && i < told->f->frames; i++) {
		const struct sl_log_frame *frame = &told->f->frame[i];
		struct sl_answer_line line = {.file = base_of(frame->file),
					      .function = *frame->function ? frame->function : NULL,
					      .line = frame->line,
					      .source = *frame->source ? frame->source : NULL};

		sl_answer_frame(told->answer, &line);
	}
}

/* PyTorch's figures of the card; they do not add up in a text that counts more than the card has. */
static void put_card(struct told *told)
{
	const uint64_t *figure = told->figure;
	uint64_t total = figure[SL_LOG_total], allocated = figure[SL_LOG_allocated], free = figure[SL_LOG_free],
		 unused = KNOWN(figure[SL_LOG_unallocated]) ? figure[SL_LOG_unallocated] : 0, process = figure[SL_LOG_process], sum;

	if (!told->f || !KNOWN(total) || !KNOWN(allocated) || !KNOWN(free))
		return;
	sum = allocated + unused + free;
	for (unsigned i = 0; i < told->f->others; i++)
		sum += told->f->other[i].bytes;
	if (sum > total)
		return;
	told->answer->table.total = total;
	told->answer->table.moment = "the card at the error";
	sl_answer_row(told->answer, allocated, "tensors", NULL);
	if (unused)
		sl_answer_row(told->answer, unused, "unused", "reserved by PyTorch");
	for (unsigned i = 0; i < told->f->others && i < 4; i++)
		sl_answer_row_bare(told->answer, told->f->other[i].bytes,
				   sl_answers_text(told->answer->of, "process %lld", (long long)told->f->other[i].pid), NULL);
	if (KNOWN(process) && process >= allocated + unused && process - allocated - unused <= total - sum) {
		sl_answer_row_bare(told->answer, process - allocated - unused, "context, code", NULL);
		sum += process - allocated - unused;
	}
	if (sum < total)
		sl_answer_row_bare(told->answer, total - sum, "not ours", NULL);
	sl_answer_row_bare(told->answer, free, "free", NULL);
}

static const struct {
	enum sl_log_figure figure;
	const char *name;
} parts[] = {{SL_LOG_weights, "weights"},
	     {SL_LOG_kv_cache, "cache"},
	     {SL_LOG_activations, "activations"},
	     {SL_LOG_graphs, "graphs"},
	     {SL_LOG_non_torch, "other"}};

static void put_ledger(struct told *told)
{
	const uint64_t *ledger = told->log->ledger;

	if (told->answer->table.row.count)
		return;
	for (unsigned i = 0; i < SL_COUNT(parts); i++) {
		if (!KNOWN(ledger[parts[i].figure]))
			continue;
		sl_answer_row(told->answer, ledger[parts[i].figure], parts[i].name, NULL);
		told->answer->table.total += ledger[parts[i].figure];
	}
	told->answer->table.moment = "by the server's own account";
}

static void put_figures(struct told *told)
{
	static const enum sl_log_figure bytes[] = {SL_LOG_asked,     SL_LOG_free,	 SL_LOG_total,	SL_LOG_process,
						   SL_LOG_allocated, SL_LOG_unallocated, SL_LOG_longest};

	for (unsigned i = 0; told->f && i < SL_COUNT(bytes); i++)
		if (KNOWN(told->figure[bytes[i]]))
			sl_answer_figure(told->answer, sl_log_figure_name(bytes[i]),
					 bytes[i] == SL_LOG_longest ? "tokens" : "bytes", (double)told->figure[bytes[i]]);
}

/* The card of a dry run, by the memory that the text tells; NULL: none that is known. */
static const char *card_of(uint64_t total)
{
#define CARD(id, name, measured, memory, ...) {#id, memory},
	static const struct {
		const char *id;
		uint64_t mib;
	} cards[] = {
#include "dry/cards.def"
	};
#undef CARD
	uint64_t mib = KNOWN(total) ? total >> 20 : 0;

	for (size_t i = 0; i < SL_COUNT(cards); i++)
		if (mib && mib + mib / 200 > cards[i].mib && mib - mib / 200 < cards[i].mib)
			return cards[i].id;
	return NULL;
}

/* The command that decides: a dry run where the program and the card are known, else a recording on the card. */
static void put_next(struct told *told)
{
	const struct sl_log *log = told->log;
	const char *card = card_of(told->figure[SL_LOG_total]), *command = log->command,
		   *dry = card ? sl_answers_text(told->answer->of, " --dry=%s", card) : "";
	const struct sl_log_frame *script = told->f && told->f->frames ? &told->f->frame[0] : NULL;

	if (log->verdict == SL_LOG_VERDICT_host_memory || (log->verdict == SL_LOG_VERDICT_not_an_error && !log->failures))
		return;
	if (!command && script && strstr(script->file, ".py"))
		command = sl_answers_text(told->answer->of, "python %s", base_of(script->file));
	if (!command && log->server == SL_LOG_FORM_vllm_budget)
		command = KNOWN(told->figure[SL_LOG_longest])
				  ? sl_answers_text(told->answer->of, "vllm serve MODEL --max-model-len %llu",
						    (unsigned long long)told->figure[SL_LOG_longest])
				  : "vllm serve MODEL";
	if (command)
		sl_answer_next(told->answer, card ? "its holders, without a card" : "who holds it", "stormlog-run%s --report -- %s",
			       dry, command);
	else
		sl_answer_next(told->answer, "who holds it", "stormlog-run --report -- COMMAND");
}

static const enum sl_word words[] = {
	[SL_LOG_VERDICT_nothing_about_memory] = SL_WORD_NOTHING,
	[SL_LOG_VERDICT_not_an_error] = SL_WORD_NOT_AN_ERROR,
	[SL_LOG_VERDICT_nearly] = SL_WORD_NEARLY,
	[SL_LOG_VERDICT_host_memory] = SL_WORD_HOST_MEMORY,
	[SL_LOG_VERDICT_does_not_start] = SL_WORD_DOES_NOT_START,
	[SL_LOG_VERDICT_out_of_memory] = SL_WORD_OUT_OF_MEMORY,
};
static const char *const ids[] = {
	[SL_LOG_VERDICT_nothing_about_memory] = "log.nothing",
	[SL_LOG_VERDICT_not_an_error] = "log.handled",
	[SL_LOG_VERDICT_nearly] = "log.nearly",
	[SL_LOG_VERDICT_host_memory] = "log.host",
	[SL_LOG_VERDICT_does_not_start] = "log.start",
	[SL_LOG_VERDICT_out_of_memory] = "log.oom",
};

static void name_who(struct told *told)
{
	const struct sl_log_frame *frame = told->f && told->f->frames ? &told->f->frame[told->f->frames - 1] : NULL;
	struct sl_answers *answers = told->answer->of;

	told->at = "";
	told->who = "the program";
	if (frame) {
		told->who = sl_answers_text(answers, "%s:%u", base_of(frame->file), frame->line);
		told->at = sl_answers_text(answers, " at %s", told->who);
	} else if (sl_log_form_program(told->log->form)) {
		told->who = sl_log_form_program(told->log->form);
	}
	if (told->f && told->f->rank >= 0 && told->log->verdict == SL_LOG_VERDICT_out_of_memory)
		told->who = sl_answers_text(answers, "rank %d%s", told->f->rank, told->at);
}

struct sl_answers *sl_answer_log(const struct sl_log *log, const char *name)
{
	struct sl_answers *answers = sl_answers_new();
	struct told told = {.log = log, .f = log->told, .figure = log->told ? log->told->figure : log->fact};
	const char *program = sl_log_form_program(log->form) ?: sl_log_form_program(log->server);
	uint64_t device = told.figure[SL_LOG_device], total = told.figure[SL_LOG_total];

	answers->title = sl_answers_text(answers, "%s  a log%s%s  %s lines", name, program ? " of " : "", program ?: "",
					 SL_NUMBER(log->written));
	if (log->told && KNOWN(device))
		answers->right = KNOWN(total)
					 ? sl_answers_text(answers, "device %llu, %s", (unsigned long long)device, SL_SIZE(total))
					 : sl_answers_text(answers, "device %llu", (unsigned long long)device);
	told.answer = sl_answer_add(answers, words[log->verdict], ids[log->verdict]);
	name_who(&told);
	put_stack(&told);
	if (!log->told)
		told.how = log->verdict == SL_LOG_VERDICT_nearly	     ? "nearly"
			   : log->verdict != SL_LOG_VERDICT_not_an_error     ? "nothing"
			   : log->failures || KNOWN(log->fact[SL_LOG_batch]) ? "handled"
									     : "warned";
	say_all(&told);
	if (log->count > 1)
		sl_answer_say(told.answer, SL_LABEL_ELSE, "%u processes of this log failed; this one was the first", log->count);
	if (log->conf && log->told && log->cause != SL_LOG_CAUSE_reserved_but_fragmented && KNOWN(told.figure[SL_LOG_unallocated]))
		sl_answer_say(told.answer, SL_LABEL_NOTE,
			      "expandable_segments:True, which PyTorch advises, would not help: only %s are reserved and unused",
			      SL_SIZE(told.figure[SL_LOG_unallocated]));
	put_figures(&told);
	put_card(&told);
	put_ledger(&told);
	put_next(&told);
	return answers;
}
