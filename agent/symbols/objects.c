/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"

#include <sys/auxv.h>

#include "agent/file/file.h"
#include "common/now.h"

#define STEP_NS 20000000ull
#define USE_NS	50000000ull    /* longest wait for a fork(): its handlers may wait for a lock of the thread that waits */
#define FORK_NS 100000000ull   /* longest wait of fork() for others */
#define OPEN_NS 10000000000ull /* the same while the writer is at work to open a library */
#define NOBODY	-1	       /* not 0: zeroed variables are on a page that a process without a GPU never touches */

static _Atomic long trusted = NOBODY; /* pid of the process whose locks are known to be free; NOBODY: no constructor has run yet */
static _Atomic long forked = NOBODY;  /* pid of the process that fork() made last */

_Atomic uint64_t sl_objects_unloads, sl_objects_loads;

static long own_pid(void)
{
	return syscall(SYS_getpid);
}

SL_STARTUP_TEXT void sl_objects_trust(void)
{
	atomic_store(&trusted, own_pid());
}

bool sl_objects_trusted(void)
{
	long pid = atomic_load_explicit(&trusted, memory_order_relaxed);

	return pid == NOBODY || pid == own_pid();
}

bool sl_objects_is_forked(void)
{
	return atomic_load(&forked) == own_pid();
}

static _Atomic uint32_t forking; /* fork() under way */
static _Atomic uint32_t forks;	 /* begun so far */
static _Atomic uint32_t awaited; /* the last of these that was waited for in vain: nobody waits for it again */
static _Atomic uint32_t users;	 /* threads in sl_objects_use_begin() */
static _Atomic uint32_t opening; /* tid of the writer while it opens libraries */

static bool uses(void)
{
	return sl_thread.loader_uses;
}

void sl_objects_forked(void)
{
	atomic_store(&forked, own_pid());
	atomic_store(&forking, 0);
	atomic_store(&users, uses());
	atomic_store(&opening, 0);
	sl_thread.forks = false;
}

static uint64_t now_ns(void)
{
	return sl_now_kernel_ns(CLOCK_MONOTONIC);
}

void sl_objects_use_begin(bool opens)
{
	uint64_t begin_ns;
	uint32_t others;

	if (sl_thread.loader_uses++)
		return;
	if (opens)
		atomic_store(&opening, (uint32_t)syscall(SYS_gettid));
	atomic_fetch_add(&users, 1);
	if (SL_LIKELY(!atomic_load(&forking)) || sl_thread.forks)
		return;
	begin_ns = now_ns();
	while ((others = atomic_load(&forking)) && atomic_load(&awaited) != atomic_load(&forks)) {
		if (now_ns() - begin_ns > USE_NS)
			atomic_store(&awaited, atomic_load(&forks));
		atomic_fetch_sub(&users, 1);
		sl_agent_wake(&users);
		sl_agent_sleep(&forking, others, STEP_NS);
		atomic_fetch_add(&users, 1);
	}
}

void sl_objects_use_end(void)
{
	if (--sl_thread.loader_uses)
		return;
	if (atomic_load(&opening) && atomic_load(&opening) == (uint32_t)syscall(SYS_gettid))
		atomic_store(&opening, 0);
	atomic_fetch_sub(&users, 1);
	if (atomic_load(&forking))
		sl_agent_wake(&users);
}

/* A writer that opens a library is waited for until it sleeps: it may wait for a lock of the thread that forks. */
static bool is_at_work(uint32_t tid)
{
	return tid && !sl_open_proc_sandboxed() && sl_procfile_state(tid) != 'S';
}

void sl_objects_fork_begin(void)
{
	uint64_t begin_ns, idle_ns;
	int saved = errno;
	uint32_t count;

	sl_thread.forks = true;
	atomic_fetch_add(&forks, 1);
	atomic_fetch_add(&forking, 1);
	if (atomic_load(&users) <= uses())
		return;
	for (begin_ns = idle_ns = now_ns(); (count = atomic_load(&users)) > uses() && now_ns() - idle_ns < FORK_NS;) {
		sl_agent_sleep(&users, count, STEP_NS);
		if (is_at_work(atomic_load(&opening)) && now_ns() - begin_ns < OPEN_NS)
			idle_ns = now_ns();
	}
	errno = saved;
}

void sl_objects_fork_end(void)
{
	sl_thread.forks = false;
	atomic_fetch_sub(&forking, 1);
	sl_agent_wake(&forking);
}

SL_STARTUP_TEXT void sl_objects_construct(void)
{
	sl_objects_trust();
}

/* The program's headers.  Asked once: the kernel's answers are on the first stack, which a program may leave and unmap. */
static const ElfW(Phdr) * program_headers(unsigned long *count)
{
	static const ElfW(Phdr) * _Atomic headers;
	static _Atomic unsigned long header_count;

	if (!headers) {
		header_count = getauxval(AT_PHNUM);
		headers = (const void *)getauxval(AT_PHDR);
	}
	*count = header_count;
	return headers;
}

struct link_map *sl_objects_first(void)
{
	/* Through DT_DEBUG of the program, as debuggers find it. */
	unsigned long count;
	const ElfW(Phdr) *headers = program_headers(&count);
	const ElfW(Dyn) *dynamic = NULL;
	ElfW(Addr) base = 0;

	for (unsigned long i = 0; headers && i < count; i++)
		if (headers[i].p_type == PT_PHDR)
			base = (ElfW(Addr))headers - headers[i].p_vaddr;
	for (unsigned long i = 0; headers && i < count; i++)
		if (headers[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(base + headers[i].p_vaddr);
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr)
			return ((struct r_debug *)dynamic->d_un.d_ptr)->r_map;
	return NULL;
}

/* What dl_iterate_phdr would say of an object.  False: where its headers are is not known. */
static bool describe(struct dl_phdr_info *info, const struct link_map *map, bool program)
{
	const ElfW(Ehdr) *header = (const void *)map->l_addr;
	unsigned long count;

	info->dlpi_addr = map->l_addr;
	info->dlpi_name = map->l_name;
	if (program) {
		info->dlpi_phdr = program_headers(&count);
		info->dlpi_phnum = (ElfW(Half))count;
		return info->dlpi_phdr != NULL;
	}
	if (!header || map->l_addr & 4095 || !sl_pages_readable(map->l_addr) || header->e_ident[EI_MAG0] != ELFMAG0 ||
	    header->e_ident[EI_MAG1] != ELFMAG1 || header->e_ident[EI_MAG2] != ELFMAG2 || header->e_ident[EI_MAG3] != ELFMAG3)
		return false;
	info->dlpi_phdr = (const void *)(map->l_addr + header->e_phoff);
	info->dlpi_phnum = header->e_phnum;
	return true;
}

static int walk_list(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	const struct link_map *first = sl_objects_first();
	struct dl_phdr_info info = {0};
	int result = 0;

	for (const struct link_map *map = first; map; map = map->l_next)
		info.dlpi_adds++;
	for (const struct link_map *map = first; map && !result; map = map->l_next)
		if (describe(&info, map, map == first))
			result = visit(&info, sizeof(info), data);
	return result;
}

int sl_objects_walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int saved = errno; /* asking for a page sets it */
	struct sl_mute mute = sl_mute_begin();
	int result;

	sl_objects_use_begin(false);
	result = sl_objects_trusted() ? dl_iterate_phdr(visit, data) : walk_list(visit, data);
	sl_objects_use_end();
	sl_mute_end(&mute);
	errno = saved;
	return result;
}

static _Atomic unsigned holes, noted_holes;
static _Atomic uint64_t noted_in; /* generation of the recording */

void sl_objects_hole(enum sl_hole hole)
{
	if (!(atomic_load_explicit(&holes, memory_order_relaxed) & hole))
		atomic_fetch_or(&holes, hole);
}

void sl_objects_say_holes(void)
{
	unsigned fresh;

	if (atomic_exchange(&noted_in, atomic_load(&sl_agent->generation)) != atomic_load(&sl_agent->generation))
		atomic_store(&noted_holes, 0);
	fresh = atomic_load(&holes) & ~atomic_load(&noted_holes);
	if (fresh & SL_HOLE_DEEPBIND)
		sl_define_note("a library was opened with RTLD_DEEPBIND: GPU calls it makes itself may be missing");
	if (fresh & SL_HOLE_NAMESPACE)
		sl_define_note("a library was opened in a namespace of its own (dlmopen): GPU calls made there are missing");
	if (fresh & SL_HOLE_PJRT_VERSION)
		sl_define_note("JAX arrays are not recorded: the version of a PJRT plugin's table is not known");
	if (fresh & SL_HOLE_PJRT_TABLE)
		sl_define_note("JAX arrays are not recorded: a PJRT plugin's table lacks what we ask");
	if (fresh & SL_HOLE_TENSORFLOW)
		sl_define_note("TensorFlow's tensors are not recorded: its library does not export its allocator as we know it");
	if (fresh & SL_HOLE_ROOM)
		sl_define_note("too little of a thread's stack was left: calls are missing before its first recorded one, native "
			       "stacks, or what was free at an error");
	if (fresh & SL_HOLE_TABLES)
		sl_define_note("the unwind tables of a loaded object are damaged: native stacks end where they would be needed");
	atomic_fetch_or(&noted_holes, fresh);
}
