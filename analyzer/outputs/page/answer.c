/* SPDX-License-Identifier: MIT */
/* The document of the run (analyzer/answer/answer.h): its JSON, as report.json has it. */
#include <stdlib.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/faces/faces.h"
#include "analyzer/outputs/page/page.h"

void sl_page_answer(struct sl_page *page, bool filed)
{
	char *text = NULL, *paths = filed ? sl_make_paths(page->report, true) : sl_memory_copy("");
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
