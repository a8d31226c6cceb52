/* SPDX-License-Identifier: MIT */
/* Longer than other files: all checks of a file and its folder before SQLite works there. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/catalogue/store_sqlite.h"

#define APPLICATION_ID 0x53746c43 /* "StlC" */
#define VERSION	       5

/* A row added to card.def is one more version.  Each statement converts a file of one version to the next, from OLDEST on. */
static const char *const added[] = {"ALTER TABLE runs ADD COLUMN verdict TEXT", "ALTER TABLE runs ADD COLUMN lost INTEGER"};
#define OLDEST (VERSION - (int64_t)SL_COUNT(added))
static const char tables_of_version[] =
	"CREATE TABLE runs(run INTEGER PRIMARY KEY AUTOINCREMENT, left_out INTEGER,identity TEXT,run_id TEXT,job_id TEXT,project "
	"TEXT,"
	"tag TEXT,command TEXT,host TEXT,status TEXT,commit_id TEXT,branch TEXT,source TEXT,finding TEXT,severity TEXT,"
	"started_ns INTEGER,ended_ns INTEGER,ranks INTEGER,processes INTEGER,devices INTEGER,peak_bytes INTEGER,hidden_bytes "
	"INTEGER,"
	"leak_bytes INTEGER,ooms INTEGER,findings INTEGER,pinned INTEGER, dry TEXT, verdict TEXT, lost INTEGER, UNIQUE(identity));"
	"CREATE INDEX runs_by_time ON runs(started_ns);"
	"CREATE TABLE sessions(run INTEGER, session TEXT, host TEXT, pid INTEGER, rank INTEGER, status TEXT, bundle INTEGER);"
	"CREATE INDEX sessions_of_run ON sessions(run);"
	"CREATE INDEX sessions_by_id ON sessions(session);"
	"CREATE TABLE names(name INTEGER PRIMARY KEY, kind INTEGER, text TEXT, UNIQUE(kind, text));"
	"CREATE VIRTUAL TABLE words USING fts5(text, content='names', content_rowid='name', prefix='2 3');"
	"CREATE TABLE named(name INTEGER, run INTEGER, PRIMARY KEY(name, run)) WITHOUT ROWID;"
	"CREATE INDEX named_of_run ON named(run);"
	"CREATE TABLE metrics(metric INTEGER PRIMARY KEY, sort TEXT, key TEXT, what TEXT, UNIQUE(sort, key));"
	"CREATE TABLE held(metric INTEGER, run INTEGER, bytes INTEGER, PRIMARY KEY(metric, run)) WITHOUT ROWID;"
	"CREATE INDEX held_of_run ON held(run);"
	"CREATE TABLE files(file INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER, changed_ns INTEGER);"
	"CREATE TABLE parts(file INTEGER, run INTEGER, PRIMARY KEY(file, run)) WITHOUT ROWID;"
	"CREATE INDEX parts_of_run ON parts(run);"
	"CREATE TABLE notes(note INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER, at_ns INTEGER, written_ns INTEGER, author TEXT, "
	"text TEXT);"
	"CREATE INDEX notes_of_run ON notes(run);"
	"CREATE INDEX runs_of_project ON runs(project, started_ns);";

static int64_t pragma(struct sl_store *store, const char *sql)
{
	sqlite3_stmt *statement = sl_store_prepare(store, sql);
	int64_t value = statement && sl_store_step(store, statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;

	if (statement)
		sqlite3_reset(statement);
	return value;
}

/* What SQLite could not read it has said. */
static bool refuse(struct sl_store *store, const char *why)
{
	if (store->code == SQLITE_OK)
		snprintf(store->why, sizeof(store->why), "%s", why);
	return false;
}

static bool store_head_is_ours(const char *head, ssize_t size)
{
	static const unsigned char id[] = {APPLICATION_ID >> 24, APPLICATION_ID >> 16 & 0xff, APPLICATION_ID >> 8 & 0xff,
					   APPLICATION_ID & 0xff};

	return size == SL_STORE_HEAD && !memcmp(head, "SQLite format 3", 16) && !memcmp(head + 68, id, sizeof(id));
}

static bool check(struct sl_store *store)
{
	int64_t version = pragma(store, "PRAGMA user_version");

	if (pragma(store, "PRAGMA application_id") != APPLICATION_ID)
		return refuse(store, "no catalogue of stormlog");
	if (version > VERSION)
		return refuse(store, "a catalogue of a newer stormlog");
	if (version < VERSION)
		return refuse(store, "a catalogue of an older stormlog; remove it, and `runs PATH` makes a new one");
	return true;
}

/* writes its version once more, so that SQLite makes its journal */
static bool store_touch(struct sl_store *store)
{
	char text[80];

	snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID, VERSION);
	return sqlite3_exec(store->db, text, NULL, NULL, NULL) == SQLITE_OK || sl_store_fail(store);
}

/* One process at a time does it; a second one finds it done. */
static bool make(struct sl_store *store)
{
	return (sqlite3_exec(store->db, tables_of_version, NULL, NULL, NULL) == SQLITE_OK || sl_store_fail(store)) &&
	       store_touch(store);
}

/* Creates what is missing, or finds that the file is not ours; false: failed, with the reason set. */
static bool store_schema(struct sl_store *store, bool write)
{
	int64_t version, application, tables;

	if (write && !sl_store_execute(store, "BEGIN IMMEDIATE"))
		return false;
	version = pragma(store, "PRAGMA user_version");
	application = pragma(store, "PRAGMA application_id");
	tables = pragma(store, "SELECT count(*) FROM sqlite_master");
	if (write && !tables && !version && !application && !make(store))
		return false;
	for (; write && version >= OLDEST && version < VERSION && application == APPLICATION_ID; version++)
		if (!sl_store_execute(store, added[version - OLDEST]) || !store_touch(store))
			return false;
	if (!check(store)) /* before any of it is worked on */
		return false;
	return !write || sl_store_execute(store, "COMMIT");
}

#define BUSY_MS	  20000	    /* another process writes: a card takes it a few milliseconds */
#define VALUE_MAX (1 << 20) /* bytes of a text or a row */
#define PAGES_MAX (1 << 20) /* of 4 KiB */
#define DAMAGED	  "the catalogue is damaged; without the file it is learned anew"

const char *sl_store_why(const struct sl_store *store)
{
	return store->why;
}

bool sl_store_is_busy(const struct sl_store *store)
{
	return store->code == SQLITE_BUSY;
}

bool sl_store_fail(struct sl_store *store)
{
	const int code = store->code = sqlite3_errcode(store->db) & 0xff;

	snprintf(store->why, sizeof(store->why), "%s",
		 code == SQLITE_NOTADB	  ? "no catalogue of stormlog"
		 : code == SQLITE_CORRUPT ? DAMAGED
		 : code == SQLITE_BUSY	  ? "another process writes into the catalogue for too long"
					  : sqlite3_errmsg(store->db));
	return false;
}

bool sl_store_execute(struct sl_store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK || sl_store_fail(store);
}

sqlite3_stmt *sl_store_prepare(struct sl_store *store, const char *sql)
{
	uintptr_t *at = sl_map_at(&store->prepared, sql);
	sqlite3_stmt *statement = (sqlite3_stmt *)*at;

	if (!statement && sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
		sl_store_fail(store);
		return NULL;
	}
	*at = (uintptr_t)statement;
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return statement;
}

int sl_store_step(struct sl_store *store, sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		sl_store_fail(store);
	if (code != SQLITE_ROW)
		sqlite3_reset(statement);
	return code;
}

void sl_store_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(statement, at);
}

void sl_store_bind_known(sqlite3_stmt *statement, int at, int64_t value)
{
	if (value < 0)
		sqlite3_bind_null(statement, at);
	else
		sqlite3_bind_int64(statement, at, value);
}

sqlite3_stmt *sl_store_prepare_with(struct sl_store *store, const char *sql, const struct sl_store_value *values)
{
	sqlite3_stmt *statement = sl_store_prepare(store, sql);

	for (int i = 0; statement && i < sqlite3_bind_parameter_count(statement); i++)
		if (values[i].text)
			sl_store_bind_text(statement, i + 1, values[i].text);
		else
			sl_store_bind_known(statement, i + 1, values[i].number);
	return statement;
}

const char *sl_store_text(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

/* ---- open */

/* Folders above a path, for the user only.  The first error, which matters only where a folder is then missing. */
static int make_folders(const char *path)
{
	char *copy = sl_memory_must(strdup(path));
	int error = 0;

	for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(copy, 0700) && errno != EEXIST && !error)
			error = errno;
		*at = '/';
	}
	free(copy);
	return error;
}

/* Creates a file as traces are created: only the user may read it.  False: errno. */
static bool make_file(const char *path)
{
	int error = make_folders(path), file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* through no link */

	if (file >= 0)
		return !close(file);
	if (errno == EEXIST)
		return true;
	if (errno == ENOENT && error)
		errno = error;
	return false;
}

/* malloc'ed */
static char *folder_of(const char *path)
{
	char *folder = sl_memory_must(strdup(path)), *slash = strrchr(folder, '/');

	if (!slash)
		snprintf(folder, strlen(path) + 1, ".");
	else
		slash[slash == folder] = 0;
	return folder;
}

/* The path without links, so that SQLite follows none: none leads to the folder, and the file itself is none.  malloc'ed. */
static char *without_links(const char *path)
{
	char *folder = folder_of(path), *real = realpath(folder, NULL);
	char *resolved = sl_memory_print("%s/%s", real ? real : folder, sl_paths_name(path));

	free(folder);
	free(real);
	return resolved;
}

/* Why nothing is opened there; NULL: it may be. */
static const char *misplaced(const char *path)
{
	char *folder = folder_of(path);
	struct stat st, in = {0};

	stat(folder, &in);
	free(folder);
	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		return "a link: name the catalogue that it leads to";
	if (sl_paths_is_strangers(path, &in, geteuid()))
		return "of another user than you, root and its folder's owner";
	return NULL;
}

static bool forbids(int error)
{
	return error == EACCES || error == EPERM || error == EROFS;
}

/* Checked before SQLite opens it, which would wait at a FIFO. */
static bool may_open(const char *path, bool write, char *why)
{
	const char *wrong = misplaced(path);
	struct stat st;
	int error;

	if (wrong) {
		snprintf(why, SL_STORE_WHY, "%s", wrong);
		errno = EINVAL;
		return false;
	}
	if ((lstat(path, &st) && errno == ENOENT && write && !make_file(path)) || access(path, R_OK) || lstat(path, &st)) {
		error = errno;
		snprintf(why, SL_STORE_WHY, "%s", strerror(error));
		errno = error == ENOSPC || error == EDQUOT ? EIO : forbids(error) ? EACCES : error;
		return false;
	}
	if (S_ISREG(st.st_mode))
		return true;
	snprintf(why, SL_STORE_WHY, "not a file");
	errno = EINVAL;
	return false;
}

/*
 * Checked before SQLite works on it, which would create files beside a foreign database.  By SQLite's own descriptor: to close
 * another one would drop the locks that this process has on the file.
 */
static bool is_ours(struct sl_store *store)
{
	char head[SL_STORE_HEAD] = "";
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;

	if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
	    file->pMethods->xFileSize(file, &size) == SQLITE_OK &&
	    (!size || (file->pMethods->xRead(file, head, sizeof(head), 0) == SQLITE_OK && store_head_is_ours(head, sizeof(head)))))
		return true;
	snprintf(store->why, sizeof(store->why), "no catalogue of stormlog");
	return false;
}

/* The file may be hostile: triggers, views and other definitions in it are not run. */
static void mistrust(sqlite3 *db)
{
	static const struct {
		int option, value;
	} options[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},	 {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
		       {SQLITE_DBCONFIG_ENABLE_VIEW, 0}, {SQLITE_DBCONFIG_DQS_DML, 0},	      {SQLITE_DBCONFIG_DQS_DDL, 0}};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		sqlite3_db_config(db, options[i].option, options[i].value, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_busy_timeout(db, BUSY_MS);
}

/* Hosts that share a file share no memory: what WAL mode keeps in it would differ, and the file be damaged. */
static bool is_shared(const char *path)
{
	enum { LOCAL, COPIES, NETWORK };
	static const struct {
		uint32_t magic, kind;
	} types[] = {
#define FILESYSTEM(magic, kind, name) {magic, kind},
#include "common/filesystems.def"
#undef FILESYSTEM
	};
	bool shared = false;
	struct statfs fs;

	if (statfs(path, &fs))
		return false;
	for (size_t i = 0; i < SL_COUNT(types); i++)
		shared |= types[i].magic == (uint32_t)fs.f_type && types[i].kind == NETWORK;
	return shared;
}

/*
 * WAL mode lets readers and a writer work at once, where the file system supports it.  The switch needs exclusive access for a
 * moment.  Where hosts may share the file there is a journal instead, which stays beside it.
 */
static bool set_mode(struct sl_store *store, bool shared)
{
	const char *text = shared ? "PRAGMA journal_mode=TRUNCATE" : "PRAGMA journal_mode=WAL";

	for (unsigned tries = 0; tries < 100; tries++) {
		if (sqlite3_exec(store->db, text, NULL, NULL, NULL) == SQLITE_OK)
			return true;
		if ((sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY)
			break;
		usleep(20000);
	}
	return sl_store_fail(store);
}

/* A process that is confined can open only what is there already.  SQLite makes it with the owner and mode of the database. */
static bool make_journal(struct sl_store *store, const char *path)
{
	char *journal = sl_memory_print("%s-journal", path);
	bool fine = !access(journal, F_OK) || store_touch(store);

	free(journal);
	return fine;
}

/* A transaction is under way, or who began it was killed: then one that writes puts back what was there before. */
static bool is_half_written(const char *path)
{
	char *journal = sl_memory_print("%s-journal", path);
	struct stat st;
	bool is = !lstat(journal, &st) && st.st_size && !access(path, W_OK);

	free(journal);
	return is;
}

/* EINVAL: the file itself is wrong.  EACCES: it may not be worked on.  Everything else may pass. */
static int error_of(struct sl_store *store)
{
	switch (store->code) {
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return EIO;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return EACCES;
	case SQLITE_CANTOPEN:
	case SQLITE_NOMEM:
	case SQLITE_PROTOCOL:
		return EAGAIN;
	default:
		return EINVAL;
	}
}

/* No file may be made beside it: SQLite only says that one could not be opened.  `why` says it then. */
static bool is_closed(const char *path, char *why)
{
	char *folder = folder_of(path);
	bool closed = access(folder, W_OK) && forbids(errno);

	if (closed)
		snprintf(why, SL_STORE_WHY, "its folder: %s", strerror(errno));
	free(folder);
	return closed;
}

struct sl_store *sl_store_open(const char *path, bool write, char *why)
{
	struct sl_store *store;
	char *resolved;
	bool fine, shared;
	int error, flags;

	if (!may_open(path, write, why))
		return NULL;
	write = write || is_half_written(path);
	store = sl_memory_must(calloc(1, sizeof(*store)));
	resolved = without_links(path);
	flags = (write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOFOLLOW;
	fine = sqlite3_open_v2(resolved, &store->db, flags, NULL) == SQLITE_OK || sl_store_fail(store);
	free(resolved);
	fine = fine && is_ours(store);
	if (fine)
		mistrust(store->db);
	/* checked before anything is written: a foreign file stays unchanged */
	fine = fine &&
	       sl_store_execute(
		       store,
		       "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY") &&
	       store_schema(store, write);
	if (fine && write) {
		char text[80];

		snprintf(text, sizeof(text), "PRAGMA max_page_count=%d; PRAGMA synchronous=NORMAL; PRAGMA user_version", PAGES_MAX);
		/* this last one reads, so that the files beside the database are open from now on */
		shared = is_shared(path);
		fine = set_mode(store, shared) && sl_store_execute(store, text) && (!shared || make_journal(store, path));
	}
	if (fine)
		return store;
	snprintf(why, SL_STORE_WHY, "%s", store->why);
	error = error_of(store);
	if (error == EAGAIN && write && is_closed(path, why))
		error = EACCES;
	sl_store_close(store);
	errno = error;
	return NULL;
}

bool sl_store_examine(struct sl_store *store)
{
	sqlite3_stmt *statement = sl_store_prepare(store, "PRAGMA quick_check(1)");
	int code = statement ? sl_store_step(store, statement) : SQLITE_ERROR;
	bool fine = code == SQLITE_ROW && !strcmp(sl_store_text(statement, 0), "ok");

	if (code == SQLITE_ROW && !fine) {
		store->code = SQLITE_CORRUPT;
		snprintf(store->why, sizeof(store->why), DAMAGED);
	}
	sqlite3_reset(statement);
	errno = error_of(store);
	return fine;
}

void sl_store_close(struct sl_store *store)
{
	const char *sql;

	if (!store)
		return;
	/* statements that FTS5 prepared belong to it */
	for (size_t at = 0; (sql = sl_map_next(&store->prepared, &at));)
		sqlite3_finalize((sqlite3_stmt *)sl_map_find(&store->prepared, sql));
	sqlite3_close(store->db);
	sl_map_free(&store->prepared);
	free(store);
}

bool sl_store_begin(struct sl_store *store)
{
	return sl_store_execute(store, "BEGIN IMMEDIATE");
}

bool sl_store_commit(struct sl_store *store)
{
	return sl_store_execute(store, "COMMIT");
}

void sl_store_rollback(struct sl_store *store)
{
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

/* A catalogue is in WAL mode from when it is first opened to be written; a backup is not until somebody works on it. */
static const char resting[] = {1, 1};
#define MODE_AT 18 /* file format write and read version: https://sqlite.org/fileformat2.html, 1.3.3 */

/* True: the place is empty, or an earlier backup without a user. */
static bool may_replace(const char *path, char *why)
{
	const char *wrong = NULL;
	char head[SL_STORE_HEAD];
	struct stat st;
	ssize_t size;
	int file;

	if (sl_save_is_open(path))
		wrong = "not a file";
	else if (!strcmp(sl_paths_name(path), SL_STORE_NAME) && !lstat(path, &st))
		wrong = "by its name a catalogue and no backup: name another file";
	if (wrong) {
		snprintf(why, SL_STORE_WHY, "%s", wrong);
		return false;
	}
	if (lstat(path, &st))
		return true;
	file = may_open(path, false, why) ? sl_paths_open_regular(path, &st) : -1;
	if (file < 0)
		return false;
	size = read(file, head, sizeof(head));
	close(file);
	if (!size || (store_head_is_ours(head, size) && !memcmp(head + MODE_AT, resting, sizeof(resting))))
		return true;
	snprintf(why, SL_STORE_WHY, "%s",
		 store_head_is_ours(head, size)
			 ? "a catalogue, or a backup that was worked on or is of an older version: name another file"
			 : "no catalogue of stormlog");
	return false;
}

static bool set_to_rest(const char *path)
{
	int file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	bool fine = file >= 0 && pwrite(file, resting, sizeof(resting), MODE_AT) == sizeof(resting);

	return (file < 0 || !close(file)) && fine;
}

static bool copy(struct sl_store *store, const char *path)
{
	sqlite3 *to = NULL;
	sqlite3_backup *backup = NULL;
	bool fine = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
		    sqlite3_exec(to, "PRAGMA journal_mode=MEMORY", NULL, NULL, NULL) == SQLITE_OK && /* no file beside it */
		    (backup = sqlite3_backup_init(to, "main", store->db, "main")) && sqlite3_backup_step(backup, -1) == SQLITE_DONE;

	if (backup)
		fine = sqlite3_backup_finish(backup) == SQLITE_OK && fine;
	if (!fine)
		snprintf(store->why, sizeof(store->why), "%s", to ? sqlite3_errmsg(to) : "no memory");
	sqlite3_close(to);
	if (fine && !set_to_rest(path)) {
		snprintf(store->why, sizeof(store->why), "%s", strerror(errno));
		fine = false;
	}
	return fine;
}

bool sl_store_backup(struct sl_store *store, const char *path)
{
	struct sl_save save;
	bool fine;

	if (!may_replace(path, store->why))
		return false;
	fine = sl_save_begin(&save, path, true);
	if (fine && !copy(store, save.made)) {
		sl_save_end(&save, false);
		return false;
	}
	fine = fine && sl_save_end(&save, true);
	if (!fine)
		snprintf(store->why, sizeof(store->why), "%s", strerror(errno));
	return fine;
}
