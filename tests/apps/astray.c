/* SPDX-License-Identifier: MIT */
/*
 * astray MODE [N]: calls on stacks that lead to what is no stack, or no more one.  Prints how often it allocated and freed.
 *
 * gone N	a coroutine was begun by a function of another stack, which is unmapped; 1: by a thread, which has ended; 2: and the stack
 *		of the thread that goes on with it lies right above
 * junk N	a coroutine's outermost return address is N; the first call comes in a handler
 * guard N	a coroutine with N bytes left, where a guard page is now and calls were made before
 * filter N	the thread that called first, N times, had a seccomp filter of its own, which kills for a new thread; the program gives all
 *		threads another one later
 * fiber	a coroutine that main has begun, on memory of its own, and goes back to main between its calls
 * first	a handler leaves the first call by longjmp
 * jumps N	a handler leaves N times by longjmp what it interrupts of the agent, and calls come from further down the stack
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "gpu.h"

#ifdef __x86_64__

#define PAGE  4096
#define STACK 65536

static unsigned made;

static void pairs(int count)
{
	void *p;

	for (int i = 0; i < count; i++, made++) {
		OK(cudaMalloc(&p, 4096 + (i & 7) * 512));
		OK(cudaFree(p));
	}
}

static void handle(int number)
{
	pairs(3);
}

static char *map(size_t bytes)
{
	char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	return pages;
}

/* Calls on another stack, whose outermost frame leads back to this one. */
void call_on(void *stack, void (*function)(void));
__asm__(".pushsection .text\n"
	".type call_on,@function\n"
	"call_on:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp,-16\n"
	"	mov %rsp,%rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	mov %rdi,%rsp\n"
	"	call *%rsi\n"
	"	mov %rbp,%rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa rsp,8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size call_on,.-call_on\n"
	/* Jumps to a function on another stack; back_to_main leaves it. */
	".type jump_to,@function\n"
	"jump_to:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp,main_stack(%rip)\n"
	"	mov %rdi,%rsp\n"
	"	xor %ebp,%ebp\n"
	"	jmp *%rsi\n"
	".size jump_to,.-jump_to\n"
	".type back_to_main,@function\n"
	"back_to_main:\n"
	"	mov main_stack(%rip),%rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size back_to_main,.-back_to_main\n"
	".popsection\n");
void jump_to(void *stack, void (*function)(void));
void back_to_main(void);
void *main_stack __attribute__((visibility("hidden"), used));

static void some_pairs(void)
{
	pairs(4);
}

static void more_pairs(void)
{
	pairs(5);
}

/* ---- the stack that a coroutine was begun on is gone ---- */

static ucontext_t scheduler, coroutine;
static char *beside; /* the coroutine's stack, and right above it the one that it is begun on */

static void run_coroutine(void)
{
	for (;;) {
		pairs(3);
		swapcontext(&coroutine, &scheduler);
	}
}

static void begin_coroutine(void)
{
	call_on(beside + STACK - 64, run_coroutine);
}

static void *carry(void *begins)
{
	volatile int times = 0;

	getcontext(&scheduler);
	if (times++ < 3) {
		if (begins && times == 1)
			begin_coroutine();
		if (times == 3)
			munmap(beside + STACK, STACK);
		if (!begins)
			setcontext(&coroutine);
	}
	return NULL;
}

static void gone(long by_thread)
{
	static ucontext_t first;
	pthread_attr_t attr;
	pthread_t thread;

	beside = map(3 * STACK);
	if (by_thread) {
		pthread_attr_init(&attr);
		CHECK(!pthread_attr_setstack(&attr, beside + STACK, STACK));
		CHECK(!pthread_create(&thread, &attr, carry, "") && !pthread_join(thread, NULL));
		if (by_thread == 2)
			CHECK(!pthread_attr_setstack(&attr, beside + 2 * STACK, STACK));
		else
			munmap(beside + STACK, STACK);
		CHECK(!pthread_create(&thread, by_thread == 2 ? &attr : NULL, carry, NULL) && !pthread_join(thread, NULL));
		return;
	}
	getcontext(&first);
	first.uc_stack.ss_sp = beside + STACK;
	first.uc_stack.ss_size = STACK / 4;
	makecontext(&first, begin_coroutine, 0);
	swapcontext(&scheduler, &first);
	for (int i = 0; i < 5; i++) {
		if (i == 1)
			munmap(beside + STACK, STACK);
		if (i == 3)
			usleep(50000); /* libunwind is there by then */
		swapcontext(&scheduler, &coroutine);
	}
}

/* ---- return addresses that are none ---- */

static void enter(void)
{
	pairs(4);
	back_to_main();
}

static void junk(long address)
{
	char *stack = map(4 * STACK);

	CHECK(dlopen("libgcc_s.so.1", RTLD_NOW)); /* an unwinder that reads code at such an address */
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	for (int i = 0; i < 4; i++) {
		long *top = (long *)(stack + (i + 1) * STACK - 72);

		top[0] = top[2] = address;
		top[1] = address + 16;
		jump_to(top, enter);
		usleep(10000);
	}
}

/* ---- stacks that change ---- */

static void guard(long bytes)
{
	char *stack = map(2 * STACK);

	pairs(2);
	usleep(50000);
	call_on(stack + STACK + (bytes & ~15l), some_pairs);
	mprotect(stack + STACK - 4 * PAGE, 4 * PAGE, PROT_NONE);
	call_on(stack + STACK + (bytes & ~15l), more_pairs);
}

/* ---- what is shared with us ---- */

static struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_filter no_thread[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
					 {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone},
					 {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3},
					 {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
					 {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_fprog filter_program = {1, allow}, threads_program = {5, no_thread};

static void *call_filtered(void *times)
{
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &threads_program));
	pairs((int)*(long *)times);
	return NULL;
}

static void filter(long times)
{
	pthread_t thread;

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !pthread_create(&thread, NULL, call_filtered, &times) &&
	      !pthread_join(thread, NULL));
	usleep(50000);
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter_program));
	pairs(5);
}

/* ---- work of the agent that is left ---- */

static sigjmp_buf out;
static atomic_bool armed, ended;
static struct span {
	uintptr_t begin, end;
} agent;

static int find_agent(struct dl_phdr_info *info, size_t size, void *unused)
{
	for (int i = 0; strstr(info->dlpi_name, "libstormlog_preload") && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_flags & PF_X && info->dlpi_phdr[i].p_type == PT_LOAD)
			agent = (struct span){info->dlpi_addr,
					      info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz};
	return 0;
}

static void jump(int number, siginfo_t *info, void *context)
{
	uintptr_t pc = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (armed && pc >= agent.begin && pc < agent.end)
		siglongjmp(out, 1);
}

static void *send(void *thread)
{
	for (; !ended; usleep(50))
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

/* What was left above stays as it was. */
static __attribute__((noinline)) void call_below(void)
{
	volatile char room[16384];

	__asm__ volatile("" ::"r"(room) : "memory");
	pairs(3);
}

static void leave(long times)
{
	struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
	pthread_t own = pthread_self(), sender;
	int (*allocate)(void **, size_t);
	volatile long left = 0;
	void *p;

	dl_iterate_phdr(find_agent, NULL);
	allocate = (int (*)(void **, size_t))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
	CHECK(allocate && !sigaction(SIGUSR1, &action, NULL) && !pthread_create(&sender, NULL, send, &own));
	while (agent.end && left < times) {
		if (!sigsetjmp(out, 1)) {
			armed = true;
			CHECK(allocate(&p, (size_t)1 << 50) != 0); /* too large, or before any context */
			armed = false;
		} else {
			armed = false;
			left = left + 1;
			call_below();
		}
	}
	ended = true;
	CHECK(!pthread_join(sender, NULL));
}

static void first(long unused)
{
	leave(1);
	pairs(20);
}

static void jumps(long times)
{
	pairs(1);
	leave(times);
}

/* ---- a coroutine as most are ---- */

static void fiber(long unused)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = map(STACK);
	coroutine.uc_stack.ss_size = STACK;
	coroutine.uc_link = NULL;
	makecontext(&coroutine, run_coroutine, 0);
	for (int i = 0; i < 10; i++) {
		swapcontext(&scheduler, &coroutine);
		usleep(10000); /* libunwind comes meanwhile */
	}
}

static const struct {
	const char *name;
	void (*run)(long n);
} modes[] = {{"gone", gone},   {"junk", junk},	 {"guard", guard}, {"filter", filter},
	     {"jumps", jumps}, {"first", first}, {"fiber", fiber}};

int main(int count, char **words)
{
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (count > 1 && !strcmp(words[1], modes[i].name)) {
			modes[i].run(count > 2 ? atol(words[2]) : 0);
			printf("%u %u\n", made, made);
			return 0;
		}
	return 2;
}

#else

int main(void)
{
	return 77;
}

#endif
