/* SPDX-License-Identifier: MIT */
/* The card of a log: what the text of a job tells, where nothing was recorded. */
#include "analyzer/catalogue/catalogue.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "analyzer/answer/answer.h"
#include "analyzer/answer/log.h"
#include "analyzer/base/paths.h"
#include "common/fnv.h"

struct sl_log *sl_card_read_log(const char *path, struct stat *st)
{
	/* what is written while it is read makes it a new file */
	return sl_log_kind_of_file(path) == SL_LOG_IS_TEXT && !stat(path, st) ? sl_log_of((char *const[]){(char *)path, NULL}, true)
									      : NULL;
}

void sl_card_take_log(struct sl_card *card, const struct sl_log *log, const char *source, int64_t ended_ns)
{
	const struct sl_log_failure *told = log->told;
	bool fails = log->verdict >= SL_LOG_VERDICT_host_memory;
	struct sl_answers *answers = sl_answer_log(log, source ? sl_paths_name(source) : "log");
	char text[300];

	if (source)
		snprintf(text, sizeof(text), "log-%016" PRIx64, sl_fnv_text(source));
	card->identity = source ? sl_card_keep(card, text) : NULL;
	card->run_id = card->identity;
	card->source = sl_card_keep(card, source);
	card->tag = sl_card_keep(card, sl_paths_name(source));
	card->command = sl_card_keep(card, *log->command ? log->command : sl_paths_name(source) ?: "log");
	card->status = log->verdict == SL_LOG_VERDICT_host_memory ? "killed" : fails ? "failed" : "unknown";
	card->finding = log->verdict ? sl_log_verdicts[log->verdict] : NULL;
	sl_card_take_verdict(card, answers);
	sl_answers_free(answers);
	card->severity = log->verdict ? fails ? "critical" : "info" : NULL;
	card->ended_ns = ended_ns;
	card->ooms = log->verdict == SL_LOG_VERDICT_host_memory ? 0 : log->count;
	for (unsigned i = 0; told && i < told->frames; i++) {
		const char *file = sl_paths_name(told->frame[i].file);

		snprintf(text, sizeof(text), "%s:%" PRIu32, file, told->frame[i].line);
		sl_card_add_name(card, SL_NAME_PLACE, text);
		sl_card_add_name(card, SL_NAME_FILE, file);
		if (*told->frame[i].function)
			sl_card_add_name(card, SL_NAME_FUNCTION, told->frame[i].function);
	}
}

bool sl_card_put_log(struct sl_store *store, const struct sl_log *log, const char *path, const struct stat *st, bool named,
		     int64_t *run)
{
	char *whole = realpath(path, NULL);
	struct sl_store_file file = {whole, st->st_size, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
	bool fine = true;

	if (whole) {
		struct sl_card card;

		sl_card_init(&card);
		sl_card_take_log(&card, log, whole, file.changed_ns);
		fine = (!named && !log->verdict) || sl_store_put(store, &card, run);
		fine = fine && sl_store_file_put(store, &file, run, *run != 0);
		sl_card_free(&card);
	}
	free(whole);
	return fine;
}
