/* SPDX-License-Identifier: MIT */
/* ranges SCENARIO: NVTX's calls with allocations between them; prints what the calls returned. */
#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#define HAVE_PAYLOAD 1
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaMalloc(void **pointer, size_t bytes);
int module_push(const char *name);
int module_pop(void);

static void allocate(size_t bytes)
{
	void *pointer;

	cudaMalloc(&pointer, bytes);
}

static void told(long long value)
{
	printf("%lld\n", value);
}

static nvtxEventAttributes_t attributes(int type, const void *message)
{
	nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .messageType = type};

	a.message.ascii = message;
	return a;
}

static void plain(void)
{
	told(nvtxRangePushA("before"));
	told(nvtxRangePushA("step_12"));
	allocate(100);
	told(nvtxRangePop());
	allocate(200);
	told(nvtxRangePop());
	nvtxRangePop(); /* one too many */
	allocate(300);
	told(nvtxRangePushA("epoch 3 of 10, step_7"));
	allocate(400);
	nvtxMarkA("mark 9");
	told(nvtxRangePop());
}

static void domains(void)
{
	nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateW(L"zw\u00f6lf \u20ac\U0001f600");
	nvtxStringHandle_t known = nvtxDomainRegisterStringA(one, "known_5"), wide = nvtxDomainRegisterStringW(two, L"weit");
	nvtxEventAttributes_t a = attributes(NVTX_MESSAGE_TYPE_ASCII, "plain"), r = attributes(NVTX_MESSAGE_TYPE_REGISTERED, known),
			      w = attributes(NVTX_MESSAGE_TYPE_REGISTERED, wide),
			      none = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};

	allocate(1);
	nvtxDomainRangePushEx(one, &a);
	nvtxRangePushEx(&a);
	nvtxDomainRangePushEx(one, &r);
	allocate(2);
	nvtxRangePop(); /* the default domain's, from below "known" */
	allocate(3);
	nvtxDomainRangePop(one);
	nvtxDomainRangePop(two); /* has none */
	allocate(4);
	nvtxDomainRangePop(one);
	allocate(5);
	nvtxDomainRangePushEx(two, &w);
	allocate(6);
	nvtxDomainRangePop(two);
	nvtxRangePushEx(&none);
	nvtxRangePop();
	nvtxRangePushW(L"wide \u00e4");
	nvtxRangePop();
	nvtxDomainMarkEx(one, &r);
	nvtxDomainDestroy(two);
}

static void process_ranges(void)
{
	nvtxRangeId_t early = nvtxRangeStartA("early"), a, b;

	allocate(1);
	a = nvtxRangeStartA("load_1");
	b = nvtxRangeStartA("load_2");
	told(early != a && a != b && early != b);
	nvtxRangeEnd(a);
	nvtxRangeEnd(early);
	nvtxRangeEnd(b);
	nvtxRangeEnd(123456);
	told(nvtxRangeStartA("open") != 0);
}

/* As NCCL's own header: schemas with ids of its own, the message registered; payloads with the push or with the pop. */
static void payload(void)
{
#ifdef HAVE_PAYLOAD
	struct made {
		uint64_t communicator;
		int ranks, rank, device;
	} made = {0xc0ffee0123456789, 8, 3, 1};
	struct reduced {
		uint64_t communicator;
		size_t bytes;
		int operation;
	} reduced = {0xc0ffee0123456789, 4000, 0};
	const nvtxPayloadSchemaEntry_t init[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", NULL, 0, offsetof(struct made, ranks)},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", NULL, 0, offsetof(struct made, rank)},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", NULL, 0, offsetof(struct made, device)}};
	const nvtxPayloadSchemaEntry_t reduce[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, offsetof(struct reduced, bytes)},
		{0, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 24, "Reduction operation", NULL, 0, offsetof(struct reduced, operation)}};
	const nvtxPayloadSchemaAttr_t schemas[] = {
		{.fieldMask = 0x174,
		 .type = 1,
		 .entries = init,
		 .numEntries = 4,
		 .payloadStaticSize = sizeof(made),
		 .schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 0},
		{.fieldMask = 0x174,
		 .type = 1,
		 .entries = reduce,
		 .numEntries = 3,
		 .payloadStaticSize = sizeof(reduced),
		 .schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5},
		{.fieldMask = 0x74, .type = 1, .entries = reduce, .numEntries = 3, .payloadStaticSize = sizeof(reduced)}};
	nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
	nvtxEventAttributes_t a = attributes(NVTX_MESSAGE_TYPE_REGISTERED, nvtxDomainRegisterStringA(nccl, "ncclCommInitRank"));
	nvtxPayloadData_t with_pop = {schemas[0].schemaId, sizeof(made), &made},
			  with_push = {schemas[1].schemaId, sizeof(reduced), &reduced},
			  unknown = {NVTX_PAYLOAD_ENTRY_TYPE_INT, sizeof(int), &(int){7}}, cut = {schemas[1].schemaId, 8, &reduced};

	for (int i = 0; i < 3; i++)
		told((long long)nvtxPayloadSchemaRegister(nccl, &schemas[i]));
	allocate(1);
	for (int i = 0; i < 2; i++) { /* defined once */
		nvtxDomainRangePushEx(nccl, &a);
		allocate(2);
		nvtxRangePopPayload(nccl, &with_pop, 1);
	}
	for (int i = 0; i < 300; i++) { /* more than are defined */
		made.communicator++;
		nvtxDomainRangePushEx(nccl, &a);
		nvtxRangePopPayload(nccl, &with_pop, 1);
	}
	allocate(3);
	a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	a.message.registered = nvtxDomainRegisterStringA(nccl, "ncclAllReduce");
	for (int i = 0; i < 3; i++) {
		nvtxPayloadData_t *payloads[] = {&with_push, &unknown, &cut};

		a.reserved0 = 1;
		a.payload.ullValue = (uintptr_t)payloads[i];
		nvtxDomainRangePushEx(nccl, &a);
		nvtxDomainRangePop(nccl);
	}
#endif
}

static void deep(void)
{
	int wrong = 0;

	allocate(1);
	for (int i = 0; i < 10000; i++)
		wrong += nvtxRangePushA("level") != i;
	allocate(2);
	for (int i = 10000; i-- > 0;)
		wrong += nvtxRangePop() != i;
	allocate(3);
	told(wrong);
}

static void both_objects(void)
{
	allocate(1);
	told(nvtxRangePushA("program"));
	told(module_push("module"));
	allocate(2);
	told(module_pop());
	told(module_pop());
	allocate(3);
}

static void *thread(void *name)
{
	for (int i = 0; i < 100; i++) {
		nvtxRangePushA(name);
		allocate(*(char *)name);
		nvtxRangePop();
	}
	return NULL;
}

static void threads(void)
{
	static char names[8][8] = {"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh"};
	pthread_t ids[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&ids[i], NULL, thread, names[i]);
	for (int i = 0; i < 8; i++)
		pthread_join(ids[i], NULL);
}

static void forked(void)
{
	nvtxRangePushA("parent");
	allocate(1);
	if (!fork()) {
		nvtxRangePushA("child_1");
		allocate(2);
		nvtxRangePop();
		nvtxRangePop();
		exit(0);
	}
	wait(NULL);
	allocate(3);
	nvtxRangePop();
}

static void many(void)
{
	char name[32];

	allocate(1);
	for (int i = 0; i < 5000; i++) {
		int n = i;

		strcpy(name, "name ");
		for (int at = 5; at < 9; at++, n /= 26)
			name[at] = (char)('a' + n % 26);
		name[9] = 0;
		nvtxRangePushA(name);
		nvtxRangePop();
	}
	nvtxRangePushA("name aaaa");
	allocate(2);
	nvtxRangePop();
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = {{"plain", plain},     {"domains", domains}, {"process", process_ranges},
			 {"payload", payload}, {"deep", deep},	     {"objects", both_objects},
			 {"threads", threads}, {"fork", forked},     {"many", many}};

	for (unsigned i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (argc > 1 && !strcmp(argv[1], scenarios[i].name)) {
			scenarios[i].run();
			return 0;
		}
	return 2;
}
