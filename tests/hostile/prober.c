/* SPDX-License-Identifier: MIT */
/*
 * Stands for code that a hostile file made the analyzer run: preloaded, it takes over when the first byte is unpacked or read, and tries
 * to get out of the sandbox.  It prints a line to standard error for each way that worked, and "probe: done" at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zstd.h>

static void way(const char *name, bool worked)
{
	if (worked)
		dprintf(2, "probe: broke out by %s\n", name);
}

/* The filter of system calls answers before the kernel looks at arguments, so that no terminal and no such file is needed to see it. */
static bool is_let_through(long result)
{
	return result >= 0 || errno != EACCES;
}

static const char *at(const char *name)
{
	static char path[2][4096];
	static unsigned next;

	next = !next;
	snprintf(path[next], sizeof(path[next]), "%s/%s", getenv("PROBE_FOLDER"), name);
	return path[next];
}

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool opens_past_filter(int flags)
{
#ifdef SYS_open
	if (is_let_through(syscall(SYS_open, "", flags, 0)))
		return true;
#endif
	return is_let_through(syscall(SYS_openat, AT_FDCWD, "", flags, 0));
}

static bool runs(void)
{
	char *const argv[] = {NULL};

	return is_let_through(execve("", argv, environ));
}

static bool forks(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	return child > 0;
}

static bool connects(int family, int type)
{
	int fd = socket(family, type, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Signal 0 goes nowhere, and the kernel checks it like any other. */
static void other_processes(pid_t process)
{
	siginfo_t said = {.si_code = SI_QUEUE};
	char byte, path[64];
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)way, 1};

	way("a signal", !kill(process, 0));
	way("a signal to its thread", !syscall(SYS_tgkill, process, process, 0));
	way("a signal to a thread", !syscall(SYS_tkill, process, 0));
	way("a queued signal", !syscall(SYS_rt_sigqueueinfo, process, 0, &said));
	way("a signal to the group", !kill(0, 0));
	way("a signal to all", !kill(-1, 0));
	way("a signal by a descriptor", is_let_through(syscall(424, -1, 0, NULL, 0)));
	way("tracing", is_let_through(ptrace(PTRACE_PEEKDATA, process, NULL, NULL)));
	way("reading another process", is_let_through(process_vm_readv(process, &here, 1, &there, 1, 0)));
	way("writing another process", is_let_through(process_vm_writev(process, &here, 1, &there, 1, 0)));
	snprintf(path, sizeof(path), "/proc/%d/mem", process);
	way("another process's memory", opens(path, O_RDWR));
}

void probe(void);
void probe(void)
{
	static pid_t done;			     /* it runs once in each process */
	const char *other = getenv("PROBE_PROCESS"); /* default: the parent */

	if (done == getpid() || !getenv("PROBE_FOLDER"))
		return;
	done = getpid();
	way("writing a file", opens(at("secret"), O_WRONLY));
	way("making a file", opens(at("new"), O_WRONLY | O_CREAT));
	way("truncating", !truncate(at("secret"), 0));
	way("emptying a file that is read", opens(at("secret"), O_RDONLY | O_TRUNC) || opens(at("secret"), O_ACCMODE | O_TRUNC));
	way("emptying by name, as the filter sees it", is_let_through(truncate("", 0)));
	way("emptying while reading, as the filter sees it",
	    opens_past_filter(O_RDONLY | O_TRUNC) || opens_past_filter(O_ACCMODE | O_TRUNC));
	way("making a folder", !mkdir(at("folder"), 0700));
	way("an attribute", is_let_through(setxattr(at("secret"), "user.stormlog", "x", 1, 0)));
	way("removing an attribute", is_let_through(removexattr(at("secret"), "user.stormlog")));
	way("a mode", !chmod(at("secret"), 0666));
	way("an owner", !chown(at("secret"), (uid_t)-1, (gid_t)-1));
	way("the mode of an open file", is_let_through(fchmod(-1, 04755)));
	way("the owner of an open file", is_let_through(fchown(-1, 0, 0)));
	way("opening with flags in memory", is_let_through(syscall(437, -1, "", NULL, 0)));
	way("a link", !symlink("secret", at("link")));
	way("renaming", !rename(at("secret"), at("gone")));
	way("removing", !unlink(at("secret")));
	way("execution", runs());
	way("a process that stays", forks());
	way("TCP", connects(AF_INET, SOCK_STREAM));
	way("UDP", connects(AF_INET, SOCK_DGRAM));
	way("IPv6", connects(AF_INET6, SOCK_DGRAM));
	way("a local socket", connects(AF_UNIX, SOCK_STREAM));
	way("netlink", connects(AF_NETLINK, SOCK_RAW));
	other_processes(other ? atoi(other) : (int)getppid());
	way("typing into the terminal", is_let_through(ioctl(-1, TIOCSTI, "x")));
	way("typing into the terminal, by a wide request", is_let_through(syscall(SYS_ioctl, -1, TIOCSTI | 1ull << 32, "x")));
	way("pasting into the console", is_let_through(ioctl(-1, TIOCLINUX, "")));
	way("a key", is_let_through(syscall(SYS_add_key, "user", "stormlog", "", 0, 0)));
	way("BPF", is_let_through(syscall(SYS_bpf, -1, NULL, 0)));
	way("counters", is_let_through(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)));
	way("io_uring", is_let_through(syscall(425, 0, NULL)));
	dprintf(2, "probe: done\n");
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

size_t ZSTD_decompressDCtx(ZSTD_DCtx *dctx, void *dst, size_t room, const void *src, size_t size)
{
	probe();
	return NEXT(ZSTD_decompressDCtx)(dctx, dst, room, src, size);
}

size_t ZSTD_decompressStream(ZSTD_DStream *stream, ZSTD_outBuffer *out, ZSTD_inBuffer *in)
{
	probe();
	return NEXT(ZSTD_decompressStream)(stream, out, in);
}

size_t ZSTD_decompress(void *dst, size_t room, const void *src, size_t size)
{
	probe();
	return NEXT(ZSTD_decompress)(dst, room, src, size);
}

FILE *fdopen(int fd, const char *mode)
{
	if (mode[0] == 'r')
		probe();
	return NEXT(fdopen)(fd, mode);
}
