/* SPDX-License-Identifier: MIT */
#include "agent/launcher/launcher.h"

#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OWN_NAME    "x86-64"
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#define OWN_NAME    "aarch64"
#endif

static char hindrance[4500];

static const char *hinders(const char *format, ...) SL_PRINTF(1, 2);

static const char *hinders(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(hindrance, sizeof(hindrance), format, args);
	va_end(args);
	return hindrance;
}

/* The kernel marks such a program AT_SECURE; the loader then ignores LD_PRELOAD. */
static const char *privileged(const char *path)
{
	struct stat status;
	char capability[64];

	if (stat(path, &status) < 0)
		return NULL;
	if (status.st_mode & S_ISUID && status.st_uid != geteuid())
		return "set-user-id";
	if (status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getegid())
		return "set-group-id";
	if (geteuid() && getxattr(path, "security.capability", capability, sizeof(capability)) > 0)
		return "privileged (file capabilities)";
	return NULL;
}

static const char *elf(const char *path, int fd)
{
	Elf64_Ehdr head;
	char loader[256] = "";

	if (pread(fd, &head, sizeof(head), 0) < (ssize_t)sizeof(head) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_machine != OWN_MACHINE)
		return hinders("%s is not a program for " OWN_NAME ", the agent is: it will not be recorded", path);
	for (unsigned i = 0; i < head.e_phnum && i < 64; i++) {
		Elf64_Phdr part;

		if (pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + i * sizeof(part))) < (ssize_t)sizeof(part))
			break;
		if (part.p_type == PT_INTERP && pread(fd, loader, sizeof(loader) - 1, (off_t)part.p_offset) < 0)
			break;
	}
	if (!*loader)
		return hinders("%s is statically linked: no library can be loaded into it, so it will not be recorded", path);
	if (strstr(loader, "ld-musl"))
		return hinders("%s is built for musl, the agent for glibc: it will not be recorded", path);
	return NULL;
}

/* The program that a #! line names.  /usr/bin/env is looked through, as in "#!/usr/bin/env -S python -u". */
static bool script_program(char *line, char *program, size_t size)
{
	char *save = NULL, *word = strtok_r(line, " \t\n", &save);
	const char *base;

	if (!word)
		return false;
	base = strrchr(word, '/');
	if (strcmp(base ? base + 1 : word, "env")) {
		snprintf(program, size, "%s", word);
		return true;
	}
	while ((word = strtok_r(NULL, " \t\n", &save)))
		if (*word != '-' && !strchr(word, '='))
			return !sl_paths_command(word, program, size);
	return false;
}

static const char *inspect(const char *path, char *interpreter, size_t size, unsigned depth)
{
	char begin[256] = "", program[4096];
	const char *why = privileged(path);
	ssize_t got;
	int fd;

	if (interpreter)
		snprintf(interpreter, size, "%s", path);
	if (why)
		return hinders("%s is %s: the system ignores LD_PRELOAD for it, so it will not be recorded", path, why);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL; /* executable but not readable: exec will say what is wrong */
	got = read(fd, begin, sizeof(begin) - 1);
	if (got > 4 && !memcmp(begin, ELFMAG, SELFMAG))
		why = elf(path, fd);
	close(fd);
	/* The kernel follows four levels of scripts. */
	begin[strcspn(begin, "\n")] = 0;
	if (got > 2 && !memcmp(begin, "#!", 2) && depth < 4 && script_program(begin + 2, program, sizeof(program)))
		return inspect(program, interpreter, size, depth + 1);
	return why;
}

const char *sl_target_hinders(const char *path, char *interpreter, size_t size)
{
	return inspect(path, interpreter, size, 0);
}
