/* SPDX-License-Identifier: MIT */
/*
 * Stands for code that a hostile file made the analyzer run: preloaded, it takes over when the first byte is unpacked or read, and tries
 * to get out of the sandbox.  It prints a line to standard error for each way that worked, and "probe: done" at the end.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

static void way(const char *name, bool worked)
{
	if (worked)
		dprintf(2, "probe: broke out by %s\n", name);
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

static bool reads(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;
	bool got = fd >= 0 && read(fd, &byte, 1) == 1;

	if (fd >= 0)
		close(fd);
	return got;
}

static bool lists(const char *path)
{
	DIR *dir = opendir(path);

	if (dir)
		closedir(dir);
	return dir;
}

static bool runs(void)
{
	char *const argv[] = {(char *)"/bin/true", NULL};
	pid_t child;

	return !posix_spawn(&child, argv[0], NULL, NULL, argv, environ);
}

static bool connects(int family, int type)
{
	int fd = socket(family, type, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void probe(void);
void probe(void)
{
	static pid_t done;			     /* it runs once in each process */
	const char *other = getenv("PROBE_PROCESS"); /* default: the parent */
	int process = other ? atoi(other) : (int)getppid();
	char path[64];

	if (done == getpid() || !getenv("PROBE_FOLDER"))
		return;
	done = getpid();
	way("reading a file", opens(at("secret"), O_RDONLY));
	way("reading /etc/passwd", opens("/etc/passwd", O_RDONLY));
	way("listing a folder", lists(at(".")));
	way("writing a file", opens(at("secret"), O_WRONLY));
	way("making a file", opens(at("new"), O_WRONLY | O_CREAT));
	way("truncating", !truncate(at("secret"), 0));
	way("making a folder", !mkdir(at("folder"), 0700));
	way("a link", !symlink("secret", at("link")));
	way("renaming", !rename(at("secret"), at("gone")));
	way("removing", !unlink(at("secret")));
	way("execution", runs());
	way("TCP", connects(AF_INET, SOCK_STREAM));
	way("UDP", connects(AF_INET, SOCK_DGRAM));
	way("IPv6", connects(AF_INET6, SOCK_DGRAM));
	way("a local socket", connects(AF_UNIX, SOCK_STREAM));
	way("netlink", connects(AF_NETLINK, SOCK_RAW));
	snprintf(path, sizeof(path), "/proc/%d/mem", process);
	way("another process's memory", opens(path, O_RDWR));
	snprintf(path, sizeof(path), "/proc/%d/environ", process);
	way("another process's environment", reads(path));
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
