/* SPDX-License-Identifier: MIT */
/* Files of server/web/, made into bytes while building (embed.py). */
#ifndef SERVER_ASSETS_H
#define SERVER_ASSETS_H

#include <stddef.h>

struct sl_asset {
	const char *name, *type;
	const unsigned char *bytes;
	size_t size;
};
extern const struct sl_asset sl_assets[]; /* a name of NULL ends them */

#endif
