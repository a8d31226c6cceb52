/* SPDX-License-Identifier: MIT */
/* Any bytes as a snapshot of PyTorch's must neither crash nor hang: they are read, rebuilt and made a trace. */
#include <stdio.h>
#include <stdlib.h>

#include "alone.h"
#include "analyzer/snapshot/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static FILE *out;
	struct sl_converted how;
	FILE *in = size ? fmemopen((void *)bytes, size, "r") : NULL;

	if (!out)
		out = fopen("/dev/null", "w");
	if (!in)
		return 0;
	sl_snapshot_convert(in, "s.pickle", 1, out, &how);
	fclose(in);
	return 0;
}

#ifndef LIBFUZZER
int main(int argc, char **argv)
{
	return alone_main(argc, argv);
}
#endif
