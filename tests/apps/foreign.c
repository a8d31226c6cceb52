/* SPDX-License-Identifier: MIT */
/* foreign CASE [NUMBER]: cases that a recorder in the same process may break; test_foreign.py names them.  Longer than other files: each case is one function. */
#include "gpu.h"
#include "paths.h"
#include "late_free.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 20000 };

/* The blocks live until the program's end; a thread with a small stack frees them after it. */
static int late(int stack)
{
	late_free((size_t)stack);
	usleep(100000); /* the writer has written them */
	return 0;
}

static void *last_thread(void *gpu)
{
	sigset_t mask;
	void *p;

	usleep(150000);
	if (gpu)
		OK(cudaMalloc(&p, MB));
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
	printf("TERM is blocked: %d\n", sigismember(&mask, SIGTERM));
	return NULL;
}

static void at_exit(void)
{
	sigset_t mask;

	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
	printf("at exit, TERM is blocked: %d\n", sigismember(&mask, SIGTERM));
}

/* The main thread ends first; the process ends with the other thread.  Both make a GPU call, or (0) neither does. */
static int pthread_exit_in_main(int gpu)
{
	pthread_t thread;
	void *p;

	if (gpu)
		OK(cudaMalloc(&p, MB));
	CHECK(!atexit(at_exit));
	CHECK(!pthread_create(&thread, NULL, last_thread, gpu ? &thread : NULL));
	pthread_exit(NULL);
}

/* Threads for which no size is named get a small stack. */
static int small_default_stack(int bytes)
{
	pthread_attr_t attr;
	void *p;

	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, (size_t)bytes));
	CHECK(!pthread_setattr_default_np(&attr));
	for (int i = 0; i < CALLS; i++) {
		OK(cudaMalloc(&p, 4096));
		OK(cudaFree(p));
	}
	usleep(400000);
	return 0;
}

/* Asks for what the kernel grants only a process of one thread, then makes another call. */
static int unshare_user(int gpu)
{
	void *p;

	if (gpu)
		OK(cudaMalloc(&p, MB));
	usleep(50000);
	printf("unshare: %s\n", unshare(CLONE_NEWUSER) ? strerror(errno) : "done");
	if (gpu)
		OK(cudaFree(p));
	return 0;
}

static pthread_barrier_t all_there;

static void *call_and_stay(void *unused)
{
	void *p;

	for (int i = 0; i < 5; i++) {
		OK(cudaMalloc(&p, 4096));
		OK(cudaFree(p));
	}
	pthread_barrier_wait(&all_there);
	OK(cudaMalloc(&p, 4096)); /* all threads at once */
	return unused;
}

/* Threads that all live at the same time and make 11 calls each. */
static int many_threads(int count)
{
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	pthread_attr_t attr;

	CHECK(threads && !pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, 64 << 10));
	CHECK(!pthread_barrier_init(&all_there, NULL, (unsigned)count));
	for (int i = 0; i < count; i++)
		CHECK(!pthread_create(&threads[i], &attr, call_and_stay, NULL));
	for (int i = 0; i < count; i++)
		CHECK(!pthread_join(threads[i], NULL));
	return 0;
}

static _Atomic int no_more;

static void *call_until_told(void *unused)
{
	void *p;

	while (!no_more) {
		OK(cudaMalloc(&p, 4096));
		OK(cudaFree(p));
	}
	return unused;
}

/* exec fails, again and again, while other threads are at work. */
static int exec_fails(int count)
{
	char *argv[] = {"nothing", NULL};
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, call_until_told, NULL));
	for (int i = 0; i < count; i++) {
		usleep(1000);
		CHECK(execv("/nonexistent", argv) && errno == ENOENT);
	}
	no_more = 1;
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	return 0;
}

/* Makes a first call with little address space, and then asks malloc for 7/12 of that. */
static int little_address_space(int megabytes)
{
	struct rlimit limit = {(rlim_t)megabytes << 20, (rlim_t)megabytes << 20};
	void *p;

	CHECK(!setrlimit(RLIMIT_AS, &limit));
	OK(cudaMalloc(&p, MB));
	p = malloc((size_t)megabytes * 7 / 12 << 20);
	printf("malloc %s\n", p ? "has it" : "failed");
	return 0;
}

/* Reads a byte of every page of the mapped ring, as a debugger or a search for leaks does. */
static int read_all_memory(int unused)
{
	char line[512], *at;
	unsigned long begin, end;
	unsigned long long sum = 0;
	void *p;
	FILE *maps;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	usleep(100000);
	CHECK((maps = fopen("/proc/self/maps", "r")));
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && strstr(line, "/rank-"))
			for (at = (char *)begin; at < (char *)end; at += 4096)
				sum += *(volatile char *)at != 0;
	printf("read\n");
	return sum == 0; /* the ring's head at least is not empty */
}

static atomic_int highest, ended;

static void *open_files(void *unused)
{
	while (!atomic_load(&ended)) {
		int fd = open("/dev/null", O_RDONLY);

		CHECK(fd >= 0);
		if (fd > atomic_load(&highest))
			atomic_store(&highest, fd);
		CHECK(!close(fd));
	}
	return unused;
}

/* One thread opens and closes a file while another makes the first call.  Prints whether the file's numbers stayed low, and how many are left open below 60. */
static int descriptors(int unused)
{
	pthread_t thread;
	int open_ones = 0;
	void *p;

	(void)unused;
	CHECK(!pthread_create(&thread, NULL, open_files, NULL));
	usleep(20000);
	OK(cudaMalloc(&p, MB));
	usleep(100000);
	atomic_store(&ended, 1);
	CHECK(!pthread_join(thread, NULL));
	for (int look = 0; look < 50 && (open_ones || !look); look++) { /* the writer may be reading a file */
		usleep(look ? 20000 : 0);
		open_ones = 0;
		for (int fd = 3; fd < 60; fd++)
			open_ones += fcntl(fd, F_GETFD) >= 0;
	}
	printf("%s, %d open\n", atomic_load(&highest) < 16 ? "low numbers" : "high numbers", open_ones);
	return 0;
}

/* The system calls that agent/README.md lists under Sandboxes, and the program's own. */
static const int allowed[] = {SYS_futex,	 SYS_pwrite64, SYS_pread64,	SYS_newfstatat, SYS_rt_sigprocmask,
			      SYS_clock_gettime, SYS_getpid,   SYS_sched_yield, SYS_nanosleep,	SYS_clock_nanosleep,
			      SYS_madvise,	 SYS_exit,     SYS_gettid,	SYS_write,	SYS_exit_group};

/* Calls from much deeper in the stack than before. */
static __attribute__((noinline)) void call_below(void)
{
	volatile char space[40000];
	void *p;

	space[0] = 0;
	OK(cudaMalloc(&p, 4096));
	OK(cudaFree(p));
	space[1] = space[0];
}

/* A sandbox of all threads that kills the process for any system call that is not on the list. */
static int sandbox(int unused)
{
	struct sock_filter filter[2 + 2 * sizeof(allowed) / sizeof(*allowed)];
	struct sock_fprog program = {.filter = filter};
	void *p;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	usleep(300000); /* the agent has opened its libraries, and the writer has made its first passes */
	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		filter[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
	for (int i = 0; i < CALLS / 5; i++) { /* fit in the thread's segment: the agent may not have seen the filter yet */
		OK(cudaFree(p));
		OK(cudaMalloc(&p, 4096));
		if (i % 200 == 0)
			usleep(20000);
	}
	call_below(); /* a new stack, on pages that were never touched; the agent has seen the filter by now */
	return 7;
}

/* Prints whether a forked child had to copy many pages before its first call. */
static int fork_cheaply(int unused)
{
	struct rusage used;
	int status = -1;
	pid_t child;
	void *p;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	child = fork();
	if (!child) {
		CHECK(!getrusage(RUSAGE_SELF, &used));
		OK(cudaMalloc(&p, MB)); /* begins a recording of the child's own */
		printf("%s\n", used.ru_minflt < 500 ? "few pages" : "many pages");
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	OK(cudaFree(p));
	return 0;
}

/* Ends by the bare system call, as Go's programs do; status 256 and more: is killed instead. */
static int raw_end(int status)
{
	void *p;

	OK(cudaMalloc(&p, MB));
	usleep(50000);
	if (status < 256)
		syscall(SYS_exit_group, status);
	kill(getpid(), SIGKILL);
	return 1;
}

/* The last thread ends by the system call exit, of which the C library does not know.  Another thread did so before, or (0) none. */
static void *leave_by_call(void *self)
{
	void *p;

	OK(cudaMalloc(&p, MB));
	atomic_store((_Atomic pid_t *)self, gettid());
	syscall(SYS_exit, 0);
	return NULL;
}

static int threads_leave_by_call(int other)
{
	_Atomic pid_t left = 0;
	pthread_t thread;
	void *p;

	OK(cudaMalloc(&p, MB));
	OK(cudaFree(p));
	if (other) {
		CHECK(!pthread_create(&thread, NULL, leave_by_call, &left));
		while (!left || !tgkill(getpid(), left, 0))
			usleep(1000);
	}
	CHECK(!atexit(at_exit)); /* must not run */
	syscall(SYS_exit, 3);
	return 1;
}

/* A driver that was in use before a bare clone refuses the child. */
static int call_and_return(void *unused)
{
	void *p;

	(void)unused;
	if (!cudaMalloc(&p, MB))
		OK(cudaFree(p));
	return 3;
}

static int hold_loader(struct dl_phdr_info *info, size_t size, void *held)
{
	(void)info;
	(void)size;
	atomic_store((_Atomic int *)held, 1);
	while (atomic_load((_Atomic int *)held))
		usleep(1000);
	return 1;
}

static void *hold(void *held)
{
	dl_iterate_phdr(hold_loader, held);
	return NULL;
}

/*
 * A child of clone() that ends when its function returns, by the system call exit, as the manual page shows it.  1: the parent makes
 * a GPU call first; 2: besides, a thread of the parent holds the loader's lock, for which a thread of the child would wait for ever.
 */
static int cloned(int parent)
{
	size_t bytes = 1 << 18;
	char *stack = malloc(bytes);
	_Atomic int held = 0;
	pthread_t holder;
	int status = -1;
	pid_t child;
	void *p;

	if (parent)
		OK(cudaMalloc(&p, MB));
	if (parent == 2) {
		CHECK(!pthread_create(&holder, NULL, hold, &held));
		while (!atomic_load(&held))
			usleep(1000);
	}
	CHECK(stack);
	child = clone(call_and_return, stack + bytes, SIGCHLD, NULL);
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (parent == 2) {
		atomic_store(&held, 0);
		CHECK(!pthread_join(holder, NULL));
	}
	printf("the child ended with %x\n", (unsigned)status);
	return 0;
}

/* setgid must reach every thread, also the writer that was started again after a fork. */
static int setgid_after_fork(int unused)
{
	pid_t child;
	void *p;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	usleep(50000);
	child = fork();
	if (!child)
		_exit(0);
	CHECK(waitpid(child, NULL, 0) == child);
	usleep(50000);
	CHECK(!setgid(getgid()) && !setuid(getuid()));
	OK(cudaFree(p));
	return 0;
}

/* A thread that gave up its rights is refused, and so must all threads be: else the C library ends the process. */
static int initgroups_without_rights(int unused)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	void *p;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	usleep(50000);
	CHECK(!syscall(SYS_capset, &header, none));
	CHECK(initgroups("nobody", getgid()) == -1 && errno == EPERM);
	OK(cudaFree(p));
	return 0;
}

static atomic_int calls_now;

static void *call_once(void *unused)
{
	void *p;

	calls_now = 1;
	OK(cudaMalloc(&p, MB));
	return unused;
}

/* Ends, by exec (1) or not (0), or becomes another user (2), while another thread makes the first call, which takes long. */
static int at_start(int how)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, call_once, NULL));
	while (!calls_now)
		usleep(1000);
	usleep(150000);
	if (how == 1)
		execlp("true", "true", (char *)NULL);
	if (how == 2)
		CHECK(!setgid(65534) && !setuid(65534) && !pthread_join(thread, NULL));
	return how == 1;
}

/* As a server that gives up root before it starts its workers. */
static int becomes_nobody(int unused)
{
	pid_t child;
	void *p;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	CHECK(!setgid(65534) && !setuid(65534));
	child = fork();
	if (!child) {
		OK(cudaMalloc(&p, MB));
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	OK(cudaFree(p));
	return 0;
}

/* Its child cannot make files, each time for another reason. */
static int child_without_files(int how)
{
	pid_t child;
	void *p;

	OK(cudaMalloc(&p, MB));
	child = fork();
	if (!child) {
		CHECK(how == 0	 ? !chroot("/proc")
		      : how == 1 ? !setfsgid(65534) && !setfsuid(65534)
				 : !setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3}));
		OK(cudaMalloc(&p, MB));
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	OK(cudaFree(p));
	return 0;
}

/* A filter kills the only thread, and not the process: libseccomp's SCMP_ACT_KILL. */
static int killed_alone(int unused)
{
	struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 0, 1),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {4, filter};
	void *p;

	(void)unused;
	OK(cudaMalloc(&p, MB));
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	syscall(SYS_getsid, 0);
	return 0;
}

static int own_file;

/* Takes the numbers of files of a trace, for its own file, as often as it can. */
static void *take_numbers(void *unused)
{
	while (!atomic_load(&ended)) {
		int found[64], count = 0;

		for (int fd = 3; fd < 2000 && count < 64; fd++) {
			char name[32], target[300] = "";

			snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
			if (readlink(name, target, sizeof(target) - 1) > 0 && strstr(target, "/rank-"))
				found[count++] = fd;
		}
		for (int i = 0; i < 200 * count; i++)
			dup2(own_file, found[i % count]);
		for (int i = 0; i < count; i++)
			close(found[i]);
	}
	return unused;
}

/* Prints how long the program's own file is, to which it writes nothing. */
static int takes_descriptors(int rounds)
{
	struct rlimit limit;
	pthread_t thread;
	void *p;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 512;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK((own_file = (int)syscall(SYS_memfd_create, "own", 0)) >= 0);
	OK(cudaMalloc(&p, MB));
	CHECK(!pthread_create(&thread, NULL, take_numbers, NULL));
	for (int i = 0; i < rounds; i++) {
		OK(cudaFree(p));
		OK(cudaMalloc(&p, MB + (size_t)i));
	}
	atomic_store(&ended, 1);
	CHECK(!pthread_join(thread, NULL));
	printf("%ld bytes\n", (long)lseek(own_file, 0, SEEK_END));
	return 0;
}

/* Writes to the standard descriptors, which are closed, with a limit of so many. */
static int closed_standard(int descriptors)
{
	struct rlimit limit = {(rlim_t)descriptors, (rlim_t)descriptors};
	void *p;

	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
	for (int i = 0; i < 50; i++) {
		OK(cudaMalloc(&p, MB));
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			if (pwrite(fd, "a line of the program's", 23, 0) >= 0 || write(fd, "\n", 1) >= 0)
				return 3;
		OK(cudaFree(p));
	}
	return 0;
}

/* A tenth of a millisecond lies between each close and the open that counts on the lowest free number; true: it had another. */
static bool misses_lowest_number(void)
{
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC), fd;
	bool missed = false;
	void *p;

	OK(cudaMalloc(&p, MB));
	for (int i = 0; i < 20; i++) {
		clock_t end = clock() + CLOCKS_PER_SEC / 10000;

		close(lowest);
		while (clock() < end)
			;
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		missed |= fd != lowest;
		if (fd != lowest)
			CHECK(dup2(fd, lowest) == lowest && !close(fd));
	}
	OK(cudaFree(p));
	return missed;
}

/* So many children make their first call; the status is how many of them got another number. */
static int lowest_number(int children)
{
	int missed = 0, status;

	for (int i = 0; i < children; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child)
			exit(misses_lowest_number());
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) < 2);
		missed += WEXITSTATUS(status);
	}
	return missed;
}

static void one_call(void)
{
	void *p;

	OK(cudaMalloc(&p, 4096));
	OK(cudaFree(p));
}

static void *make_pairs(void *pairs)
{
	void *p;

	for (intptr_t i = 0; i < (intptr_t)pairs; i++) {
		if (!cudaMalloc(&p, 4096))
			cudaFree(p);
	}
	return NULL;
}

static void *make_threads(void *pairs)
{
	pthread_t thread;

	while (!pthread_create(&thread, NULL, make_pairs, pairs))
		pthread_join(thread, NULL);
	return NULL;
}

/* Ends while threads, two at a time, make so many pairs of calls and end. */
static int ends_amid_threads(int pairs)
{
	pthread_t thread;

	one_call();
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread, NULL, make_threads, (void *)(intptr_t)pairs));
	usleep(50000);
	exit(0);
}

static int stacks_of_each;

static void *make_stacks(void *first)
{
	for (int i = 0; i < stacks_of_each; i++)
		call_by_path((unsigned)(intptr_t)first + (unsigned)i, 60, one_call);
	return NULL;
}

/* Eight threads make calls from so many stacks each, no two alike. */
static int many_stacks(int count)
{
	pthread_t threads[8];

	stacks_of_each = count;
	for (intptr_t i = 0; i < 8; i++)
		CHECK(!pthread_create(&threads[i], NULL, make_stacks, (void *)(i * count)));
	for (int i = 0; i < 8; i++)
		CHECK(!pthread_join(threads[i], NULL));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int number);
	} cases[] = {{"late", late},
		     {"pthread_exit", pthread_exit_in_main},
		     {"small_default_stack", small_default_stack},
		     {"unshare", unshare_user},
		     {"many_threads", many_threads},
		     {"many_stacks", many_stacks},
		     {"exec_fails", exec_fails},
		     {"becomes_nobody", becomes_nobody},
		     {"child_without_files", child_without_files},
		     {"at_start", at_start},
		     {"killed_alone", killed_alone},
		     {"little_address_space", little_address_space},
		     {"read_all_memory", read_all_memory},
		     {"descriptors", descriptors},
		     {"sandbox", sandbox},
		     {"fork", fork_cheaply},
		     {"raw_end", raw_end},
		     {"threads_leave_by_call", threads_leave_by_call},
		     {"cloned", cloned},
		     {"setgid_after_fork", setgid_after_fork},
		     {"initgroups_without_rights", initgroups_without_rights},
		     {"takes_descriptors", takes_descriptors},
		     {"closed_standard", closed_standard},
		     {"lowest_number", lowest_number},
		     {"ends_amid_threads", ends_amid_threads}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			return cases[i].run(argc > 2 ? atoi(argv[2]) : 0);
	return 2;
}
