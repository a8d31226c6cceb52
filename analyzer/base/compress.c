/* SPDX-License-Identifier: MIT */
#include "analyzer/base/compress.h"

#include <pthread.h>
#include <stdlib.h>
#include <zstd.h>

#include "analyzer/base/memory.h"

struct contexts {
	ZSTD_CCtx *to;
	ZSTD_DCtx *back;
};

static _Thread_local struct contexts *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void drop(void *ended)
{
	struct contexts *contexts = ended;

	ZSTD_freeCCtx(contexts->to);
	ZSTD_freeDCtx(contexts->back);
	free(contexts);
}

static void make_key(void)
{
	pthread_key_create(&key, drop);
}

static struct contexts *contexts_of(void)
{
	if (!own) {
		pthread_once(&once, make_key);
		own = sl_memory_must(calloc(1, sizeof(*own)));
		pthread_setspecific(key, own);
	}
	return own;
}

size_t sl_compress(void *to, size_t room, const void *from, size_t size, int level)
{
	struct contexts *contexts = contexts_of();

	contexts->to = contexts->to ? contexts->to : sl_memory_must(ZSTD_createCCtx());
	return ZSTD_compressCCtx(contexts->to, to, room, from, size, level);
}

size_t sl_compress_back(void *to, size_t room, const void *from, size_t size)
{
	struct contexts *contexts = contexts_of();

	contexts->back = contexts->back ? contexts->back : sl_memory_must(ZSTD_createDCtx());
	return ZSTD_decompressDCtx(contexts->back, to, room, from, size);
}
