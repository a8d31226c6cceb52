/* SPDX-License-Identifier: MIT */
/* forecast TOTAL: reads lines "NS BYTES" and prints for each the seconds until TOTAL bytes are held, or "inf". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/follow/follow.h"

int main(int argc, char **argv)
{
	struct sl_forecast forecast = {0};
	uint64_t ns, bytes, total = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	while (scanf("%" SCNu64 " %" SCNu64, &ns, &bytes) == 2) {
		sl_forecast_add(&forecast, ns, bytes, bytes);
		printf("%g\n", sl_forecast_full(&forecast, total));
	}
	return 0;
}
