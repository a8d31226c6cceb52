/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"
#include "agent/process/valgrind.h"

#define FIRST_BYTES 4096

static _Atomic bool are_locked;

/* Growing memory keeps the lock state of what it grows from: one page is locked for a moment. */
static void *map_unlocked(size_t bytes, int flags, int fd, size_t from)
{
	void *page = mmap(NULL, FIRST_BYTES, PROT_READ | PROT_WRITE, flags, fd, (off_t)from), *pages;

	if (page == MAP_FAILED)
		return NULL;
	pages = munlock(page, FIRST_BYTES) ? MAP_FAILED : mremap(page, FIRST_BYTES, bytes, MREMAP_MAYMOVE);
	if (pages != MAP_FAILED)
		return pages;
	munmap(page, FIRST_BYTES);
	return NULL;
}

static void *map(size_t bytes, int flags, int fd, size_t from)
{
	void *pages;

	if (!sl_pages_are_locked()) {
		pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)from);
		if (pages != MAP_FAILED) {
			sl_valgrind_share(pages, bytes);
			return pages;
		}
		if (errno != EAGAIN) /* the program may not lock as much */
			return NULL;
		atomic_store(&are_locked, true);
	}
	return map_unlocked(bytes, flags, fd, from);
}

void *sl_pages_map(size_t bytes)
{
	return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void *sl_pages_map_file(size_t bytes, int fd, size_t from)
{
	return map(bytes, MAP_SHARED, fd, from);
}

void sl_pages_unlock(void *pages, size_t bytes)
{
	atomic_store(&are_locked, true);
	munlock(pages, bytes);
}

bool sl_pages_are_locked(void)
{
	return atomic_load_explicit(&are_locked, memory_order_relaxed);
}

/* Valgrind does not ask the kernel about a mask, and says that the program gave a bad one. */
static SL_NOINLINE bool readable_below_valgrind(uintptr_t address)
{
	uint64_t word;
	struct iovec local = {&word, sizeof(word)}, remote = {(void *)(address & ~(uintptr_t)7), sizeof(word)};

	return syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local, 1, &remote, 1, 0) > 0 || errno != EFAULT;
}

/* Tests memory by a system call: the kernel reads the mask before it refuses the rest. */
bool sl_pages_readable(uintptr_t address)
{
	if (SL_UNLIKELY(sl_valgrind_present()))
		return readable_below_valgrind(address);
	return !syscall(SYS_rt_sigprocmask, -1, address & ~(uintptr_t)7, NULL, sizeof(uint64_t)) || errno != EFAULT;
}
