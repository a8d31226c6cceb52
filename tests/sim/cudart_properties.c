/* SPDX-License-Identifier: MIT */
/* cudaDeviceProp of every runtime, from the device's attributes. */
#include "cudart.h"

#include <string.h>

enum { NAME_BYTES = 256, UUID_AT = 256, TOTAL_AT = 288 };

static const struct {
	short attribute, at, at_13, bytes;
} rows[] = {
#define PROPERTY(attribute, at, at_13, bytes) {attribute, at, at_13, bytes},
#include "properties.def"
#undef PROPERTY
};

int sim_rt_properties(const struct driver *d, char *out, size_t size, int device)
{
	int error = d->cuDeviceTotalMem((size_t *)(out + TOTAL_AT), device);

	if (error)
		return error;
	memset(out, 0, TOTAL_AT);
	memset(out + TOTAL_AT + sizeof(size_t), 0, size - TOTAL_AT - sizeof(size_t));
	d->cuDeviceGetName(out, NAME_BYTES, device);
	d->cuDeviceGetUuid(out + UUID_AT, device);
	for (size_t i = 0; i < SIM_ARRAY_SIZE(rows); i++) {
		int at = SIM_CUDART_MAJOR < 13 ? rows[i].at : rows[i].at_13, value = 0;
		size_t wide;

		if (at < 0 || at + rows[i].bytes > (int)size)
			continue;
		d->cuDeviceGetAttribute(&value, rows[i].attribute, device);
		wide = (size_t)value;
		memcpy(out + at, &wide, (size_t)rows[i].bytes); /* little-endian: the lower bytes come first */
	}
	return 0;
}
