/* SPDX-License-Identifier: MIT */
/*
 * Which process images lie in the paths a user named: files of one image are brought together, images are
 * grouped by run.  Folders are searched four levels deep; `analysis` is never read.  A file is taken once, whatever links
 * lead to it, and of copies of a trace the first by name.  Packs are opened where they are met.  A file or a
 * folder in a folder that its group or others may write to is read only if this user, root or the owner of that folder owns it;
 * one note names the rest.  What the user named is read, whoever owns it.
 */
#pragma once

#include <string.h>

#include "analyzer/base/map.h"
#include "analyzer/trace/siblings.h"
#include "analyzer/trace/trace.h"

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
	SL_VECTOR(char *) closed;    /* folders that this user may not list, lost+found aside, and what lies behind one */
	SL_VECTOR(char *) links;     /* links under a trace's name */
	SL_VECTOR(char *) empty;     /* paths that the user named, without a trace */
	SL_VECTOR(char *) broken;    /* the path that the user named, below which is what `copies` calls damaged */
	uint64_t known;		     /* grows with all that tells that a path is not empty */
	bool one_is_enough;	     /* the search ends with the first */
	bool copies_too;  /* copies are kept: who reads all parts of a summary finds them, since a part does not see the others */
	bool packs_apart; /* packs in folders are listed and not opened */
	SL_VECTOR(char *) summaries, packs; /* packs: of folders */
	struct sl_map stems, met;	    /* index into images + 1; files and folders, whatever their path */
	struct sl_beside beside;	    /* of files that the user named */
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

/* True: the image is of the run (an index; -1: any), or has no header, so that its damage is told with whichever run is read. */
bool sl_images_is_of(const struct sl_images *folder, unsigned image, int run);
void sl_images_free(struct sl_images *folder);
void sl_images_drop(struct sl_image *image); /* Frees what an image owns, not the image. */
