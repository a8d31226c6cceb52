/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#define UPROBE_MULTI 48 /* BPF_TRACE_UPROBE_MULTI, which older headers do not have */

/* The compiled programs: programs.S. */
extern const char sl_probes_programs[], sl_probes_programs_end[];

/* The functions of libbpf that are used, with its own types. */
#define FUNCTIONS(ROW)                                                                                                             \
	ROW(open_mem, bpf_object__open_mem)                                                                                        \
	ROW(load, bpf_object__load)                                                                                                \
	ROW(close, bpf_object__close)                                                                                              \
	ROW(find_program, bpf_object__find_program_by_name)                                                                        \
	ROW(find_map, bpf_object__find_map_fd_by_name)                                                                             \
	ROW(program_fd, bpf_program__fd)                                                                                           \
	ROW(set_type, bpf_program__set_expected_attach_type)                                                                       \
	ROW(attach, bpf_program__attach_uprobe_opts)                                                                               \
	ROW(destroy, bpf_link__destroy)                                                                                            \
	ROW(ring_new, ring_buffer__new)                                                                                            \
	ROW(ring_consume, ring_buffer__consume)                                                                                    \
	ROW(ring_free, ring_buffer__free)                                                                                          \
	ROW(update, bpf_map_update_elem)                                                                                           \
	ROW(lookup, bpf_map_lookup_elem)                                                                                           \
	ROW(remove, bpf_map_delete_elem)                                                                                           \
	ROW(set_print, libbpf_set_print)

static struct {
#define ROW(member, function) __typeof__(function) *member;
	FUNCTIONS(ROW)
#undef ROW
} bpf;

static const struct {
	const char *name;
	void **to;
} wanted[] = {
#define ROW(member, function) {#function, (void **)&bpf.member},
	FUNCTIONS(ROW)
#undef ROW
};

struct sl_probes {
	struct bpf_object *object;
	struct bpf_program *begins, *returns, *task, *dies, *changes;
	struct ring_buffer *ring, *dead;
	int lost, processes, deaths, loads;
	uint32_t thread_pointer; /* sl_seen_python; 0: not looked for */
	bool at_once;		 /* the kernel can link many probes at once: 6.6 and later */
	struct link {
		struct bpf_link *link; /* NULL: fd */
		int fd, pid;
	} * links;
	size_t link_count, link_capacity;
	sl_probes_each *each;
	void *each_data;
};

static const char *open_library(void)
{
	void *library = dlopen("libbpf.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return "libbpf.so.1 is not installed";
	for (size_t i = 0; i < SL_COUNT(wanted); i++)
		if (!(*wanted[i].to = dlsym(library, wanted[i].name)))
			return "libbpf is older than 1.0";
	return NULL;
}

static int be_silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return getenv("STORMLOG_ATTACH_DEBUG") ? vfprintf(stderr, format, arguments) : 0;
}

static int hand_over(void *context, void *record, size_t bytes)
{
	struct sl_probes *probes = context;

	probes->each(probes->each_data, record, bytes);
	return 0;
}

const char *sl_probes_refusal(int err)
{
	return err == EPERM || err == EACCES ? "the kernel does not permit it: root is needed, or CAP_BPF, CAP_PERFMON and "
					       "CAP_CHECKPOINT_RESTORE, and before Linux 6.19 CAP_SYS_ADMIN"
	       : err == ENOMEM		     ? "the kernel has no memory for it: look at ulimit -l"
	       : err == ESRCH		     ? "it has ended"
	       : err == EMFILE		     ? "too many files are open (ulimit -n)"
	       : err == ENOSYS		     ? "this kernel has no BPF"
					     : "the kernel refuses it (STORMLOG_ATTACH_DEBUG=1 shows what libbpf says)";
}

static bool fill_rows(struct sl_probes *probes)
{
	int rows = bpf.find_map(probes->object, "rows");

	for (uint32_t api = 1; api < SL_API_COUNT; api++) {
		struct sl_seen_row row;

		if (!sl_rows_has(api))
			continue;
		row = sl_rows_wanted(api);
		if (bpf.update(rows, &api, &row, BPF_ANY))
			return false;
	}
	return true;
}

/* 0 or an error number. */
static int load(struct sl_probes *probes, bool at_once)
{
	const struct {
		const char *name;
		struct bpf_program **to;
	} programs[] = {{"call_begins", &probes->begins},
			{"call_returns", &probes->returns},
			{"task_is", &probes->task},
			{"code_dies", &probes->dies},
			{"libraries_change", &probes->changes}};
	int err;

	probes->at_once = at_once;
	probes->object = bpf.open_mem(sl_probes_programs, (size_t)(sl_probes_programs_end - sl_probes_programs), NULL);
	if (!probes->object)
		return errno;
	for (size_t i = 0; i < SL_COUNT(programs); i++) {
		*programs[i].to = bpf.find_program(probes->object, programs[i].name);
		if (at_once)
			bpf.set_type(*programs[i].to, UPROBE_MULTI);
	}
	err = -bpf.load(probes->object);
	if (!err)
		return 0;
	bpf.close(probes->object);
	probes->object = NULL;
	return err;
}

struct sl_probes *sl_probes_open(const char **why)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct sl_probes *probes;
	int err;

	_Static_assert(SL_API_COUNT <= SL_SEEN_APIS, "each call has its row");
	*why = open_library();
	if (*why)
		return NULL;
	probes = sl_attach_must(calloc(1, sizeof(*probes)));
	bpf.set_print(be_silent);
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before Linux 5.11 maps count as locked */
	err = load(probes, true);
	if (err)
		err = load(probes, false);
	if (!err && fill_rows(probes)) {
		probes->lost = bpf.find_map(probes->object, "lost");
		probes->processes = bpf.find_map(probes->object, "processes");
		probes->deaths = bpf.find_map(probes->object, "deaths");
		probes->loads = bpf.find_map(probes->object, "loads");
		probes->ring = bpf.ring_new(bpf.find_map(probes->object, "ring"), hand_over, probes, NULL);
	}
	if (probes->ring)
		probes->dead = bpf.ring_new(bpf.find_map(probes->object, "dead"), hand_over, probes, NULL);
	if (probes->dead)
		return probes;
	*why = sl_probes_refusal(err ? err : errno);
	sl_probes_close(probes);
	return NULL;
}

static void drop(struct link link)
{
	if (link.link)
		bpf.destroy(link.link);
	else
		close(link.fd);
}

static void add_link(struct sl_probes *probes, struct link link)
{
	probes->links = sl_attach_room(probes->links, probes->link_count, &probes->link_capacity, sizeof(*probes->links));
	probes->links[probes->link_count++] = link;
}

/* One place to watch: its offset in the library's file, and the cookie that names the call (SL_SEEN_COOKIE). */
struct places {
	int pid;
	uint64_t *offset, *cookie;
	uint32_t count;
	size_t capacity;
};

static void add_place(struct places *places, uint64_t offset, uint64_t cookie)
{
	size_t room = places->capacity; /* both arrays have this capacity */

	places->offset = sl_attach_room(places->offset, places->count, &room, sizeof(*places->offset));
	places->cookie = sl_attach_room(places->cookie, places->count, &places->capacity, sizeof(*places->cookie));
	places->offset[places->count] = offset;
	places->cookie[places->count++] = cookie;
}

static void free_places(struct places *places)
{
	free(places->offset);
	free(places->cookie);
}

/* One link for all places.  libbpf has this only from 1.3 on, so the system call is made directly. */
static bool attach_at_once(struct sl_probes *probes, struct bpf_program *program, bool at_return, const char *path,
			   const struct places *places)
{
	struct {
		uint32_t program, target, type, flags;
		uint64_t path, offsets, counters, cookies;
		uint32_t count, multi_flags, pid, padding;
	} request = {
		.program = (uint32_t)bpf.program_fd(program),
		.type = UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)places->offset,
		.cookies = (uintptr_t)places->cookie,
		.count = places->count,
		.multi_flags = at_return,
		.pid = (uint32_t)places->pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &request, sizeof(request));

	if (fd < 0)
		return false;
	add_link(probes, (struct link){.fd = fd, .pid = places->pid});
	return true;
}

static bool attach_each(struct sl_probes *probes, struct bpf_program *program, bool at_return, const char *path,
			const struct places *places)
{
	for (uint32_t i = 0; i < places->count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = at_return, .bpf_cookie = places->cookie[i]);
		struct bpf_link *link = bpf.attach(program, places->pid, path, places->offset[i], &options);

		if (!link)
			return false;
		add_link(probes, (struct link){.link = link, .pid = places->pid});
	}
	return true;
}

static bool attach(struct sl_probes *probes, struct bpf_program *program, bool at_return, const char *path,
		   const struct places *places)
{
	return !places->count || (probes->at_once ? attach_at_once : attach_each)(probes, program, at_return, path, places);
}

/* The process as the programs know it, or a new one, all zeroes. */
static struct sl_seen_process process_of(struct sl_probes *probes, int pid)
{
	struct sl_seen_process process = {0};
	uint32_t key = (uint32_t)pid;

	bpf.lookup(probes->processes, &key, &process);
	return process;
}

static bool put_process(struct sl_probes *probes, int pid, struct sl_seen_process process)
{
	uint32_t key = (uint32_t)pid;

	return !bpf.update(probes->processes, &key, &process, BPF_ANY);
}

bool sl_probes_begin(struct sl_probes *probes, int pid)
{
	struct sl_seen_process process = process_of(probes, pid);

	process.watched = true;
	return put_process(probes, pid, process);
}

void sl_probes_end(struct sl_probes *probes, int pid)
{
	struct sl_seen_process process = process_of(probes, pid);

	process.watched = false;
	put_process(probes, pid, process);
}

/* --- symbols of a library ------------------------------------------------------------------------------- */

struct search {
	const struct sl_exports *image;
	struct places *places;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(sl_hooks[*(const uint16_t *)a].name, sl_hooks[*(const uint16_t *)b].name);
}

static int compare(const void *name, const void *api)
{
	return strcmp(name, sl_hooks[*(const uint16_t *)api].name);
}

/* The watched call of this name; 0: none.  Looks by halves, for a library may export 100 000 names. */
static unsigned rows_named(const char *name)
{
	static uint16_t sorted[SL_API_COUNT];
	static size_t count;
	const uint16_t *found;

	if (!count) {
		for (uint16_t api = 1; api < SL_API_COUNT; api++)
			if (sl_rows_has(api))
				sorted[count++] = api;
		qsort(sorted, count, sizeof(*sorted), by_name);
	}
	found = bsearch(name, sorted, count, sizeof(*sorted), compare);
	return found ? *found : 0;
}

static void find_place(void *data, const char *name, const Elf64_Sym *symbol)
{
	struct search *search = data;
	unsigned api = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC ? rows_named(name) : 0;
	uint64_t offset = api ? sl_exports_offset(search->image, symbol->st_value) : 0;

	if (offset)
		add_place(search->places, offset, SL_SEEN_COOKIE(search->places->pid, api));
}

int sl_probes_add(struct sl_probes *probes, const char *path, int pid, const char **why)
{
	struct places places = {.pid = pid};
	struct sl_exports image;
	int count;

	if (!sl_exports_open(&image, path)) {
		*why = strerror(errno);
		return -1;
	}
	sl_exports_each(&image, find_place, &(struct search){&image, &places});
	sl_exports_close(&image);
	/* Attach entries first: a return whose entry was not seen is passed over. */
	count = attach(probes, probes->begins, false, path, &places) && attach(probes, probes->returns, true, path, &places)
			? (int)places.count
			: -1;
	*why = sl_probes_refusal(errno);
	free_places(&places);
	return count;
}

/* --- Python --------------------------------------------------------------------------------------------- */

/* A place of this program's own that is watched.  Its probe goes with all others: to remove it takes 20 ms. */
static SL_NOINLINE void be_seen(void)
{
	__asm__ volatile("");
}

static int is_own(struct dl_phdr_info *info, size_t size, void *base)
{
	*(uintptr_t *)base = info->dlpi_addr;
	return 1; /* the program comes first */
}

/*
 * Where the kernel keeps the address that pthread_self returns.  It says so nowhere that all kernels have, so it is looked for
 * in the kernel's structure of this thread.  0: not there, or at several places.
 */
static uint32_t find_thread_pointer(struct sl_probes *probes)
{
	struct places places = {.pid = getpid()};
	uint64_t words[SL_SEEN_TASK / 8], offset = 0;
	struct sl_exports image;
	uint32_t zero = 0, found = 0;
	uintptr_t base = 0;

	dl_iterate_phdr(is_own, &base);
	if (sl_exports_open(&image, "/proc/self/exe"))
		offset = sl_exports_offset(&image, (uintptr_t)be_seen - base);
	sl_exports_close(&image);
	if (!offset)
		return 0;
	add_place(&places, offset, 0);
	if (attach(probes, probes->task, false, "/proc/self/exe", &places))
		be_seen();
	free_places(&places);
	if (bpf.lookup(bpf.find_map(probes->object, "task"), &zero, words))
		return 0;
	for (uint32_t i = 0; i < SL_COUNT(words); i++)
		if (words[i] == (uint64_t)pthread_self()) {
			if (found)
				return 0;
			found = 8 * i;
		}
	return found;
}

const char *sl_probes_walk(struct sl_probes *probes, int pid, struct sl_seen_python python, const char *path, uint64_t dealloc)
{
	struct places places = {.pid = pid};
	struct sl_seen_process process;
	bool counted;

	if (!probes->thread_pointer)
		probes->thread_pointer = find_thread_pointer(probes);
	if (!probes->thread_pointer)
		return "this kernel does not show which thread of Python calls";
	/* deaths are counted before the first stack is taken */
	add_place(&places, dealloc, SL_SEEN_COOKIE(pid, 0));
	counted = attach(probes, probes->dies, false, path, &places);
	free_places(&places);
	if (!counted)
		return sl_probes_refusal(errno);
	process = process_of(probes, pid);
	process.python = python;
	process.python.thread_pointer = probes->thread_pointer;
	process.python.is_known = true;
	return put_process(probes, pid, process) ? NULL : sl_probes_refusal(errno);
}

void sl_probes_walk_no_more(struct sl_probes *probes, int pid)
{
	struct sl_seen_process process = process_of(probes, pid);

	process.python.is_known = false;
	put_process(probes, pid, process);
}

uint64_t sl_probes_deaths(struct sl_probes *probes, long pid, uint64_t code)
{
	uint32_t slot = SL_SEEN_SLOT(code, pid);
	struct sl_seen_deaths deaths = {.count = UINT64_MAX};

	bpf.lookup(probes->deaths, &slot, &deaths);
	return deaths.count;
}

const char *sl_probes_copy(struct sl_probes *probes, int pid, const char *path, uint64_t offset)
{
	struct places places = {.pid = pid};
	uint32_t key = (uint32_t)pid;
	uint64_t none = 0;
	bool good;

	add_place(&places, offset, SL_SEEN_COOKIE(pid, 0));
	good = attach(probes, probes->changes, false, path, &places) &&
	       (!bpf.update(probes->loads, &key, &none, BPF_NOEXIST) || errno == EEXIST); /* it goes on after an exec */
	free_places(&places);
	return good ? NULL : sl_probes_refusal(errno);
}

uint64_t sl_probes_loads(struct sl_probes *probes, int pid)
{
	uint32_t key = (uint32_t)pid;
	uint64_t count = UINT64_MAX;

	bpf.lookup(probes->loads, &key, &count);
	return count;
}

void sl_probes_read_deaths(struct sl_probes *probes)
{
	bpf.ring_consume(probes->dead);
}

unsigned sl_probes_read(struct sl_probes *probes, sl_probes_each *each, void *data, uint64_t *lost)
{
	int records;

	probes->each = each;
	probes->each_data = data;
	sl_probes_read_deaths(probes);
	records = bpf.ring_consume(probes->ring);
	for (uint32_t why = 0; why < SL_SEEN_LOST_COUNT; why++)
		if (bpf.lookup(probes->lost, &why, &lost[why]))
			lost[why] = 0;
	return records > 0 ? (unsigned)records : 0;
}

size_t sl_probes_count(const struct sl_probes *probes)
{
	return probes->link_count;
}

void sl_probes_drop(struct sl_probes *probes, int pid, size_t count)
{
	size_t kept_count = 0;

	for (size_t i = 0; i < probes->link_count; i++)
		if (i < count && probes->links[i].pid == pid &&
		    probes->at_once) /* one by one it takes long, so it is left to the end */
			drop(probes->links[i]);
		else
			probes->links[kept_count++] = probes->links[i];
	probes->link_count = kept_count;
}

void sl_probes_forget(struct sl_probes *probes, int pid)
{
	uint32_t key = (uint32_t)pid;

	sl_probes_drop(probes, pid, probes->link_count);
	bpf.remove(probes->processes, &key);
	bpf.remove(probes->loads, &key);
}

void sl_probes_detach(struct sl_probes *probes)
{
	while (probes->link_count)
		drop(probes->links[--probes->link_count]);
}

void sl_probes_close(struct sl_probes *probes)
{
	sl_probes_detach(probes);
	if (probes->ring)
		bpf.ring_free(probes->ring);
	if (probes->dead)
		bpf.ring_free(probes->dead);
	if (probes->object)
		bpf.close(probes->object);
	free(probes->links);
	free(probes);
}
