/* SPDX-License-Identifier: MIT */
#include "analyzer/base/confine.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset /* the same on every architecture */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

/* linux/landlock.h, whose copy on the machine that builds may be older than the kernel, or missing. */
enum {
	VERSION = 1, /* flag: ask for the ABI */
	PATH_BENEATH = 1,
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	REMOVE_DIR = 1 << 4,
	MAKE = 0x1fc0, /* character device, folder, file, socket, FIFO, block device, link */
	REMOVE_FILE = 1 << 5,
	REFER = 1 << 13,    /* ABI 2 */
	TRUNCATE = 1 << 14, /* ABI 3 */
	TCP = 3,	    /* ABI 4: bind, connect */
};

struct ruleset {
	uint64_t files, network; /* an older kernel takes the first word alone */
};

struct rule {
	uint64_t access;
	int32_t folder;
} __attribute__((packed));

static void allow(int rules, const char *path, uint64_t access)
{
	struct rule rule = {access, open(path, O_PATH | O_CLOEXEC)};

	if (rule.folder < 0)
		return;
	syscall(SYS_landlock_add_rule, rules, PATH_BENEATH, &rule, 0);
	close(rule.folder);
}

/* The nearest folder above a path that exists: what is missing is made below it. */
static void allow_parent(int rules, const char *path, uint64_t access)
{
	char copy[PATH_MAX], *at = copy;
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	do
		at = dirname(at);
	while (stat(at, &st) && strcmp(at, "/") && strcmp(at, "."));
	allow(rules, at, access);
}

bool sl_confine(const char *const *writes)
{
	const char *temporary = getenv("TMPDIR");
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION), rules;
	uint64_t writing = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0);
	struct ruleset set = {writing | EXECUTE, abi >= 4 ? TCP : 0};

	if (abi < 1)
		return false;
	rules = (int)syscall(SYS_landlock_create_ruleset, &set, abi >= 4 ? sizeof(set) : sizeof(set.files), 0);
	if (rules < 0)
		return false;
	allow(rules, "/dev/null", WRITE_FILE);
	allow(rules, temporary && *temporary ? temporary : "/tmp", writing);
	for (; *writes; writes++)
		allow_parent(rules, *writes, writing);
	bool fine = !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_landlock_restrict_self, rules, 0);

	close(rules);
	return fine;
}
