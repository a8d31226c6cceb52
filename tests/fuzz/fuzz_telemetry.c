/* SPDX-License-Identifier: MIT */
/*
 * Any bytes in Python Stormlog's files must not crash or hang their readers.  An input is the kind of file (one byte: lines
 * of JSON, JSON, CSV) and its content.  A libFuzzer target: scripts/fuzz.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyzer/upstream/files/files.h"
#include "common/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const kinds[] = {"jsonl", "json", "csv"};
	struct sl_telemetry *telemetry;
	char path[64];
	FILE *file;

	if (!size)
		return 0;
	snprintf(path, sizeof(path), "/dev/shm/stormlog-fuzz-%d.%s", getpid(), kinds[bytes[0] % SL_COUNT(kinds)]);
	file = fopen(path, "we");
	if (!file || fwrite(bytes + 1, 1, size - 1, file) != size - 1 || fclose(file))
		abort();
	telemetry = sl_telemetry_new();
	sl_telemetry_add_path(telemetry, path, true);
	sl_telemetry_finish(telemetry, NULL);
	sl_telemetry_free(telemetry);
	unlink(path);
	return 0;
}
