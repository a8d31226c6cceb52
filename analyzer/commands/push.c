/* SPDX-License-Identifier: MIT */
/*
 * stormlog-analyze push PATH... --to URL: sends runs to a stormlog-server.  Packs and logs go as they are, and other paths become
 * packs first.  Another program, which reads no trace, does the sending.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"

static const char about[] =
	"Packs a run where that is not done yet, sends it, and prints where the server shows it.  It goes on where an\nearlier try "
	"stopped.  The token is in STORMLOG_TOKEN, or in the file that STORMLOG_TOKEN_FILE names.";

struct settings {
	const char *to, *run;
	char folder[PATH_MAX];	 /* folder of packs made here; "": none yet */
	SL_VECTOR(char *) packs; /* one for each path */
	size_t first_made;
	bool json;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--to", 0, "URL", "the server (default: STORMLOG_SERVER)", SL_TO_TEXT(to)},
	SL_OPTION_RUN(run),
	{"--json", 0, NULL, "print where each is shown as one JSON object (schemas/done.schema.json)", SL_TO_FLAG(json)},
	{0},
};

static bool is_pack(const char *path)
{
	char magic[sizeof(SL_PACK_MAGIC)];
	FILE *in = sl_paths_open_file(path);
	bool pack = in && fread(magic, 1, sizeof(magic), in) == sizeof(magic) && !memcmp(magic, SL_PACK_MAGIC, sizeof(magic));

	if (in)
		fclose(in);
	return pack;
}

static bool make_folder(struct settings *s)
{
	const char *base = getenv("TMPDIR");

	if (*s->folder)
		return true;
	snprintf(s->folder, sizeof(s->folder), "%s/stormlog-push-XXXXXX", base && *base ? base : "/tmp");
	if (sl_save_make_folder(s->folder))
		return true;
	sl_paths_failed(s->folder);
	*s->folder = 0;
	return false;
}

static int pack(const struct settings *s, char *path, const char *made)
{
	struct sl_images images = {0};
	char *paths[] = {path, NULL};
	int status = sl_native_images(&images, paths), chosen;
	struct sl_archived packed = {.read = 1};
	FILE *out;
	bool fine;

	if (status >= 0)
		return status;
	chosen = sl_images_choose(&images, s->run);
	if (chosen < -1)
		return SL_EXIT_USAGE;
	out = fopen(made, "wxe");
	fine = out && sl_archive_write(out, &images, chosen, NULL, &packed);
	fine = out && !fclose(out) && fine;
	if (!fine)
		sl_paths_failed(made);
	status = !fine ? SL_EXIT_UNSAVED : packed.read ? sl_native_left_out(&images, &packed, path) : SL_EXIT_UNREADABLE;
	if (!fine || !packed.read)
		unlink(made);
	sl_images_free(&images);
	return status;
}

/* Forks a child that ends with its parent, so that a signal to the user's process stops both. */
static pid_t begin_child(void)
{
	pid_t parent = getpid(), child = fork();

	if (!child && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(SL_EXIT_UNSAVED);
	return child;
}

static int end_child(pid_t child)
{
	int status;

	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : SL_EXIT_UNSAVED;
}

/* A process of its own reads the traces, and gives up what packing does not need.  3, with all packs there: one lacks something. */
static int pack_all(const struct settings *s, char **paths)
{
	int status = SL_EXIT_FINE, worst = SL_EXIT_FINE;
	pid_t child = begin_child();

	if (child)
		return end_child(child);
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = paths, .writes = {s->packs.item[s->first_made]}, .packs = true});
	for (size_t i = s->first_made; i < s->packs.count; i++) {
		if (!strcmp(paths[i], s->packs.item[i]))
			continue;
		status = pack(s, paths[i], s->packs.item[i]);
		if (access(s->packs.item[i], F_OK))
			exit(status);
		if (status != SL_EXIT_FINE)
			worst = status;
	}
	exit(worst);
}

static bool all_there(const struct settings *s)
{
	for (size_t i = 0; i < s->packs.count; i++)
		if (access(s->packs.item[i], F_OK))
			return false;
	return true;
}

/* The path of a new pack, named after the last part of the path, as messages will call it. */
static char *name_pack(const struct settings *s, const char *path, unsigned number)
{
	char *whole = realpath(path, NULL), *made;
	const char *slash = whole ? strrchr(whole, '/') : NULL;

	made = sl_memory_print("%s/%.200s.%u.stormlog", s->folder, slash && slash[1] ? slash + 1 : "run", number);
	free(whole);
	return made;
}

/* Packs are sent unchanged; other paths are packed into a temporary folder. */
static int take_paths(struct settings *s, char **paths)
{
	bool any = false;

	for (unsigned i = 0; paths[i]; i++) {
		if (is_pack(paths[i]) || sl_logs_are((char *const[]){paths[i], NULL})) {
			*SL_PUSH(&s->packs) = strdup(paths[i]);
			continue;
		}
		if (!make_folder(s))
			return SL_EXIT_UNSAVED;
		if (!any)
			s->first_made = i;
		any = true;
		*SL_PUSH(&s->packs) = name_pack(s, paths[i], i);
	}
	return any ? pack_all(s, paths) : SL_EXIT_FINE;
}

/* Finds the helper: in libexec when installed, in tools/push/ of a build. */
static bool find_helper(char *path, size_t size)
{
	static const char *const places[] = {"../libexec/stormlog/stormlog-push", "../push/stormlog-push", "stormlog-push"};
	char self[PATH_MAX - 64];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return false;
	self[length] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, size, "%s/%s", self, places[i]);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

static int send_packs(struct settings *s)
{
	char helper[PATH_MAX], **argv = sl_memory_must(calloc(s->packs.count + 4, sizeof(*argv)));
	pid_t child;

	if (!find_helper(helper, sizeof(helper))) {
		fputs("stormlog-analyze: stormlog-push is missing beside this program: a wheel has none, nor a build without "
		      "libcurl (-Dpush); Debian's package and the tarball have it\n",
		      stderr);
		free(argv);
		return SL_EXIT_UNSAVED;
	}
	argv[s->json] = (char *)"--json";
	argv[0] = helper;
	argv[1 + s->json] = (char *)s->to;
	memcpy(argv + 2 + s->json, s->packs.item, s->packs.count * sizeof(*argv));
	child = begin_child();
	if (!child) {
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		execv(helper, argv);
		_exit(SL_EXIT_UNSAVED);
	}
	free(argv);
	return end_child(child);
}

static void clean(struct settings *s)
{
	for (size_t i = 0; i < s->packs.count; i++) {
		if (*s->folder && !strncmp(s->packs.item[i], s->folder, strlen(s->folder)))
			unlink(s->packs.item[i]);
		free(s->packs.item[i]);
	}
	SL_DROP(&s->packs);
	if (*s->folder && !rmdir(s->folder))
		sl_save_finished(s->folder);
}

static int run(struct sl_arguments *parsed)
{
	struct settings s = {.to = getenv("STORMLOG_SERVER")};
	int status = sl_arguments_parse(parsed, NULL, &s), packed = SL_EXIT_FINE;

	if (status < 0 && !(s.to && *s.to))
		status = sl_command_fail(SL_EXIT_USAGE, "push needs --to URL, or STORMLOG_SERVER");
	sl_save_watch_signals();
	if (status < 0)
		packed = take_paths(&s, parsed->paths);
	if (status < 0)
		status = packed == SL_EXIT_FINE || (packed == SL_EXIT_UNREADABLE && all_there(&s)) ? send_packs(&s) : packed;
	if (status == SL_EXIT_FINE)
		status = packed;
	clean(&s);
	return status;
}

const struct sl_command sl_command_push = {"push", "a run to a stormlog-server", "push [options] PATH...", about, table, run};
