/* SPDX-License-Identifier: MIT */
#include "agent/hooks/parts.h"
#include "agent/hooks/prototype.h"

__thread uint32_t sl_nvtx_delivered;

/* --- domains and registered strings -----------------------------------------------------------------------
 */

#define DOMAINS	    64u /* the last one stands for all further domains */
#define DOMAIN_NAME 48u

static struct domain {
	_Atomic(const void *) handle; /* the entry itself where the user has no tool */
	char name[DOMAIN_NAME];
} domains[DOMAINS];
static _Atomic uint32_t domain_count = 1;

unsigned sl_nvtx_domain(const void *handle)
{
	uint32_t count = atomic_load_explicit(&domain_count, memory_order_acquire);

	if (!handle)
		return 0;
	for (uint32_t i = 1; i < count && i < DOMAINS; i++)
		if (atomic_load_explicit(&domains[i].handle, memory_order_relaxed) == handle)
			return i;
	return DOMAINS - 1;
}

static struct domain *named(const char *name)
{
	uint32_t count = atomic_load(&domain_count);

	for (uint32_t i = 1; i < count && i < DOMAINS - 1; i++)
		if (atomic_load(&domains[i].handle) && !strncmp(domains[i].name, name, DOMAIN_NAME - 1))
			return &domains[i];
	return NULL;
}

void *sl_nvtx_created(void *handle, const char *name)
{
	struct domain *domain;
	uint32_t number;

	name = name ? name : "";
	if (!handle && (domain = named(name)))
		return domain;
	number = handle ? sl_nvtx_domain(handle) : 0;
	if (number && number != DOMAINS - 1)
		return handle;
	number = atomic_load(&domain_count);
	do
		if (number >= DOMAINS - 1)
			return handle ? handle : &domains[DOMAINS - 1];
	while (!atomic_compare_exchange_weak(&domain_count, &number, number + 1));
	domain = &domains[number];
	strncpy(domain->name, name, DOMAIN_NAME - 1);
	atomic_store_explicit(&domain->handle, handle ? handle : domain, memory_order_release);
	return handle ? handle : domain;
}

int sl_nvtx_destroyed(const void *handle)
{
	unsigned number = sl_nvtx_domain(handle);

	/* A tool may give the handle to another domain.  Entries stay, one for each name. */
	if (number && handle != &domains[number])
		atomic_store(&domains[number].handle, NULL);
	return 0;
}

#define STRINGS 4096u

/* A tool's handle is its own key; without a tool the handle points to the entry, and the entry's label is the key. */
static struct string {
	_Atomic uint64_t key, index;
	_Atomic uint16_t label;
} strings[STRINGS], no_string;

static struct string *find_string(uint64_t key, bool make)
{
	uint64_t at = (key ^ key >> 29) * 0x9e3779b97f4a7c15u >> 40;

	for (unsigned tries = 0; tries < 64; tries++, at++) {
		struct string *string = &strings[at % STRINGS];
		uint64_t there = atomic_load_explicit(&string->key, memory_order_relaxed);

		if (!there && (!make || atomic_compare_exchange_strong(&string->key, &there, key)))
			return make ? string : &no_string;
		if (there == key)
			return string;
	}
	return &no_string;
}

void *sl_nvtx_registered(void *handle, struct sl_labels_entry label)
{
	uint64_t key = handle ? (uintptr_t)handle : (label.index ^ (uint64_t)label.label << 40) | (uint64_t)1 << 63;
	struct string *string = find_string(key, true);

	if (string != &no_string) {
		atomic_store_explicit(&string->index, label.index, memory_order_relaxed);
		atomic_store_explicit(&string->label, label.label, memory_order_relaxed);
	}
	return handle ? handle : string;
}

static struct sl_labels_entry registered(const void *handle)
{
	const struct string *string = handle;

	if ((uintptr_t)handle - (uintptr_t)strings >= sizeof(strings))
		string = find_string((uintptr_t)handle, false);
	return (struct sl_labels_entry){.index = atomic_load_explicit(&string->index, memory_order_relaxed),
					.label = atomic_load_explicit(&string->label, memory_order_relaxed)};
}

/* --- messages ---------------------------------------------------------------------------------------------
 */

static const char *to_utf8(char *to, size_t size, const wchar_t *wide)
{
	size_t used = 0;

	for (; wide && *wide && used + 5 < size; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c < 0x80) {
			to[used++] = (char)c;
			continue;
		}
		if (c >= 0x10000)
			to[used++] = (char)(0xf0 | (c >> 18 & 7));
		if (c >= 0x800)
			to[used++] = (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3f) : 0xe0 | c >> 12);
		to[used++] = (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6);
		to[used++] = (char)(0x80 | (c & 0x3f));
	}
	to[used] = 0;
	return to;
}

struct sl_labels_entry sl_nvtx_ascii(const void *domain, const char *text)
{
	return sl_labels_intern(domains[sl_nvtx_domain(domain)].name, text);
}

struct sl_labels_entry sl_nvtx_wide(const void *domain, const wchar_t *text)
{
	char utf8[SL_LABELS_TEXT_MAX];

	return sl_nvtx_ascii(domain, to_utf8(utf8, sizeof(utf8), text));
}

void *sl_nvtx_created_wide(void *handle, const wchar_t *name)
{
	char utf8[SL_LABELS_TEXT_MAX];

	return sl_nvtx_created(handle, to_utf8(utf8, sizeof(utf8), name));
}

static struct sl_labels_entry message_of(const void *domain, const struct sl_nvtx_attributes *attributes)
{
	switch (attributes->message_type) {
	case SL_NVTX_MESSAGE_ASCII:
		return sl_nvtx_ascii(domain, attributes->message);
	case SL_NVTX_MESSAGE_WIDE:
		return sl_nvtx_wide(domain, attributes->message);
	case SL_NVTX_MESSAGE_REGISTERED:
		return registered(attributes->message);
	default:
		return sl_nvtx_ascii(domain, "");
	}
}

struct sl_labels_entry sl_nvtx_attributes(const void *domain, const struct sl_nvtx_attributes *attributes)
{
	struct sl_labels_entry label;

	if (!attributes || attributes->size < sizeof(*attributes))
		return sl_nvtx_ascii(domain, "");
	label = message_of(domain, attributes);
	if (attributes->payload_type == SL_NVTX_PAYLOAD_EXTENDED && attributes->payload_count > 0)
		label.details =
			sl_communicators_payload(sl_nvtx_domain(domain), attributes->payload, (size_t)attributes->payload_count);
	return label;
}

uint64_t sl_nvtx_schema(const void *domain, const struct sl_payload_schema *schema, uint64_t given_id)
{
	return sl_communicators_schema(sl_nvtx_domain(domain), schema, given_id);
}

void sl_nvtx_payload(const void *domain, const struct sl_payload *payloads, size_t count)
{
	sl_communicators_payload(sl_nvtx_domain(domain), payloads, count);
}

/* --- callbacks, from the rows of NVTX's functions ----------------------------------------------------------
 */

/* What the user's tool had put into the slots that we took over. */
#define RANGE(verb, ret, name, ...) static _Atomic(void *) name##__tool;
#include "agent/hooks/nvtx.def"
#undef RANGE

#define RANGE(verb, ret, name, proto, args, deliver)                                                                               \
	static ret name##__callback PROTOTYPE proto                                                                                \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = atomic_load_explicit(&name##__tool, memory_order_relaxed);                            \
		ret result = real ? real args : (ret)0;                                                                            \
		const unsigned api = SL_API_##name;                                                                                \
		ret mine;                                                                                                          \
                                                                                                                                   \
		(void)api;                                                                                                         \
		mine = deliver;                                                                                                    \
		sl_nvtx_delivered++;                                                                                               \
		return real ? result : mine;                                                                                       \
	}
#include "agent/hooks/nvtx.def"
#undef RANGE

enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5, EXTENSION_PAYLOAD = 2, SLOTS = 16 };

struct slot {
	void *callback;
	_Atomic(void *) *tool;
};
#define SLOT(name)                                                                                                                 \
	{                                                                                                                          \
		name##__callback, &name##__tool                                                                                    \
	}

static const struct slot core[SLOTS] = {
	[1] = SLOT(nvtxMarkEx),	     [2] = SLOT(nvtxMarkA),	  [3] = SLOT(nvtxMarkW),     [4] = SLOT(nvtxRangeStartEx),
	[5] = SLOT(nvtxRangeStartA), [6] = SLOT(nvtxRangeStartW), [7] = SLOT(nvtxRangeEnd),  [8] = SLOT(nvtxRangePushEx),
	[9] = SLOT(nvtxRangePushA),  [10] = SLOT(nvtxRangePushW), [11] = SLOT(nvtxRangePop),
};
static const struct slot core2[SLOTS] = {
	[1] = SLOT(nvtxDomainMarkEx),		[2] = SLOT(nvtxDomainRangeStartEx), [3] = SLOT(nvtxDomainRangeEnd),
	[4] = SLOT(nvtxDomainRangePushEx),	[5] = SLOT(nvtxDomainRangePop),	    [10] = SLOT(nvtxDomainRegisterStringA),
	[11] = SLOT(nvtxDomainRegisterStringW), [12] = SLOT(nvtxDomainCreateA),	    [13] = SLOT(nvtxDomainCreateW),
	[14] = SLOT(nvtxDomainDestroy),
};

/* NVTX's payload extension. */
static const struct slot payload[SLOTS] = {
	[0] = SLOT(nvtxPayloadSchemaRegister), [3] = SLOT(nvtxRangePushPayload), [4] = SLOT(nvtxRangePopPayload),
	[5] = SLOT(nvtxRangeStartPayload),     [6] = SLOT(nvtxRangeEndPayload),
};

/* NvtxExportTableCallbacks */
struct callbacks {
	size_t size;
	int (*module_table)(int module, void ****table, unsigned *count);
};

/* The function slots of one module in one object that includes NVTX, and their content before the tool changed them. */
struct module {
	const struct slot *ours;
	void **slots[SLOTS];
	void *before[SLOTS];
};

static void open_slot(struct module *module, unsigned i, void **slot)
{
	module->slots[i] = slot;
	module->before[i] = slot ? *slot : NULL;
}

static void open_module(struct module *module, const struct callbacks *callbacks, int number, const struct slot *ours)
{
	void ***table = NULL;
	unsigned count = 0;

	*module = (struct module){.ours = ours};
	if (!callbacks->module_table(number, &table, &count) || !table)
		return;
	for (unsigned i = 0; i < count && i < SLOTS; i++)
		open_slot(module, i, table[i]);
}

/* Keeps the tool's function for our callback; false: another object has another function, so the slot stays as it is. */
static bool keep_tool(_Atomic(void *) *slot, void *function)
{
	void *none = NULL;

	return atomic_compare_exchange_strong(slot, &none, function) || none == function;
}

static void take_slots(const struct module *module)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct slot *ours = &module->ours[i];
		void *now = module->slots[i] ? *module->slots[i] : NULL;

		if (!ours->callback || !module->slots[i] || now == ours->callback)
			continue;
		/* Unless the tool changed it, the slot holds NVTX's own first-call function. */
		if (now == module->before[i] ? atomic_load(ours->tool) != NULL : !keep_tool(ours->tool, now))
			continue;
		*module->slots[i] = ours->callback;
	}
}

int sl_nvtx_initialize(sl_nvtx_export_table *export_table, int (*tool)(sl_nvtx_export_table *))
{
	const struct callbacks *callbacks = export_table ? export_table(TABLE_CALLBACKS) : NULL;
	struct module modules[2];

	if (!callbacks || callbacks->size < sizeof(*callbacks) || !sl_labels_wanted())
		return tool ? tool(export_table) : 0;
	open_module(&modules[0], callbacks, MODULE_CORE, core);
	open_module(&modules[1], callbacks, MODULE_CORE2, core2);
	if (tool)
		tool(export_table);
	take_slots(&modules[0]);
	take_slots(&modules[1]);
	return 1;
}

int sl_nvtx_initialize_extension(struct sl_nvtx_extension *extension, int (*tool)(struct sl_nvtx_extension *))
{
	struct module module = {.ours = payload};
	int result;

	if (!extension || extension->size < sizeof(*extension) || extension->module != EXTENSION_PAYLOAD ||
	    !extension->segment_count || !sl_labels_wanted())
		return tool ? tool(extension) : 0;
	for (size_t i = 0; i < extension->segments->count && i < SLOTS; i++)
		open_slot(&module, (unsigned)i, &extension->segments->slots[i]);
	result = tool ? tool(extension) : 1;
	take_slots(&module);
	return result;
}
