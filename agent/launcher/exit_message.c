/* SPDX-License-Identifier: MIT */
#include "agent/launcher/launcher.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>

#include "agent/process/process.h"
#include "common/ringfile.h"
#include "common/tracefile.h"

static bool is_of_child(int fd, const char *run_id, pid_t child)
{
	static char header[SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT];
	static struct sl_ringfile head;

	return sl_recorded_names(header, sl_recorded_in_ring(fd, &head, header, sizeof(header)), run_id) &&
	       (child ? head.pid == (uint64_t)child : !kill((pid_t)head.pid, 0));
}

static void tell(const char *path, const char *run_id, pid_t child, int status)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const uint32_t ended = (uint32_t)status + 1;

	if (fd < 0)
		return;
	if (is_of_child(fd, run_id, child) &&
	    pwrite(fd, &ended, sizeof(ended), offsetof(struct sl_ringfile, ended)) != sizeof(ended))
		sl_launcher_say("%s: how the command ended is not written to it", path);
	close(fd);
}

/* The rings whose name contains the process's id. */
static void tell_in(const char *folder, const char *run_id, pid_t child, int status)
{
	char pattern[8192];
	glob_t found;

	snprintf(pattern, sizeof(pattern), child ? "%s*rank-*-%d*" SL_RING_SUFFIX : "%s*rank-*" SL_RING_SUFFIX, folder, (int)child);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		tell(found.gl_pathv[i], run_id, child, status);
	globfree(&found);
}

void sl_exit_message_print(const struct sl_launch *run, pid_t child, int status)
{
	char folder[8192 - 64], run_id[sizeof(run->run_id)];

	strcpy(run_id, run->run_id);
	if (!*run_id)
		sl_identity_run_named(run_id, sizeof(run_id));
	sl_recorded_pattern(run->directory, folder, sizeof(folder) - 1);
	strcat(folder, "/");
	tell_in(folder, run_id, child, status);
	tell_in(SL_REMOTE_RING "/" SL_REMOTE_RING_PREFIX, run_id, child, status);
}
