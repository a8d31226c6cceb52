/* SPDX-License-Identifier: MIT */
/* Which releases of PyTorch write a snapshot with these keys. */
#pragma once

#include "analyzer/snapshot/read.h"

struct sl_snapshot_releases {
	unsigned oldest, newest; /* of 2.N; newest 0: any newer one */
	char text[16];
};

struct sl_snapshot_releases sl_snapshot_releases(const struct sl_snapshot *snapshot);
