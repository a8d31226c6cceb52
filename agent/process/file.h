/* SPDX-License-Identifier: MIT */
/*
 * Files of our own inside a program that may close any descriptor: each is remembered by device and inode and
 * checked before use, so that we never write into a file of the program's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * open, close, pwrite as system calls: the C library's are cancellation points, and the program's threads must not be cancelled
 * inside us.  fd, or -1 and errno; restarts on EINTR.
 */
int sl_file_open(const char *path, int flags);
void sl_file_close(int fd);

/* May a file grow to `bytes`?  Beyond RLIMIT_FSIZE an attempt would be a SIGXFSZ in the program. */
bool sl_file_fits(uint64_t bytes);

/* This thread has SIGXFSZ blocked for good, or no more: the attempt itself tells. */
void sl_file_no_signals(bool none);

/* May so many descriptors be opened? */
bool sl_file_can_open(unsigned count);

/* A copy of fd high up, where programs that close or dup2 low descriptors do not look; fd itself is closed. */
int sl_file_move_high(int fd);

/* False: fd is not open; or is another file, or one that was removed. */
bool sl_file_identity(int fd, uint64_t *device, uint64_t *inode);
bool sl_file_is(int fd, uint64_t device, uint64_t inode);

/* Close fd if it is still that file, removed or not: the program may have closed it, and opened another there. */
void sl_file_close_own(int fd, uint64_t device, uint64_t inode);

/*
 * A write lock on the whole file: of this process alone, not of a forked child, and gone with the process.  Closing any
 * descriptor of the file would drop it.
 */
void sl_file_lock(int fd);

/* All of it at `at`, or errno; restarts on EINTR. */
int sl_file_write(int fd, const struct iovec *parts, int count, uint64_t at);

/* By system call as well: a sanitizer's runtime looks into the paths that the C library is given.  0 or errno. */
int sl_file_remove(const char *path);
int sl_file_rename(const char *from, const char *to);
/* What a link names, without a terminator; bytes, -1 with errno. */
ssize_t sl_file_link(const char *path, char *text, size_t size);

/* At most size - 1 bytes of a small file and a terminator; bytes read, -1 with errno. */
ssize_t sl_file_read(const char *path, char *text, size_t size);
