/* SPDX-License-Identifier: MIT */
#include "agent/hooks/parts.h"
#include "agent/file/file.h"

/* --- schemas ----------------------------------------------------------------------------------------------
 */

enum { TYPE_INT = 5, TYPE_UINT64 = 18, TYPE_SIZE = 22 }; /* NVTX_PAYLOAD_ENTRY_TYPE_* */
enum field { COMMUNICATOR, RANKS, DEVICES, RANK, DEVICE, MESSAGE, FIELDS };
static const struct {
	const char *name;
	unsigned type, bytes;
} fields[FIELDS] = {
	[COMMUNICATOR] = {"NCCL communicator ID", TYPE_UINT64, 8},
	[RANKS] = {"No. of ranks", TYPE_INT, 4},
	[DEVICES] = {"No. of devices", TYPE_INT, 4},
	[RANK] = {"Rank", TYPE_INT, 4},
	[DEVICE] = {"CUDA device", TYPE_INT, 4},
	[MESSAGE] = {"Message size [bytes]", TYPE_SIZE, 8},
};

#define SCHEMAS 64u
static struct schema {
	_Atomic uint64_t key;	/* id and domain; 0: this entry is free */
	uint16_t after[FIELDS]; /* where each field ends in the payload; 0: the schema lacks it */
} schemas[SCHEMAS];

static uint64_t key_of(unsigned domain, uint64_t id)
{
	return id << 8 | domain << 1 | 1;
}

static enum field field_of(const struct sl_payload_entry *entry)
{
	enum field field = 0;

	/* An entry with flags is a pointer or an array, which is not read. */
	while (field < FIELDS &&
	       (entry->flags || !entry->name || entry->type != fields[field].type || strcmp(entry->name, fields[field].name)))
		field++;
	return field;
}

static void read_entries(struct schema *to, const struct sl_payload_schema *schema)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct sl_payload_entry *entry = &schema->entries[i];
		enum field field = field_of(entry);

		/* An entry without an offset follows the one before.  NCCL omits only the first one's. */
		if (field < FIELDS && (entry->offset || !i) && entry->offset < 256)
			to->after[field] = (uint16_t)(entry->offset + fields[field].bytes);
	}
}

uint64_t sl_communicators_schema(unsigned domain, const struct sl_payload_schema *schema, uint64_t given_id)
{
	enum { HAS_ENTRIES = 1 << 4 | 1 << 5, HAS_ID = 1 << 8 };
	static _Atomic uint64_t dynamic = (uint64_t)1 << 32; /* NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START */
	uint64_t id = given_id, none;

	if (!schema)
		return given_id;
	if (!id)
		id = schema->fields & HAS_ID ? schema->id : atomic_fetch_add(&dynamic, 1);
	if ((schema->fields & HAS_ENTRIES) != HAS_ENTRIES || !schema->entries)
		return id;
	for (unsigned i = 0; i < SCHEMAS; i++) {
		none = 0;
		if (atomic_load(&schemas[i].key) == key_of(domain, id))
			break;
		/* All ones is no valid key: nobody finds the entry until its fields have been read. */
		if (!atomic_compare_exchange_strong(&schemas[i].key, &none, UINT64_MAX))
			continue;
		read_entries(&schemas[i], schema);
		atomic_store_explicit(&schemas[i].key, key_of(domain, id), memory_order_release);
		break;
	}
	return id;
}

static const struct schema *schema_of(unsigned domain, uint64_t id)
{
	for (unsigned i = 0; i < SCHEMAS; i++) {
		uint64_t key = atomic_load_explicit(&schemas[i].key, memory_order_acquire);

		if (!key)
			return NULL;
		if (key == key_of(domain, id))
			return &schemas[i];
	}
	return NULL;
}

static bool read_field(const struct schema *schema, const struct sl_payload *payload, enum field field, uint64_t *value)
{
	unsigned after = schema->after[field], bytes = fields[field].bytes;

	if (!after || after > payload->bytes || !payload->data)
		return false;
	*value = sl_load_le((const uint8_t *)payload->data + after - bytes, bytes);
	return true;
}

/* --- communicators ----------------------------------------------------------------------------------------
 */

struct communicator {
	uint64_t handle;
	int rank, ranks, device; /* -1 unknown */
};

static __thread struct communicator last_made __attribute__((tls_model("initial-exec")));

#define DEFINED 256u
static struct {
	_Atomic uint64_t generation; /* number of the recording that the entries belong to */
	_Atomic uint64_t key[DEFINED];
	_Atomic bool full_said;
} defined;

/* True once for each communicator and rank of a recording, while there is room. */
static bool is_new(const struct communicator *is)
{
	uint64_t generation = atomic_load(&sl_agent->generation), key = is->handle ^ (uint64_t)(is->rank + 2) << 48;

	if (!generation || !key)
		return false;
	if (atomic_load(&defined.generation) != generation) {
		for (unsigned i = 0; i < DEFINED; i++)
			atomic_store(&defined.key[i], 0);
		atomic_store(&defined.full_said, false);
		atomic_store(&defined.generation, generation);
	}
	for (unsigned i = 0; i < DEFINED; i++) {
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&defined.key[i], &there, key))
			return true;
		if (there == key)
			return false;
	}
	if (!atomic_exchange(&defined.full_said, true))
		sl_define_note("more than 256 communicators: rank, size and device of further ones are not known");
	return false;
}

static void define(const struct communicator *is, const char *name)
{
	uint8_t bytes[512];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "communicator");

	if (!atomic_load(&sl_agent->generation))
		return;
	sl_definition_uint(&map, "handle", is->handle);
	sl_definition_uint(&map, "ns", sl_agent_now());
	if (is->rank >= 0)
		sl_definition_int(&map, "rank", is->rank);
	if (is->ranks >= 0)
		sl_definition_int(&map, "world_size", is->ranks);
	if (is->device >= 0)
		sl_definition_int(&map, "device", is->device);
	if (name)
		sl_definition_text(&map, "name", name);
	sl_define_publish(&map);
}

static int number(const struct schema *schema, const struct sl_payload *payload, enum field field)
{
	uint64_t value;

	return read_field(schema, payload, field, &value) ? (int32_t)value : -1;
}

static struct sl_instant_details read_payload(const struct schema *schema, const struct sl_payload *payload)
{
	struct sl_instant_details collective = {0};
	struct communicator is = {0, number(schema, payload, RANK), number(schema, payload, RANKS),
				  number(schema, payload, DEVICE)};

	read_field(schema, payload, COMMUNICATOR, &collective.address);
	read_field(schema, payload, MESSAGE, &collective.bytes);
	if (is.ranks < 0)
		is.ranks = number(schema, payload, DEVICES);
	is.handle = collective.address;
	if (!is.handle || is.ranks < 0)
		return collective;
	last_made = is;
	if (is_new(&is))
		define(&is, NULL);
	return collective;
}

struct sl_instant_details sl_communicators_payload(unsigned domain, const struct sl_payload *payloads, size_t count)
{
	for (size_t i = 0; payloads && i < count && i < 4; i++) {
		const struct schema *schema = schema_of(domain, payloads[i].schema);

		if (schema)
			return read_payload(schema, &payloads[i]);
	}
	return (struct sl_instant_details){0};
}

/* The configuration structure ends before the name in versions before 2.27. */
static const char *name_of(const ncclConfig_t *config)
{
	const char *name = config && config->magic == 0xcafebeef && config->version >= 22700 && config->size >= sizeof(*config)
				   ? config->commName
				   : NULL;

	return name && *name && strnlen(name, 256) < 256 ? name : NULL;
}

uint64_t sl_communicators_made(bool done, uint64_t handle, int rank, int ranks, const ncclConfig_t *config)
{
	struct communicator is = last_made;
	const char *name = name_of(config);
	uint64_t id;

	last_made = (struct communicator){0};
	if (!done)
		return 0;
	if (!is.handle || (ranks >= 0 && is.ranks != ranks) || (rank >= 0 && is.rank >= 0 && is.rank != rank))
		is = (struct communicator){0, rank, ranks, -1};
	id = is.handle;
	is.handle = id ? id : handle;
	if ((!id && is_new(&is)) || name)
		define(&is, name);
	return id;
}
