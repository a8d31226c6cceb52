/* SPDX-License-Identifier: MIT */
#include "agent/symbols/objects.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/file/define.h"
#include "agent/mute.h"
#include "agent/process/procfile.h"
#include "common/base.h"

#define TRY_NS	   20000000ull
#define LOOK_NS	   1000000
#define ASLEEP_MAX 20	/* looks in a row that see a process asleep which has nothing to wait for */
#define LOOKS_MAX  2000 /* where /proc does not tell */

#define NOBODY -1 /* not 0: it would lie on a page that no process that has no GPU touches */

static _Atomic long trusted = NOBODY; /* pid of the process whose locks are known to be free; NOBODY: no constructor has run yet */
static _Atomic long forked = NOBODY;  /* pid of the process that fork() made last */
static _Atomic uint32_t tried;

_Atomic uint64_t sl_objects_unloads;

static long own_pid(void)
{
	return syscall(SYS_getpid);
}

SL_AT_START static void trust(void)
{
	atomic_store(&trusted, own_pid());
}

bool sl_objects_trusted(void)
{
	long pid = atomic_load_explicit(&trusted, memory_order_relaxed);

	return pid == NOBODY || pid == own_pid();
}

void sl_objects_forked(void)
{
	atomic_store(&forked, own_pid());
}

SL_AT_START void sl_objects_construct(void)
{
	trust();
}

struct link_map *sl_objects_first(void)
{
	/* Through DT_DEBUG of the program, as debuggers find it. */
	const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
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

	info->dlpi_addr = map->l_addr;
	info->dlpi_name = map->l_name;
	if (program) {
		info->dlpi_phdr = (const void *)getauxval(AT_PHDR);
		info->dlpi_phnum = (ElfW(Half))getauxval(AT_PHNUM);
		return info->dlpi_phdr != NULL;
	}
	if (!header || map->l_addr & 4095 || header->e_ident[EI_MAG0] != ELFMAG0 || header->e_ident[EI_MAG1] != ELFMAG1 ||
	    header->e_ident[EI_MAG2] != ELFMAG2 || header->e_ident[EI_MAG3] != ELFMAG3)
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
	struct sl_mute mute = sl_mute_begin();
	int result = sl_objects_trusted() ? dl_iterate_phdr(visit, data) : walk_list(visit, data);

	sl_mute_end(&mute);
	return result;
}

static _Atomic unsigned holes, said;
static _Atomic uint64_t said_in; /* generation of the recording */

void sl_objects_hole(enum sl_hole hole)
{
	if (!(atomic_load_explicit(&holes, memory_order_relaxed) & hole))
		atomic_fetch_or(&holes, hole);
}

void sl_objects_say_holes(void)
{
	unsigned fresh;

	if (atomic_exchange(&said_in, atomic_load(&sl_agent->generation)) != atomic_load(&sl_agent->generation))
		atomic_store(&said, 0);
	fresh = atomic_load(&holes) & ~atomic_load(&said);
	if (fresh & SL_HOLE_DEEPBIND)
		sl_note("a library was opened with RTLD_DEEPBIND: GPU calls it makes itself may be missing");
	if (fresh & SL_HOLE_NAMESPACE)
		sl_note("a library was opened in a namespace of its own (dlmopen): GPU calls made there are missing");
	atomic_fetch_or(&said, fresh);
}

static int stop(struct dl_phdr_info *info, size_t size, void *data)
{
	return 1;
}

/* If it waits for ever nobody minds: it holds nothing. */
static void *try_locks(void *open_self)
{
	void *(*open)(const char *, int) = open_self;

	if (open)
		open(NULL, 1 /* RTLD_LAZY */);
	dl_iterate_phdr(stop, NULL);
	trust();
	atomic_store(&tried, 1);
	sl_agent_wake(&tried);
	return NULL;
}

/* Nobody who is no more holds what making a thread takes: fork() has reset it, or a thread was made in this process. */
static bool is_fresh(void)
{
	char status[4096];
	const char *line;
	uint64_t threads;

	if (atomic_load(&forked) == own_pid())
		return true;
	return sl_procfile_read("/proc/self/status", status, sizeof(status)) > 0 && (line = sl_procfile_line(status, "Threads:")) &&
	       sl_procfile_digits(line, &threads) && threads > 1;
}

static void *nothing(void *unused)
{
	return unused;
}

/* What became of the copy: 0 it made a thread, else it did not, or it fell asleep for good and was killed. */
static int outcome(pid_t copy)
{
	const struct timespec step = {.tv_nsec = LOOK_NS};
	unsigned asleep = 0;
	int status = -1;

	for (unsigned looks = 0; looks < LOOKS_MAX && asleep < ASLEEP_MAX; looks++) {
		long got = syscall(SYS_wait4, copy, &status, WNOHANG | __WALL, NULL);

		if (got == copy || (got < 0 && errno != EINTR))
			return status;
		/* Its parent as well: /proc may be another pid namespace's. */
		asleep = sl_procfile_state((uint64_t)copy) == 'S' && sl_procfile_parent((uint64_t)copy) == (uint64_t)own_pid()
				 ? asleep + 1
				 : 0;
		syscall(SYS_nanosleep, &step, NULL);
	}
	syscall(SYS_kill, copy, SIGKILL);
	while (syscall(SYS_wait4, copy, &status, __WALL, NULL) < 0 && errno == EINTR)
		;
	return -1;
}

/*
 * pthread_create takes locks that fork() resets, but neither _Fork() nor clone: malloc's, and glibc's of thread-local data.  If
 * a thread that is no more holds one, who asks for it waits for ever, and so must not be a thread of the program.  A copy of
 * this process, which has the same locks, asks instead.  It sends no SIGCHLD, no wait of the program sees it, no debugger.
 */
static bool can_make_threads(int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
{
	pthread_t thread;
	long copy;

	if (is_fresh())
		return true;
	copy = syscall(SYS_clone, CLONE_FILES | CLONE_FS | CLONE_UNTRACED, NULL, NULL, NULL, NULL);
	if (!copy)
		syscall(SYS_exit_group, create(&thread, NULL, nothing, NULL) != 0);
	return copy > 0 && outcome((pid_t)copy) == 0;
}

bool sl_objects_try(void)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*detach)(pthread_t);
	pthread_t thread;

	if (sl_objects_trusted())
		return true;
	create = sl_resolve_symbol("pthread_create");
	detach = sl_resolve_symbol("pthread_detach");
	atomic_store(&tried, 0);
	if (!create || !can_make_threads(create) || create(&thread, NULL, try_locks, sl_resolve_symbol("dlopen")))
		return false;
	if (detach)
		detach(thread);
	sl_agent_sleep(&tried, 0, TRY_NS);
	return true;
}
