/* SPDX-License-Identifier: MIT */
#define ZSTD_STATIC_LINKING_ONLY
#include "agent/file/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <zstd.h>

#include "common/text.h"
#include "common/block.h"

/*
 * How hard to compress.  Coding literals takes longer than all else and gains little beside matches (doc/performance.md).  For
 * literals, 0 is the level's own choice and 2 stores them; zstd 1.5 renamed the type of these values.
 */
static const struct effort {
	int level, shortest_match, literals;
} thorough = {2, 4, 0}, hurried = {-30, 6, 2};

#define NAMES_MAX 10000

/* "rank-00003-41237-2" and a suffix; -2 and on where the name is taken. */
static void add_name(struct sl_text *text, const struct sl_process_identity *process, unsigned attempt, const char *suffix)
{
	sl_text_add(text, "rank-");
	sl_text_add_padded(text, process->rank < 0 ? 0 : (uint64_t)process->rank, 5);
	sl_text_add(text, "-");
	sl_text_add_number(text, process->pid);
	if (attempt > 1) {
		sl_text_add(text, "-");
		sl_text_add_number(text, attempt);
	}
	sl_text_add(text, suffix);
}

/* A ring outside the trace's folder shares its folder with every job of the node, so its name contains the run's id. */
static void add_run(struct sl_text *text, const struct sl_process_identity *process)
{
	size_t begin = text->used;

	sl_text_add(text, SL_REMOTE_RING_PREFIX);
	sl_text_add(text, process->run_id);
	sl_text_add(text, "-");
	for (char *at = text->text + begin; *at; at++)
		if (*at == '/')
			*at = '_';
}

static void name_files(struct sl_trace_store *store, const struct sl_process_identity *process, bool elsewhere, unsigned attempt)
{
	struct sl_text trace = sl_text_begin(store->trace, sizeof(store->trace));
	struct sl_text ring = sl_text_begin(store->ring, sizeof(store->ring));

	sl_text_add(&trace, process->directory);
	sl_text_add(&trace, "/");
	add_name(&trace, process, attempt, SL_TRACE_SUFFIX);
	sl_text_add(&ring, elsewhere ? SL_REMOTE_RING : process->directory);
	sl_text_add(&ring, "/");
	if (elsewhere)
		add_run(&ring, process);
	add_name(&ring, process, attempt, SL_RING_SUFFIX);
}

void sl_store_path(const struct sl_trace_store *store, unsigned number, char path[SL_STORE_PATH])
{
	struct sl_text text = sl_text_begin(path, SL_STORE_PATH);

	sl_text_add(&text, store->trace);
	if (number == 1)
		return;
	text.used -= strlen(SL_TRACE_SUFFIX);
	sl_text_add(&text, number ? "." : ".fold");
	if (number) {
		sl_text_add_padded(&text, number, 6);
		sl_text_add(&text, SL_TRACE_SUFFIX);
	}
}

const char *sl_store_ring_name(const struct sl_trace_store *store)
{
	return store->ring_elsewhere ? store->ring : strrchr(store->ring, '/') + 1;
}

int sl_store_create(const char *path)
{
	int fd = sl_file_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);

	return fd < 0 ? -1 : sl_file_move_high(fd);
}

static void give_back(struct sl_trace_store *store)
{
	sl_file_close(store->fd);
	sl_file_remove(store->trace);
	store->fd = -1;
}

static int claim_pair(struct sl_trace_store *store, int *ring_fd)
{
	int err;

	store->fd = sl_store_create(store->trace);
	if (store->fd < 0)
		return errno;
	*ring_fd = sl_store_create(store->ring);
	if (*ring_fd >= 0)
		return 0;
	err = errno;
	give_back(store);
	return err;
}

static bool make_compressor(struct sl_trace_store *store)
{
	size_t workspace = ZSTD_estimateCCtxSize(thorough.level);
	void *pages = sl_pages_map(workspace);
	ZSTD_CCtx *cctx = pages ? ZSTD_initStaticCCtx(pages, workspace) : NULL;

	store->frame_bytes = ZSTD_compressBound(SL_BLOCK_BYTES(SL_BLOCK_EVENTS));
	store->frame = sl_pages_map(store->frame_bytes);
	if (!cctx || !store->frame)
		return false;
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, 1); /* a static context starts without it */
	store->compressor = cctx;
	return true;
}

static int claim(struct sl_trace_store *store, const struct sl_process_identity *process, bool elsewhere, int *ring_fd)
{
	int err = EEXIST;

	for (unsigned attempt = 1; err == EEXIST && attempt < NAMES_MAX; attempt++) {
		name_files(store, process, elsewhere, attempt);
		err = claim_pair(store, ring_fd);
	}
	store->ring_elsewhere = elsewhere;
	return err;
}

/* True: memory is left in SL_REMOTE_RING for rings beside what the program itself may need: a container's has 64 MiB by default. */
static bool remote_is_large(void)
{
	struct statfs fs;

	return !syscall(SYS_statfs, SL_REMOTE_RING, &fs) && (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= 256 << 20;
}

/*
 * True: the file is on an overlay over a copy-on-write file system such as btrfs.  There FS_NOCOW_FL is accepted, and has no
 * effect.  The file must be empty.
 */
static bool is_copied(int fd)
{
	unsigned long flags = FS_NOCOW_FL; /* an int is read, of what is declared as a long */
	struct statfs fs;

	return !syscall(SYS_fstatfs, fd, &fs) && (uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC &&
	       !syscall(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
}

int sl_store_claim(struct sl_trace_store *store, const struct sl_process_identity *process, int *ring_fd)
{
	bool can = !syscall(SYS_faccessat, AT_FDCWD, SL_REMOTE_RING, W_OK), elsewhere = can && sl_netfs_why(process->directory);
	int err;

	if (!make_compressor(store))
		return ENOMEM;
	err = claim(store, process, elsewhere, ring_fd);
	if (!err && can && !elsewhere && is_copied(*ring_fd) && remote_is_large()) {
		sl_file_close(*ring_fd);
		sl_file_remove(store->ring);
		give_back(store);
		err = claim(store, process, true, ring_fd);
	}
	store->number = 1;
	if (!err)
		sl_file_identity(store->fd, &store->device, &store->inode);
	return err;
}

/* Makes a zstd frame of bytes stored as they are: a header with their number, then parts, each behind 3 bytes. */
static size_t store_plain(uint8_t *frame, const uint8_t *bytes, size_t size)
{
	const uint32_t magic = ZSTD_MAGICNUMBER, number = (uint32_t)size;
	size_t used = 9;

	memcpy(frame, &magic, 4);
	frame[4] = 0xa0; /* one segment, four bytes of number, no checksum */
	memcpy(frame + 5, &number, 4);
	do {
		size_t part = size < ZSTD_BLOCKSIZE_MAX ? size : ZSTD_BLOCKSIZE_MAX;
		uint32_t head = (uint32_t)part << 3 | (part == size);

		memcpy(frame + used, &head, 3);
		memcpy(frame + used + 3, bytes, part);
		used += 3 + part;
		bytes += part;
		size -= part;
	} while (size);
	return used;
}

static size_t compress(struct sl_trace_store *store, const void *bytes, size_t size)
{
	const struct effort *effort = store->hurried ? &hurried : &thorough;

	ZSTD_CCtx_setParameter(store->compressor, ZSTD_c_compressionLevel, effort->level);
	ZSTD_CCtx_setParameter(store->compressor, ZSTD_c_minMatch, effort->shortest_match);
	ZSTD_CCtx_setParameter(store->compressor, ZSTD_c_literalCompressionMode, effort->literals);
	return ZSTD_compress2(store->compressor, store->frame, store->frame_bytes, bytes, size);
}

int sl_store_compress(struct sl_trace_store *store, struct sl_frame_index *index, const void *bytes, size_t size)
{
	size_t compressed = store->plain ? store_plain(store->frame, bytes, size) : compress(store, bytes, size);

	if (ZSTD_isError(compressed))
		return EOVERFLOW;
	index->magic = SL_FRAME_MAGIC;
	index->size = sizeof(*index) - 8;
	index->compressed = (uint32_t)compressed;
	index->check = sl_frame_index_check(index);
	return 0;
}

/* Goes on in a new file, which has a note about it, because the old one was removed. */
static int begin_anew(struct sl_trace_store *store, const char *path)
{
	store->fd = sl_store_create(path);
	if (store->fd < 0)
		return errno;
	sl_file_identity(store->fd, &store->device, &store->inode);
	store->end = 0;
	store->torn = false;
	sl_define_gap(store->events, sl_agent->process.monotonic_ns, sl_agent_now(),
		      "the trace file was removed, and the stacks it defined with it", true);
	store->events = 0;
	return 0;
}

/* Opens the file again, if it still has its name, because the program closed our descriptor. */
static int reopen(struct sl_trace_store *store)
{
	char path[SL_STORE_PATH];
	int fd;

	sl_store_path(store, store->number, path);
	fd = sl_file_reopen(path, store->device, store->inode);
	if (fd < 0)
		return errno == ENOENT ? begin_anew(store, path) : errno;
	store->fd = fd;
	return 0;
}

/*
 * Makes sure that there is a file with a header (except when `header` is being written) and nothing behind its last whole
 * frame.
 */
static int make_ready(struct sl_trace_store *store, bool header)
{
	int err = sl_file_is(store->fd, store->device, store->inode) ? 0 : reopen(store);

	if (!err && store->torn && ftruncate(store->fd, (off_t)store->end))
		err = errno;
	return err || header ? err : sl_store_begin(store);
}

static int write_parts(struct sl_trace_store *store, struct iovec parts[2])
{
	int err;

	if (!sl_file_is(store->fd, store->device, store->inode)) /* closed while we compressed: the next attempt opens it again */
		return ESTALE;
	store->torn = true;
	atomic_store(&sl_agent->writing_since_ns, sl_agent_now());
	err = sl_file_write(store->fd, parts, 2, store->end);
	atomic_store(&sl_agent->writing_since_ns, 0);
	if (!err)
		store->torn = false;
	return err;
}

int sl_store_append(struct sl_trace_store *store, struct sl_frame_index index, const void *bytes, size_t size)
{
	struct iovec parts[2] = {{&index, sizeof(index)}, {store->frame, 0}};
	int err = make_ready(store, index.kind == SL_FRAME_HEADER);

	if (!err)
		err = sl_store_compress(store, &index, bytes, size);
	parts[1].iov_len = index.compressed;
	if (!err)
		err = write_parts(store, parts);
	store->err = err;
	atomic_store(&sl_agent->stalled, err != 0);
	if (err)
		return err;
	atomic_fetch_add(&sl_agent->frames, 1);
	store->end += sizeof(index) + index.compressed;
	if (index.kind == SL_FRAME_BLOCK) {
		atomic_fetch_add(&sl_agent->blocks, 1);
		store->events += index.count;
	}
	return 0;
}

int sl_store_begin(struct sl_trace_store *store)
{
	const struct sl_ringfile *ring = sl_agent->ring->file;
	struct sl_frame_index index = {.kind = SL_FRAME_HEADER, .count = 1};

	return store->end ? 0 : sl_store_append(store, index, (const uint8_t *)ring + SL_RINGFILE_HEADER_AT, ring->header_bytes);
}

void sl_store_sync(struct sl_trace_store *store)
{
	if (!sl_file_is(store->fd, store->device, store->inode))
		return;
	atomic_store(&sl_agent->writing_since_ns, sl_agent_now());
	fdatasync(store->fd);
	atomic_store(&sl_agent->writing_since_ns, 0);
}

int sl_store_continue(struct sl_trace_store *store)
{
	char path[SL_STORE_PATH];
	int fd;

	sl_store_path(store, store->number + 1, path);
	fd = sl_store_create(path);
	if (fd < 0)
		return errno;
	sl_file_close(store->fd);
	store->fd = fd;
	sl_file_identity(fd, &store->device, &store->inode);
	store->closed_bytes += store->end;
	if (store->number == 1)
		store->base_bytes = store->end;
	store->number++;
	store->end = 0;
	store->torn = false;
	return 0;
}

int sl_store_bring_ring(struct sl_trace_store *store, struct sl_ring *ring)
{
	static char home[sizeof(store->ring)];
	struct sl_text path = sl_text_begin(home, sizeof(home));
	int err;

	if (!store->ring_elsewhere)
		return 0;
	sl_text_add(&path, store->trace);
	path.used -= strlen(SL_TRACE_SUFFIX);
	sl_text_add(&path, SL_RING_SUFFIX);
	ring->path = home;
	err = sl_ring_rebuild(ring);
	if (err)
		return err;
	sl_file_remove(store->ring);
	memcpy(store->ring, home, sizeof(home));
	store->ring_elsewhere = false;
	return 0;
}

/* The flag is set before the look: a call that ends later waits for the writer (late.c), and one that ended earlier is seen. */
void sl_store_remove_ring(struct sl_trace_store *store, const struct sl_ring *ring, const struct sl_producer *mine,
			  uint64_t silent_ns)
{
	atomic_store(&store->ring_removed, true);
	if (sl_ring_quiet(ring, mine, silent_ns))
		sl_file_remove(store->ring);
	else
		atomic_store(&store->ring_removed, false);
}

void sl_store_abandon(struct sl_trace_store *store)
{
	sl_file_remove(store->ring);
	sl_file_remove(store->trace);
	sl_file_close(store->fd);
	store->fd = -1;
}
