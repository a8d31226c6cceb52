/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define PART	  ".part"
#define BEGUN_MAX 256 /* most unfinished uploads */

static const char *const folders[] = {"packs", "incoming", "pages", "work"}; /* made in this order */

static const struct sl_http_outcome no_quota = {507,
						"the store's quota is used up (--quota): the pack was not stored; reading goes on"};

static void part_path(const char *name, char path[SL_PACKS_NAME + 32])
{
	snprintf(path, SL_PACKS_NAME + 32, "incoming/%.64s" PART, name);
}

void sl_packs_path(const char *name, char path[SL_PACKS_NAME + 32])
{
	snprintf(path, SL_PACKS_NAME + 32, "packs/%.2s/%.64s" SL_PACKS_SUFFIX, name, name);
}

static void carried_path(const char *name, char path[SL_PACKS_NAME + 32])
{
	snprintf(path, SL_PACKS_NAME + 32, "packs/%.2s/%.64s" PART, name, name);
}

bool sl_packs_is_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == SL_PACKS_NAME && !name[SL_PACKS_NAME];
}

/* The files in one folder that are named as packs, with this ending. */
static void each_in(const struct sl_packs *packs, const char *path, const char *ending,
		    void (*each)(void *context, const char *name, const struct stat *st), void *context)
{
	DIR *folder = sl_server_folder_open(packs->folder, path, 0);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		char name[SL_PACKS_NAME + 1];
		struct stat st;

		snprintf(name, sizeof(name), "%.64s", entry->d_name);
		if (sl_packs_is_name(name) && !strcmp(entry->d_name + SL_PACKS_NAME, ending) &&
		    !fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			each(context, name, &st);
	}
	if (folder)
		closedir(folder);
}

static void count(void *context, const char *name, const struct stat *st)
{
	struct sl_packs *packs = context;

	packs->used += (uint64_t)st->st_size;
}

/* May be in the folder of a store that is to be. */
static bool is_before(const char *name)
{
	static const char *const names[] = {".", "..", "tokens", "tokens.new", "lost+found", ".snapshot"};
	bool is = false;

	for (size_t i = 0; i < SL_COUNT(names); i++)
		is = is || !strcmp(name, names[i]);
	return is;
}

static bool has(int at, const char *name, mode_t kind)
{
	struct stat st;

	return !fstatat(at, name, &st, 0) && (st.st_mode & S_IFMT) == kind;
}

static bool is_made(int at)
{
	return has(at, SL_STORE_NAME, S_IFREG) || has(at, folders[0], S_IFDIR);
}

/* A store has its catalogue or packs/; a new one is empty, but for what may be there before.  False: errno; ENOTEMPTY: none. */
static bool is_store(int at)
{
	struct dirent *entry;
	DIR *folder;
	int error;

	if (is_made(at))
		return true;
	folder = sl_server_folder_open(at, ".", 0);
	if (!folder)
		return false;
	errno = 0;
	while ((entry = readdir(folder)) && is_before(entry->d_name))
		;
	error = entry ? ENOTEMPTY : errno;
	closedir(folder);
	errno = error;
	return !error;
}

bool sl_packs_are_there(const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool there = folder >= 0 && is_made(folder);

	if (folder >= 0)
		close(folder);
	return there;
}

bool sl_packs_open(struct sl_packs *packs, const char *path)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return false;
	packs->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (packs->folder < 0)
		return false;
	if (!is_store(packs->folder))
		return false;
	for (size_t i = 0; i < SL_COUNT(folders); i++)
		if (mkdirat(packs->folder, folders[i], 0700) && errno != EEXIST)
			return false;
	sl_packs_each(packs, count, packs);
	each_in(packs, "incoming", PART, count, packs);
	packs->used += sl_server_folder_bytes(packs->folder, "pages");
	return true;
}

int sl_packs_read(const struct sl_packs *packs, const char *name, struct stat *st)
{
	char path[SL_PACKS_NAME + 32];
	int fd;

	sl_packs_path(name, path);
	fd = openat(packs->folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && (fstat(fd, st) || !S_ISREG(st->st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

uint64_t sl_packs_begun(const struct sl_packs *packs, const char *name)
{
	char path[SL_PACKS_NAME + 32];
	struct stat st;

	part_path(name, path);
	return fstatat(packs->folder, path, &st, AT_SYMLINK_NOFOLLOW) ? 0 : (uint64_t)st.st_size;
}

static bool is_there(const struct sl_packs *packs, const char *name)
{
	char path[SL_PACKS_NAME + 32];
	struct stat st;

	sl_packs_path(name, path);
	return !fstatat(packs->folder, path, &st, AT_SYMLINK_NOFOLLOW);
}

static struct sl_http_outcome full(void)
{
	return (struct sl_http_outcome){507, "the server's disk is full: the pack was not stored; reading goes on"};
}

static struct sl_http_outcome refused(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG
		       ? full()
		       : (struct sl_http_outcome){500, "the server cannot write to its store"};
}

static void count_begun(void *context, const char *name, const struct stat *st)
{
	++*(unsigned *)context;
}

static bool are_too_many(const struct sl_packs *packs, const char *name)
{
	char path[SL_PACKS_NAME + 32];
	unsigned begun = 0;
	struct stat st;

	part_path(name, path);
	if (!fstatat(packs->folder, path, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	each_in(packs, "incoming", PART, count_begun, &begun);
	return begun >= BEGUN_MAX;
}

bool sl_packs_are_full(const struct sl_packs *packs, uint64_t coming, uint64_t going)
{
	struct statvfs disk;

	return !fstatvfs(packs->folder, &disk) && (uint64_t)disk.f_bavail * disk.f_frsize + going < coming + packs->spare;
}

/* Checks the limits before any byte is read. packs->used already includes what this upload has on disk. */
static struct sl_http_outcome limits(const struct sl_packs *packs, const struct sl_incoming *in, uint64_t offset)
{
	uint64_t coming = (in->total == UINT64_MAX ? in->end : in->total) - offset;

	if (in->end < offset || (in->total != UINT64_MAX && in->total < in->end))
		return (struct sl_http_outcome){400, "Content-Range does not agree with itself"};
	if (offset + coming > packs->pack_max)
		return (struct sl_http_outcome){413, "the pack is larger than this server takes (--max-pack)"};
	if (packs->quota &&
	    __atomic_load_n(&packs->used, __ATOMIC_RELAXED) + offset + coming > packs->quota + sl_packs_begun(packs, in->name))
		return no_quota;
	if (are_too_many(packs, in->name))
		return (struct sl_http_outcome){507, "too many uploads were begun and not ended: end one of them, or wait a day"};
	if (sl_packs_are_full(packs, coming, 0))
		return full();
	return (struct sl_http_outcome){0};
}

/* True: the lock is held and the file still has this name.  Another upload may have finished it between our two calls. */
static bool take(const struct sl_packs *packs, struct sl_incoming *in, struct stat *st)
{
	char path[SL_PACKS_NAME + 32];
	struct stat named;

	part_path(in->name, path);
	return !flock(in->fd, LOCK_EX | LOCK_NB) && !fstat(in->fd, st) && S_ISREG(st->st_mode) &&
	       !fstatat(packs->folder, path, &named, AT_SYMLINK_NOFOLLOW) && named.st_ino == st->st_ino;
}

struct sl_http_outcome sl_packs_begin(struct sl_packs *packs, struct sl_incoming *in, uint64_t offset)
{
	char path[SL_PACKS_NAME + 32];
	struct sl_http_outcome outcome;
	struct stat st;

	in->fd = -1;
	if (is_there(packs, in->name))
		return (struct sl_http_outcome){200, "this pack is stored already"};
	outcome = limits(packs, in, offset);
	if (outcome.status)
		return outcome;
	part_path(in->name, path);
	in->fd = openat(packs->folder, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (in->fd < 0)
		return refused(errno);
	if (!take(packs, in, &st)) {
		sl_packs_leave(in);
		return (struct sl_http_outcome){423, "another upload of this pack is under way: try again"};
	}
	in->size = (uint64_t)st.st_size;
	if (offset != 0 && offset != in->size) {
		sl_packs_leave(in);
		return (struct sl_http_outcome){409, "the offset is not where this upload stopped (Upload-Offset)"};
	}
	in->size = offset;
	sl_hash_sha256_begin(&in->hash);
	if (ftruncate(in->fd, (off_t)offset)) {
		sl_packs_leave(in);
		return refused(errno);
	}
	__atomic_fetch_sub(&packs->used, (uint64_t)st.st_size - offset, __ATOMIC_RELAXED);
	return (struct sl_http_outcome){0};
}

static void drop(struct sl_packs *packs, struct sl_incoming *in)
{
	char path[SL_PACKS_NAME + 32];

	part_path(in->name, path);
	if (!unlinkat(packs->folder, path, 0))
		__atomic_fetch_sub(&packs->used, in->size, __ATOMIC_RELAXED);
	sl_packs_leave(in);
}

/* Hashes up to `limit` more of the bytes that are in the file.  False: errno. */
static bool hash_on(struct sl_incoming *in, uint64_t limit)
{
	char buffer[1 << 16];

	for (uint64_t left = in->size - in->hash.length < limit ? in->size - in->hash.length : limit; left;) {
		ssize_t got = pread(in->fd, buffer, left < sizeof(buffer) ? left : sizeof(buffer), (off_t)in->hash.length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : EIO;
			return false;
		}
		sl_hash_add(&in->hash, buffer, (size_t)got);
		left -= (uint64_t)got;
	}
	return true;
}

struct sl_http_outcome sl_packs_add(struct sl_packs *packs, struct sl_incoming *in, const void *bytes, uint64_t size)
{
	const uint64_t hash_bytes = 4 * size; /* so that little is left at the end, even if an upload continues an earlier one */
	const char *at = bytes;

	if (in->size + size > packs->pack_max) {
		drop(packs, in);
		return (struct sl_http_outcome){413, "the pack is larger than this server takes (--max-pack)"};
	}
	/* other uploads may have ended since this one began */
	if (packs->quota && __atomic_load_n(&packs->used, __ATOMIC_RELAXED) + size > packs->quota) {
		drop(packs, in);
		return no_quota;
	}
	while (size) {
		ssize_t wrote = pwrite(in->fd, at, size, (off_t)in->size);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			int error = errno;

			drop(packs, in);
			return refused(error);
		}
		at += wrote;
		size -= (uint64_t)wrote;
		in->size += (uint64_t)wrote;
		__atomic_fetch_add(&packs->used, (uint64_t)wrote, __ATOMIC_RELAXED);
	}
	if (!hash_on(in, hash_bytes)) {
		int error = errno;

		drop(packs, in);
		return refused(error);
	}
	return (struct sl_http_outcome){0};
}

/* A log is kept as it was sent. */
static bool is_log(const struct sl_incoming *in)
{
	char head[4096];
	ssize_t size = pread(in->fd, head, sizeof(head), 0);

	return size > 0 && sl_log_kind_of(head, (size_t)size) == SL_LOG_IS_TEXT;
}

/* Checks that the bytes have the hash in the file's name and are a pack or a log. */
static struct sl_http_outcome verify(struct sl_incoming *in)
{
	char hex[SL_PACKS_NAME + 1], magic[sizeof(SL_PACK_MAGIC)];

	if (!hash_on(in, UINT64_MAX))
		return refused(errno);
	sl_hash_sha256_end(&in->hash, SL_PACKS_NAME, hex);
	if (strcmp(hex, in->name))
		return (struct sl_http_outcome){422, "the SHA-256 of the upload is not its name: it was not stored"};
	if ((in->size <= sizeof(magic) || pread(in->fd, magic, sizeof(magic), 0) != sizeof(magic) ||
	     memcmp(magic, SL_PACK_MAGIC, sizeof(magic))) &&
	    !is_log(in))
		return (struct sl_http_outcome){422, "this is no pack and no log (stormlog-analyze pack makes one)"};
	return (struct sl_http_outcome){0};
}

static bool sync_folder(const struct sl_packs *packs, const char *path)
{
	int folder = openat(packs->folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool fine = folder >= 0 && !fsync(folder);

	if (folder >= 0)
		close(folder);
	return fine;
}

/* Copies the file, whole or not at all, to where no rename leads: packs/ is another file system. */
static bool carry(const struct sl_packs *packs, const struct sl_incoming *in, const char *from, const char *to)
{
	char part[SL_PACKS_NAME + 32];
	off_t at = 0;
	int out;
	bool fine;

	carried_path(in->name, part);
	out = openat(packs->folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0)
		return false;
	while ((uint64_t)at < in->size && sendfile(out, in->fd, &at, in->size - (uint64_t)at) > 0)
		;
	fine = (uint64_t)at == in->size && !fsync(out);
	fine = !close(out) && fine && !renameat(packs->folder, part, packs->folder, to);
	if (!fine) {
		int error = errno;

		unlinkat(packs->folder, part, 0);
		errno = error;
		return false;
	}
	unlinkat(packs->folder, from, 0);
	return true;
}

static bool place(struct sl_packs *packs, const struct sl_incoming *in)
{
	char from[SL_PACKS_NAME + 32], to[SL_PACKS_NAME + 32], folder[16];

	part_path(in->name, from);
	sl_packs_path(in->name, to);
	snprintf(folder, sizeof(folder), "packs/%.2s", in->name);
	if (!mkdirat(packs->folder, folder, 0700))
		sync_folder(packs, "packs");
	if (fsync(in->fd))
		return false;
	if (renameat(packs->folder, from, packs->folder, to) && (errno != EXDEV || !carry(packs, in, from, to)))
		return false;
	return sync_folder(packs, folder);
}

struct sl_http_outcome sl_packs_end(struct sl_packs *packs, struct sl_incoming *in)
{
	struct sl_http_outcome outcome;

	if (in->total != UINT64_MAX && in->size < in->total) {
		bool fine = !fsync(in->fd);

		sl_packs_leave(in);
		return fine ? (struct sl_http_outcome){202, "this part is stored; more is to come"} : refused(errno);
	}
	outcome = verify(in);
	if (!outcome.status && !place(packs, in))
		outcome = refused(errno);
	if (outcome.status) {
		drop(packs, in);
		return outcome;
	}
	sl_packs_leave(in);
	return (struct sl_http_outcome){201, "stored"};
}

void sl_packs_leave(struct sl_incoming *in)
{
	if (in->fd >= 0)
		close(in->fd); /* also releases the lock */
	in->fd = -1;
}

bool sl_packs_remove(struct sl_packs *packs, const char *name)
{
	char path[SL_PACKS_NAME + 32];
	struct stat st;

	sl_packs_path(name, path);
	if (fstatat(packs->folder, path, &st, AT_SYMLINK_NOFOLLOW) || unlinkat(packs->folder, path, 0))
		return false;
	__atomic_fetch_sub(&packs->used, (uint64_t)st.st_size, __ATOMIC_RELAXED);
	return true;
}

static void each_of(const struct sl_packs *packs, const char *ending,
		    void (*each)(void *context, const char *name, const struct stat *st), void *context)
{
	for (unsigned i = 0; i < 256; i++) {
		char path[16];

		snprintf(path, sizeof(path), "packs/%02x", i);
		each_in(packs, path, ending, each, context);
	}
}

void sl_packs_each(const struct sl_packs *packs, void (*each)(void *context, const char *name, const struct stat *st),
		   void *context)
{
	each_of(packs, SL_PACKS_SUFFIX, each, context);
}

static void remove_old(void *context, const char *name, const struct stat *st)
{
	struct sl_packs *packs = context;
	char path[SL_PACKS_NAME + 32];

	part_path(name, path);
	if (st->st_mtime + SL_DAY_S < time(NULL) && !unlinkat(packs->folder, path, 0))
		__atomic_fetch_sub(&packs->used, (uint64_t)st->st_size, __ATOMIC_RELAXED);
}

/* Removes what a killed server left of carry(). */
static void remove_half(void *context, const char *name, const struct stat *st)
{
	const struct sl_packs *packs = context;
	char path[SL_PACKS_NAME + 32];

	carried_path(name, path);
	if (st->st_mtime + SL_DAY_S < time(NULL))
		unlinkat(packs->folder, path, 0);
}

void sl_packs_sweep(struct sl_packs *packs)
{
	each_in(packs, "incoming", PART, remove_old, packs);
	each_of(packs, PART, remove_half, packs);
}
