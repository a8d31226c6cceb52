/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/faces/faces.h"

static void put_label(FILE *out, const struct sl_answer *answer, enum sl_said_as label)
{
	if (answer->label[label].count)
		fprintf(out, "; %s:", sl_answer_label(label));
	for (size_t i = 0; i < answer->label[label].count; i++)
		fprintf(out, " %s", answer->label[label].item[i] + strspn(answer->label[label].item[i], "\n "));
}

char *sl_face_line(const struct sl_answer *answer)
{
	char *text = NULL;
	size_t size;
	FILE *out = sl_memory_must(open_memstream(&text, &size));

	fprintf(out, "%s: %s", sl_answer_word(answer->word), answer->headline);
	put_label(out, answer, answer->label[SL_LABEL_FIX].count ? SL_LABEL_FIX : SL_LABEL_OPEN);
	fclose(out);
	return text;
}
