/* SPDX-License-Identifier: MIT */
/* Longer than other files: the work of each job with a child, and the work that is done again later. */
#include "tools/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "tools/server/child/child.h"

enum { KEY_MAX = sizeof(struct sl_job) + 40 };

static void key_of(const struct sl_job *job, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "%s %s %" PRIx64 " %" PRIx64, job->pack, job->after, job->from_ns, job->to_ns);
}

static void put_job(struct sl_jobs *jobs, const struct sl_job *job)
{
	char key[KEY_MAX];

	key_of(job, key);
	*sl_map_at(&jobs->waiting, key) = 1;
	*SL_PUSH(&jobs->list) = *job;
}

static bool has_job(const struct sl_jobs *jobs, const struct sl_job *job)
{
	char key[KEY_MAX];

	key_of(job, key);
	return sl_map_find(&jobs->waiting, key);
}

static size_t count_jobs(const struct sl_jobs *jobs)
{
	return jobs->list.count - jobs->taken_count;
}

static void free_jobs(struct sl_jobs *jobs)
{
	SL_DROP(&jobs->list);
	sl_map_free(&jobs->waiting);
	jobs->taken_count = 0;
}

/* Makes the queue anew, so that it needs no more memory than what waits. */
static void forget_taken(struct sl_jobs *jobs)
{
	struct sl_jobs left = {0};

	for (size_t i = jobs->taken_count; i < jobs->list.count; i++)
		put_job(&left, &jobs->list.item[i]);
	free_jobs(jobs);
	*jobs = left;
}

/* The count is not 0. */
static struct sl_job take_job(struct sl_jobs *jobs)
{
	struct sl_job job = jobs->list.item[jobs->taken_count++];
	char key[KEY_MAX];

	key_of(&job, key);
	*sl_map_at(&jobs->waiting, key) = 0;
	if (jobs->taken_count * 2 >= jobs->list.count) /* so late that each job is put again once, on average */
		forget_taken(jobs);
	return job;
}

enum {
	CHILD_S = 300,
	ASKED_MAX = 64,
	WINDOWS_MAX = 32,
	COMPARED_MAX = 32,
	SWEEP_S = 3600,
	RETRY_S = 10,
	LOOK_S = 20,
	CARD_MAX = 64 << 20,
	NO_ROOM = 256,
	NOT_STARTED = 257
};

struct sl_work {
	struct sl_server *server;
	char program[4096], folder[4160]; /* stormlog-index; STORE/work/now */
	pthread_mutex_t mutex;
	pthread_cond_t more;
	pthread_t thread;
	struct sl_jobs packs, asked; /* new packs; requests of readers */
	struct sl_job now;	     /* the job under way */
	struct sl_map changed;	     /* projects that got runs since they were last examined */
	time_t looked;
	time_t tidied;
	bool unread; /* a pack was not read: the disk was full, the catalogue does not answer, or no child can be started */
	bool learns; /* packs wait to be read whose runs are not in the catalogue: until then none is let go */
	bool starts; /* the last child could be started */
	bool ends;
};

/* The sentence contains the missing bytes, so that the pack is tried again once there is room for them. */
#define SAID_NO_ROOM(number)                                                                                                       \
	"its pages take %" number " bytes, which would exceed the store's quota (--quota): the pack is kept, without pages"

/* ---- a child */

/* Runs a child; returns its exit status, or -1: it was killed or took too long. */
static int wait_for(struct sl_work *work, pid_t child)
{
	for (unsigned tenths = 0; tenths < CHILD_S * 10; tenths++) {
		struct timespec tenth = {.tv_nsec = tenths < 20 ? 5000000 : 100000000};
		int status;

		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		if (__atomic_load_n(&work->ends, __ATOMIC_RELAXED))
			break;
		nanosleep(&tenth, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

/* Starts it in work->folder with only the packs' names.  NOT_STARTED: there are too many processes, or too little memory. */
static int run_child(struct sl_work *work, char *const *argv)
{
	char output_path[4200], temporary[4200];
	char *environment[] = {temporary, "LC_ALL=C.UTF-8", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t child;
	int error;

	snprintf(output_path, sizeof(output_path), "%s/said", work->folder);
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", work->folder);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, output_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	error = posix_spawn(&child, argv[0], &files, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	if (error && work->starts)
		sl_escape_print(stderr, "stormlog-server: %s: %s: packs are read once it can be started\n", work->program,
				strerror(error));
	work->starts = !error;
	return error ? NOT_STARTED : wait_for(work, child);
}

/* ---- storing what the child made */

static bool move(struct sl_work *work, const char *from, const char *to)
{
	int folder = work->server->packs.folder;
	char source[64];
	struct stat st;

	snprintf(source, sizeof(source), "work/now/%s", from);
	return !fstatat(folder, source, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && !renameat(folder, source, folder, to);
}

static bool fits(const struct sl_packs *packs, uint64_t bytes)
{
	return !packs->quota || __atomic_load_n(&packs->used, __ATOMIC_RELAXED) + bytes <= packs->quota;
}

/* False: the child's files would exceed --quota. */
static bool has_room(struct sl_work *work)
{
	return fits(&work->server->packs, sl_server_folder_bytes(work->server->packs.folder, "work/now"));
}

/* The first line that the child printed, without the path of the pack, or how it ended. */
static void put_failed(struct sl_work *work, const char *pack, int status)
{
	const char *why;
	char path[SL_PACKS_NAME + 64], line[256] = "";
	int folder = work->server->packs.folder, in = openat(folder, "work/now/said", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out;
	ssize_t size = in < 0 || status < 0 ? 0 : read(in, line, sizeof(line) - 1);
	FILE *file;

	line[size > 0 ? size : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	if (status == NO_ROOM)
		snprintf(line, sizeof(line), SAID_NO_ROOM(PRIu64), sl_server_folder_bytes(work->server->packs.folder, "work/now"));
	if (in >= 0)
		close(in);
	why = strstr(line, SL_PACKS_SUFFIX ": ");
	why = why ? why + strlen(SL_PACKS_SUFFIX ": ") : line;
	sl_places_of(pack, "failed", path);
	out = openat(folder, "work/now/failed", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	file = out < 0 ? NULL : fdopen(out, "w");
	if (file)
		sl_escape_print(file, "%s\n", *why ? why : "reading this pack took more time or memory than the server gives one");
	if (file && !fclose(file)) /* a reader sees all of the file or none */
		renameat(folder, "work/now/failed", folder, path);
	sl_escape_print(stderr, "stormlog-server: pack %s: %s\n", pack, *why ? why : "its child was ended");
}

/* Puts card.json into the catalogue. */
static enum sl_runs_put put_card(struct sl_work *work, const char *pack)
{
	int fd = openat(work->server->packs.folder, "work/now/card.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	void *bytes = MAP_FAILED;
	char project[SL_CARD_TEXT + 1];
	enum sl_runs_put outcome;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= CARD_MAX)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (bytes == MAP_FAILED)
		return SL_RUNS_NO_CARD;
	outcome = sl_runs_put(work->server, pack, bytes, (size_t)st.st_size, project);
	if (outcome == SL_RUNS_PUT)
		*sl_map_at(&work->changed, project) = 1;
	munmap(bytes, (size_t)st.st_size);
	return outcome;
}

/* True: the disk is full, also without what the child made. */
static bool is_full(const struct sl_work *work, const char *made)
{
	const struct sl_packs *packs = &work->server->packs;

	return sl_packs_are_full(packs, 0,
				 sl_server_folder_bytes(packs->folder, "work/now") + sl_server_folder_bytes(packs->folder, made));
}

/* Notes a pack that was not read for lack of room, to be tried again. */
static void put_unread(struct sl_work *work, const char *pack, int status, const char *made)
{
	if (is_full(work, made)) {
		work->unread = true;
		sl_escape_print(stderr, "stormlog-server: pack %s: the disk is full: it is read once there is room\n", pack);
	} else if (status ==
		   SL_CHILD_FULL) { /* the child's own files filled it: tried at each sweep, not as soon as there is room */
		sl_escape_print(stderr,
				"stormlog-server: pack %s: the disk has no room for what is in it: it is tried again later\n",
				pack);
	} else {
		put_failed(work, pack, status);
	}
}

/* None is let go before the next tidy(), which queues what the catalogue does not know. */
static void put_off(struct sl_work *work)
{
	work->unread = true;
	work->learns = false;
}

static void index_pack(struct sl_work *work, const char *pack)
{
	char from[4200], path[SL_PACKS_NAME + 64], pack_path[SL_PACKS_NAME + 32];
	char *argv[] = {work->program, work->folder, from, NULL};
	int folder = work->server->packs.folder, status, fd;
	enum sl_runs_put outcome = SL_RUNS_NO_CARD;
	struct stat st;
	bool fine;

	fd = sl_packs_read(&work->server->packs, pack, &st);
	if (fd < 0)
		return; /* its run was removed meanwhile */
	close(fd);
	sl_packs_path(pack, pack_path);
	snprintf(from, sizeof(from), "%s/%s", work->server->path, pack_path);
	status = run_child(work, argv);
	if (status == NOT_STARTED) {
		put_off(work);
		return;
	}
	if (status == SL_CHILD_FINE && !has_room(work))
		status = NO_ROOM;
	snprintf(path, sizeof(path), "pages/%.2s", pack);
	mkdirat(folder, path, 0700);
	sl_places_of(pack, "", path);
	mkdirat(folder, path, 0700);
	sl_places_of(pack, SL_PLACES_PAGE, path);
	fine = status == SL_CHILD_FINE && move(work, "page", path);
	sl_places_of(pack, "report.json", path);
	if (fine && move(work, "report.json", path))
		outcome = put_card(work, pack); /* last, so that whoever finds the run also finds its report */
	sl_places_of(pack, "", path);
	if (outcome == SL_RUNS_FULL)
		sl_server_folder_remove(folder, path);
	else if (outcome == SL_RUNS_BUSY)
		put_off(work);
	else if (outcome == SL_RUNS_LATER && is_full(work, path))
		work->unread = true; /* otherwise it is tried at each sweep: the reason may stay */
	else if (outcome == SL_RUNS_NO_CARD && !__atomic_load_n(&work->ends, __ATOMIC_RELAXED))
		put_unread(work, pack, status, path); /* but a server that ends also ends its child */
}

/* Removes the oldest file with that ending if there are too many; it can be made again.  False: there was room. */
static bool make_room(struct sl_work *work, const char *path, const char *ending, unsigned limit)
{
	DIR *folder = sl_server_folder_open(work->server->packs.folder, path, O_NOFOLLOW);
	char oldest[256] = "";
	struct timespec when = {0};
	unsigned count = 0;
	struct dirent *entry;
	struct stat st;

	while (folder && (entry = readdir(folder))) {
		if (!strstr(entry->d_name, ending) || fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!count++ || st.st_mtim.tv_sec < when.tv_sec ||
		    (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec)) {
			when = st.st_mtim;
			snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
		}
	}
	count = count >= limit && !unlinkat(dirfd(folder), oldest, 0);
	if (folder)
		closedir(folder);
	return count;
}

/* Runs a child and keeps its page as `path`; an empty file there says that it was tried in vain. */
static void keep_page(struct sl_work *work, char *const *argv, const char *path)
{
	int status = run_child(work, argv), fd;

	if (status == NOT_STARTED || (status == SL_CHILD_FINE && has_room(work) && move(work, "page", path)) ||
	    __atomic_load_n(&work->ends, __ATOMIC_RELAXED))
		return;
	fd = openat(work->server->packs.folder, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		close(fd);
	sl_escape_print(stderr, "stormlog-server: %s was not made: stormlog-index failed, or the disk is full\n", path);
}

static void compare(struct sl_work *work, const struct sl_job *job)
{
	char from[2][4200], name[2][16], path[2 * SL_PACKS_NAME + 64], pack_path[SL_PACKS_NAME + 32];
	char *argv[] = {work->program, work->folder, from[0], from[1], name[0], name[1], NULL};

	for (unsigned i = 0; i < 2; i++) {
		sl_packs_path(i ? job->after : job->pack, pack_path);
		snprintf(from[i], sizeof(from[i]), "%s/%s", work->server->path, pack_path);
		snprintf(name[i], sizeof(name[i]), "%.12s", i ? job->after : job->pack);
	}
	while (make_room(work, "pages/compare", SL_PLACES_PAGE, COMPARED_MAX))
		;
	sl_places_compare(job->pack, job->after, path);
	keep_page(work, argv, path);
}

static void look_closer(struct sl_work *work, const struct sl_job *job)
{
	char from[4200], path[SL_PACKS_NAME + 64], pack_path[SL_PACKS_NAME + 32], times[2][24];
	char *argv[] = {work->program, work->folder, from, times[0], times[1], NULL};

	sl_packs_path(job->pack, pack_path);
	snprintf(from, sizeof(from), "%s/%s", work->server->path, pack_path);
	snprintf(times[0], sizeof(times[0]), "%" PRIu64, job->from_ns);
	snprintf(times[1], sizeof(times[1]), "%" PRIu64, job->to_ns);
	sl_places_of(job->pack, "", path);
	while (make_room(work, path, SL_WINDOW_SUFFIX, WINDOWS_MAX))
		;
	sl_places_window(job->pack, job->from_ns, job->to_ns, path);
	keep_page(work, argv, path);
}

/* ---- the queue */

/* Forgets failed requests of readers, so that they are tried again. */
static void forget_vain(const struct sl_packs *packs, const char *path)
{
	DIR *folder = sl_server_folder_open(packs->folder, path, O_NOFOLLOW);
	struct dirent *entry;
	struct stat st;

	while (folder && (entry = readdir(folder)))
		if (!fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && !st.st_size)
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
}

/* Reads a pack again whose pages had no room, if there is room now. */
static void try_again(void *context, const char *pack, const struct stat *st)
{
	struct sl_work *work = context;
	const struct sl_packs *packs = &work->server->packs;
	char path[SL_PACKS_NAME + 64], line[256] = "";
	uint64_t bytes;
	int fd;

	sl_places_of(pack, "", path);
	forget_vain(packs, path);
	sl_places_of(pack, "failed", path);
	fd = openat(packs->folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (read(fd, line, sizeof(line) - 1) > 0 && sscanf(line, SAID_NO_ROOM(SCNu64), &bytes) == 1 && fits(packs, bytes) &&
	    !unlinkat(packs->folder, path, 0)) {
		__atomic_fetch_sub(&work->server->packs.used, strlen(line), __ATOMIC_RELAXED);
		sl_work_index(work, pack);
	}
	close(fd);
}

/* Reads packs that were not read: the last server was killed, see work->unread, or the catalogue was removed. */
static void read_unread(void *context, const char *name, const struct stat *st)
{
	struct sl_work *work = context;
	char path[SL_PACKS_NAME + 64];
	struct stat made;
	bool is_known;

	if (work->unread)
		return;
	sl_places_of(name, "failed", path);
	if (!fstatat(work->server->packs.folder, path, &made, 0))
		return;
	if (!sl_runs_known(work->server, name, &is_known)) {
		put_off(work);
		return;
	}
	sl_places_of(name, SL_PLACES_PAGE, path);
	if (is_known && !fstatat(work->server->packs.folder, path, &made, 0))
		return;
	work->learns = work->learns || !is_known;
	sl_work_index(work, name);
}

static bool waits(struct sl_work *work)
{
	bool some;

	pthread_mutex_lock(&work->mutex);
	some = count_jobs(&work->packs) > 0;
	pthread_mutex_unlock(&work->mutex);
	return some;
}

static void let_go(struct sl_work *work)
{
	work->learns = false;
	sl_keep(work->server);
	forget_vain(&work->server->packs, "pages/compare");
	sl_packs_each(&work->server->packs, try_again, work);
}

static void tidy(struct sl_work *work)
{
	sl_packs_sweep(&work->server->packs);
	work->unread = false;
	sl_packs_each(&work->server->packs, read_unread, work);
	if (!work->unread && !work->learns)
		let_go(work);
	work->tidied = time(NULL);
}

/* A reader asked for it, so the queue is limited. */
static bool is_asked(const struct sl_job *job)
{
	return *job->after || job->to_ns;
}

static bool has_jobs(const struct sl_work *work)
{
	return count_jobs(&work->packs) || count_jobs(&work->asked);
}

/* New packs and what readers ask for take turns, so that neither waits for all of the other. */
static struct sl_jobs *choose(struct sl_work *work, bool was_asked)
{
	struct sl_jobs *first = was_asked ? &work->packs : &work->asked, *second = was_asked ? &work->asked : &work->packs;

	return count_jobs(first) ? first : second;
}

static bool is_due(const struct sl_work *work)
{
	return time(NULL) - work->tidied >= SWEEP_S || (work->unread && !sl_packs_are_full(&work->server->packs, 0, 0));
}

/* The next job; false: the server is ending. */
static bool next(struct sl_work *work)
{
	bool was_asked;

	pthread_mutex_lock(&work->mutex);
	was_asked = is_asked(&work->now);
	work->now = (struct sl_job){0};
	while (!has_jobs(work) && !work->ends) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += work->unread ? RETRY_S : SWEEP_S;
		if (pthread_cond_timedwait(&work->more, &work->mutex, &until) == ETIMEDOUT && is_due(work)) {
			pthread_mutex_unlock(&work->mutex);
			tidy(work);
			pthread_mutex_lock(&work->mutex);
		}
	}
	if (has_jobs(work))
		work->now = take_job(choose(work, was_asked));
	pthread_mutex_unlock(&work->mutex);
	return !work->ends;
}

/* Run when there is nothing else to do, or when it is overdue. */
static void look_at_changed(struct sl_work *work)
{
	const char *name;
	bool idle;

	pthread_mutex_lock(&work->mutex);
	idle = !has_jobs(work);
	pthread_mutex_unlock(&work->mutex);
	if (!work->changed.count || (!idle && time(NULL) - work->looked < LOOK_S))
		return;
	for (size_t at = 0; (name = sl_map_next(&work->changed, &at));)
		sl_worse_look(work->server, name);
	sl_map_free(&work->changed);
	work->changed = (struct sl_map){0};
	work->looked = time(NULL);
}

static void perform(struct sl_work *work)
{
	struct sl_packs *packs = &work->server->packs;
	char path[SL_PACKS_NAME + 64] = "pages/compare";
	uint64_t before;

	if (!*work->now.after)
		sl_places_of(work->now.pack, "", path);
	before = sl_server_folder_bytes(packs->folder, path);
	if (*work->now.after)
		compare(work, &work->now);
	else if (work->now.to_ns)
		look_closer(work, &work->now);
	else
		index_pack(work, work->now.pack);
	__atomic_fetch_add(&packs->used, sl_server_folder_bytes(packs->folder, path) - before, __ATOMIC_RELAXED);
	if (!*work->now.after)
		sl_quota_changed(work->server, work->now.pack);
}

static void *run(void *context)
{
	struct sl_work *work = context;

	tidy(work);
	sl_worse_projects(work->server, &work->changed);
	look_at_changed(work);
	while (next(work)) {
		sl_server_folder_remove(work->server->packs.folder, "work/now");
		mkdirat(work->server->packs.folder, "work/now", 0700);
		perform(work);
		sl_server_folder_remove(work->server->packs.folder, "work/now");
		look_at_changed(work);
		if (work->learns && !waits(work))
			let_go(work);
		if (time(NULL) - work->tidied >= SWEEP_S) {
			pthread_mutex_lock(&work->mutex);
			work->now = (struct sl_job){0}; /* it has ended: tidy() may queue this pack again */
			pthread_mutex_unlock(&work->mutex);
			tidy(work);
		}
	}
	return NULL;
}

static bool is_same(const struct sl_job *a, const struct sl_job *b)
{
	return !strcmp(a->pack, b->pack) && !strcmp(a->after, b->after) && a->from_ns == b->from_ns && a->to_ns == b->to_ns;
}

static bool ask(struct sl_work *work, const struct sl_job *job)
{
	struct sl_jobs *jobs = is_asked(job) ? &work->asked : &work->packs;
	bool asked, fine;

	pthread_mutex_lock(&work->mutex);
	asked = is_same(job, &work->now) || has_job(jobs, job);
	fine = asked || !is_asked(job) || count_jobs(jobs) < ASKED_MAX;
	if (!asked && fine) {
		put_job(jobs, job);
		pthread_cond_signal(&work->more);
	}
	pthread_mutex_unlock(&work->mutex);
	return fine;
}

void sl_work_index(struct sl_work *work, const char *pack)
{
	struct sl_job job = {0};

	snprintf(job.pack, sizeof(job.pack), "%s", pack);
	ask(work, &job);
}

bool sl_work_compare(struct sl_work *work, const char *before, const char *after)
{
	struct sl_job job = {0};

	snprintf(job.pack, sizeof(job.pack), "%s", before);
	snprintf(job.after, sizeof(job.after), "%s", after);
	return ask(work, &job);
}

bool sl_work_window(struct sl_work *work, const char *pack, uint64_t from_ns, uint64_t to_ns)
{
	struct sl_job job = {.from_ns = from_ns, .to_ns = to_ns};

	snprintf(job.pack, sizeof(job.pack), "%s", pack);
	return ask(work, &job);
}

/* Beside the server in a build folder, or in libexec when installed. */
static bool find_program(char *program, size_t size)
{
	char self[2048];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return false;
	self[length] = 0;
	*strrchr(self, '/') = 0;
	snprintf(program, size, "%s/stormlog-index", self);
	if (!access(program, X_OK))
		return true;
	snprintf(program, size, "%s/../libexec/stormlog/stormlog-index", self);
	return !access(program, X_OK);
}

struct sl_work *sl_work_new(struct sl_server *server)
{
	struct sl_work *work = calloc(1, sizeof(*work));

	if (!work || !find_program(work->program, sizeof(work->program)))
		return NULL;
	work->server = server;
	work->starts = true;
	snprintf(work->folder, sizeof(work->folder), "%s/work/now", server->path);
	mkdirat(server->packs.folder, "pages/compare", 0700);
	pthread_mutex_init(&work->mutex, NULL);
	pthread_cond_init(&work->more, NULL);
	errno = pthread_create(&work->thread, NULL, run, work);
	return errno ? NULL : work;
}

void sl_work_free(struct sl_work *work)
{
	pthread_mutex_lock(&work->mutex);
	__atomic_store_n(&work->ends, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&work->more);
	pthread_mutex_unlock(&work->mutex);
	pthread_join(work->thread, NULL);
	free_jobs(&work->packs);
	free_jobs(&work->asked);
	sl_map_free(&work->changed);
	free(work);
}
