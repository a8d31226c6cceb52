/* SPDX-License-Identifier: MIT */
/*
 * stormlog-analyze collect DIR: runs on the node where the job ran.  Where DIR is on a network file system or on btrfs
 * (agent/process/netfs.c), the rings of its traces are in this node's memory (SL_REMOTE_RING). Rings of dead processes are moved
 * next to their traces.  A ring without a trace is removed where the files had all that is in it; else it is kept, for the trace
 * may come back.  A living process is never touched.  With -o the traces of this node's processes that have ended become one file,
 * so that a job of thousands of ranks leaves one file for each node on the shared file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"

struct settings {
	const char *output; /* NULL: no pack */
	bool clear, json;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--output", 'o', "FILE",
	 "the traces of this node's ended processes, as one file (as pack makes it); %h in its name is the host",
	 SL_TO_TEXT(output)},
	{"--clear", 0, NULL, "remove what is left of processes whose traces are gone", SL_TO_FLAG(clear)},
	{"--json", 0, NULL, "the counts as one JSON object (schemas/done.schema.json)", SL_TO_FLAG(json)},
	{0},
};

struct collection {
	char home[PATH_MAX]; /* DIR, as realpath() gives it */
	bool clear;
	unsigned brought, cleared, without_trace, running, failed, packed;
};

/* Copies the first `size` bytes; holes stay holes. */
static bool copy(int from, FILE *to, off_t size)
{
	static char bytes[1 << 20];
	off_t at = 0, hole;
	ssize_t n;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0 && at < size) {
		hole = lseek(from, at, SEEK_HOLE);
		hole = hole > at && hole < size ? hole : size;
		n = pread(from, bytes, hole - at < (off_t)sizeof(bytes) ? (size_t)(hole - at) : sizeof(bytes), at);
		if (n <= 0 || fseeko(to, at, SEEK_SET) || fwrite(bytes, 1, (size_t)n, to) != (size_t)n)
			return false;
		at += n;
	}
	return (at >= 0 || errno == ENXIO) && !fflush(to) && !ftruncate(fileno(to), size) &&
	       !fsync(fileno(to)); /* ENXIO: its end */
}

#define MOST (off_t) SL_RINGFILE_MOST /* what is behind is nobody's: a ring may be as large as its owner likes */

/* Copies the ring beside the trace.  False: errno. */
static bool copy_home(const char *ring, const char *home)
{
	int from = open(ring, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	mode_t before = umask(077);
	bool fine = false;
	struct sl_save save;
	struct stat st;

	if (!lstat(home, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		errno = EEXIST; /* a pipe would be written to */
	else if (from >= 0 && !fstat(from, &st) && sl_save_begin(&save, home, false))
		fine = sl_save_end(&save, copy(from, save.out, st.st_size < MOST ? st.st_size : MOST));
	if (from >= 0)
		close(from);
	umask(before);
	return fine;
}

/* The ring in memory goes when the whole of it is beside the trace. */
static void bring(struct collection *collection, const char *ring, const char *trace)
{
	char home[PATH_MAX];

	snprintf(home, sizeof(home), "%.*s%s", (int)(strlen(trace) - strlen(SL_TRACE_SUFFIX)), trace, SL_RING_SUFFIX);
	if (!copy_home(ring, home)) {
		sl_escape_print(stderr, "stormlog-analyze: %s could not be brought to %s: %s\n", ring, home, strerror(errno));
		collection->failed++;
		return;
	}
	unlink(ring);
	collection->brought++;
}

/* True: the trace's real folder is DIR or is below it. */
static bool is_in(const struct collection *collection, const char *trace)
{
	char folder[PATH_MAX], real[PATH_MAX];
	size_t size = strlen(collection->home);

	snprintf(folder, sizeof(folder), "%s", trace);
	return realpath(dirname(folder), real) && !strncmp(real, collection->home, size) && (!real[size] || real[size] == '/');
}

/* Everybody may write to /dev/shm: a ring must have its trace's owner or, without a trace, this user or DIR's owner as owner. */
static bool may_take(const struct collection *collection, const struct stat *ring, const char *trace)
{
	struct stat st;

	if (!lstat(trace, &st))
		return S_ISREG(st.st_mode) && st.st_uid == ring->st_uid;
	return errno == ENOENT && (ring->st_uid == geteuid() || (!stat(collection->home, &st) && st.st_uid == ring->st_uid));
}

/* The trace is gone, perhaps only moved: the ring alone has the last events, and says that the process was killed. */
static void clear(struct collection *collection, const char *ring, const char *trace)
{
	if (collection->clear) {
		collection->cleared += !unlink(ring);
		return;
	}
	sl_escape_print(
		stderr,
		"stormlog-analyze: %s is kept: its trace %s is not there; move the trace back and collect again, or remove it "
		"with --clear\n",
		ring, trace);
	collection->without_trace++;
}

static void look_at(struct collection *collection, const char *path)
{
	struct stat st;
	struct sl_damage damage = {0};
	char trace[sizeof(((struct sl_ringfile *)0)->trace) + 1] = "";
	struct sl_recovered_ring ring;
	size_t size;

	if (lstat(path, &st) || !S_ISREG(st.st_mode) || !sl_ring_open(&ring, path, st.st_uid, &damage)) {
		sl_damage_free(&damage);
		return;
	}
	memcpy(trace, ring.head->trace, sizeof(trace) - 1);
	size = strlen(trace);
	/* a name that fills its field may be cut off */
	if (size > strlen(SL_TRACE_SUFFIX) && size < sizeof(trace) - 2 && is_in(collection, trace) &&
	    may_take(collection, &st, trace)) {
		if (ring.alive)
			collection->running++;
		else if (!access(trace, F_OK))
			bring(collection, path, trace);
		else if (errno == ENOENT)
			clear(collection, path, trace);
	}
	sl_ring_free(&ring);
	sl_damage_free(&damage);
}

/* True: the trace's header names another node.  A trace without a header is taken. */
static bool is_of_another_node(const struct sl_image *image)
{
	struct sl_header header = {0};
	struct utsname host;
	bool another = sl_image_header(image, &header) && header.host && !uname(&host) && strcmp(header.host, host.nodename);

	sl_header_free(&header);
	return another;
}

static void keep_what_is_packed(struct sl_images *images)
{
	unsigned kept_count = 0;

	for (unsigned i = 0; i < images->image_count; i++)
		if (images->images[i].summary || is_of_another_node(&images->images[i]) || sl_image_lives(&images->images[i])) {
			sl_images_drop(&images->images[i]);
		} else {
			images->run_of[kept_count] = images->run_of[i];
			images->images[kept_count++] = images->images[i];
		}
	images->image_count = kept_count;
}

static int pack(struct collection *collection, char **paths, const char *output)
{
	struct sl_images images = {0};
	struct sl_archived packed;
	int status = sl_native_images(&images, paths);

	if (status < 0) {
		keep_what_is_packed(&images);
		status = images.image_count ? sl_native_pack(&images, -1, output, NULL, &packed) : SL_EXIT_FINE;
		collection->packed = status == SL_EXIT_FINE ? images.image_count : 0;
		if (collection->packed)
			status = sl_native_left_out(&images, &packed, output);
	}
	sl_images_free(&images);
	return status;
}

/* Without a pack only names are looked at: a trace behind a folder that may not be listed is not found by its ring either. */
static int look_behind(const char *path)
{
	struct sl_images images = {.packs_apart = true};
	int status = SL_EXIT_FINE;

	sl_images_add(&images, path);
	if (images.closed.count) {
		sl_damage_print(&images.copies);
		status = sl_command_fail(
			SL_EXIT_UNREADABLE,
			"a folder cannot be listed, so rings of its traces stay in /dev/shm: run collect as its owner");
	}
	sl_images_free(&images);
	return status;
}

static void tell_json(const struct collection *collection, const char *output)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.collect", 1);
	sl_json_string(j, "folder", collection->home);
	sl_json_uint(j, "brought", collection->brought);
	sl_json_uint(j, "cleared", collection->cleared);
	sl_json_uint(j, "kept", collection->without_trace);
	sl_json_uint(j, "running", collection->running);
	sl_json_uint(j, "failed", collection->failed);
	sl_json_string(j, "output", collection->packed ? output : NULL);
	sl_json_uint(j, "packed", collection->packed);
	sl_json_finish(j);
}

static void tell(const struct collection *collection, const char *output)
{
	if (collection->brought || collection->cleared || collection->running || collection->without_trace)
		sl_escape_print(stdout, "%u brought home, %u without a trace cleared, %u still running\n", collection->brought,
				collection->cleared, collection->running);
	else
		puts("no ring to collect: every process here ended by itself");
	if (collection->without_trace)
		sl_escape_print(stdout, "%u without a trace kept\n", collection->without_trace);
	if (collection->packed)
		sl_escape_print(stdout, "%u traces in %s\n", collection->packed, output);
	else if (output)
		sl_escape_print(stdout, "no trace of an ended process of this node: %s was not made\n", output);
}

static int collect(char **folder, const struct settings *s, const char *output)
{
	struct collection collection = {.clear = s->clear};
	struct stat st;
	glob_t found;
	int status;

	if (!realpath(*folder, collection.home) || stat(collection.home, &st) || access(collection.home, R_OK)) {
		sl_paths_failed(*folder);
		return SL_EXIT_USAGE;
	}
	if (!S_ISDIR(st.st_mode))
		return sl_command_fail(SL_EXIT_USAGE, "%s is not a folder", *folder);
	if (!glob(SL_REMOTE_RING "/" SL_REMOTE_RING_PREFIX "*" SL_RING_SUFFIX, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			look_at(&collection, found.gl_pathv[i]);
		globfree(&found);
	}
	status = output ? pack(&collection, folder, output) : look_behind(*folder);
	(s->json ? tell_json : tell)(&collection, status == SL_EXIT_FINE || collection.packed ? output : NULL);
	if (status == SL_EXIT_FINE)
		status = collection.failed ? SL_EXIT_UNSAVED : collection.without_trace ? SL_EXIT_UNREADABLE : SL_EXIT_FINE;
	return status;
}

static const char about[] =
	"Run on the node after the job: brings what killed processes left in its memory to their traces in DIR.  With -o it\n"
	"packs the traces into one file: a job whose ranks write to disks of their nodes leaves one file for each node on a\n"
	"shared disk.";

static int run(struct sl_arguments *parsed)
{
	struct settings s = {0};
	char output[PATH_MAX];
	int status = sl_arguments_parse(parsed, NULL, &s);

	if (status < 0 && parsed->path_count > 1)
		status = sl_command_fail(SL_EXIT_USAGE, "collect takes one folder");
	if (status < 0 && s.output &&
	    (sl_shard_is_asked(s.output) || !sl_shard_name(&(struct sl_shard){0}, s.output, output, sizeof(output))))
		status = sl_command_fail(SL_EXIT_USAGE, "in the name, only %%h (the host) and %%%% (a per cent sign) are known");
	if (status < 0) {
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths,
							 .changes = true,
							 .packs = true,
							 .writes = {SL_REMOTE_RING "/.", s.output ? output : NULL}});
		status = collect(parsed->paths, &s, s.output ? output : NULL);
	}
	return status;
}

const struct sl_command sl_command_collect = {
	"collect", "bring home what killed processes left on this node", "collect [options] DIR", about, table, run};
