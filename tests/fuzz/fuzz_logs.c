/* SPDX-License-Identifier: MIT */
/* Any bytes as a log must neither crash nor hang: they are read, judged and told. */
#include <stdio.h>
#include <stdlib.h>

#include "alone.h"
#include "analyzer/answer/make.h"
#include "analyzer/faces/faces.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static FILE *out;
	FILE *in = size ? fmemopen((void *)bytes, size, "r") : NULL;
	struct sl_answers *answers;
	struct sl_log *log;

	if (!out)
		out = fopen("/dev/null", "w");
	if (!in)
		return 0;
	log = sl_log_new();
	sl_log_kind_of((const char *)bytes, size < 4096 ? size : 4096);
	sl_log_read(log, in, "rank1.log", false);
	sl_log_judge(log);
	answers = sl_answer_log(log, "rank1.log");
	sl_face_terminal(answers, out, &(struct sl_face_style){.columns = 80});
	sl_answers_free(answers);
	free(log);
	fclose(in);
	return 0;
}

#ifndef LIBFUZZER
int main(int argc, char **argv)
{
	return alone_main(argc, argv);
}
#endif
