/* SPDX-License-Identifier: MIT */
/* What is said of a log: the sentences of log.def with the figures of the text, what it lacks, and the command that has it. */
#include "analyzer/answer/make.h"

#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "common/base.h"

struct topic {
	const struct sl_log *log;
	const struct sl_log_failure *f; /* NULL: nothing failed */
	struct sl_answer *answer;
	const char *who, *at; /* "attention.py:38", "rank 5", "the program"; the same line as " at ...", or "" */
	const char *about;    /* has the words that a row's `when` may be */
};

static const struct row {
	enum sl_log_cause cause;
	const char *when;
	enum sl_said_as label; /* SL_LABEL_COUNT: the headline */
	unsigned slot;
	const char *text;
} rows[] = {
#define SL_LABEL_HEADLINE		    SL_LABEL_COUNT
#define SAY(cause, when, label, slot, text) {SL_LOG_CAUSE_##cause, when, SL_LABEL_##label, slot, text},
#include "analyzer/answer/log.def"
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');

	return slash && slash > back ? slash + 1 : back ? back + 1 : path;
}

/* In millionths. */
static uint64_t share_of(uint64_t part, uint64_t whole, double more)
{
	double share = SL_LOG_KNOWN(part) && SL_LOG_KNOWN(whole) && whole ? (double)part / (double)whole + more : 0;

	return share > 0.1 && share < 1 ? (uint64_t)(share * 1e6 + 0.5) : SL_LOG_UNKNOWN;
}

/* unit: bytes, a count, a number for a command, a fraction, or a share, which is rounded down to hundredths as a knob takes it. */
static const char *say_value(struct sl_answers *answers, char unit, uint64_t value)
{
	return !SL_LOG_KNOWN(value) ? NULL
	       : unit == 'b'	    ? sl_answers_text(answers, "%s", SL_SIZE(value))
	       : unit == 'c'	    ? sl_answers_text(answers, "%s", SL_NUMBER(value))
	       : unit == 'n'	    ? sl_answers_text(answers, "%llu", (unsigned long long)value)
	       : unit == 'f'	    ? sl_answers_text(answers, "%.2f", (double)value / 1e6)
				    : sl_answers_text(answers, "0.%02u", (unsigned)(value / 10000));
}

/* The value of a name as it is said: a figure, a text, or what follows from them; NULL: not known. */
static const char *value_of(const struct topic *topic, const char *name)
{
#define OF(name)	    log->figure[SL_LOG_##name]
#define IF(is_known, value) ((is_known) ? (value) : SL_LOG_UNKNOWN)
	const struct sl_log *log = topic->log;
	const struct sl_log_facts *facts = topic->f ? &topic->f->facts : &log->facts;
	uint64_t asked = OF(asked), outside = topic->f ? sl_log_outside(topic->f) : 0, others = sl_log_others(facts);
	int index = sl_log_index(name, strlen(name));
	unsigned largest = 0;
	char unit;

	for (unsigned i = 0; i < facts->others; i++)
		largest = facts->other[i].bytes > facts->other[largest].bytes ? i : largest;
	const struct {
		const char *name;
		char unit;
		uint64_t value;
		const char *text;
	} rows[] = {
		{"who", .text = topic->who},
		{"at", .text = topic->at},
		{"part", .text = log->form == SL_LOG_FORM_sglang_graph ? "the capture of CUDA graphs"
				 : log->form == SL_LOG_FORM_trtllm     ? "a part behind the model"
								       : "the sampler's warm-up"},
		{"fraction_less", 's', share_of(OF(fraction), 1000000, -0.05)},
		{"free_share", 's', share_of(OF(free), OF(total), -0.02)},
		{"weights_share", 's', share_of(OF(weights), OF(before), 0.01)},
		{"weights_share_more", 's', share_of(OF(weights), OF(before), 0.11)},
		{"used", 'b', sl_log_minus(OF(total), OF(free))},
		{"enough", 'b', IF(SL_LOG_KNOWN(OF(free)) && asked <= OF(free), asked)},
		{"outside", 'b', IF(outside, outside)},
		{"seqs_less", 'n', IF(SL_LOG_KNOWN(OF(seqs)) && OF(seqs) >= 8, OF(seqs) / 4)},
		{"ubatch_less", 'n', IF(SL_LOG_KNOWN(OF(ubatch)) && OF(ubatch) > 1, OF(ubatch) > 512 ? 512 : OF(ubatch) / 2)},
		{"cache_half", 'b', IF(SL_LOG_KNOWN(asked) && SL_LOG_KNOWN(OF(kv_cache)) && asked / 2 <= OF(kv_cache), asked / 2)},
		{"longest_plain", 'n', IF(OF(longest), OF(longest))},
		{"idle", 'n', IF(log->idle, (uint64_t)__builtin_ctzll(log->idle))},
		{"processes", 'n', IF(log->count > 1, log->count)},
		{"advised", 'b', IF(log->conf && log->cause != SL_LOG_CAUSE_reserved_but_fragmented, OF(unallocated))},
		{"neighbours", 'n', IF(others && facts->others > 1, facts->others)},
		{"neighbours_bytes", 'b', IF(others, others)},
		{"neighbour", 'n', IF(others, facts->other[largest].pid)},
		{"neighbour_bytes", 'b', IF(others, facts->other[largest].bytes)},
	};

	for (size_t i = 0; i < SL_COUNT(rows); i++)
		if (!strcmp(name, rows[i].name))
			return rows[i].text ?: say_value(topic->answer->of, rows[i].unit, rows[i].value);
	if (index >= SL_LOG_FIGURE_COUNT)
		return *facts->text[index - SL_LOG_FIGURE_COUNT] ? base_of(facts->text[index - SL_LOG_FIGURE_COUNT]) : NULL;
	unit = index == SL_LOG_fraction ? 'f' : index == SL_LOG_line ? 'n' : index >= SL_LOG_device ? 'c' : 'b';
	return index < 0 ? NULL : say_value(topic->answer->of, unit, log->figure[index]);
}

/* The text with its values, up to what closes it, where *text then stands; false: a name is not known. */
static bool fill(const struct topic *topic, const char **text, char *out, size_t room)
{
	bool is_complete = true;
	size_t size = 0;

	for (*out = 0; **text && !strchr("|]>", **text); ++*text) {
		char part[600], other[600];
		const char *at = *text, *value = part;
		bool found = false;

		if (*at == '{') {
			*text = strchr(at, '}');
			snprintf(part, sizeof(part), "%.*s", (int)(*text - at - 1), at + 1);
			value = value_of(topic, part);
		} else if (*at == '[' || *at == '<') {
			do {
				++*text;
				found |= fill(topic, text, found ? other : part, sizeof(part));
			} while (**text == '|');
			value = found ? part : *at == '[' ? "" : NULL;
		} else {
			*text += *at == '\\';
			snprintf(part, 2, "%s", *text);
		}
		is_complete &= value != NULL;
		size += (size_t)snprintf(out + size, room - size, "%s", value ?: "");
		size = size < room ? size : room - 1;
	}
	return is_complete;
}

static void say_all(struct topic *topic)
{
	enum sl_log_cause cause = topic->f ? topic->log->cause : SL_LOG_CAUSE_none;
	bool is_filled[SL_LABEL_COUNT + 1][4] = {0};
	char text[600];

	for (size_t i = 0; i < SL_COUNT(rows); i++) {
		const struct row *row = &rows[i];
		const char *at = row->text;
		bool common = row->cause == SL_LOG_CAUSE_none && !*row->when;

		if (common ? !topic->f : row->cause != cause || !strstr(topic->about, row->when))
			continue;
		if (is_filled[row->label][row->slot] || !fill(topic, &at, text, sizeof(text)))
			continue;
		is_filled[row->label][row->slot] = true;
		if (row->label == SL_LABEL_HEADLINE)
			sl_answer_headline(topic->answer, "%s", text);
		else
			sl_answer_say(topic->answer, row->label, "%s", text);
	}
}

static void put_stack(struct topic *topic)
{
	for (unsigned i = 0; topic->f && i < topic->f->trace.frames; i++) {
		const struct sl_log_frame *frame = &topic->f->trace.frame[i];
		const char *function = *frame->function ? frame->function : NULL, *source = *frame->source ? frame->source : NULL;

		sl_answer_frame(topic->answer, &(struct sl_answer_line){base_of(frame->file), function, NULL, frame->line, source});
	}
}

/* PyTorch's figures of the card; they do not add up in a text that counts more than the card has. */
static void put_card(struct topic *topic)
{
	const uint64_t *figure = topic->log->figure;
	uint64_t total = figure[SL_LOG_total], allocated = figure[SL_LOG_allocated], free = figure[SL_LOG_free],
		 unused = sl_log_known_or(figure[SL_LOG_unallocated], 0), context, sum;

	if (!topic->f || !SL_LOG_KNOWN(total) || !SL_LOG_KNOWN(allocated) || !SL_LOG_KNOWN(free))
		return;
	sum = allocated + unused + free + sl_log_others(&topic->f->facts);
	if (sum > total)
		return;
	topic->answer->table.total = total;
	topic->answer->table.moment = "the card at the error";
	sl_answer_row(topic->answer, allocated, "tensors", NULL);
	if (unused)
		sl_answer_row(topic->answer, unused, "unused", "reserved by PyTorch");
	for (unsigned i = 0; i < topic->f->facts.others && i < 4; i++)
		sl_answer_row_bare(
			topic->answer, topic->f->facts.other[i].bytes,
			sl_answers_text(topic->answer->of, "process %llu", (unsigned long long)topic->f->facts.other[i].pid), NULL);
	context = sl_log_minus(figure[SL_LOG_process], allocated + unused);
	if (context <= total - sum) {
		sl_answer_row_bare(topic->answer, context, "context, code", NULL);
		sum += context;
	}
	if (sum < total)
		sl_answer_row_bare(topic->answer, total - sum, "not ours", NULL);
	sl_answer_row_bare(topic->answer, free, "free", NULL);
}

static void put_ledger(struct topic *topic)
{
	static const char *const names[] = {"weights", "cache", "activations", "graphs", "other"};

	if (topic->answer->table.row.count)
		return;
	for (unsigned i = 0; i < SL_COUNT(names); i++) {
		uint64_t bytes = topic->log->figure[SL_LOG_weights + i];

		if (SL_LOG_KNOWN(bytes))
			sl_answer_row(topic->answer, bytes, names[i], NULL);
		topic->answer->table.total += sl_log_known_or(bytes, 0);
	}
	topic->answer->table.moment = "by the server's own account";
}

static void put_figures(struct topic *topic)
{
	for (unsigned i = 0; topic->f && i <= SL_LOG_unallocated; i++)
		if (SL_LOG_KNOWN(topic->log->figure[i]) && i != SL_LOG_reserved)
			sl_answer_figure(topic->answer, sl_log_figures[i], "bytes", (double)topic->log->figure[i]);
	if (topic->f && SL_LOG_KNOWN(topic->log->figure[SL_LOG_longest]))
		sl_answer_figure(topic->answer, "longest", "tokens", (double)topic->log->figure[SL_LOG_longest]);
}

/* The command that decides: a dry run where the program and the card are known, else a recording on the card. */
static void put_next(struct topic *topic)
{
	const struct sl_log *log = topic->log;
	const char *script = topic->f && topic->f->trace.frames ? base_of(topic->f->trace.frame[0].file) : "",
		   *longest = say_value(topic->answer->of, 'n', log->figure[SL_LOG_longest]),
		   *command = *log->command ? log->command : NULL, *card;

	if (log->verdict == SL_LOG_VERDICT_host_memory || (log->verdict == SL_LOG_VERDICT_not_an_error && !log->failures))
		return;
	if (!command && strstr(script, ".py"))
		command = sl_answers_text(topic->answer->of, "python %s", script);
	if (!command && log->server == SL_LOG_FORM_vllm_budget)
		command = sl_answers_text(topic->answer->of, "vllm serve MODEL%s%s", longest ? " --max-model-len " : "",
					  longest ?: "");
	card = command ? sl_make_card_of(log->figure[SL_LOG_total]) : NULL;
	sl_answer_next(topic->answer, card ? "its holders, without a card" : "who holds it", "stormlog-run%s%s --report -- %s",
		       card ? " --dry=" : "", card ?: "", command ?: "COMMAND");
}

#define VERDICT(name, word, id) {SL_WORD_##word, id},
static const struct {
	enum sl_word word;
	const char *id;
} verdicts[] = {SL_LOG_VERDICTS(VERDICT)};

/* Who asks, and what of the log its rows of log.def go by. */
static void name_who(struct topic *topic)
{
	const struct sl_log *log = topic->log;
	const struct sl_log_failure *f = topic->f;
	const struct sl_log_frame *frame = f && f->trace.frames ? &f->trace.frame[f->trace.frames - 1] : NULL;
	const char *program = sl_log_forms[log->form].program, *server = sl_log_forms[log->server].program;
	struct sl_answers *answers = topic->answer->of;

	topic->who = frame ? sl_answers_text(answers, "%s:%u", base_of(frame->file), frame->line) : program ?: "the program";
	topic->at = frame ? sl_answers_text(answers, " at %s", topic->who) : "";
	if (f && f->from.rank >= 0 && log->verdict == SL_LOG_VERDICT_out_of_memory)
		topic->who = sl_answers_text(answers, "rank %d%s", f->from.rank, topic->at);
	topic->about = log->failures || SL_LOG_KNOWN(log->figure[SL_LOG_batch]) ? "handled" : "warned";
	if (f)
		topic->about = sl_answers_text(
			answers, "%s %s %s %s %s", program ?: "", server ?: "", f->row->source, f->row->pattern,
			f->trace.frames || !log->server ? sl_log_doings[f->trace.doing] : ""); /* not a server's own work */
	else if (log->verdict != SL_LOG_VERDICT_not_an_error)
		topic->about = sl_log_verdicts[log->verdict];
}

struct sl_answers *sl_answer_log(const struct sl_log *log, const char *name)
{
	struct sl_answers *answers = sl_answers_new();
	struct topic topic = {.log = log, .f = log->first};
	uint64_t device = log->first ? log->first->facts.figure[SL_LOG_device] : SL_LOG_UNKNOWN, total = log->figure[SL_LOG_total];

	answers->title = sl_answers_text(answers, "%s  a log%s%s  %s line%s", name, log->program ? " of " : "", log->program ?: "",
					 SL_NUMBER(log->written), log->written == 1 ? "" : "s");
	if (SL_LOG_KNOWN(device))
		answers->right = sl_answers_text(answers, "device %llu%s%s", (unsigned long long)device,
						 SL_LOG_KNOWN(total) ? ", " : "", SL_LOG_KNOWN(total) ? SL_SIZE(total) : "");
	topic.answer = sl_answer_add(answers, verdicts[log->verdict].word, verdicts[log->verdict].id);
	name_who(&topic);
	put_stack(&topic);
	say_all(&topic);
	put_figures(&topic);
	put_card(&topic);
	put_ledger(&topic);
	put_next(&topic);
	return answers;
}
