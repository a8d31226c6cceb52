/* SPDX-License-Identifier: MIT */
/* interposed MODE: NVTX 2 (nvtx2), roctx linked (roctx), roctx by dlopen and dlsym (dlsym PATH).  Prints what
 * they return.  push TEXT...: an allocation, and a range of NVTX 2 for each text. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int cudaMalloc(void **pointer, size_t bytes);
int nvtxRangePushA(const char *message);
int nvtxRangePop(void);
void nvtxMarkA(const char *message);
uint64_t nvtxRangeStartA(const char *message);
void nvtxRangeEnd(uint64_t id);
void *nvtxDomainCreateA(const char *name);
int nvtxDomainRangePushEx(void *domain, const void *attributes);
int nvtxDomainRangePop(void *domain);
int roctxRangePushA(const char *message);
int roctxRangePop(void);
void roctxMarkA(const char *message);
uint64_t roctxRangeStartA(const char *message);
void roctxRangeStop(uint64_t id);

static void allocate(size_t bytes)
{
	void *pointer;

	cudaMalloc(&pointer, bytes);
}

static void nvtx2(void)
{
	struct {
		uint16_t version, size;
		uint32_t words[7];
		int32_t type;
		const char *message;
	} attributes = {.version = 2, .size = 48, .type = 1, .message = "inner"};
	void *domain = nvtxDomainCreateA("lib");
	uint64_t id;

	printf("%d\n", nvtxRangePushA("step_4"));
	allocate(1);
	printf("%d\n", nvtxDomainRangePushEx(domain, &attributes));
	allocate(2);
	printf("%d\n", nvtxDomainRangePop(domain));
	printf("%d\n", nvtxRangePop());
	nvtxMarkA("here");
	id = nvtxRangeStartA("whole");
	printf("%d\n", (int)id);
	nvtxRangeEnd(id);
}

static void roctx(int (*push)(const char *), int (*pop)(void))
{
	uint64_t id;

	printf("%d\n", push("step_4"));
	allocate(1);
	printf("%d\n", pop());
	roctxMarkA("here");
	id = roctxRangeStartA("whole");
	printf("%d\n", (int)id);
	roctxRangeStop(id);
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "nvtx2"))
		nvtx2();
	if (!strcmp(argv[1], "roctx"))
		roctx(roctxRangePushA, roctxRangePop);
	if (!strcmp(argv[1], "dlsym")) {
		void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);

		roctx((int (*)(const char *))dlsym(library, "roctxRangePushA"), (int (*)(void))dlsym(library, "roctxRangePop"));
	}
	if (!strcmp(argv[1], "push"))
		allocate(1);
	for (int i = 2; i < argc && !strcmp(argv[1], "push"); i++) {
		nvtxRangePushA(argv[i]);
		nvtxRangePop();
	}
	return 0;
}
