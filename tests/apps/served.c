/* SPDX-License-Identifier: MIT */
/*
 * served N: calls on a stack below pages that it serves itself (userfaultfd), from a function without unwind tables whose rbp leads
 * there, N - 8 bytes above the stack's top; of a negative N, to such pages below the stack; 1: below an array of such pages in a
 * thread's frame, in a first call.  Prints how often it allocated and freed; fails if a page was asked for.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu.h"

#ifdef __x86_64__

#define STACK_BYTES (256u << 10)
#define PAIRS	    50

static atomic_uint served;

/* Serves pages with zeroes, and counts them. */
static void *serve(void *descriptor)
{
	int fd = *(int *)descriptor;
	struct uffd_msg asked;

	while (read(fd, &asked, sizeof(asked)) == sizeof(asked)) {
		struct uffdio_zeropage page = {{asked.arg.pagefault.address & ~4095ull, 4096}, 0, 0};

		served++;
		ioctl(fd, UFFDIO_ZEROPAGE, &page);
	}
	return NULL;
}

static void pairs(void)
{
	void *p;

	for (unsigned i = 0; i < PAIRS; i++) {
		OK(cudaMalloc(&p, 4096 + (i & 7) * 512));
		OK(cudaFree(p));
	}
}

void call_there(void *stack, void *rbp, void (*function)(void));
__asm__(".pushsection .text\n"
	".type call_there,@function\n"
	"call_there:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	mov %rsp,%rbx\n"
	"	mov %rdi,%rsp\n"
	"	mov %rsi,%rbp\n"
	"	call *%rdx\n"
	"	mov %rbx,%rsp\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size call_there,.-call_there\n"
	".popsection\n");

static int wait_for(int fd, void *pages, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uintptr_t)pages, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	static pthread_t thread;
	static int descriptor;

	descriptor = fd;
	return ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ||
	       pthread_create(&thread, NULL, serve, &descriptor);
}

static void *call_below_array(void *descriptor)
{
	_Alignas(4096) char pages[65536];

	memset(pages, 0, sizeof(pages));
	if (wait_for(*(int *)descriptor, pages, sizeof(pages) / 2) || madvise(pages, sizeof(pages) / 2, MADV_DONTNEED))
		return "";
	pairs();
	pairs();
	printf("%d %d\n", 2 * PAIRS, 2 * PAIRS);
	return served ? "" : NULL;
}

int main(int count, char **words)
{
	int way = count < 2 ? 0 : atoi(words[1]);
	char *pages = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *top = pages + (way < 0 ? 2 : 1) * STACK_BYTES, *there = way < 0 ? pages : top;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *failed;
	pthread_t thread;

	if (fd < 0 || count < 2)
		return 77;
	if (way == 1)
		return pthread_create(&thread, NULL, call_below_array, &fd) || pthread_join(thread, &failed) || failed;
	if (pages == MAP_FAILED || wait_for(fd, there, STACK_BYTES))
		return 1;
	pairs();
	usleep(50000); /* native stacks are libunwind's by then */
	call_there(top - 64, way < 0 ? there + STACK_BYTES / 2 - way : top + way - 8, pairs);
	printf("%d %d\n", 2 * PAIRS, 2 * PAIRS);
	return served != 0;
}

#else

int main(void)
{
	return 77;
}

#endif
