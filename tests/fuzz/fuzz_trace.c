/* SPDX-License-Identifier: MIT */
/*
 * Any bytes of a trace file and a ring must not crash or hang reader and model.  An input is the length of the trace
 * (4 bytes), the trace, and the beginning of the ring.  With -DFRAMES an input is the content of frames, which changes of
 * a trace seldom reach because of its checksums: [kind, thread, size (4 bytes), content before compression]...
 * With -fsanitize=fuzzer this is a libFuzzer target (scripts/fuzz); else fuzz_trace ROUNDS SEED... mutates each seed
 * ROUNDS times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyzer/model/state/model.h"
#include "analyzer/model/replay/replay.h"
#include "common/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int file_of(const void *bytes, size_t size, char path[32])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void replay(const char *trace_path, const char *ring_path)
{
	char *files[] = {(char *)trace_path};
	struct sl_image image = {.name = "fuzz", .files = files, .file_count = 1, .ring = (char *)ring_path};
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(&image, &damage);
	const struct sl_item *item;

	if (trace) {
		struct sl_order *order = sl_order_new(trace);
		struct sl_model *model = sl_replay_new(&trace->header, &trace->defs);

		sl_replay_folded(model, &trace->folded);
		while ((item = sl_order_next(order)))
			sl_replay_apply(model, item);
		sl_replay_end(model, false);
		sl_replay_free(model);
		sl_order_free(order);
	}
	sl_trace_close(trace);
	sl_damage_free(&damage);
}

#ifdef FRAMES
#include "frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t used;
	uint8_t *out = frames_of(bytes, size, &used);
	char path[32];
	int fd = file_of(out, used, path);

	replay(path, NULL);
	close(fd);
	free(out);
	return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t split = size < 4 ? 0 : sl_load_le(bytes, 4) % (size - 3), rest = size < 4 ? 0 : size - 4 - split;
	char trace_path[32], ring_path[32];
	int trace, ring;

	if (size < 4)
		return 0;
	trace = file_of(bytes + 4, split, trace_path);
	ring = file_of(bytes + 4 + split, rest, ring_path);
	replay(trace_path, rest ? ring_path : NULL);
	close(trace);
	close(ring);
	return 0;
}
#endif

#ifndef LIBFUZZER
#include "alone.h"

int main(int argc, char **argv)
{
	return alone_main(argc, argv);
}
#endif
