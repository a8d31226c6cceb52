/* SPDX-License-Identifier: MIT */
/* Built where clang, libbpf's headers or a supported processor are missing: watching is refused with a message. */
#include "tools/attach/attach.h"

struct sl_attach_watch *sl_watch_new(const char *folder)
{
	return 0;
}

const char *sl_watch_open(struct sl_attach_watch *watch)
{
	return "this stormlog-attach was built without BPF";
}

bool sl_watch_failed(const struct sl_attach_watch *watch)
{
	return false;
}

bool sl_watch_uses_gpu(long pid)
{
	return false;
}

const char *sl_watch_add(struct sl_attach_watch *watch, long pid)
{
	return "and this stormlog-attach was built without BPF";
}

size_t sl_watch_count(const struct sl_attach_watch *watch)
{
	return 0;
}

bool sl_watch_has(const struct sl_attach_watch *watch, long pid)
{
	return false;
}

bool sl_watch_run(struct sl_attach_watch *watch, double seconds, void (*search)(void *data), void *data)
{
	return true;
}

void sl_watch_free(struct sl_attach_watch *watch)
{
}
