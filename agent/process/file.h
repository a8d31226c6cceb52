/* SPDX-License-Identifier: MIT */
/*
 * Our own files in a program that may close any descriptor.  Each file is remembered by device and inode and checked before use, so
 * that we never write into a file of the program.
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

/* True: a file may grow to `bytes`. Beyond RLIMIT_FSIZE an attempt would be a SIGXFSZ in the program. */
bool sl_file_fits(uint64_t bytes);

/* none: this thread has SIGXFSZ blocked from now on, so that sl_file_fits is true and the write itself fails. */
void sl_file_no_signals(bool none);

/* True: the standard descriptors are open, so that a library's files, which stay open, get none of their numbers. */
bool sl_file_has_standard(void);

#define SL_FILE_OURS 64 /* more descriptors than we ever have open */

/* True: so many descriptors may be opened. */
bool sl_file_can_open(unsigned count);

/*
 * Moves fd to a number that the program cannot use, beyond its RLIMIT_NOFILE, or, where that cannot be raised, to a high one,
 * away from programs that close or dup2 low descriptors, and never a standard one.  Closes fd itself.  -1: there is none.
 */
int sl_file_move_high(int fd);

/* False: fd is not open. sl_file_is: also false if it is another file, or one that was removed. */
bool sl_file_identity(int fd, uint64_t *device, uint64_t *inode);
bool sl_file_is(int fd, uint64_t device, uint64_t inode);

/*
 * Opens a file again that the program closed, at a number as above.  -1 and errno: ESTALE where it is another file now, or was
 * removed or exchanged meanwhile.
 */
int sl_file_reopen(const char *path, uint64_t device, uint64_t inode);

/* Closes fd if it is still that file, removed or not: the program may have closed it and opened another one. */
void sl_file_close_own(int fd, uint64_t device, uint64_t inode);

/*
 * A write lock on the whole file: of this process alone, not of a forked child, and gone with the process.  Closing any
 * descriptor of the file would drop it.
 */
void sl_file_lock(int fd);

/* Writes all of it at offset `at`. 0 or errno; restarts on EINTR. */
int sl_file_write(int fd, const struct iovec *parts, int count, uint64_t at);

/* Removes a file, by a system call as well, because a sanitizer's runtime reads the paths given to the C library. 0 or errno. */
int sl_file_remove(const char *path);
int sl_file_rename(const char *from, const char *to);
/* Reads the target of a link, without a terminator.  Its bytes, or -1 with errno. */
ssize_t sl_file_link(const char *path, char *text, size_t size);

/* Reads at most size - 1 bytes of a small file and adds a terminator.  The bytes read, or -1 with errno. */
ssize_t sl_file_read(const char *path, char *text, size_t size);
