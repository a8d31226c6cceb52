/* SPDX-License-Identifier: MIT */
/*
 * ask FOLDER FILE:LINE:FUNCTION...: the answers of analyzer/source about a stack, innermost frame first.  They are the line that likely
 * keeps its blocks, or "-"; whether it runs without autograd, evaluates, and zeroes late; the line that keeps its exception;
 * whether the keeping line keeps a slice; whether the stack calls a teacher; and what it asks a library to keep.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/source/source.h"

int main(int argc, char **argv)
{
	static const char *const answers[] = {"unknown", "no", "yes"};
	struct sl_stack_frame frames[SL_STACK_MAX] = {0}, keeper = {0}, error;
	struct sl_frames file = {.path = "rank-00000-1.msgpack.zst", .owner = geteuid()};
	struct sl_trace trace = {.files = &file, .file_count = 1};
	struct sl_source *source = sl_source_new();
	char host[HOST_NAME_MAX + 1] = "", folder[PATH_MAX], output[64];
	const char *text;
	unsigned count = 0, at;

	gethostname(host, sizeof(host) - 1);
	if (argc < 3 || argc - 2 > SL_STACK_MAX || !realpath(argv[1], folder))
		return 2;
	trace.header.host = host;
	trace.header.cwd = folder;
	trace.header.started_ns = UINT64_MAX;
	for (int i = 2; i < argc; i++, count++) {
		char *line = strchr(argv[i], ':'), *function = line ? strchr(line + 1, ':') : NULL;

		if (!function)
			return 2;
		*line = *function = 0;
		frames[count] = (struct sl_stack_frame){.python = true, .own = true, .file = argv[i], .function = function + 1};
		frames[count].line = (uint32_t)strtoul(line + 1, NULL, 10);
	}
	if (sl_source_keeper(source, &trace, frames, count, &keeper)) {
		text = sl_source_line(source, &trace, &keeper, NULL);
		printf("%s:%u\t%s\n", keeper.file, keeper.line, text ?: "?");
	} else {
		puts("-");
	}
	printf("%s %s %d", answers[sl_source_without_grad(source, &trace, frames, count)],
	       answers[sl_source_is_evaluation(source, &trace, frames, count, &at)],
	       sl_source_zeroes_late(source, &trace, frames, count, &at));
	printf(" %u", sl_source_keeps_error(source, &trace, frames, count, &error) ? error.line : 0);
	printf(" %d", keeper.file && sl_source_keeps_view(source, &trace, &keeper));
	printf(" %d", sl_source_is_teacher(source, &trace, frames, count, &at));
	printf(" %s", sl_source_keeps_output(source, &trace, &frames[0], output) ? output : "-");
	printf(" %u\n", sl_source_graph_of_gradients(source, &trace, frames, count, &at));
	sl_source_free(source);
	return 0;
}
