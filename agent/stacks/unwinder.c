/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"
#include "agent/stacks/unwinder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

#include "agent/process/process.h"
#include "agent/symbols/symbols.h"

static struct sl_libunwind opened;
static _Atomic(const struct sl_libunwind *) libunwind;
static uint64_t opened_unloads; /* sl_objects_unloads when libunwind was opened */
static _Atomic bool alone;	/* there will be no libunwind */

const struct sl_libunwind *sl_unwinder_libunwind(void)
{
	return atomic_load_explicit(&libunwind, memory_order_acquire);
}

typedef void *open_library(const char *path, int flags);
typedef void *find_symbol(void *library, const char *name);

/* libunwind beside our own file, else the system's. */
static void *open_libunwind(open_library *open)
{
	static const char name[] = "libunwind.so.8";
	char path[4096];
	void *library = NULL;
	int (*locate)(const void *, Dl_info *) = (int (*)(const void *, Dl_info *))sl_resolve_symbol("dladdr");
	Dl_info us;
	const char *slash;

	if (locate && locate((void *)open_libunwind, &us) && us.dli_fname && (slash = strrchr(us.dli_fname, '/')) &&
	    (size_t)(slash - us.dli_fname) + sizeof(name) + 1 < sizeof(path)) {
		size_t folder = (size_t)(slash - us.dli_fname) + 1;

		memcpy(path, us.dli_fname, folder);
		memcpy(path + folder, name, sizeof(name));
		library = open(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? library : open(name, RTLD_NOW | RTLD_LOCAL);
}

/*
 * libunwind keeps a pipe of its own to try addresses on, made at its first unwinding, and its descriptors in two ints of
 * its data.  A program that closes all descriptors and opens files would have libunwind read from those and write to them,
 * and one that opens files would get other numbers than without us.  So the pipe is moved at once to numbers that programs
 * seldom reach, and the writer looks whether it is still there.
 */
#define PIPE_ENDS 2
#define DATA_MAX  (64u << 10) /* bytes of libunwind's own data that are looked at */

static struct pipe_end {
	int fd;
	uint64_t device, inode;
} pipe_ends[PIPE_ENDS];
static unsigned pipe_count;

static bool read_end(struct pipe_end *end, int fd)
{
	char path[32], is[8] = "";
	struct sl_text name = sl_text_begin(path, sizeof(path));

	sl_text_add(&name, "/proc/self/fd/");
	sl_text_add_number(&name, (uint64_t)fd);
	end->fd = fd;
	return sl_file_link(path, is, 5) == 5 && !strcmp(is, "pipe:") && sl_file_identity(fd, &end->device, &end->inode);
}

/* libunwind's writable data, and a copy from before its first unwinding. */
struct data {
	int32_t *at;
	size_t count;
	int32_t before[DATA_MAX / sizeof(int32_t)];
};

static int find_data(struct dl_phdr_info *info, size_t size, void *argument)
{
	uintptr_t function = (uintptr_t)opened.backtrace;
	struct data *data = argument;
	bool is_it = false;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		is_it |= function - at < header->p_memsz;
		if (header->p_flags & PF_W) {
			data->at = (int32_t *)((at + 3) & ~(uintptr_t)3);
			data->count = header->p_filesz / sizeof(int32_t);
		}
	}
	return is_it;
}

/* Finds the two ints that were -1 and now are the two ends of a pipe; NULL: there are none, or this is another libunwind. */
static int32_t *find_pipe(const struct data *data)
{
	struct pipe_end ends[PIPE_ENDS];

	for (size_t i = 0; i + 1 < data->count; i++)
		if (data->before[i] == -1 && data->before[i + 1] == -1 && data->at[i] >= 0 && data->at[i + 1] >= 0 &&
		    data->at[i] != data->at[i + 1] && read_end(&ends[0], data->at[i]) && read_end(&ends[1], data->at[i + 1]) &&
		    ends[0].inode == ends[1].inode)
			return &data->at[i];
	return NULL;
}

/* A first unwinding, in which libunwind makes its pipe. */
static SL_NOINLINE void try_libunwind(void)
{
	struct data *data = sl_pages_map(sizeof(*data));
	void *pcs[4] = {NULL};
	int32_t *ends = NULL;
	bool readable;

	readable = data && sl_objects_walk(find_data, data) && data->count <= SL_COUNT(data->before);
	if (readable)
		memcpy(data->before, data->at, data->count * sizeof(*data->before));
	opened.backtrace(pcs, SL_COUNT(pcs));
	opened.behind = (char *)pcs[1] + 1 == (char *)__builtin_return_address(0);
	if (readable && (ends = find_pipe(data)))
		for (; pipe_count < PIPE_ENDS; pipe_count++) {
			ends[pipe_count] = sl_file_move_high(ends[pipe_count]);
			read_end(&pipe_ends[pipe_count], ends[pipe_count]);
		}
	if (data)
		munmap(data, sizeof(*data));
}

bool sl_unwinder_lost_descriptors(void)
{
	for (unsigned i = 0; i < pipe_count; i++)
		if (!sl_file_is(pipe_ends[i].fd, pipe_ends[i].device, pipe_ends[i].inode)) {
			pipe_count = 0;
			return true;
		}
	return false;
}

/*
 * libunwind blocks all signals while it asks the kernel, so that a call which a filter traps for a broker ends the process.
 */
static bool would_end_the_program(void)
{
	/* libunwind calls these by name, and a program may have functions of its own that are called so */
	static const char *const names[] = {"pipe2",   "pipe",	      "open",	"read",	      "write",	    "close",
					    "stat",    "fstat",	      "mmap",	"munmap",     "msync",	    "mincore",
					    "sysconf", "getpagesize", "getpid", "sigfillset", "sigprocmask"};
	const void *own;

	for (unsigned i = 0; i < SL_COUNT(names); i++)
		if ((own = sl_resolve_before_us(names[i], NULL)) && sl_resolve_place(own).program)
			return true;
	return sl_open_proc_filtered() && atomic_load(&sl_mute_handled) & SL_MUTE_BIT(SIGSYS);
}

/* dlopen and dlsym are looked up, not imported: before glibc 2.34 they would bring libdl along. */
void sl_unwinder_load(void)
{
	open_library *open = (open_library *)sl_resolve_symbol("dlopen");
	find_symbol *find = (find_symbol *)sl_resolve_symbol("dlsym");
	void *library;

	if (!open || !find || atomic_load(&libunwind))
		return;
	if (sl_sanitizers_present() || would_end_the_program()) {
		atomic_store(&alone, true);
		return;
	}
	library = open_libunwind(open);
	if (!library)
		return;
	opened = (struct sl_libunwind){
		.backtrace = (int (*)(void **, int))find(library, "unw_backtrace"),
		.init_local = (int (*)(unw_cursor_t *, unw_context_t *))find(library, SL_STRING(unw_init_local)),
		.step = (int (*)(unw_cursor_t *))find(library, SL_STRING(unw_step)),
		.get_reg = (int (*)(unw_cursor_t *, unw_regnum_t, unw_word_t *))find(library, SL_STRING(unw_get_reg)),
		.get_proc_info = (int (*)(unw_cursor_t *, unw_proc_info_t *))find(library, SL_STRING(unw_get_proc_info)),
#ifdef __x86_64__
		.getcontext = (int (*)(unw_context_t *))find(library, "_Ux86_64_getcontext"),
#endif
	};
	if (!opened.backtrace)
		return;
	opened.steps = opened.init_local && opened.step && opened.get_reg && opened.get_proc_info;
#ifdef __x86_64__
	opened.steps = opened.steps && opened.getcontext;
#endif
	try_libunwind();
	opened_unloads = atomic_load(&sl_objects_unloads);
	atomic_store_explicit(&libunwind, &opened, memory_order_release);
}

#ifdef __aarch64__
#define READS_ANY_CODE true
#else
#define READS_ANY_CODE false
#endif

int sl_unwinder_step(const struct sl_libunwind *lib, unw_cursor_t *cursor)
{
	unw_word_t pc;

	if (READS_ANY_CODE && (lib->get_reg(cursor, UNW_REG_IP, &pc) || !sl_pages_readable(pc)))
		return 0;
	return lib->step(cursor);
}

/* What backtrace does for a stack that it does not know, without thread-local data. */
static SL_NOINLINE int step_through(const struct sl_libunwind *lib, void **pcs, int max)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;
	int count = 0;

#ifdef __x86_64__
	lib->getcontext(&context);
#else
	unw_getcontext(&context);
#endif
	if (lib->init_local(&cursor, &context))
		return 0;
	while (count < max && !lib->get_reg(&cursor, UNW_REG_IP, &pc) && pc) {
		pcs[count++] = (void *)pc;
		if (sl_unwinder_step(lib, &cursor) <= 0)
			break;
	}
	return count;
}

int sl_unwinder_walk(void **pcs, int max, bool allocates)
{
	const struct sl_libunwind *lib = sl_unwinder_libunwind();
	int got;

	if (!lib)
		return 0;
	if (SL_UNLIKELY(!allocates || READS_ANY_CODE))
		return lib->steps ? step_through(lib, pcs, max) : 0;
	got = lib->backtrace(pcs, max);
	for (int i = 0; i < got && SL_UNLIKELY(lib->behind); i++)
		pcs[i] = (char *)pcs[i] + 1;
	return got;
}

int sl_unwinder_walk_shielded(void **pcs, int max, bool allocates)
{
	struct sl_mute mute = sl_mute_begin();
	int state, got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	sl_objects_use_begin(false); /* libunwind walks the loader's list */
	got = sl_unwinder_walk(pcs, max, allocates);
	sl_objects_use_end();
	pthread_setcancelstate(state, NULL);
	sl_mute_end(&mute);
	return got;
}

bool sl_unwinder_walk_alone(void)
{
	return !sl_unwinder_libunwind() || sl_open_proc_sandboxed() ||
	       atomic_load_explicit(&sl_objects_unloads, memory_order_relaxed) != opened_unloads;
}

void sl_unwinder_describe(struct sl_text *text)
{
	if (atomic_load(&libunwind)) {
		sl_text_add(text, "native libunwind.so.8");
		return;
	}
	sl_text_add(text, SL_WALK_IS_HERE ? "native, only our own walk: " : "no native stacks: ");
	sl_text_add(text, atomic_load(&alone) ? "beside a sanitizer no libunwind is loaded" : "libunwind.so.8 not found");
}
