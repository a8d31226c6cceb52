/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/faces/faces.h"

static void put_label(FILE *out, const struct sl_answer *answer, enum sl_said_as label)
{
	size_t count = answer->label[label].count;

	for (size_t i = 0; i < count; i++) {
		const char *text = answer->label[label].item[i] + strspn(answer->label[label].item[i], "\n ");
		size_t size = strlen(text);

		if (!i)
			fprintf(out, "; %s:", sl_answer_label(label));
		fprintf(out, " %.*s", (int)(size - (i + 1 == count && size && text[size - 1] == '.')), text);
	}
}

char *sl_face_line(const struct sl_answer *answer)
{
	char *text = NULL;
	size_t size;
	FILE *out = sl_memory_must(open_memstream(&text, &size));

	fprintf(out, "%s: %s", sl_answer_word(answer->word), answer->headline);
	put_label(out, answer, SL_LABEL_WHY);
	put_label(out, answer, answer->label[SL_LABEL_FIX].count ? SL_LABEL_FIX : SL_LABEL_OPEN);
	fclose(out);
	return text;
}
