/* SPDX-License-Identifier: MIT */
/* The system calls that no reader of traces needs.  libseccomp would refuse them too but is one more library. */
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyzer/base/confine.h"
#include "common/base.h"

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define CLONE3	   435 /* its flags are in memory, which no filter sees: the C library makes threads by clone instead */

#define X32 0x40000000 /* x86-64's other numbers for the same calls */

#ifdef MACHINE
/* Calls above 423 have one number on all architectures, and headers may be older than the kernel. */
static const unsigned refused[] = {
	SYS_execve,
	SYS_execveat,
	SYS_socket,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_bpf,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_setns,
	SYS_unshare,
	SYS_init_module,
	SYS_kexec_load,
	SYS_finit_module,
	SYS_delete_module,
	SYS_reboot,
	SYS_userfaultfd,
	SYS_perf_event_open,
	SYS_open_by_handle_at,
	SYS_swapon,
	SYS_syslog,
	SYS_truncate, /* Landlock has a right for it from Linux 6.2 on */
	425,
	426,
	427, /* io_uring, whose operations bypass this filter */
	428,
	429,
	430,
	431,
	432,
	433,
	442,			   /* mounts by descriptors */
#if !defined(__SANITIZE_ADDRESS__) /* which looks for leaks by ptrace */
	SYS_ptrace,
#endif
	SYS_process_vm_readv, /* from here on: other processes */
	SYS_process_vm_writev,
	438, /* pidfd_getfd */
	440, /* process_madvise */
	SYS_tkill,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	424, /* pidfd_send_signal */
	SYS_setpriority,
	SYS_sched_setaffinity,
	SYS_sched_setattr,
	SYS_sched_setparam,
	SYS_sched_setscheduler,
	SYS_ioprio_set,
	SYS_migrate_pages,
	SYS_move_pages,
	SYS_shmget, /* what processes share by a number or a name of its own, outside of the file system */
	SYS_shmat,
	SYS_shmctl,
	SYS_semget,
	SYS_semop,
	SYS_semtimedop,
	SYS_semctl,
	SYS_msgget,
	SYS_msgsnd,
	SYS_msgrcv,
	SYS_msgctl,
	SYS_mq_open,
	SYS_mq_unlink,
	SYS_setxattr, /* what Landlock has no right for */
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	SYS_getxattr,
	SYS_lgetxattr,
	SYS_fgetxattr,
	SYS_listxattr,
	SYS_llistxattr,
	SYS_flistxattr,
	463, /* setxattrat, getxattrat, listxattrat, removexattrat */
	464,
	465,
	466,
	468, /* file_getattr, file_setattr */
	469,
	SYS_inotify_add_watch, /* names in folders that may not be listed */
	SYS_fanotify_init,
	SYS_name_to_handle_at,
	SYS_fchmod,
	SYS_fchmodat,
	452, /* fchmodat2 */
	SYS_fchown,
	SYS_fchownat,
	437, /* openat2, whose mode is in memory */
	SYS_mknodat,
#ifdef SYS_chmod
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_mknod,
#endif
};
static const unsigned accepting[] = {SYS_accept, SYS_accept4};

#define AS_ANOTHER (S_ISUID | S_ISGID)

/*
 * O_TRUNC also empties a file that is opened to be read, or for neither (O_ACCMODE).  Before Linux 6.2 Landlock asks no right of
 * these.
 */
#define OPENED_AS (O_ACCMODE | O_TRUNC)

/* Calls of which an argument decides. The kernel reads these arguments as 32 bits, and so does the filter. */
static const struct limit {
	unsigned call, argument;
	enum { UNLESS, UNLESS_SELF, UNLESS_ANY, IF, IF_ANY } refuse; /* it is `value`, or this process, or has one of its bits */
	unsigned value;
	unsigned command; /* it is so only where the second argument is this; 0: always */
	unsigned of;	  /* only these bits of the argument count; 0: all of them */
} limits[] = {
	{SYS_kill, 0, UNLESS_SELF},
	{SYS_tgkill, 0, UNLESS_SELF}, /* raise() and abort() */
	{SYS_prlimit64, 0, UNLESS, 0},
	{SYS_fcntl, 1, IF, F_SETOWN}, /* signals by a descriptor */
	{SYS_fcntl, 1, IF, F_SETOWN_EX},
	{SYS_fcntl, 1, IF, F_SETSIG},
	{SYS_fcntl, 2, IF_ANY, O_ASYNC, F_SETFL},
	{SYS_fcntl, 1, IF, F_SETLEASE},
	{SYS_fcntl, 1, IF, F_NOTIFY},
	{SYS_openat, 3, IF_ANY, AS_ANOTHER},
	{SYS_mkdirat, 2, IF_ANY, AS_ANOTHER},
	{SYS_openat, 2, IF, O_TRUNC, 0, OPENED_AS},
	{SYS_openat, 2, IF, OPENED_AS, 0, OPENED_AS},
#ifdef SYS_open
	{SYS_open, 1, IF, O_TRUNC, 0, OPENED_AS},
	{SYS_open, 1, IF, OPENED_AS, 0, OPENED_AS},
	{SYS_open, 2, IF_ANY, AS_ANOTHER},
	{SYS_creat, 1, IF_ANY, AS_ANOTHER},
	{SYS_mkdir, 1, IF_ANY, AS_ANOTHER},
#endif
};

/*
 * What may be asked of devices and files by ioctl: others type what the user's shell reads next, signal its group, or change
 * flags and volumes of file systems, by descriptors opened for reading.  A screen sets the modes of its terminal.
 */
static const unsigned asked[] = {TCSETS, TCSETSW, TCSETSF,    TCSETS2,	TCSETSW2, TCSETSF2,
				 TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO};
#define OF_SCREENS 6 /* of these, the first */

/* What outlives a verb could alter what it wrote.  The last of these holds also where processes may be made. */
static const struct limit forks[] = {
#if !defined(__SANITIZE_ADDRESS__) /* which looks for leaks in a process of its own */
	{SYS_clone, 0, UNLESS_ANY, CLONE_THREAD},
#endif
#ifdef SYS_fork
	{SYS_fork, 0, UNLESS_ANY, 0},
	{SYS_vfork, 0, UNLESS_ANY, 0},
#endif
	{SYS_clone, 0, IF_ANY, NAMESPACES},
};

#define STEP(code, at, true, false) ((struct sock_filter)BPF_JUMP(code, at, true, false))
#define LOAD(member)		    STEP(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, member)), 0, 0)
#define EQUALS			    (BPF_JMP | BPF_JEQ | BPF_K)
#define HAS			    (BPF_JMP | BPF_JSET | BPF_K)
#define REFUSAL			    STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES, 0, 0)
#endif

#ifdef MACHINE
static unsigned short refuse(struct sock_filter *filter, unsigned short n, const unsigned *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		filter[n++] = STEP(EQUALS, calls[i], 0, 1);
		filter[n++] = REFUSAL;
	}
	return n;
}

static unsigned short refuse_but_asked(struct sock_filter *filter, unsigned short n, size_t from)
{
	filter[n++] = STEP(EQUALS, SYS_ioctl, 0, (unsigned char)(SL_COUNT(asked) - from + 2));
	filter[n++] = LOAD(args[1]);
	for (size_t i = from; i < SL_COUNT(asked); i++)
		filter[n++] = STEP(EQUALS, asked[i], (unsigned char)(SL_COUNT(asked) - i), 0);
	filter[n++] = REFUSAL;
	filter[n++] = LOAD(nr);
	return n;
}

static unsigned short refuse_by_argument(struct sock_filter *filter, unsigned short n, const struct limit *limit)
{
	bool has = limit->refuse == IF_ANY || limit->refuse == UNLESS_ANY;

	filter[n++] = STEP(EQUALS, limit->call, 0, limit->command ? 7 : 5);
	if (limit->command) {
		filter[n++] = LOAD(args[1]);
		filter[n++] = STEP(EQUALS, limit->command, 0, 4);
	}
	filter[n++] = LOAD(args[limit->argument]);
	filter[n++] = STEP(BPF_ALU | BPF_AND | BPF_K, limit->of ? limit->of : UINT32_MAX, 0, 0);
	filter[n++] = STEP(has ? HAS : EQUALS, limit->refuse == UNLESS_SELF ? (unsigned)getpid() : limit->value, limit->refuse < IF,
			   limit->refuse >= IF);
	filter[n++] = REFUSAL;
	filter[n++] = LOAD(nr);
	return n;
}
#endif

void sl_confine_calls(enum sl_confine_but but)
{
#ifdef MACHINE
	struct sock_filter filter[2 * (SL_COUNT(refused) + SL_COUNT(accepting)) + 8 * (SL_COUNT(limits) + SL_COUNT(forks)) +
				  SL_COUNT(asked) + 13];
	struct sock_fprog program = {.filter = filter};
	unsigned short n = 0;

	filter[n++] = LOAD(arch);
	filter[n++] = STEP(EQUALS, MACHINE, 1, 0);
	filter[n++] = REFUSAL;
	filter[n++] = LOAD(nr);
	filter[n++] = STEP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	filter[n++] = REFUSAL;
	n = refuse(filter, n, refused, SL_COUNT(refused));
	if (but != SL_CONFINE_BUT_ACCEPT)
		n = refuse(filter, n, accepting, SL_COUNT(accepting));
	n = refuse_but_asked(filter, n, but == SL_CONFINE_BUT_FORK ? 0 : OF_SCREENS);
	for (size_t i = 0; i < SL_COUNT(limits); i++)
		n = refuse_by_argument(filter, n, &limits[i]);
	for (size_t i = but == SL_CONFINE_BUT_FORK ? SL_COUNT(forks) - 1 : 0; i < SL_COUNT(forks); i++)
		n = refuse_by_argument(filter, n, &forks[i]);
	filter[n++] = STEP(EQUALS, CLONE3, 0, 1);
	filter[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
	filter[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	program.len = n;
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
#else
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
}
