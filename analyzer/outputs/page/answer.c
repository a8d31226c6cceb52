/* SPDX-License-Identifier: MIT */
/* The document of the run (analyzer/answer/answer.h): its JSON, as report.json has it. */
#include <limits.h>
#include <stdlib.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/faces/faces.h"
#include "analyzer/outputs/page/page.h"
#include "common/text.h"

/* For a shell in any folder: where the run lies. */
static char *paths_of(const struct sl_report *report)
{
	char *all = sl_memory_copy(""), word[2 * PATH_MAX];

	for (unsigned i = 0; i < report->path_count; i++) {
		char *before = all, *real = realpath(report->paths[i], NULL);

		all = sl_memory_print("%s%s%s", before, i ? " " : "", sl_shell_word(word, sizeof(word), real ?: report->paths[i]));
		free(before);
		free(real);
	}
	return all;
}

void sl_page_answer(struct sl_page *page, bool filed)
{
	char *text = NULL, *paths = filed ? paths_of(page->report) : sl_memory_copy("");
	size_t size;
	FILE *out = sl_memory_must(open_memstream(&text, &size));
	struct sl_json *j = sl_json_new(out, SL_JSON_COMPACT);

	sl_json_object(j, NULL);
	sl_face_json(j, "answer", sl_answer_report(page->report), paths);
	sl_json_end(j);
	sl_json_close(j);
	fclose(out);
	sl_page_key(page, "answer");
	msgpack_pack_str(&page->pack.pk, size);
	msgpack_pack_str_body(&page->pack.pk, text, size);
	free(text);
	free(paths);
}
