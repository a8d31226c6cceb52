/* SPDX-License-Identifier: MIT */
/*
 * memcpy and its like for this library alone: our calls, the compiler's and zstd's are bound to these.  A sanitizer's runtime
 * replaces those of the C library.  It would see our reads and writes without their order.  ThreadSanitizer would report false
 * races, and MemorySanitizer uninitialised reads.  syscall is here because uid_wrapper replaces the C library's by one that takes a
 * lock, and holds that lock while it closes libraries.  The system calls below are here because their names belong to the program
 * (ISO C 7.1.3), which may define such a function itself.
 *
 * Compiled so that no loop is turned into a call of itself (meson.build).
 */
#include <errno.h>
#include <stdbool.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base.h"

#define LARGE 4096

/* May be at any address and alias any type, as memory does. */
struct word16 {
	unsigned char bytes __attribute__((vector_size(16)));
} __attribute__((packed, may_alias));

struct word8 {
	uint64_t value;
} __attribute__((packed, may_alias));

struct word4 {
	uint32_t value;
} __attribute__((packed, may_alias));

/* Copies both ends of what is shorter than two words; they may overlap, so both are read before either is written. */
#define MOVE_ENDS(type)                                                                                                            \
	do {                                                                                                                       \
		struct type first = *(const struct type *)from, last = *(const struct type *)(from + size - sizeof(last));         \
                                                                                                                                   \
		*(struct type *)to = first;                                                                                        \
		*(struct type *)(to + size - sizeof(last)) = last;                                                                 \
	} while (0)

static inline void move_small(char *to, const char *from, size_t size)
{
	if (size >= 8) {
		MOVE_ENDS(word8);
	} else if (size >= 4) {
		MOVE_ENDS(word4);
	} else if (size) {
		char first = from[0], middle = from[size / 2], last = from[size - 1];

		to[0] = first;
		to[size / 2] = middle;
		to[size - 1] = last;
	}
}

/* From 16 bytes on; `to` does not lie inside what is copied. */
static inline void move_up(char *to, const char *from, size_t size)
{
	struct word16 last = *(const struct word16 *)(from + size - 16);

	for (size_t at = 0; at < size - 16; at += 16)
		*(struct word16 *)(to + at) = *(const struct word16 *)(from + at);
	*(struct word16 *)(to + size - 16) = last;
}

void *memcpy(void *restrict target, const void *restrict source, size_t size)
{
	if (size < 16)
		move_small(target, source, size);
	else
		move_up(target, source, size);
	return target;
}

void *memmove(void *target, const void *source, size_t size)
{
	const char *from = source;
	char *to = target;

	if (size < 16) {
		move_small(to, from, size);
	} else if ((uintptr_t)to - (uintptr_t)from >= size) {
		move_up(to, from, size);
	} else {
		struct word16 first = *(const struct word16 *)from;

		for (size_t at = size; at > 16; at -= 16)
			*(struct word16 *)(to + at - 16) = *(const struct word16 *)(from + at - 16);
		*(struct word16 *)to = first;
	}
	return target;
}

void *memset(void *target, int byte, size_t size)
{
	uint64_t value = (unsigned char)byte * 0x0101010101010101ull;
	char *to = target;

	if (size < 8) {
		for (; size; size--)
			to[size - 1] = (char)byte;
		return target;
	}
	((struct word8 *)(to + size - 8))->value = value;
#ifdef __x86_64__
	if (size >= LARGE) { /* takes lines over from another core's cache without reading them */
		size_t words = size / 8;

		__asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(value) : "memory");
		return target;
	}
#endif
	for (size_t at = 0; at < size - 8; at += 8)
		((struct word8 *)(to + at))->value = value;
	return target;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *one = a, *other = b;

	for (; size >= 32; size -= 32, one += 32, other += 32) {
		const struct word8 *x = (const struct word8 *)one, *y = (const struct word8 *)other;

		if ((x[0].value ^ y[0].value) | (x[1].value ^ y[1].value) | (x[2].value ^ y[2].value) | (x[3].value ^ y[3].value))
			break;
	}
	for (; size >= 8; size -= 8, one += 8, other += 8)
		if (((const struct word8 *)one)->value != ((const struct word8 *)other)->value)
			break;
	for (; size; size--, one++, other++)
		if (*one != *other)
			return *one < *other ? -1 : 1;
	return 0;
}

int bcmp(const void *a, const void *b, size_t size)
{
	return memcmp(a, b, size);
}

void *memchr(const void *memory, int byte, size_t size)
{
	const unsigned char *at = memory;

	for (; size; size--, at++)
		if (*at == (unsigned char)byte)
			return (void *)at;
	return NULL;
}

size_t strnlen(const char *text, size_t limit)
{
	size_t length = 0;

	while (length < limit && text[length])
		length++;
	return length;
}

SL_STARTUP_TEXT size_t strlen(const char *text)
{
	return strnlen(text, SIZE_MAX);
}

char *strchr(const char *text, int byte)
{
	for (;; text++)
		if (*text == (char)byte)
			return (char *)text;
		else if (!*text)
			return NULL;
}

char *strrchr(const char *text, int byte)
{
	for (size_t at = strlen(text) + 1; at; at--)
		if (text[at - 1] == (char)byte)
			return (char *)text + at - 1;
	return NULL;
}

SL_STARTUP_TEXT int strncmp(const char *a, const char *b, size_t limit)
{
	for (; limit; limit--, a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *strncpy(char *restrict to, const char *restrict from, size_t size)
{
	size_t length = strnlen(from, size);

	memcpy(to, from, length);
	memset(to + length, 0, size - length);
	return to;
}

char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

/* Length of the text's beginning that has only these bytes (is_of), or none of them. */
static size_t span(const char *text, const char *bytes, bool is_of)
{
	size_t length = 0;

	while (text[length] && (memchr(bytes, text[length], strlen(bytes)) != NULL) == is_of)
		length++;
	return length;
}

size_t strspn(const char *text, const char *bytes)
{
	return span(text, bytes, true);
}

size_t strcspn(const char *text, const char *bytes)
{
	return span(text, bytes, false);
}

char *strstr(const char *text, const char *part)
{
	size_t length = strlen(part);

	for (; strncmp(text, part, length); text++)
		if (!*text)
			return NULL;
	return (char *)text;
}

/* Its arguments lie where those of the C library's variadic one do. */
long sl_libc_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

SL_STARTUP_TEXT long sl_libc_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;

	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
			 x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	number = x0;
#endif
	if (SL_LIKELY((unsigned long)number < -4095ul))
		return number;
	errno = (int)-number;
	return -1;
}

/* --- system calls by name ------------------------------------------------------------------------------- */

#define CALL(type, name, parameters, number, ...)                                                                                  \
	type name parameters                                                                                                       \
	{                                                                                                                          \
		return (type)sl_libc_syscall(number, __VA_ARGS__);                                                                 \
	}
#define L(value) (long)(value)

CALL(void *, mmap, (void *at, size_t size, int rights, int flags, int fd, off_t offset), SYS_mmap, L(at), L(size), rights, flags,
     fd, offset)
CALL(int, munmap, (void *at, size_t size), SYS_munmap, L(at), L(size), 0, 0, 0, 0)
CALL(int, mprotect, (void *at, size_t size, int rights), SYS_mprotect, L(at), L(size), rights, 0, 0, 0)
CALL(int, madvise, (void *at, size_t size, int advice), SYS_madvise, L(at), L(size), advice, 0, 0, 0)
CALL(int, munlock, (const void *at, size_t size), SYS_munlock, L(at), L(size), 0, 0, 0, 0)
CALL(ssize_t, pread, (int fd, void *to, size_t size, off_t offset), SYS_pread64, fd, L(to), L(size), offset, 0, 0)
CALL(off_t, lseek, (int fd, off_t offset, int whence), SYS_lseek, fd, offset, whence, 0, 0, 0)
CALL(int, ftruncate, (int fd, off_t size), SYS_ftruncate, fd, size, 0, 0, 0, 0)
CALL(int, fdatasync, (int fd), SYS_fdatasync, fd, 0, 0, 0, 0, 0)
CALL(int, pipe2, (int fds[2], int flags), SYS_pipe2, L(fds), flags, 0, 0, 0, 0)
CALL(pid_t, getpid, (void), SYS_getpid, 0, 0, 0, 0, 0, 0)
CALL(pid_t, getsid, (pid_t pid), SYS_getsid, pid, 0, 0, 0, 0, 0)
CALL(int, uname, (struct utsname * to), SYS_uname, L(to), 0, 0, 0, 0, 0)
CALL(int, sched_yield, (void), SYS_sched_yield, 0, 0, 0, 0, 0, 0)
CALL(int, getrlimit, (__rlimit_resource_t of, struct rlimit *to), SYS_prlimit64, 0, of, 0, L(to), 0, 0)
CALL(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long count, const struct iovec *from, unsigned long from_count,
      unsigned long flags),
     SYS_process_vm_readv, pid, L(to), L(count), L(from), L(from_count), L(flags))
CALL(ssize_t, process_vm_writev,
     (pid_t pid, const struct iovec *from, unsigned long from_count, const struct iovec *to, unsigned long count,
      unsigned long flags),
     SYS_process_vm_writev, pid, L(from), L(from_count), L(to), L(count), L(flags))

/* The two that are variadic have all their arguments in registers, as syscall has. */
long sl_libc_prctl(long option, long a, long b, long c, long d) __asm__("prctl");
long sl_libc_prctl(long option, long a, long b, long c, long d)
{
	return sl_libc_syscall(SYS_prctl, option, a, b, c, d, 0);
}

void *sl_libc_mremap(void *at, size_t size, size_t now, long flags, void *to) __asm__("mremap");
void *sl_libc_mremap(void *at, size_t size, size_t now, long flags, void *to)
{
	return (void *)sl_libc_syscall(SYS_mremap, L(at), L(size), L(now), flags, L(to), 0);
}
