/* SPDX-License-Identifier: MIT */
/* The files of a recording: a pack's members, the images of a process, shards, siblings and summaries. */
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "analyzer/trace/trace.h"

/*
 * Packs, and snapshots of PyTorch's, which become a trace each (analyzer/snapshot/).  A pack is the files of a run as one small
 * file: SL_PACK_MAGIC, then one zstd frame of members: u32 length of the name, name, u64 size, bytes; a length of 0 ends them.
 * Little-endian.
 */

#define SL_PACK_MAGIC "stormlog.pack\n\1" /* 15 bytes and the terminator */

/*
 * If the file is a pack or a snapshot: returns the folder with its content, which is made at the first call and removed when the
 * program ends. NULL: errno says why it cannot be opened; 0: it is no pack.  Of a torn pack, what is left is unpacked, and a
 * message says so.  A pack that TMPDIR has no room for ends the program with exit status 4 and a message: a part of it would be
 * taken for the run.
 */
const char *sl_archive_open(const char *path);

/* The file begins as a snapshot of PyTorch's does, whatever its name. */
bool sl_archive_is_snapshot(const char *path);
/* The fault of a snapshot that was opened and cannot be read; NULL: there is none. */
const char *sl_archive_why(const char *path);

/* For who reads many packs: from now on one that finds no room is said and is NULL. */
void sl_archive_go_on(void);
/* errno of the last call of sl_archive_open, where the pack found no room; 0: it did. */
int sl_archive_unsaved(void);

/* True: the file was unpacked from a pack of which a part is missing. */
bool sl_archive_is_torn(const char *file);
/* The name in its pack of a file that was unpacked; another path as it is. */
const char *sl_archive_member(const char *file);

/* Removes that folder earlier, for callers that open one pack after the other.  Nothing from it may be in use any more. */
void sl_archive_close(const char *path);

/* Files of other programs that people name: their kind, by their first bytes. */

/* Prints on stderr what each of the files is that is known, and what to do.  True: each was one, so that no more needs telling. */
bool sl_foreign_tell(char *const *paths, unsigned count);

/* What an image tells without being opened: its header, for grouping images by run, and whether its process lives. */

/* Takes it from the first readable file, else from the ring.  False: none can be read. */
bool sl_image_header(const struct sl_image *image, struct sl_header *header);

/* False: all its files were last written before `since`, a Unix time in seconds. */
bool sl_image_written(const struct sl_image *image, int64_t since);

/* True: its ring says that its process is alive on this machine.  False: it is not, or there is no ring. */
bool sl_image_lives(const struct sl_image *image);

/* The other files of a process, of which one was named.  Each folder is read once.  All zeroes is empty. */
struct sl_siblings {
	struct sl_map folders, stems;
};

struct sl_sibling_files {
	SL_VECTOR(char *) paths; /* in no order */
	bool given;
};

/*
 * Which process images lie in the paths a user named: files of one image are brought together, images are
 * grouped by run.  Folders are searched four levels deep; `analysis` is never read.  A file is taken once, whatever links
 * lead to it, and of copies of a trace the first by name.  Packs are opened where they are met.  A file or a
 * folder in a folder that its group or others may write to is read only if this user, root or the owner of that folder owns it;
 * one note names the rest.  What the user named is read, whoever owns it.
 */

struct sl_run {
	char *id;	     /* "" where no header could be read */
	uint64_t started_ns; /* Unix time of its first process */
	unsigned images;
	int64_t rank;	 /* of its one process; -1: unknown, or it has several */
	unsigned number; /* position in the order in which runs were met */
};

struct sl_images {
	struct sl_image *images; /* sorted by name */
	unsigned *run_of;	 /* for each image an index into runs */
	unsigned image_count;
	size_t capacity, run_capacity;
	struct sl_run *runs; /* newest first */
	unsigned run_count;
	struct sl_damage copies; /* what is said of copies, which are counted once, and of files beyond the limit */
	uint64_t looked_at;	 /* files and folders */
	/* What is passed over, in the order in which it was met. */
	SL_VECTOR(char *) strangers; /* files of other users */
	SL_VECTOR(char *) unseen;    /* summaries and packs that cannot be opened; a part of any run may be in them */
	SL_VECTOR(char *) closed;    /* folders that this user may not list, except lost+found, and paths behind such a folder */
	SL_VECTOR(char *) links;     /* links under a trace's name */
	SL_VECTOR(char *) empty;     /* paths that the user named, without a trace */
	SL_VECTOR(char *) broken;    /* the path that the user named, below which is what `copies` calls damaged */
	uint64_t found_count;	     /* grows with all that tells that a path is not empty */
	bool one_is_enough;	     /* the search ends with the first */
	bool copies_too;  /* copies are kept: who reads all parts of a summary finds them, since a part does not see the others */
	bool packs_apart; /* packs in folders are listed and not opened */
	SL_VECTOR(char *) summaries, packs; /* packs: of folders */
	struct sl_map stems, met;	    /* index into images + 1; files and folders, whatever their path */
	struct sl_siblings siblings;	    /* of files that the user named */
};

/* Adds what lies at path; false: it does not exist (errno).  A path without traces adds nothing. */
bool sl_images_add(struct sl_images *folder, const char *path);

/* After the last sl_images_add: reads the headers and fills runs. */
void sl_images_group(struct sl_images *folder);

/* True: the user named no run, but all of them (--run all). */
static inline bool sl_images_is_all(const char *run)
{
	return run && !strcmp(run, "all");
}

/*
 * The index of a run.  run NULL: the newest; "all": -1.  An unknown name is printed with the names that there are, and gives -2.
 */
int sl_images_choose(const struct sl_images *folder, const char *run);

/* True: something that lies there is not read, so that what is made of the rest may not be the whole run. */
static inline bool sl_images_lacks(const struct sl_images *folder)
{
	return folder->copies.damaged || folder->strangers.count || folder->unseen.count || folder->closed.count ||
	       folder->links.count;
}

/* True: the image is of the run (an index; -1: any), or has no header, so that each run shows its damage. */
bool sl_images_is_of(const struct sl_images *folder, unsigned image, int run);
void sl_images_free(struct sl_images *folder);
void sl_images_drop(struct sl_image *image); /* Frees what an image owns, not the image. */

/*
 * A trace that still grows is read in passes.  A pass gives each event that no pass has taken, and may end at any item:
 *
 *	sl_live_passes_begin(trace);
 *	while (sl_live_passes_next(trace)) {
 *		order = sl_order_new(trace);
 *		while ((item = sl_order_next(order)) && wanted(item))
 *			sl_order_take(order);
 *		sl_order_suspend(order);
 *	}
 *
 * What was given and not taken (an item that was not wanted, a call in flight) is given again by the next pass.  An event may come
 * whose time lies before that of one taken earlier: its thread was between the stamp and the ring.
 */

void sl_live_passes_begin(struct sl_trace *trace); /* To be called before the first pass. */
/* Reads what was written since.  False: the trace must be opened anew, because files were folded that had not been read. */
bool sl_live_passes_next(struct sl_trace *trace);

/*
 * Files of replayed processes, X.summary: zstd frames.  A skippable one tells the file from other data of zstd.  The next holds
 * the index (one map).  Each further frame holds one map: first the commons (what several processes share, stored once), then
 * one process each (analyzer/summary).  Frames are copied unchanged from file to file, so merging never changes a process.
 */

#define SL_SUMMARY_SUFFIX  ".summary"
#define SL_SUMMARY_FORMAT  "stormlog.summary"
#define SL_SUMMARY_VERSION 5

bool sl_summaries_named(const char *path);

/* A frame that several processes need.  The first of them that is read takes the lock and reads it. */
struct sl_common {
	struct sl_image at; /* summary, offset, bytes and name alone */
	unsigned users;
	pthread_mutex_t lock;
	struct sl_trace *trace; /* with what is common alone; NULL: not read yet */
	bool sound, full;	/* full: it did not fit into the budget of names */
	const void *frame;	/* its bytes, as the merger keeps them; NULL: not read yet */
};
void sl_common_leave(struct sl_common *common); /* the last user frees it; NULL is allowed */

/*
 * Calls `add` for each process of the file; the image then belongs to the callee.  False: it cannot be listed, and `why` says more;
 * foreign: it is none of stormlog's, and so holds no part of a run.  Of a torn file those processes that are not in it whole cannot
 * be read.
 */
typedef void sl_summaries_add(void *context, const struct sl_image *image);
bool sl_summaries_list(const char *path, sl_summaries_add *add, void *context, bool *foreign, const char **why);

/* The map of one process, decompressed. */
struct sl_summary_part {
	msgpack_object map;
	msgpack_zone zone;
	uint8_t *bytes;
};
bool sl_summaries_read(struct sl_summary_part *part, const struct sl_image *image, struct sl_damage *damage);
void sl_summaries_close(struct sl_summary_part *part);

/* The frame unchanged, malloc'ed; NULL with a line in `damage`. */
void *sl_summaries_frame(const struct sl_image *image, struct sl_damage *damage);

/* Writes frames in the given order.  Processes are no longer marked as parts of a listing where all of it is here. */
struct sl_summary_frame {
	const char *name;
	const struct sl_header *identity;
	void *bytes;
	size_t size;
	const void *common; /* a frame; equal ones have one address; NULL: none */
	size_t common_size;
	struct sl_listing listing;
};
bool sl_summaries_write(FILE *out, const struct sl_summary_frame *frames, size_t count);
