/* SPDX-License-Identifier: MIT */
#include "analyzer/base/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/map.h"
#include "analyzer/base/paths.h"
#include "common/base.h"
#include "common/tracefile.h"

#ifndef SYS_landlock_create_ruleset /* the same on every architecture */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

/* From linux/landlock.h, which on the build machine may be older than the running kernel, or missing. */
enum {
	VERSION = 1, /* flag: ask for the ABI */
	PATH_BENEATH = 1,
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_FOLDER = 1 << 3,
	REMOVE_FOLDER = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE = 0x1fc0,	    /* character device, folder, file, socket, FIFO, block device, link */
	REFER = 1 << 13,    /* ABI 2 */
	TRUNCATE = 1 << 14, /* ABI 3 */
	OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE,
	TCP = 3,     /* ABI 4: bind, connect */
	OUTSIDE = 3, /* ABI 6: abstract sockets, signals */
};

struct ruleset {
	uint64_t files, network, scopes; /* older kernels know the first word or two */
};

struct rule {
	uint64_t access;
	int32_t folder;
} __attribute__((packed));

struct rules {
	int fd;
	int short_of; /* EMFILE, ENFILE: a rule is missing for want of descriptors; 0: none is */
};

static void note_shortage(struct rules *rules)
{
	if (errno == EMFILE || errno == ENFILE)
		rules->short_of = errno;
}

/* Files that libc, the linker, fonts and the time zone need, and /proc, to see whether a recorded process still runs. */
static const char *const of_the_system[] = {
	"/usr/lib",
	"/usr/lib64",
	"/usr/lib32",
	"/usr/local/lib",
	"/lib",
	"/lib64",
	"/usr/share",
	"/usr/local/share",
	"/etc/fonts",
	"/etc/localtime",
	"/etc/ld.so.cache",
	"/var/cache/fontconfig",
	"/nix/store",
	"/proc",
	"/sys/devices/system/cpu",
	"/dev/null",
	"/dev/zero",
};

static void allow(struct rules *rules, const char *path, uint64_t access)
{
	struct rule rule = {access, open(path, O_PATH | O_CLOEXEC)};
	struct stat st;

	if (rule.folder < 0) {
		note_shortage(rules);
		return;
	}
	if (!fstat(rule.folder, &st) && !S_ISDIR(st.st_mode))
		rule.access &= OF_FILES;
	syscall(SYS_landlock_add_rule, rules->fd, PATH_BENEATH, &rule, 0);
	close(rule.folder);
}

/* The nearest existing folder above a path: missing folders are made below it. */
static void allow_parent(struct rules *rules, const char *path, uint64_t access)
{
	char copy[PATH_MAX], *at = copy;
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	do
		at = dirname(at);
	while (stat(at, &st) && strcmp(at, "/") && strcmp(at, "."));
	allow(rules, at, access);
}

#define LINKS_DEEP 4 /* as deep as folders are searched for traces */

static bool is_trace(const char *path)
{
	return sl_paths_ends(path, SL_TRACE_SUFFIX) || sl_paths_ends(path, SL_RING_SUFFIX) || sl_paths_ends(path, ".summary") ||
	       sl_paths_ends(path, SL_PACK_SUFFIX);
}

struct links {
	struct rules *rules;
	/* folders visited, by "device:number" and how each was reached, with the depth searched: ends circles of links */
	struct sl_map met;
	uint64_t looked_at; /* files seen so far, limited as in a search for traces */
};

static bool is_searched(struct links *links, const char *folder, bool linked, unsigned depth)
{
	char identity[64];
	uintptr_t *searched;
	struct stat st;

	if (stat(folder, &st))
		return true;
	snprintf(identity, sizeof(identity), "%llx:%llx%s", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		 linked ? " linked" : "");
	searched = sl_map_at(&links->met, identity);
	if (*searched >= depth)
		return true;
	*searched = depth;
	return false;
}

/*
 * Links in a folder of traces may lead to traces elsewhere, and each such file is allowed by itself; a hostile link to a
 * private key or a home folder makes nothing readable.  linked: the folder itself was reached through a link; its names may be
 * listed if it contains a trace.
 */
static void allow_links(struct links *links, const char *folder, bool linked, unsigned depth)
{
	struct statfs of;
	/* links of /proc lead to where processes are, which are no traces */
	bool searched = is_searched(links, folder, linked, depth) || (!statfs(folder, &of) && of.f_type == PROC_SUPER_MAGIC);
	DIR *dir = searched ? NULL : opendir(folder);

	if (!dir && !searched)
		note_shortage(links->rules);
	for (struct dirent *entry; dir && (entry = readdir(dir)) && links->looked_at++ < sl_budget_files();) {
		char path[PATH_MAX], real[PATH_MAX];
		bool link = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN || linked;
		struct stat st;

		if (entry->d_name[0] == '.' || (!link && entry->d_type != DT_DIR) ||
		    /* a file that is not a link is recognized by its name */
		    (entry->d_type == DT_REG && !is_trace(entry->d_name)) ||
		    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path))
			continue;
		if (!link) {
			allow_links(links, path, false, depth - 1);
		} else if (realpath(path, real) && !stat(real, &st)) {
			if (S_ISDIR(st.st_mode)) {
				allow_links(links, real, true, depth - 1);
			} else if (is_trace(real)) {
				allow(links->rules, real, READ_FILE);
				if (linked)
					allow(links->rules, folder, READ_FOLDER);
			}
		}
	}
	if (dir)
		closedir(dir);
}

static void allow_reading(struct rules *rules, const char *const *reads)
{
	struct links links = {.rules = rules};

	for (size_t i = 0; i < SL_COUNT(of_the_system); i++)
		allow(rules, of_the_system[i], READ_FILE | READ_FOLDER);
	if (getenv("FONTCONFIG_FILE")) /* set by the wheel and by conda */
		allow(rules, getenv("FONTCONFIG_FILE"), READ_FILE);
	for (; *reads; reads++) {
		struct stat st;

		allow(rules, *reads, READ_FILE | READ_FOLDER);
		if (!stat(*reads, &st) && S_ISDIR(st.st_mode))
			allow_links(&links, *reads, false, LINKS_DEEP);
		else /* its ring and its later files lie beside it */
			allow_parent(rules, *reads, READ_FOLDER);
	}
	sl_map_free(&links.met);
}

/* Root looks into other processes by a capability, which Landlock does not restrict; for files it keeps its rights. */
static void drop_capabilities(void)
{
	const uint32_t kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER;
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data))
		return;
	data[0] = (struct __user_cap_data_struct){data[0].effective & kept, data[0].permitted & kept, 0};
	data[1] = (struct __user_cap_data_struct){0};
	syscall(SYS_capset, &head, data);
}

bool sl_confine(const char *const *reads, const char *const *writes, enum sl_confine_but but)
{
	const char *temporary = getenv("TMPDIR");
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION);
	struct rules rules = {0};
	uint64_t writing = WRITE_FILE | REMOVE_FOLDER | REMOVE_FILE | MAKE | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0);
	uint64_t reading = reads ? READ_FILE | READ_FOLDER : 0;
	struct ruleset set = {writing | reading | EXECUTE, TCP, OUTSIDE};
	size_t known = abi >= 6 ? sizeof(set) : abi >= 4 ? offsetof(struct ruleset, scopes) : sizeof(set.files);

	sl_confine_calls(but);
	drop_capabilities();
	errno = ENOSYS;
	if (abi < 1)
		return false;
	rules.fd = (int)syscall(SYS_landlock_create_ruleset, &set, known, 0);
	if (rules.fd < 0)
		return false;
	allow(&rules, "/dev/null", WRITE_FILE);
	allow(&rules, temporary && *temporary ? temporary : "/tmp", writing | reading);
	for (; *writes; writes++)
		allow_parent(&rules, *writes, writing | (reading & READ_FOLDER));
	if (reads)
		allow_reading(&rules, reads);
	bool fine = !syscall(SYS_landlock_restrict_self, rules.fd, 0) && !rules.short_of;

	close(rules.fd);
	errno = rules.short_of ? rules.short_of : errno;
	return fine;
}
