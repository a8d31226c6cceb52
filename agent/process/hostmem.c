/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "common/fnv.h"
#include "common/text.h"

struct sl_hostmem_layout {
	const char *root, *usage, *limit, *peak, *events, *kills;
};

static const struct sl_hostmem_layout version2 = {"/sys/fs/cgroup", "/memory.current", "/memory.max",
						  "/memory.peak",   "/memory.events",  "oom_kill "};
static const struct sl_hostmem_layout version1 = {"/sys/fs/cgroup/memory",	"/memory.usage_in_bytes", "/memory.limit_in_bytes",
						  "/memory.max_usage_in_bytes", "/memory.oom_control",	  "oom_kill "};

struct sl_hostmem_process sl_hostmem_self = {.proc = "/proc/self", .read = sl_open_proc_read};

static long read_file(const struct sl_hostmem_process *of, const char *where, const char *name, char *content, size_t size)
{
	char path[1100];
	struct sl_text text = sl_text_begin(path, sizeof(path));

	sl_text_add(&text, where);
	sl_text_add(&text, name);
	return of->read(path, content, size);
}

static bool read_number(const struct sl_hostmem_process *of, const char *where, const char *name, uint64_t *number)
{
	char content[64];

	return read_file(of, where, name, content, sizeof(content)) > 0 && sl_procfile_digits(content, number);
}

/* Reads a limit; version 1 writes "none" as the largest multiple of a page. */
static bool read_limit(const struct sl_hostmem_process *of, const struct sl_hostmem_layout *layout, const char *where,
		       uint64_t *limit)
{
	return read_number(of, where, layout->limit, limit) && *limit < 1ull << 60;
}

/* Finds the path in /proc/PID/cgroup for the memory controller; false: that version of cgroups is not in use. */
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
static bool find_folder(struct sl_hostmem_cgroup *cgroup, const char *path)
{
	static const struct sl_hostmem_process once = {.read = sl_procfile_read}; /* the files of most are not read again */
	char at[sizeof(cgroup->folder)];
	struct sl_text text = sl_text_begin(at, sizeof(at));
	uint64_t limit, tightest = UINT64_MAX, usage;
	size_t root = strlen(cgroup->layout->root);
	bool found = false;

	sl_text_add(&text, cgroup->layout->root);
	sl_text_add(&text, path);
	for (;;) {
		/* A container sees its cgroup at the root although the path it is given is the host's. */
		if (read_number(&once, at, cgroup->layout->usage, &usage)) {
			bool tighter = read_limit(&once, cgroup->layout, at, &limit) && limit < tightest;

			if (tighter)
				tightest = limit;
			if (!found || tighter)
				strcpy(cgroup->folder, at);
			found = true;
		}
		if (strlen(at) <= root)
			return found;
		*strrchr(at, '/') = 0;
	}
}

/* Looks for the cgroup; `of->cgroup[at]` is not read meanwhile. */
static bool find(struct sl_hostmem_process *of, unsigned at)
{
	static char content[4096]; /* static, because the thread's stack may be small; one thread runs this at a time (`state`) */
	struct sl_hostmem_cgroup *cgroup = &of->cgroup[at];
	uint64_t named, device;
	char path[512];
	bool found;
	int fd;

	if (read_file(of, of->proc, "/cgroup", content, sizeof(content)) <= 0)
		return false;
	named = sl_fnv_text(content);
	if (named == of->named)
		return true;
	if (sl_open_proc_sandboxed())
		return false;
	of->named = named;
	cgroup->layout = &version1;
	found = own_path(content, false, path, sizeof(path)) && find_folder(cgroup, path);
	if (!found) {
		cgroup->layout = &version2;
		found = own_path(content, true, path, sizeof(path)) && find_folder(cgroup, path);
	}
	if (!found)
		return false;
	fd = sl_file_open(cgroup->folder, O_RDONLY | O_DIRECTORY);
	if (!sl_file_identity(fd, &device, &cgroup->id))
		cgroup->id = SL_HOSTMEM_UNKNOWN;
	sl_file_close(fd);
	atomic_store(&of->at, at);
	return true;
}

void sl_hostmem_follow(struct sl_hostmem_process *of)
{
	if (atomic_load(&of->state) == 2)
		find(of, !atomic_load(&of->at));
}

static void read_cgroup(struct sl_hostmem_process *of, struct sl_hostmem *memory)
{
	const struct sl_hostmem_cgroup *cgroup;
	const char *kills;
	char content[1024];
	unsigned none = 0;

	if (!atomic_load(&of->state)) {
		struct sl_mute mute = sl_mute_begin();

		if (atomic_compare_exchange_strong(&of->state, &none, 1))
			atomic_store(&of->state, find(of, 0) ? 2 : 3);
		sl_mute_end(&mute);
	}
	if (atomic_load(&of->state) != 2)
		return;
	cgroup = &of->cgroup[atomic_load(&of->at)];
	memory->cgroup_id = cgroup->id;
	read_number(of, cgroup->folder, cgroup->layout->usage, &memory->cgroup_bytes);
	read_number(of, cgroup->folder, cgroup->layout->peak, &memory->cgroup_peak_bytes);
	if (!read_limit(of, cgroup->layout, cgroup->folder, &memory->cgroup_limit_bytes))
		memory->cgroup_limit_bytes = SL_HOSTMEM_UNKNOWN;
	if (read_file(of, cgroup->folder, cgroup->layout->events, content, sizeof(content)) > 0 &&
	    (kills = sl_procfile_line(content, cgroup->layout->kills)))
		sl_procfile_digits(kills, &memory->oom_kills);
}

/* Asked once: the kernel's answers are on the first stack, which a program may leave and unmap. */
static uint64_t page_bytes(void)
{
	static _Atomic uint64_t bytes;

	if (!atomic_load_explicit(&bytes, memory_order_relaxed))
		atomic_store_explicit(&bytes, getauxval(AT_PAGESZ), memory_order_relaxed);
	return bytes;
}

void sl_hostmem_read(struct sl_hostmem_process *of, struct sl_hostmem *memory)
{
	char content[128];
	uint64_t pages;

	memset(memory, 0xff, sizeof(*memory));
	if (read_file(of, of->proc, "/statm", content, sizeof(content)) > 0 && sl_procfile_digits(content, &pages)) {
		const char *second = strchr(content, ' ');

		memory->vm_bytes = pages * page_bytes();
		if (second && sl_procfile_digits(second + 1, &pages))
			memory->rss_bytes = pages * page_bytes();
	}
	read_cgroup(of, memory);
}

void sl_hostmem_add(struct sl_definition *map, const char *key, uint64_t value)
{
	if (value != SL_HOSTMEM_UNKNOWN)
		sl_definition_uint(map, key, value);
}

struct sl_definition sl_hostmem_sample(void *bytes, size_t size, const struct sl_hostmem *memory, uint64_t now_ns)
{
	struct sl_definition map = sl_definition_begin(bytes, size, "sample");

	sl_definition_uint(&map, "ns", now_ns);
	sl_hostmem_add(&map, "rss_bytes", memory->rss_bytes);
	sl_hostmem_add(&map, "vm_bytes", memory->vm_bytes);
	sl_hostmem_add(&map, "cgroup_bytes", memory->cgroup_bytes);
	sl_hostmem_add(&map, "cgroup_limit_bytes", memory->cgroup_limit_bytes);
	sl_hostmem_add(&map, "cgroup_peak_bytes", memory->cgroup_peak_bytes);
	sl_hostmem_add(&map, "oom_kills", memory->oom_kills);
	sl_hostmem_add(&map, "cgroup_id", memory->cgroup_id);
	return map;
}

bool sl_hostmem_machine(uint64_t *total_bytes, uint64_t *available_bytes)
{
	char content[1024]; /* the first lines are MemTotal, MemFree, MemAvailable, in kB */
	const char *total, *available;

	if (sl_open_proc_read("/proc/meminfo", content, sizeof(content)) <= 0)
		return false;
	total = sl_procfile_line(content, "MemTotal:");
	available = sl_procfile_line(content, "MemAvailable:");
	if (!total || !available || !sl_procfile_digits(total + strspn(total, " "), total_bytes) ||
	    !sl_procfile_digits(available + strspn(available, " "), available_bytes))
		return false;
	*total_bytes <<= 10;
	*available_bytes <<= 10;
	return true;
}

uint64_t sl_hostmem_limit(void)
{
	struct rlimit64 limit;

	return !syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) && limit.rlim_cur != RLIM64_INFINITY ? limit.rlim_cur
													: SL_HOSTMEM_UNKNOWN;
}

void sl_hostmem_child(void)
{
	sl_hostmem_self.named = 0;
	atomic_store(&sl_hostmem_self.state, 0);
}
