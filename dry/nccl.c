/* SPDX-License-Identifier: MIT */
/*
 * NCCL of one rank, the others of which are absent: a collective copies the rank's own share, up to the size whose bytes decide
 * things, and takes the memory that NCCL takes. Types are numbered as in NCCL 2.28.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dry/version.h"

int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, uint64_t flags) __attribute__((weak));
int cuMemRelease(uint64_t handle) __attribute__((weak));
int cuMemAlloc_v2(uint64_t *address, size_t bytes) __attribute__((weak));
int cuMemFree_v2(uint64_t address) __attribute__((weak));

enum { SMALL = 1 << 20, MIB = 1 << 20, NODE = 8 /* ranks that NVLink or PCI connects */ };
enum { MAJOR = 75, MINOR = 76 }; /* of CUdevice_attribute */

/*
 * Buffers of a communicator. Its own are 194 blocks of 2 MiB on an H200 (tests/golden/gpu/libraries, NCCL 2.28, one rank):
 * three for each of 64 channels, and two. With several ranks we take as many channels as peers have. The code of its kernels
 * took 170 MiB there (torch-ddp beside torch-transformer in tests/golden/gpu/results.json). Connections are made when a call
 * first needs them (as in NCCL 2.22 and later). A connection with a peer has 10 MiB to receive (LL, LL128 and Simple: 0.5,
 * 4.7 and 4 MiB, and a head) and 2 MiB to send, for each channel. The sizes are those of NCCL's src/init.cc and
 * src/transport/p2p.cc, and an allocation log in its issue 1685 shows the same. A ring has one such connection. The NVLink
 * switch's buffers are 2 MiB a channel and rank (src/transport/nvls.cc). Counts of channels are those that NCCL's own log
 * prints on machines of eight such cards. A card that is not listed is taken as connected by PCI.
 */
static const struct wiring {
	int major, minor, ring, switched, peer; /* channels */
} wirings[] = {{8, 0, 24, 0, 32}, {9, 0, 24, 16, 32}, {10, 0, 24, 24, 32}, {0, 0, 4, 0, 2}};
enum { CONNECTION = 12 * MIB, SWITCHED = 2 * MIB, BLOCK = 2 * MIB, OF_ONE_RANK = 64, CODE = 170 * MIB };

enum part { OWN, RING, SWITCH, PEERS, PARTS };

struct communicator {
	int ranks, rank;
	bool connected[PARTS];
	uint64_t buffers[PARTS];
};

struct unique_id {
	char bytes[128];
};

/* The recorder has no function of this name, so the loader may not have bound it. */
static void *driver(const char *name)
{
	return dlsym(dlopen("libcuda.so.1", RTLD_LAZY), name);
}

static int current_device(void)
{
	int (*get)(int *) = (int (*)(int *))driver("cuCtxGetDevice"), device = 0;

	return get && !get(&device) ? device : 0;
}

static const struct wiring *wiring(void)
{
	int (*get)(int *, int, int) = (int (*)(int *, int, int))driver("cuDeviceGetAttribute"), major = 0, minor = 0;
	const struct wiring *w = wirings;

	if (get) {
		get(&major, MAJOR, current_device());
		get(&minor, MINOR, current_device());
	}
	while (w->major && (w->major != major || w->minor != minor))
		w++;
	return w;
}

static void take(struct communicator *c, enum part part, size_t bytes)
{
	struct {
		int type, handles, location, device;
		uint64_t rest[3];
	} properties = {.type = 1, .location = 1, .device = current_device()}; /* CUmemAllocationProp: pinned, on a device */

	if (c->connected[part] || !cuMemCreate)
		return;
	c->connected[part] = true;
	if (bytes)
		cuMemCreate(&c->buffers[part], bytes, &properties, 0);
}

static int node_ranks(const struct communicator *c)
{
	return c->ranks < NODE ? c->ranks : NODE;
}

static void connect_ring(struct communicator *c)
{
	if (c->ranks > 1)
		take(c, RING, (size_t)wiring()->ring * CONNECTION);
}

static void connect_peers(struct communicator *c)
{
	take(c, PEERS, (size_t)wiring()->peer * (size_t)(node_ranks(c) - 1) * CONNECTION);
}

static size_t width(int type)
{
	static const unsigned char widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return (unsigned)type < sizeof(widths) ? widths[type] : 1;
}

static void move(void *to, const void *from, size_t bytes)
{
	if (to != from && bytes <= SMALL)
		memmove(to, from, bytes);
}

static int make(struct communicator **out, int ranks, int rank)
{
	static struct communicator code; /* a process loads it once */

	*out = calloc(1, sizeof(**out));
	**out = (struct communicator){ranks, rank};
	take(&code, OWN, CODE);
	take(*out, OWN, (size_t)(2 + 3 * (ranks > 1 ? wiring()->peer : OF_ONE_RANK)) * BLOCK);
	return 0;
}

int ncclCommInitAll(struct communicator **out, int ranks, const int *devices)
{
	for (int i = 0; i < ranks; i++)
		make(out + i, ranks, i);
	return 0;
}

int ncclCommInitRank(struct communicator **out, int ranks, struct unique_id id, int rank)
{
	return make(out, ranks, rank);
}

int ncclCommInitRankConfig(struct communicator **out, int ranks, struct unique_id id, int rank, void *config)
{
	return make(out, ranks, rank);
}

int ncclCommInitRankScalable(struct communicator **out, int ranks, int rank, int ids, struct unique_id *id, void *config)
{
	return make(out, ranks, rank);
}

/* How many of the absent ranks have the same color is not known, so the new one gathers only its own share. */
int ncclCommSplit(struct communicator *c, int color, int key, struct communicator **out, void *config)
{
	return make(out, 1, 0);
}

int ncclCommDestroy(struct communicator *c)
{
	for (int i = 0; i < PARTS; i++)
		if (c->buffers[i])
			cuMemRelease(c->buffers[i]);
	free(c);
	return 0;
}

int ncclCommAbort(struct communicator *c)
{
	return ncclCommDestroy(c);
}

int ncclCommCount(struct communicator *c, int *out)
{
	*out = c->ranks;
	return 0;
}

int ncclCommUserRank(struct communicator *c, int *out)
{
	*out = c->rank;
	return 0;
}

int ncclCommGetAsyncError(struct communicator *c, int *out)
{
	*out = 0;
	return 0;
}

int ncclMemAlloc(uint64_t *out, size_t bytes)
{
	return cuMemAlloc_v2 && !cuMemAlloc_v2(out, bytes) ? 0 : 1;
}

int ncclMemFree(uint64_t address)
{
	return cuMemFree_v2 && !cuMemFree_v2(address) ? 0 : 1;
}

int ncclAllGather(const char *from, char *to, size_t count, int type, struct communicator *c, void *stream)
{
	connect_ring(c);
	for (int i = 0; i < c->ranks; i++)
		move(to + (size_t)i * count * width(type), from, count * width(type));
	return 0;
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, struct communicator *c, void *stream)
{
	connect_ring(c);
	if (c->ranks > 2)
		take(c, SWITCH, (size_t)wiring()->switched * (size_t)node_ranks(c) * SWITCHED);
	move(to, from, count * width(type));
	return 0;
}

int ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root, struct communicator *c, void *stream)
{
	connect_ring(c);
	move(to, from, count * width(type));
	return 0;
}

int ncclReduceScatter(const char *from, void *to, size_t count, int type, int operation, struct communicator *c, void *stream)
{
	connect_ring(c);
	move(to, from + (size_t)c->rank * count * width(type), count * width(type));
	return 0;
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct communicator *c, void *stream)
{
	connect_ring(c);
	move(to, from, count * width(type));
	return 0;
}

int ncclAlltoAll(const void *from, void *to, size_t count, int type, struct communicator *c, void *stream)
{
	connect_peers(c);
	move(to, from, (size_t)c->ranks * count * width(type));
	return 0;
}

/*
 * A group's calls act at its end. The data that the rank sends to a peer also comes back where the sizes agree, as from a peer
 * with the same share. All else that it would receive is 0.
 */
static __thread struct group {
	int depth;
	size_t count, room;
	struct transfer {
		const struct communicator *c;
		void *at;
		size_t bytes;
		int peer;
		bool sends;
	} * transfers;
} group;

static void receive(const struct transfer *to)
{
	for (size_t i = 0; i < group.count; i++) {
		const struct transfer *t = &group.transfers[i];

		if (t->sends && t->c == to->c && t->peer == to->peer && t->bytes == to->bytes) {
			move(to->at, t->at, to->bytes);
			return;
		}
	}
	if (to->bytes <= SMALL)
		memset(to->at, 0, to->bytes);
}

static int transfer(struct transfer t)
{
	if (t.peer != t.c->rank)
		connect_peers((struct communicator *)t.c);
	if (!group.depth) {
		if (!t.sends)
			receive(&t);
		return 0;
	}
	if (group.count == group.room) {
		size_t room = group.room ? 2 * group.room : 64;
		void *grown = realloc(group.transfers, room * sizeof(t));

		if (!grown)
			return 0;
		group.transfers = grown;
		group.room = room;
	}
	group.transfers[group.count++] = t;
	return 0;
}

int ncclSend(void *from, size_t count, int type, int peer, struct communicator *c, void *stream)
{
	return transfer((struct transfer){c, from, count * width(type), peer, true});
}

int ncclRecv(void *to, size_t count, int type, int peer, struct communicator *c, void *stream)
{
	return transfer((struct transfer){c, to, count * width(type), peer, false});
}

int ncclGroupStart(void)
{
	group.depth++;
	return 0;
}

int ncclGroupEnd(void)
{
	if (--group.depth > 0)
		return 0;
	for (size_t i = 0; i < group.count; i++)
		if (!group.transfers[i].sends)
			receive(&group.transfers[i]);
	group.count = 0;
	return 0;
}

int ncclGetVersion(int *out)
{
	int v[3] = {2, 28, 9};

	sl_dry_version(__builtin_return_address(0), "nvidia_nccl_cu*", v);
	*out = v[0] * 10000 + v[1] * 100 + v[2];
	return 0;
}

const char *ncclGetErrorString(int code)
{
	return code ? "internal error" : "no error";
}

const char *ncclGetLastError(struct communicator *c)
{
	return "";
}
