/* SPDX-License-Identifier: MIT */
/* The files of server/web/, compiled in as bytes (embed.py). */
#pragma once

#include <stddef.h>

struct sl_asset {
	const char *name, *type;
	const unsigned char *bytes;
	size_t size;
};
extern const struct sl_asset sl_assets[]; /* ended by a name of NULL */
