/* SPDX-License-Identifier: MIT */
#include "agent/process/hostmem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/mute.h"
#include "agent/process/kept.h"
#include "agent/process/procfile.h"
#include "common/text.h"

struct layout {
	const char *root, *usage, *limit, *peak, *events, *kills;
};

static const struct layout version2 = {"/sys/fs/cgroup", "/memory.current", "/memory.max",
				       "/memory.peak",	 "/memory.events",  "oom_kill "};
static const struct layout version1 = {"/sys/fs/cgroup/memory",	     "/memory.usage_in_bytes", "/memory.limit_in_bytes",
				       "/memory.max_usage_in_bytes", "/memory.oom_control",    "oom_kill "};

/* Found once: 0 not yet, 1 being looked for, 2 found, 3 there is none. */
static _Atomic unsigned state;
static const struct layout *layout;
static char folder[1024];

static bool read_number(const char *where, const char *name, uint64_t *number)
{
	char path[1100];
	struct sl_text text = sl_text_begin(path, sizeof(path));

	sl_text_add(&text, where);
	sl_text_add(&text, name);
	return sl_kept_number(path, number);
}

/* Reads a limit; version 1 writes "none" as the largest multiple of a page. */
static bool read_limit(const char *where, uint64_t *limit)
{
	return read_number(where, layout->limit, limit) && *limit < 1ull << 60;
}

/* Finds the path in /proc/self/cgroup for the memory controller; false: that version of cgroups is not in use. */
static bool own_path(const char *content, bool second, char *out, size_t size)
{
	struct sl_text text = sl_text_begin(out, size);
	const char *at = content;

	if (second) {
		at = sl_procfile_line(content, "0::");
	} else {
		/* "4:memory:/path", or with several controllers "4:cpu,memory:/path". */
		while (*at) {
			const char *names = at + strcspn(at, ":\n"), *path;

			names += *names == ':';
			path = names + strcspn(names, ":\n");
			for (const char *name = names; name < path; name += strcspn(name, ",:") + 1)
				if (!strncmp(name, "memory", 6) && (name[6] == ':' || name[6] == ',')) {
					sl_text_add_bytes(&text, path + 1, strcspn(path + 1, "\n"));
					return true;
				}
			at += strcspn(at, "\n");
			at += *at == '\n';
		}
		return false;
	}
	if (at)
		sl_text_add_bytes(&text, at, strcspn(at, "\n"));
	return at != NULL;
}

/* Searches from our cgroup upward for the tightest limit, by which we would be killed; without limits, takes our own cgroup. */
static bool find_folder(const char *path)
{
	char at[sizeof(folder)];
	struct sl_text text = sl_text_begin(at, sizeof(at));
	uint64_t limit, tightest = UINT64_MAX, usage;
	size_t root = strlen(layout->root);
	bool found = false;

	sl_text_add(&text, layout->root);
	sl_text_add(&text, path);
	for (;;) {
		/* A container sees its cgroup at the root although the path it is given is the host's. */
		if (read_number(at, layout->usage, &usage)) {
			bool tighter = read_limit(at, &limit) && limit < tightest;

			if (tighter)
				tightest = limit;
			if (!found || tighter)
				strcpy(folder, at);
			found = true;
		}
		if (strlen(at) <= root)
			return found;
		*strrchr(at, '/') = 0;
	}
}

static bool find(void)
{
	static char content[4096]; /* static, because the thread's stack may be small; one thread runs this, once (`state`) */
	char path[512];

	if (sl_procfile_read("/proc/self/cgroup", content, sizeof(content)) <= 0)
		return false;
	layout = &version1;
	if (own_path(content, false, path, sizeof(path)) && find_folder(path))
		return true;
	layout = &version2;
	return own_path(content, true, path, sizeof(path)) && find_folder(path);
}

static void read_cgroup(struct sl_hostmem *memory)
{
	char path[1100], content[1024];
	struct sl_text text = sl_text_begin(path, sizeof(path));
	const char *kills;
	unsigned none = 0;

	if (!atomic_load(&state)) {
		struct sl_mute mute = sl_mute_begin();

		if (atomic_compare_exchange_strong(&state, &none, 1))
			atomic_store(&state, find() ? 2 : 3);
		sl_mute_end(&mute);
	}
	if (atomic_load(&state) != 2)
		return;
	read_number(folder, layout->usage, &memory->cgroup_bytes);
	read_number(folder, layout->peak, &memory->cgroup_peak_bytes);
	if (!read_limit(folder, &memory->cgroup_limit_bytes))
		memory->cgroup_limit_bytes = SL_HOSTMEM_UNKNOWN;
	sl_text_add(&text, folder);
	sl_text_add(&text, layout->events);
	if (sl_kept_read(path, content, sizeof(content)) > 0 && (kills = sl_procfile_line(content, layout->kills)))
		sl_procfile_digits(kills, &memory->oom_kills);
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

void sl_hostmem_read(struct sl_hostmem *memory)
{
	char content[128];
	uint64_t pages;

	memset(memory, 0xff, sizeof(*memory));
	if (sl_kept_read("/proc/self/statm", content, sizeof(content)) > 0 && sl_procfile_digits(content, &pages)) {
		const char *second = strchr(content, ' ');

		memory->vm_bytes = pages * page_bytes();
		if (second && sl_procfile_digits(second + 1, &pages))
			memory->rss_bytes = pages * page_bytes();
	}
	read_cgroup(memory);
}

uint64_t sl_hostmem_limit(void)
{
	struct rlimit64 limit;

	return !syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) && limit.rlim_cur != RLIM64_INFINITY ? limit.rlim_cur
													: SL_HOSTMEM_UNKNOWN;
}

void sl_hostmem_child(void)
{
	atomic_store(&state, 0);
}
