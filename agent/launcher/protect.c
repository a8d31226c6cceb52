/* SPDX-License-Identifier: MIT */
/*
 * The job of a dry run writes values that it did not compute: its checkpoint must not replace a good one. Its writes go to a layer
 * (overlay.c) where the kernel has one for this user. Landlock refuses the others but for the traces, /dev, /proc and what
 * --allow-writes names. It has no right for a file's mode, owner, times and attributes: calls that change those succeed and do
 * nothing. Caches and temporary files go into a folder of the run's own, and hubs and trackers are told by their own
 * variables to stay offline.
 */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset /* the same on every architecture */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

/* From linux/landlock.h, which on the build machine may be older than the running kernel, or missing. */
enum {
	VERSION = 1, /* flag: ask for the ABI */
	PATH_BENEATH = 1,
	WRITE_FILE = 1 << 1,
	REMOVE = 3 << 4,    /* a folder, a file */
	MAKE = 0x1fc0,	    /* character device, folder, file, socket, FIFO, block device, link */
	REFER = 1 << 13,    /* ABI 2 */
	TRUNCATE = 1 << 14, /* ABI 3 */
};

/* Calls of x86-64, for which the dry libraries are, by their numbers: the C library may be older than the newest of them. */
enum { ARCHITECTURE = 0xc000003e, CALL_TRUNCATE = 76 };
static const unsigned short leave[] = {
	90,  91,  92,  93,  94,	 /* chmod, fchmod, chown, fchown, lchown */
	132, 188, 189, 190,	 /* utime, setxattr, lsetxattr, fsetxattr */
	197, 198, 199,		 /* removexattr, lremovexattr, fremovexattr */
	235, 260, 261, 268, 280, /* utimes, fchownat, futimesat, fchmodat, utimensat */
	452, 463, 466,		 /* fchmodat2, setxattrat, removexattrat */
};

static const struct {
	const char *name, *value;
	bool folder, always; /* below the run's own; whatever the user has set */
} variables[] = {
#define OFFLINE(name, value) {name, value, false, true},
#define STORE(name, folder)  {name, folder, true, true},
#define CACHE(name, folder)  {name, folder, true, false},
#include "dry/environment.def"
#undef OFFLINE
#undef STORE
#undef CACHE
};

static void set_variables(const char *scratch)
{
	char path[4096];

	for (size_t i = 0; i < SL_COUNT(variables); i++) {
		snprintf(path, sizeof(path), "%s/%s", scratch, variables[i].value);
		if (variables[i].folder && !variables[i].always) /* MLflow begins only a store that is not there */
			mkdir(path, 0700);
		setenv(variables[i].name, variables[i].folder ? path : variables[i].value, variables[i].always);
	}
}

static void allow(int rules, const char *path, uint64_t access)
{
	struct {
		uint64_t access;
		int32_t folder;
	} __attribute__((packed)) rule = {access, open(path, O_PATH | O_CLOEXEC)};

	if (rule.folder >= 0)
		syscall(SYS_landlock_add_rule, rules, PATH_BENEATH, &rule, 0);
	close(rule.folder);
}

static bool is_everything(const struct sl_launch *run)
{
	for (size_t i = 0; i < run->writes.count; i++)
		if (!strcmp(run->writes.item[i], "/"))
			return true;
	return false;
}

const char *sl_protect_temporary(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder == '/' ? folder : "/tmp";
}

bool sl_protect_can(const struct sl_launch *run)
{
	return is_everything(run) || syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION) > 0;
}

/* The calls of `leave` do nothing; truncate() by path fails where Landlock does not know of it. */
static bool filter_calls(bool no_truncate)
{
	enum { COUNT = SL_COUNT(leave) };
	struct sock_filter code[COUNT + 7] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)ARCHITECTURE, 0, COUNT + 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, no_truncate ? CALL_TRUNCATE : -1U, COUNT + 2, 0),
	};
	struct sock_fprog program = {SL_COUNT(code), code};

	for (unsigned i = 0; i < COUNT; i++)
		code[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, leave[i], (uint8_t)(COUNT - i), 0);
	code[COUNT + 4] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[COUNT + 5] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO);
	code[COUNT + 6] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES);
	/* without the flag a kernel before 5.16 would slow the job down against speculation */
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
}

bool sl_protect_enter(const struct sl_launch *run, const char *scratch, const char *folder)
{
	static const char *const always[] = {"/dev", "/proc"};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION);
	uint64_t access = WRITE_FILE | REMOVE | MAKE | (abi > 1 ? REFER : 0) | (abi > 2 ? TRUNCATE : 0);
	char traces[4096], places[SL_LAYERS][4096], temporary[4096];
	int rules, laid;

	set_variables(scratch);
	if (is_everything(run))
		return true;
	sl_folder_stem(run, traces, sizeof(traces));
	laid = sl_overlay_enter(run, traces, scratch, folder, places);
	if (laid < 0)
		return false;
	rules = (int)syscall(SYS_landlock_create_ruleset, &access, sizeof(access), 0);
	for (size_t i = 0; i < SL_COUNT(always); i++)
		allow(rules, always[i], access);
	for (size_t i = 0; i < run->writes.count; i++)
		allow(rules, run->writes.item[i], access);
	allow(rules, scratch, access);
	allow(rules, traces, access);
	for (int i = 0; i < laid; i++)
		allow(rules, places[i], access);
	snprintf(temporary, sizeof(temporary), "%s/layers", scratch);
	mkdir(temporary, 0700);
	snprintf(temporary, sizeof(temporary), "%s/layers/" SL_LAYER_TEMPORARY, scratch);
	mkdir(temporary, 0700);
	setenv("TMPDIR", temporary, 1);
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_landlock_restrict_self, rules, 0) && !close(rules) &&
	    filter_calls(abi < 3))
		return true;
	return sl_launcher_fail(false, "the job's files cannot be protected: %s", strerror(errno));
}
