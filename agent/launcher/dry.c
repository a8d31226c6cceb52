/* SPDX-License-Identifier: MIT */
/*
 * A dry run: the job gets a device of ours, whose kernels do nothing (dry/README.md). Its folder below /dev/shm is the sign by
 * which our libraries know that they are wanted; it goes when the job has ended.
 */
#include "agent/launcher/launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tracefile.h"
#include "dry/card.h"

static const struct card {
	const char *id;
	struct sl_dry_card card;
} cards[] = {
#define CARD(id, name, measured, memory, major, minor, multiprocessors, threads, shared, shared_optin, l2, blocks, context_low,    \
	     context_high, kernels_low, kernels_high)                                                                              \
	{#id,                                                                                                                      \
	 {name, measured, memory, major, minor, multiprocessors, threads, shared, shared_optin, l2, blocks, context_low,           \
	  context_high, kernels_low, kernels_high}},
#include "dry/cards.def"
#undef CARD
};

static const struct field {
	const char *name;
	int64_t scale;
	size_t at;
} fields[] = {
#define FIELD(name, scale, attribute) {#name, scale, offsetof(struct sl_dry_card, name)},
#include "dry/fields.def"
#undef FIELD
};

static char missing[128];  /* SL_DRY_MISSING's text; "": there was none */
static char folder[64];	   /* of this run */
static char scratch[4096]; /* of this run, for caches */
static char traces[4096];  /* of the run, up to the first placeholder; "": it was there before */
static char lines[2048];   /* the card, as STORMLOG_DRY_CARD has it */

/* As people say it: without the maker's name. */
static const char *short_name(const char *name)
{
	static const char *const makers[] = {"NVIDIA ", "GeForce ", "Tesla "};

	for (size_t i = 0; i < SL_COUNT(makers); i++)
		if (!strncmp(name, makers[i], strlen(makers[i])))
			name += strlen(makers[i]);
	return name;
}

bool sl_dry_is_card(const char *id)
{
	for (size_t i = 0; i < SL_COUNT(cards); i++)
		if (!strcmp(cards[i].id, id))
			return true;
	return false;
}

int sl_dry_list(void)
{
	printf("%-12s %-48s %9s  %s\n", "--dry=", "", "memory", "context and code outside of PyTorch");
	for (size_t i = 0; i < SL_COUNT(cards); i++) {
		const struct sl_dry_card *card = &cards[i].card;

		printf("%-12s %-48s %5.1f GiB  %4lld to %lld MiB, %s\n", cards[i].id, card->name, (double)card->memory / 1024,
		       (long long)(card->context_low + card->kernels_low), (long long)(card->context_high + card->kernels_high),
		       card->measured ? "measured" : "not measured");
	}
	printf("Another card: --dry=FILE, with lines of `name = value`: name, and in bytes or counts");
	for (size_t i = 0; i < SL_COUNT(fields); i++)
		printf("%s %s", i ? "," : "", fields[i].name);
	printf(".\nA first line `like = h200` takes the rest from that row.\n");
	return 0;
}

static const struct card *find_card(const char *id, size_t length)
{
	for (size_t i = 0; i < SL_COUNT(cards); i++)
		if (strlen(cards[i].id) == length && !strncasecmp(cards[i].id, id, length))
			return &cards[i];
	return NULL;
}

/* Fills `out` with a row of the table, in bytes. */
static void take_row(struct sl_dry_card *out, const struct card *row)
{
	*out = row->card;
	for (size_t i = 0; i < SL_COUNT(fields); i++)
		*(int64_t *)((char *)out + fields[i].at) *= fields[i].scale;
}

/* A card of the user's own. */
static bool read_file(struct sl_dry_card *out, const char *path)
{
	char text[4096];
	const char *at = text, *bad;
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	if (!length)
		return sl_launcher_fail(false, "--dry=%s is no known card and no file of one; --dry=list shows the cards", path);
	text[length] = 0;
	take_row(out, &cards[0]);
	out->measured = 0;
	if (!strncmp(at, "like", 4)) {
		const char *id = at + 4 + strspn(at + 4, " =");
		const struct card *row = find_card(id, strcspn(id, " \n"));

		if (!row)
			return sl_launcher_fail(false, "%s: line 1: like = %.*s: no such card; --dry=list shows them", path,
						(int)strcspn(id, "\n"), id);
		take_row(out, row);
		out->measured = 0;
		at += strcspn(at, "\n");
	}
	bad = sl_dry_card_read(out, at);
	if (bad)
		sl_launcher_say("%s: %.*s: wants `name = value`; --dry=list shows the names", path, (int)strcspn(bad, "\n"), bad);
	return !bad;
}

#define ROOMY "roomy:" /* before a card: with room for any job (analyzer/commands/try.c) */

static bool choose(const char *id, bool quiet)
{
	const char *name = id + (strncmp(id, ROOMY, strlen(ROOMY)) ? 0 : strlen(ROOMY));
	const struct card *row = find_card(name, strlen(name));
	struct sl_dry_card card = {0};
	int length;

	if (row)
		take_row(&card, row);
	else if (!read_file(&card, name))
		return false;
	if (name > id)
		card.memory = (int64_t)1000 << 30;
	length = snprintf(lines, sizeof(lines), "name=%s", card.name);
	for (size_t i = 0; i < SL_COUNT(fields); i++)
		length += snprintf(lines + length, sizeof(lines) - (size_t)length, "\n%s=%lld", fields[i].name,
				   (long long)*(int64_t *)((char *)&card + fields[i].at));
	if (!card.measured && !quiet)
		sl_launcher_say("this card was not measured: memory outside of PyTorch is the widest span of the measured cards");
	return true;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	remove(path);
	return 0;
}

#define PREFIX "stormlog-dry-"

/* Folders of launchers that were killed: stormlog-dry-, the launcher's pid, a dash and six letters of mkdtemp. */
static void sweep(const char *where)
{
	char path[4096], *end;
	DIR *all = opendir(where);

	for (struct dirent *entry; all && (entry = readdir(all));) {
		int pid =
			strncmp(entry->d_name, PREFIX, strlen(PREFIX)) ? 0 : (int)strtol(entry->d_name + strlen(PREFIX), &end, 10);

		if (pid <= 0 || *end != '-' || strlen(end) != strlen("-XXXXXX") || !kill(pid, 0) || errno != ESRCH ||
		    snprintf(path, sizeof(path), "%s/%s", where, entry->d_name) >= (int)sizeof(path))
			continue;
		nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	if (all)
		closedir(all);
}

static bool link_in(const char *name, const char *target)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !symlink(target, path);
}

/* Makes the folder with a link to our libraries: no path in it has characters that the loader splits lists at. */
static bool make_folder(void)
{
	char libraries[4096], path[128];

	if (!sl_paths_dry(libraries, sizeof(libraries)))
		return false;
	sweep("/dev/shm");
	sweep(sl_protect_temporary());
	snprintf(folder, sizeof(folder), "/dev/shm/" PREFIX "%d-XXXXXX", (int)getpid());
	if (!mkdtemp(folder)) {
		sl_launcher_say("--dry: %s: %s", folder, strerror(errno));
		*folder = 0;
		return false;
	}
	snprintf(scratch, sizeof(scratch), "%s/" PREFIX "%d-XXXXXX", sl_protect_temporary(), (int)getpid());
	if (!mkdtemp(scratch)) {
		sl_launcher_say("--dry: %s: %s", scratch, strerror(errno));
		*scratch = 0;
		return false;
	}
	snprintf(path, sizeof(path), "%s/triton", folder);
	return link_in("lib", libraries) && !mkdir(path, 0700) && link_in("triton/libcuda.so.1", "../lib/dry-cuda-1.so") &&
	       link_in("triton/libcuda.so", "../lib/dry-cuda-1.so");
}

bool sl_dry_can(const struct sl_launch *run)
{
	char libraries[4096], path[4096];
	const char *why;

	if (!run->force && !access("/dev/nvidiactl", F_OK))
		sl_launcher_say("this machine has a GPU, which a dry run would hide from the job: record it there without --dry, "
				"or say --force");
	else if (!sl_protect_can(run))
		sl_launcher_say("this kernel cannot keep the job from writing (it has no Landlock): a checkpoint of zeros could "
				"replace a good one. "
				"Run a copy of the job and say --allow-writes /");
	else if (!sl_paths_dry(libraries, sizeof(libraries)))
		sl_launcher_say("--dry: its libraries are not installed: pip install 'stormlog-native[dry]', or the file "
				"stormlog_native_dry-" SL_VERSION "-*.whl of your release. They are for x86-64");
	else if (run->command[0] && !sl_paths_command(run->command[0], path, sizeof(path)) &&
		 (why = sl_target_hinders(path, NULL, 0)))
		sl_launcher_say("%s. A dry run of it is not possible", why);
	else
		return choose(run->dry, run->options.quiet);
	return false;
}

/* Folders that are there for traces of such a run; with placeholders also the one that holds them all, if there are any. */
static void find_folders(const struct sl_launch *run, glob_t *found)
{
	char stem[4096], pattern[8192];

	sl_recorded_pattern(run->directory, pattern, sizeof(pattern));
	glob(pattern, 0, NULL, found);
	if (!strchr(run->directory, '%') || !found->gl_pathc)
		return;
	sl_folder_stem(run, stem, sizeof(stem));
	sl_recorded_pattern(stem, pattern, sizeof(pattern));
	glob(pattern, GLOB_APPEND, NULL, found);
}

/* A folder of the traces stays the real one, so that a file of the job's there would be replaced. */
static bool holds_files(const struct sl_launch *run, const char *where)
{
	static const char *const ours[] = {".", "rank-", "analysis", SL_DRY_UNANSWERED};
	const char *next = run->directory + strlen(traces);
	char name[4096] = "", pattern[8192];
	DIR *all = opendir(where);
	bool found = false;

	if (*next == '/' && !strcmp(where, traces))
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(next + 1, "/"), next + 1);
	sl_recorded_pattern(name, pattern, sizeof(pattern));
	for (struct dirent *entry; all && !found && (entry = readdir(all));) {
		found = entry->d_type == DT_REG || fnmatch(pattern, entry->d_name, 0);
		for (size_t i = 0; i < SL_COUNT(ours); i++)
			found = found && strncmp(entry->d_name, ours[i], strlen(ours[i])) != 0;
		if (found)
			sl_launcher_say("%s: the dry run would replace the job's files here, as %s: name a folder by -o that has "
					"no files but traces",
					where, entry->d_name);
	}
	if (all)
		closedir(all);
	return found;
}

/* True: one of them does, and it said so. */
static bool any_holds_files(const struct sl_launch *run)
{
	bool holds = holds_files(run, traces);
	glob_t found;

	find_folders(run, &found);
	for (size_t i = 0; i < found.gl_pathc && !holds; i++)
		holds = holds_files(run, found.gl_pathv[i]);
	globfree(&found);
	return holds;
}

bool sl_dry_begin(const struct sl_launch *run)
{
	char folder[4096];

	if (!getcwd(folder, sizeof(folder))) /* MKL ends such a process while it loads PyTorch */
		return sl_launcher_fail(false, "this folder is gone (%s): change to one that exists", strerror(errno));
	sl_folder_stem(run, traces, sizeof(traces));
	sl_dry_answered(run, false); /* earlier runs in the folder are no answer of this one */
	if (any_holds_files(run))
		return false;
	*traces = access(traces, F_OK) ? *traces : 0;
	if (!sl_dry_can(run) || !make_folder()) {
		sl_dry_end(run);
		return false;
	}
	for (size_t i = 0; i < run->writes.count; i++)
		if (access(run->writes.item[i], F_OK)) {
			sl_launcher_say("--allow-writes %s: %s", run->writes.item[i], strerror(errno));
			sl_dry_end(run);
			return false;
		}
	if (!run->options.quiet)
		fprintf(stderr, "DRY RUN on %.*s: no number was computed\n",
			(int)(strcspn(lines, "\n") - (size_t)(short_name(lines + 5) - lines)), short_name(lines + 5));
	return true;
}

#define NODE 8 /* ranks of one host, where the environment does not say */

/* The job is one rank, and the others are absent (dry/python/stormlog_dry_ranks.py). As torchrun tells a rank. */
static void set_rank(const char *rank_text, const char *world)
{
	int rank = atoi(rank_text), ranks = atoi(world);
	const char *local_size = getenv("LOCAL_WORLD_SIZE");
	int node = local_size && atoi(local_size) > 0 ? atoi(local_size) : ranks < NODE ? ranks : NODE;
	char local[16], node_text[16];

	snprintf(local, sizeof(local), "%d", rank % node);
	snprintf(node_text, sizeof(node_text), "%d", node);
	setenv("RANK", rank_text, 1);
	setenv("WORLD_SIZE", world, 1);
	setenv("LOCAL_RANK", local, 1);
	setenv("LOCAL_WORLD_SIZE", node_text, 1);
	setenv("MASTER_ADDR", "localhost", 0);
	setenv("MASTER_PORT", "29500", 0);
	setenv("TORCHELASTIC_RUN_ID", "dry", 0);
	setenv("STORMLOG_DRY_DEVICES", node_text, 1);
}

/* Python starts our sitecustomize first. */
static void set_python_path(const char *libraries)
{
	char *folder;

	if (asprintf(&folder, "%s/python", libraries) > 0)
		sl_child_join("PYTHONPATH", folder, true);
}

void sl_dry_hold(void)
{
	char libraries[4096];

	if (!sl_paths_dry(libraries, sizeof(libraries)))
		sl_launcher_say("--holders: the files of dry runs are not installed: Python tells of no variable");
	else if (strchr(libraries, ':'))
		sl_launcher_say("--holders: PYTHONPATH cannot hold %s", libraries);
	else
		set_python_path(libraries);
}

void sl_dry_enter(const struct sl_launch *run)
{
	char path[128];

	setenv(SL_DRY_FOLDER, folder, 1);
	setenv(SL_DRY_CARD, lines, 1);
	if (run->force)
		setenv(SL_DRY_FORCE, "1", 1);
	snprintf(path, sizeof(path), "%s/lib/dry-audit.so", folder);
	setenv("LD_AUDIT", path, 1);
	/*
	 * Beside LD_AUDIT glibc lays out static TLS before it loads the program.  Our library then uses 1.5 KiB of the room for
	 * libraries that a program opens later, as libgomp of a wheel.  glibc 2.32 has the setting, and takes the last of two.
	 */
	sl_child_join("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", true);
	snprintf(path, sizeof(path), "%s/triton", folder);
	setenv("TRITON_LIBCUDA_PATH", path, 1);
	snprintf(path, sizeof(path), "%s/lib", folder);
	set_python_path(path);
	if (getenv("STORMLOG_RANK") && getenv("STORMLOG_WORLD_SIZE"))
		set_rank(getenv("STORMLOG_RANK"), getenv("STORMLOG_WORLD_SIZE"));
	if (run->steps)
		setenv("STORMLOG_DRY_STEPS", run->steps, 1);
	if (run->shapes)
		setenv("STORMLOG_DRY_WEIGHTS", "shapes", 1);
	if (run->init)
		setenv("STORMLOG_DRY_INIT", "1", 1);
	if (run->no_values)
		setenv("STORMLOG_DRY_NO_VALUES", "1", 1);
	if (!sl_protect_enter(run, scratch, folder))
		_exit(SL_LAUNCH_FAILED);
}

static void read_missing(void)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/" SL_DRY_MISSING, folder);
	file = fopen(path, "re");
	if (!file)
		return;
	missing[fread(missing, 1, sizeof(missing) - 1, file)] = 0;
	fclose(file);
}

const char *sl_dry_missing(void)
{
	return missing;
}

/* Layers with the job's writes: kept under another name, or gone with the run's folders and counted. */
static void end_layers(const char *where, bool wanted, struct sl_writes *gone)
{
	struct sl_writes writes = {0};
	char layers[4200], saved_layers[4200];

	if (!*where)
		return;
	snprintf(layers, sizeof(layers), "%s/layers", where);
	sl_overlay_count(layers, wanted ? &writes : gone);
	if (!writes.count)
		return;
	snprintf(saved_layers, sizeof(saved_layers), "%.*s/stormlog-writes-%d", (int)(strrchr(where, '/') - where), where,
		 (int)getpid());
	if (!rename(layers, saved_layers))
		sl_launcher_say("the job's writes are in %s", saved_layers);
	else
		sl_launcher_say("the job's writes cannot be kept: %s: %s", saved_layers, strerror(errno));
}

void sl_dry_end(const struct sl_launch *run)
{
	struct sl_writes gone = {0};

	end_layers(folder, run->keep_writes, &gone);
	end_layers(scratch, run->keep_writes, &gone);
	if (gone.count && !run->options.quiet)
		sl_launcher_say("%u file%s that the job wrote %s gone, as %s%s. --keep-writes keeps them, "
				"--allow-writes DIR lets the job write there",
				gone.count, gone.count == 1 ? "" : "s", gone.count == 1 ? "is" : "are", gone.one,
				gone.was_there ? ", which is as it was before" : "");
	if (*folder) {
		read_missing();
		nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	if (*scratch)
		nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	*folder = *scratch = 0;
	if (*traces)
		rmdir(traces); /* where nothing was recorded it is empty */
}

void sl_dry_answered(const struct sl_launch *run, bool yes)
{
	char path[sizeof(run->directory) + 32];
	glob_t found;

	find_folders(run, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		snprintf(path, sizeof(path), "%s/" SL_DRY_UNANSWERED, found.gl_pathv[i]);
		if (yes)
			unlink(path);
		else
			close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
	}
	globfree(&found);
}
