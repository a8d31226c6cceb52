/* SPDX-License-Identifier: MIT */
/* libseccomp would make the filter too but is one more library. */
#include "analyzer/base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"

/* ---- Landlock.  Numbers from linux/landlock.h, which on the build machine may be older than the running kernel, or missing. */

enum {
	CREATE_RULESET = 444, /* system calls, the same on every architecture */
	ADD_RULE,
	RESTRICT_SELF,
	VERSION = 1, /* flag: ask for the ABI */
	PATH_BENEATH = 1,
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_FOLDER = 1 << 3,
	WRITING = WRITE_FILE | 0x1ff0, /* removing; making files, folders, sockets, devices and links */
	REFER = 1 << 13,	       /* ABI 2 */
	TRUNCATE = 1 << 14,	       /* ABI 3 */
	OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE,
};

struct rule {
	uint64_t access;
	int32_t folder;
} __attribute__((packed));

/* False: no descriptor is left. */
static bool allow(int rules, const char *path, uint64_t access)
{
	struct rule rule = {access, open(path, O_PATH | O_CLOEXEC)};
	struct stat st;

	if (rule.folder < 0)
		return errno != EMFILE && errno != ENFILE;
	if (!fstat(rule.folder, &st) && !S_ISDIR(st.st_mode))
		rule.access &= OF_FILES;
	syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
	close(rule.folder);
	return true;
}

/* The nearest existing folder above a path: missing folders are made below it. */
static bool allow_parent(int rules, const char *path, uint64_t access)
{
	char copy[PATH_MAX], *at = copy;
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	do
		at = dirname(at);
	while (stat(at, &st) && strcmp(at, "/") && strcmp(at, "."));
	return allow(rules, at, access);
}

static void confine_files(const char *const *reads, const char *const *writes)
{
	const char *temporary = getenv("TMPDIR");
	int abi = (int)syscall(CREATE_RULESET, NULL, 0, VERSION), rules;
	uint64_t writing = WRITING | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0);
	uint64_t reading = reads ? READ_FILE | READ_FOLDER : 0, all = EXECUTE | writing | reading;
	bool fine;

	rules = abi < 1 ? -1 : (int)syscall(CREATE_RULESET, &all, sizeof(all), 0);
	if (rules < 0)
		return;
	fine = allow(rules, "/dev/null", WRITE_FILE) &&
	       allow(rules, temporary && *temporary ? temporary : "/tmp", writing | reading);
	for (; fine && *writes; writes++)
		fine = allow_parent(rules, *writes, writing | reading);
	for (; fine && reads && *reads; reads++)
		fine = allow(rules, *reads, reading);
	if (fine)
		syscall(RESTRICT_SELF, rules, 0);
	close(rules);
}

/* Root looks into other processes by a capability, which Landlock does not restrict; for files it keeps its rights. */
static void drop_capabilities(void)
{
	const uint32_t capabilities = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER;
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data))
		return;
	data[0] = (struct __user_cap_data_struct){data[0].effective & capabilities, data[0].permitted & capabilities, 0};
	data[1] = (struct __user_cap_data_struct){0};
	syscall(SYS_capset, &head, data);
}

/* ---- seccomp */

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef MACHINE
#define X32    0x40000000 /* x86-64's other numbers for the same calls */
#define CLONE3 435	  /* its flags are in memory, which no filter sees: the C library makes threads by clone instead */

/* A call is refused always, or where bits of an argument have this value, or another, or are not this process's id. */
static const struct refusal {
	unsigned call;
	enum { ALWAYS, IF, UNLESS, UNLESS_SELF } when;
	unsigned argument, bits, value; /* the kernel reads these arguments as 32 bits, and so does the filter */
} refused[] = {
	{SYS_execve},
	{SYS_execveat},
	{SYS_socket},
	{SYS_connect},
	{SYS_bind},
	{425}, /* io_uring, whose operations bypass this filter; calls above 423 have one number on all architectures */
	{426},
	{427},
	{SYS_bpf},
	{SYS_keyctl},
	{SYS_add_key},
	{SYS_request_key},
	{SYS_perf_event_open},
	{SYS_userfaultfd},
	{SYS_kill, UNLESS_SELF, 0, UINT32_MAX},
	{SYS_tgkill, UNLESS_SELF, 0, UINT32_MAX}, /* raise() and abort() */
	{SYS_tkill},
	{SYS_rt_sigqueueinfo},
	{SYS_rt_tgsigqueueinfo},
	{424}, /* pidfd_send_signal */
	{SYS_process_vm_readv},
	{SYS_process_vm_writev},
	{438},					 /* pidfd_getfd */
	{SYS_ioctl, IF, 1, UINT32_MAX, TIOCSTI}, /* types what the user's shell reads next */
	{SYS_ioctl, IF, 1, UINT32_MAX, TIOCLINUX},
	{SYS_truncate}, /* from here on: calls for which Landlock has no right, or not before Linux 6.2 */
	{SYS_openat, IF, 2, O_ACCMODE | O_TRUNC, O_TRUNC},
	{SYS_openat, IF, 2, O_ACCMODE | O_TRUNC, O_ACCMODE | O_TRUNC},
	{437}, /* openat2, whose flags are in memory */
	{SYS_setxattr},
	{SYS_lsetxattr},
	{SYS_fsetxattr},
	{463}, /* setxattrat */
	{SYS_removexattr},
	{SYS_lremovexattr},
	{SYS_fremovexattr},
	{466}, /* removexattrat */
	{SYS_fchmod},
	{SYS_fchmodat},
	{452}, /* fchmodat2 */
	{SYS_fchown},
	{SYS_fchownat},
#ifdef SYS_open
	{SYS_open, IF, 1, O_ACCMODE | O_TRUNC, O_TRUNC},
	{SYS_open, IF, 1, O_ACCMODE | O_TRUNC, O_ACCMODE | O_TRUNC},
	{SYS_chmod},
	{SYS_chown},
	{SYS_lchown},
#endif
#if !defined(__SANITIZE_ADDRESS__) /* it looks for leaks by ptrace, in a process of its own */
	{SYS_ptrace},
	{SYS_clone, UNLESS, 0, CLONE_THREAD, CLONE_THREAD},
#endif
#ifdef SYS_fork
	{SYS_fork},
	{SYS_vfork},
#endif
};

static bool is_fork(const struct refusal *refusal)
{
#ifdef SYS_fork
	if (refusal->call == SYS_fork || refusal->call == SYS_vfork)
		return true;
#endif
	return refusal->call == SYS_clone;
}

#define STEP(code, at, true, false) ((struct sock_filter)BPF_JUMP(code, at, true, false))
#define LOAD(member)		    STEP(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, member)), 0, 0)
#define EQUALS			    (BPF_JMP | BPF_JEQ | BPF_K)
#define RETURN(what)		    STEP(BPF_RET | BPF_K, what, 0, 0)
#define REFUSAL			    RETURN(SECCOMP_RET_ERRNO | EACCES)
#define STEPS_EACH		    6

static unsigned short refuse(struct sock_filter *filter, unsigned short n, const struct refusal *refusal)
{
	bool unless = refusal->when >= UNLESS;

	filter[n++] = STEP(EQUALS, refusal->call, 0, refusal->when ? STEPS_EACH - 1 : 1);
	if (refusal->when) {
		filter[n++] = LOAD(args[refusal->argument]);
		filter[n++] = STEP(BPF_ALU | BPF_AND | BPF_K, refusal->bits, 0, 0);
		filter[n++] =
			STEP(EQUALS, refusal->when == UNLESS_SELF ? (unsigned)getpid() : refusal->value, unless ? 1 : 0, !unless);
	}
	filter[n++] = REFUSAL;
	if (refusal->when)
		filter[n++] = LOAD(nr);
	return n;
}
#endif

static void confine_calls(unsigned but)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return;
#ifdef MACHINE
	struct sock_filter filter[STEPS_EACH * SL_COUNT(refused) + 9];
	struct sock_fprog program = {.filter = filter};
	unsigned short n = 0;

	filter[n++] = LOAD(arch);
	filter[n++] = STEP(EQUALS, MACHINE, 1, 0);
	filter[n++] = REFUSAL;
	filter[n++] = LOAD(nr);
	filter[n++] = STEP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	filter[n++] = REFUSAL;
	for (size_t i = 0; i < SL_COUNT(refused); i++)
		if (!(but & SL_SANDBOX_FORK && is_fork(&refused[i])))
			n = refuse(filter, n, &refused[i]);
	filter[n++] = STEP(EQUALS, CLONE3, 0, 1);
	filter[n++] = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	filter[n++] = RETURN(SECCOMP_RET_ALLOW);
	program.len = n;
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
#endif
}

void sl_sandbox(const char *const *reads, const char *const *writes, unsigned but)
{
	confine_calls(but);
	if (but & SL_SANDBOX_PROCESSES)
		return;
	drop_capabilities();
	confine_files(reads, writes);
}
