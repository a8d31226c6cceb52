/* SPDX-License-Identifier: MIT */
#include "agent/call/call.h"

static bool wants_refusal(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_frame *owner)
{
	bool driver = hook->family != SL_FAMILY_cuda_runtime;

	if (hook->verb != SL_VERB_ALLOC || !driver)
		return false;
	return owner ? owner->inject : frame->inject;
}

/* Only calls of the driver count, and of nested calls the outer one, so that no bytes count twice. */
static bool is_counted(const struct sl_hooks_row *hook, const struct sl_frame *owner)
{
	return hook->family != SL_FAMILY_cuda_runtime && (!owner || (hook->family == SL_FAMILY_cuda_driver && !owner->claim.bytes));
}

/* True: the allocation is a node of a graph, which takes memory at its launch, if there is one.  For a thread inside the agent. */
static bool is_captured(const struct sl_hooks_row *hook, const struct sl_fields *fields)
{
	uint64_t graph;

	return fields->stream && sl_device_capturing(hook->family, fields->stream, &graph);
}

void sl_limited_open(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *in)
{
	const struct sl_frame *owner = frame->owner;
	int device, saved;

	frame->claim = (struct sl_limit_claim){0};
	if (!owner)
		frame->inject = hook->verb == SL_VERB_ALLOC && sl_limit_injects(frame->api, in->kind, in->bytes);
	frame->refuse = wants_refusal(frame, hook, owner);
	if (frame->refuse || !is_counted(hook, owner))
		return;
	if (hook->verb == SL_VERB_FREE)
		sl_limit_freed(in->kind, in->address, &frame->claim);
	if (hook->verb != SL_VERB_ALLOC)
		return;
	device = (in->device_plus_one ? in->device_plus_one : sl_device_named(in->object, in->stream)) - 1;
	saved = sl_agent_work_begin();
	if (device == -1 && hook->family != SL_FAMILY_hsa)
		device = sl_device_current(hook->family).device;
	if (!is_captured(hook, in))
		frame->refuse = sl_limit_refuses(device, in->kind, in->bytes, &frame->claim);
	sl_agent_work_end(saved);
}

/* Blocks end with their context. */
static void follow_context(enum sl_verb verb, const struct sl_fields *out, struct sl_vendor_context place)
{
	switch (verb) {
	case SL_VERB_PRIMARY_RETAIN:
		sl_limit_primary(place);
		break;
	case SL_VERB_CONTEXT_DESTROY:
		sl_limit_context_gone(place);
		break;
	case SL_VERB_PRIMARY_RELEASE:
		if (out->extra != 1)
			break;
		/* fallthrough */
	case SL_VERB_DEVICE_RESET:
		sl_limit_context_gone((struct sl_vendor_context){.device = place.device});
		break;
	default:
		break;
	}
}

void sl_limited_close(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out, bool ok,
		      struct sl_vendor_context place)
{
	struct sl_slot *second = frame->slot ? frame->second : sl_unwound_is_recorded(frame->owner) ? frame->owner->second : NULL;

	if (!frame->claim.is_in_slot && frame->slot)
		sl_limit_release_kept(&frame->second->more.claim); /* the claim of an inner call that was unwound */
	else if (frame->claim.is_in_slot && second && !sl_limit_take_kept(&second->more.claim))
		frame->claim.bytes = 0; /* the claim was taken back because the call looked unwound */
	if (!is_counted(hook, frame->owner))
		return;
	if (ok && hook->verb == SL_VERB_ALLOC && !is_captured(hook, out)) {
		sl_limit_allocated(place, out->kind, out->address, out->bytes, &frame->claim);
	} else if (!ok && hook->verb == SL_VERB_FREE && frame->claim.bytes) {
		place = (struct sl_vendor_context){.device = frame->claim.device, .context = frame->claim.context};
		sl_limit_allocated(place, out->kind == SL_KIND_unknown ? SL_KIND_device : out->kind, out->address,
				   frame->claim.bytes, &frame->claim);
	} else {
		sl_limit_release(&frame->claim);
	}
	if (ok)
		follow_context(hook->verb, out, place);
}
