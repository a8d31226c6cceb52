/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/release.h"

#include "common/base.h"

/* The release that first wrote a key, and whether events have it. */
static const struct {
	enum sl_snapshot_key key;
	unsigned since;
	bool in_events;
} keys[] = {
	{SL_SNAPSHOT_HAS_ADDRESS, 1, false},	 {SL_SNAPSHOT_HAS_TIME, 2, true},    {SL_SNAPSHOT_HAS_SETTINGS, 3, false},
	{SL_SNAPSHOT_HAS_ANNOTATIONS, 5, false}, {SL_SNAPSHOT_HAS_CONTEXT, 8, true}, {SL_SNAPSHOT_HAS_REUSE, 9, false},
	{SL_SNAPSHOT_HAS_METADATA, 10, true},	 {SL_SNAPSHOT_HAS_POOL, 12, true},
};

struct sl_snapshot_releases sl_snapshot_releases(const struct sl_snapshot *snapshot)
{
	struct sl_snapshot_releases releases = {0, 0, ""};

	for (size_t i = 0; i < SL_COUNT(keys); i++)
		if (snapshot->keys & 1u << keys[i].key)
			releases.oldest = keys[i].since;
		else if (!releases.newest && (!keys[i].in_events || snapshot->events.count))
			releases.newest = keys[i].since - 1;
	if (releases.newest && releases.newest < releases.oldest)
		releases.newest = releases.oldest; /* an allocator of another vendor, or a file that was edited */
	return releases;
}
