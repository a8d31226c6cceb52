/* SPDX-License-Identifier: MIT */
/* A stand-in for NCCL: a communicator takes buffers from the simulated runtime, and frees some of them while it is suspended. */
#include <stdint.h>
#include <stdlib.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { PERSIST = 4 << 20, DYNAMIC = 12 << 20 };
struct ncclComm {
	void *persist, *dynamic;
};
typedef struct {
	char internal[128];
} ncclUniqueId;

int ncclCommInitRank(struct ncclComm **comm, int ranks, ncclUniqueId id, int rank);
int ncclCommSuspend(struct ncclComm *comm, int flags);
int ncclCommResume(struct ncclComm *comm);
int ncclCommMemStats(struct ncclComm *comm, int stat, uint64_t *value);

int ncclCommInitRank(struct ncclComm **comm, int ranks, ncclUniqueId id, int rank)
{
	(void)ranks, (void)id, (void)rank;
	*comm = calloc(1, sizeof(**comm));
	return *comm ? cudaMalloc(&(*comm)->persist, PERSIST) || cudaMalloc(&(*comm)->dynamic, DYNAMIC) : 2;
}

int ncclCommSuspend(struct ncclComm *comm, int flags)
{
	void *dynamic = comm->dynamic;

	comm->dynamic = NULL;
	return flags & 1 ? cudaFree(dynamic) : 0;
}

int ncclCommResume(struct ncclComm *comm)
{
	return cudaMalloc(&comm->dynamic, DYNAMIC);
}

int ncclCommMemStats(struct ncclComm *comm, int stat, uint64_t *value)
{
	const uint64_t held = comm->dynamic ? DYNAMIC : 0, answers[] = {DYNAMIC, !comm->dynamic, PERSIST, PERSIST + held};

	*value = answers[stat & 3];
	return 0;
}
