/* SPDX-License-Identifier: MIT */
/* faulting CASE [ARGUMENT]: programs that live by signals of their own threads, or hide or close libraries; test_foreign.py names them. */
#include "gpu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROUNDS = 10, BROKERED = 0x5afe };

static void call(void)
{
	void *p;

	OK(cudaMalloc(&p, MB));
	OK(cudaFree(p));
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};

	CHECK(!sigaction(number, &action, NULL));
}

#ifdef __x86_64__
/* Makes the trapped call itself, marked by a sixth argument that it does not have. */
static void make_call(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	long result = syscall(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10], 0,
			      BROKERED);

	(void)number;
	registers[REG_RAX] = result < 0 ? -errno : result;
}

/* A sandbox whose broker, in the same process, makes the calls of a number. */
static int broker(const char *number)
{
	struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(number), 0, 2),
				       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
				       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BROKERED, 0, 1),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	handle(SIGSYS, make_call);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	for (int i = 0; i < ROUNDS; i++)
		call();
	return 0;
}

void begins_by_a_fault(void);
__asm__(".text\n"
	".globl before_it\n.type before_it, @function\nbefore_it:\n.cfi_startproc\nnop\nret\n.cfi_endproc\n.size before_it, "
	".-before_it\n"
	".globl begins_by_a_fault\n.type begins_by_a_fault, @function\nbegins_by_a_fault:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n"
	".size begins_by_a_fault, .-begins_by_a_fault\n");

static void allocate_and_go_on(int number, siginfo_t *info, void *context)
{
	void *p;

	(void)number;
	(void)info;
	OK(cudaMalloc(&p, MB));
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* A handler allocates where the first instruction of a function was to run. */
static int first_instruction(const char *unused)
{
	(void)unused;
	handle(SIGILL, allocate_and_go_on);
	begins_by_a_fault();
	return 0;
}

#else
static int broker(const char *unused)
{
	(void)unused;
	return 77;
}

static int first_instruction(const char *unused)
{
	(void)unused;
	return 77;
}
#endif

static sem_t stopped;

static void stop(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	sem_post(&stopped);
}

static void *wait_for_signals(void *unused)
{
	while (1)
		pause();
	return unused;
}

/* Stops all of its threads by a signal, again and again, as it finds them in /proc. */
static int stop_threads(const char *unused)
{
	pthread_t thread;

	(void)unused;
	sem_init(&stopped, 0, 0);
	handle(SIGUSR1, stop);
	CHECK(!pthread_create(&thread, NULL, wait_for_signals, NULL));
	call();
	usleep(50000);
	for (int i = 0; i < 3 * ROUNDS; i++) {
		DIR *tasks = opendir("/proc/self/task");
		int sent = 0;

		CHECK(tasks);
		for (struct dirent *task; (task = readdir(tasks));)
			if (task->d_name[0] != '.' && atoi(task->d_name) != getpid())
				sent += !syscall(SYS_tgkill, getpid(), atoi(task->d_name), SIGUSR1);
		closedir(tasks);
		for (; sent; sent--)
			while (sem_wait(&stopped))
				CHECK(errno == EINTR);
		call();
	}
	return 0;
}

static atomic_int ended;

static void *open_and_close(void *path)
{
	while (!atomic_load(&ended)) {
		void *library = dlopen(path, RTLD_NOW);

		CHECK(library);
		dlclose(library);
	}
	return NULL;
}

/* The first call is made while other threads open and close libraries of that folder. */
static int closes(const char *folder)
{
	static const char *const names[] = {"fake_clock.so", "old_kernel.so", "libc10.so"};
	static char paths[3][4096];
	pthread_t thread[3];

	for (int i = 0; i < 3; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
		CHECK(!pthread_create(&thread[i], NULL, open_and_close, paths[i]));
	}
	usleep(2000);
	call();
	atomic_store(&ended, 1);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
	return 0;
}

/* All signals are blocked and read from a file, those of faults too. */
static int signal_file(const char *unused)
{
	static const int sent[] = {SIGFPE, SIGSEGV, SIGSYS, SIGTERM};
	struct signalfd_siginfo info;
	sigset_t all;
	int fd;

	(void)unused;
	call();
	usleep(50000);
	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	CHECK((fd = signalfd(-1, &all, 0)) >= 0);
	for (size_t i = 0; i < sizeof(sent) / sizeof(*sent); i++) {
		CHECK(!kill(getpid(), sent[i]));
		CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == (unsigned)sent[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const char *argument);
	} cases[] = {{"broker", broker},
		     {"stop_threads", stop_threads},
		     {"signal_file", signal_file},
		     {"closes", closes},
		     {"first_instruction", first_instruction}};

	CHECK(argc == 3);
	alarm(60);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(argv[2]);
	return 2;
}
