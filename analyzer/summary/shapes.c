/* SPDX-License-Identifier: MIT */
/*
 * Which members of a replayed process are in a summary: all that outputs and analyses of several processes read.  If one of
 * those is missing here, tests/bench/test_summaries.py fails; it also fails for one that schemas/summary.schema.json does not
 * list.
 */
#include "analyzer/summary/shape.h"
#include "analyzer/summary/image.h"

/* clang-format off */
#define VALUE(m) ((STRUCT *)0)->m
#define KIND(m) _Generic(VALUE(m), double: SL_SHAPE_DOUBLE, const char *: SL_SHAPE_TEXT, char *: SL_SHAPE_OWN, int: SL_SHAPE_SIGNED, \
			 int16_t: SL_SHAPE_SIGNED, int64_t: SL_SHAPE_SIGNED, default: SL_SHAPE_UNSIGNED)
#define M(m) {.name = #m, .at = offsetof(STRUCT, m), .kind = KIND(m), .size = sizeof(VALUE(m)), .most = _Generic(VALUE(m), bool: 1, default: 0)}
#define OF_STACK(m, p, part) {.name = #p #part, .at = offsetof(STRUCT, m.part), .kind = SL_SHAPE_UNSIGNED, .size = sizeof(VALUE(m.part))}
#define STACK(m, p) OF_STACK(m, p, python), OF_STACK(m, p, native), OF_STACK(m, p, caller)
#define IN(m, s) {.name = #m, .at = offsetof(STRUCT, m), .kind = SL_SHAPE_STRUCT, .shape = &(s)}
#define VECTOR(m, s) {.name = #m, .at = offsetof(STRUCT, m.item), .count = offsetof(STRUCT, m.count), .count_size = 8, .kind = SL_SHAPE_VECTOR, .shape = &(s)}
#define ARRAY(k, m, n, s) {.name = #m, .at = offsetof(STRUCT, m), .count = offsetof(STRUCT, n), .count_size = sizeof(VALUE(n)), .kind = (k), .shape = &(s)}
#define LIST(m, n, s) ARRAY(SL_SHAPE_LIST, m, n, s)
#define KEPT(m, n, s) ARRAY(SL_SHAPE_KEPT, m, n, s)
#define FIXED(m, n, s) {.name = #m, .at = offsetof(STRUCT, m), .count = offsetof(STRUCT, n), .count_size = sizeof(VALUE(n)), .kind = SL_SHAPE_FIXED, \
			.most = sizeof(VALUE(m)) / sizeof(VALUE(m)[0]), .shape = &(s)}
#define WHOLE(m, s) {.name = #m, .at = offsetof(STRUCT, m), .kind = SL_SHAPE_FIXED, .most = sizeof(VALUE(m)) / sizeof(VALUE(m)[0]), .shape = &(s)}
#define LINE(m) {.name = #m, .at = offsetof(STRUCT, m), .kind = SL_SHAPE_LINE}
#define TRACK(m) {.name = #m, .at = offsetof(STRUCT, m), .kind = SL_SHAPE_TRACK}
#define SHAPE(s, ...) static const struct sl_member_of s##_members[] = {__VA_ARGS__}; \
	static const struct sl_shape s = {sizeof(STRUCT), sizeof(s##_members) / sizeof(s##_members[0]), s##_members}
#define PUBLIC(s, ...) static const struct sl_member_of s##_members[] = {__VA_ARGS__}; \
	const struct sl_shape s = {sizeof(STRUCT), sizeof(s##_members) / sizeof(s##_members[0]), s##_members}
#define PLAIN(s, k, bytes) static const struct sl_member_of s##_members[] = {{.kind = (k), .size = (bytes)}}; \
	static const struct sl_shape s = {(bytes), 1, s##_members}

PLAIN(u32, SL_SHAPE_UNSIGNED, 4);
PLAIN(u64, SL_SHAPE_UNSIGNED, 8);
PLAIN(byte, SL_SHAPE_UNSIGNED, 1);
PLAIN(text, SL_SHAPE_TEXT, 8);
PLAIN(own_text, SL_SHAPE_OWN, 8);

/* ---- the trace */
#define STRUCT struct sl_hook
SHAPE(hook, M(name), M(plain), M(verb), M(kind), M(family_name), M(family), M(oom), M(is_call));
#undef STRUCT
#define STRUCT struct sl_pair
SHAPE(pair, M(name), M(value));
#undef STRUCT
#define STRUCT struct sl_header
SHAPE(header, M(known), M(version), M(agent), M(host), M(boot_id), M(run_id), M(job_id), M(exe), M(cwd), M(tag), M(ring), M(started_ns),
      M(monotonic_ns), M(process_start), M(pid), M(ppid), M(rank), M(local_rank), M(world_size), M(restart), M(unknown_verbs),
      KEPT(argv, argc, text), KEPT(metadata, metadata_count, pair), KEPT(settings, setting_count, pair),
      KEPT(environment, environment_count, pair), KEPT(system, system_count, pair), KEPT(hooks, hook_count, hook));
#undef STRUCT
#define STRUCT struct sl_python_frame
SHAPE(frame, M(function), M(file), M(line));
#undef STRUCT
#define STRUCT struct sl_python_stack
SHAPE(python, KEPT(frames, count, u32), KEPT(boundaries, boundary_count, u32), M(truncated));
#undef STRUCT
#define STRUCT struct sl_native_stack
SHAPE(native, KEPT(pcs, count, u64), M(truncated));
#undef STRUCT
#define STRUCT struct sl_symbol
SHAPE(symbol, M(function), M(file), M(line));
#undef STRUCT
#define STRUCT struct sl_named
SHAPE(named, M(pc), KEPT(symbols, count, symbol));
#undef STRUCT
#define STRUCT struct sl_module
SHAPE(module, M(base), M(end), M(ns), M(path), M(build_id));
#undef STRUCT
#define STRUCT struct sl_eval_range
SHAPE(eval, M(begin), M(end));
#undef STRUCT
#define STRUCT struct sl_device
SHAPE(device, M(ordinal), M(family), M(name), M(uuid), M(pci), M(total_bytes));
#undef STRUCT
#define STRUCT struct sl_thread
SHAPE(thread, M(id), M(tid), M(name));
#undef STRUCT
#define STRUCT struct sl_communicator
SHAPE(communicator, M(handle), M(ns), M(rank), M(world_size), M(device), M(name));
#undef STRUCT
#define STRUCT struct sl_capability
SHAPE(capability, M(name), M(value));
#undef STRUCT
#define STRUCT struct sl_said
SHAPE(said, M(key), M(value));
#undef STRUCT
#define STRUCT struct sl_defs
SHAPE(defs, VECTOR(texts, text), VECTOR(frames, frame), VECTOR(files, text), VECTOR(pythons, python), VECTOR(natives, native), VECTOR(named, named), VECTOR(modules, module),
      M(cut_names),
      VECTOR(evals, eval), VECTOR(devices, device), VECTOR(threads, thread), VECTOR(communicators, communicator),
      VECTOR(capabilities, capability), VECTOR(notes, text), VECTOR(metadata, said));
#undef STRUCT
#define STRUCT struct sl_damage
PUBLIC(sl_shape_damage, M(count), FIXED(line, lines, own_text), M(damaged), M(lost_events));
#undef STRUCT
#define STRUCT struct sl_folded
SHAPE(folded, M(through), M(until_ns));
#undef STRUCT
#define STRUCT struct sl_trace
PUBLIC(sl_shape_trace, M(name), IN(header, header), IN(defs, defs), IN(damage, sl_shape_damage), M(status), M(how), M(footer_ns), M(exited), IN(folded, folded),
       M(gap_events), M(unknown_maps), M(unknown_columns));
#undef STRUCT

/* ---- the model */
#define STRUCT struct sl_site
SHAPE(site, STACK(stack, ), M(label), M(thread), M(api), M(device), M(kind), M(pooled), M(holder), M(track), M(live_bytes),
      M(live_blocks), M(total_bytes), M(total_blocks), M(at_peak_bytes), M(at_peak_blocks));
#undef STRUCT
#define STRUCT struct sl_swing
SHAPE(swing, M(low), M(high), M(count), M(most), M(second), M(most_ns), M(high_ns));
#undef STRUCT
#define STRUCT struct sl_surge
SHAPE(surge, M(bytes), M(most), M(count));
#undef STRUCT
#define STRUCT struct sl_track
SHAPE(track, STACK(stack, ), M(last_label), M(kind), M(device), M(live_bytes), M(live_blocks),
      M(born_bytes), M(births), M(most_bytes), M(most_blocks), M(usual_bytes), M(first_ns), M(last_ns));
#undef STRUCT
#define STRUCT struct sl_tracks
SHAPE(tracks, {.name = "item", .at = offsetof(struct sl_tracks, item), .count = offsetof(struct sl_tracks, count), .count_size = 8,
	       .kind = SL_SHAPE_LIST, .shape = &track}, M(ticks), M(last_birth_ns), M(teardown_ns));
#undef STRUCT
#define STRUCT struct sl_row
SHAPE(row, M(used), M(allocations), M(frees), M(failed_allocations), M(implicit_frees), M(allocated_bytes), M(live_blocks), M(live_bytes),
      M(peak_bytes), M(peak_at_ns), LINE(line));
#undef STRUCT
#define STRUCT struct sl_holder
SHAPE(holder, M(library), M(device), M(live_bytes), M(peak_bytes), LINE(line));
#undef STRUCT
#define STRUCT struct sl_labelled
SHAPE(labelled, M(text), M(device), M(live_bytes), LINE(line));
#undef STRUCT
#define STRUCT struct sl_given
SHAPE(given, M(in_use), M(named), M(rounded));
#undef STRUCT
#define STRUCT struct sl_torch
SHAPE(torch, M(used), M(told), M(pooled), M(events), M(allocated_bytes), M(reserved_bytes), M(peak_allocated_bytes), M(peak_reserved_bytes), M(live_blocks), M(ooms),
      M(pool_allocated_bytes), M(pool_reserved_bytes), IN(most_given, given),
      LINE(allocated), LINE(reserved));
#undef STRUCT
#define STRUCT struct sl_instant
SHAPE(instant, M(time_ns), M(step), M(label));
#undef STRUCT
#define STRUCT struct sl_hidden_part
SHAPE(part, M(what), M(library), M(bytes), M(count), M(peak_bytes), IN(first, instant));
#undef STRUCT
#define STRUCT struct sl_neighbour
SHAPE(neighbour, M(pid), M(bytes), M(peak_bytes), IN(first, instant), M(last_ns));
#undef STRUCT
#define STRUCT struct sl_device_state
SHAPE(state, M(device), M(used), M(known), M(known_peak), M(known_peak_ns), M(peak_folded), IN(swing, swing), M(epoch), LINE(line), IN(torch, torch), IN(torch_at_peak, torch),
      M(primary), M(context_bytes), M(module_bytes), IN(context_made, instant), STACK(context_stack, context_), M(limit_bytes), M(limit_ns), M(limit_each), STACK(limit_stack, limit_), M(context_sampled), M(context_steady), VECTOR(parts, part),
      VECTOR(neighbours, neighbour), VECTOR(present, u32), M(total_bytes), M(used_peak_bytes), M(used_last_bytes), M(hidden_peak_bytes),
      M(hidden_last_bytes), M(hidden_peak_ns), M(hidden_peak_rounded), WHOLE(source, byte), LINE(used_line), LINE(hidden_line), LINE(samples_line), M(changes),
      M(sample_gap_ns), M(last_sample_ns));
#undef STRUCT
#define STRUCT struct sl_oom_context
SHAPE(oom_context, M(time_ns), M(seq), M(thread), M(device), M(free_bytes), M(total_bytes), M(vm_bytes), M(vm_limit_bytes), M(rss_bytes),
      M(cgroup_bytes), M(cgroup_limit_bytes));
#undef STRUCT
#define STRUCT struct sl_owner
SHAPE(owner, M(site), M(bytes), M(blocks));
#undef STRUCT
#define STRUCT struct sl_known_at
SHAPE(known_at, M(end_ns), M(known), M(site), M(api));
#undef STRUCT
#define STRUCT struct sl_neighbour_then
SHAPE(neighbour_then, M(pid), M(bytes));
#undef STRUCT
#define STRUCT struct sl_oom
SHAPE(oom, M(time_ns), M(requested_bytes), M(live_bytes), M(asked_bytes), M(free_bytes), M(total_bytes), IN(context, oom_context), M(code),
      M(thread), STACK(stack, ), M(label), M(stream), M(api), M(device), M(scope), M(recovered), M(injected),
      M(reported_by_torch), M(nested), M(in_units), M(in_retry), M(group), FIXED(owners, owner_count, owner), IN(torch, torch),
      FIXED(neighbours, neighbour_count, neighbour_then), M(context_bytes), M(module_bytes), M(rounded), M(largest_cached), M(place_births),
      M(place_most), IN(device_rise, surge), IN(place_rise, surge), M(surge), M(less_bytes), M(pool_most_bytes), M(pool_made), M(pool_freed_bytes), M(step), FIXED(pairs, pair_count, u32), KEPT(changes, change_count, known_at));
#undef STRUCT
#define STRUCT struct sl_called
SHAPE(called, M(text), M(device), M(blocks), M(live_bytes), M(peak_bytes));
#undef STRUCT
#define STRUCT struct sl_paired
SHAPE(paired, M(label), M(text), M(entries), M(duration_ns), M(peak_bytes), M(allocated_bytes));
#undef STRUCT
#define STRUCT struct sl_api_stats
SHAPE(api, M(calls), M(failures), M(bytes), M(time_ns));
#undef STRUCT
#define STRUCT struct sl_step
SHAPE(step, M(time_ns), M(number));
#undef STRUCT
#define STRUCT struct sl_steps
SHAPE(steps, LIST(item, count, step), M(stride), M(skipped));
#undef STRUCT
#define STRUCT struct sl_label
SHAPE(label, M(text), M(open), M(entries), M(duration_ns), M(before_bytes), M(after_bytes), M(peak_bytes), M(net_bytes), M(allocated_bytes),
      M(freed_bytes), M(blocks_created), M(blocks_freed), M(first_ns), M(last_ns), IN(steps, steps), M(points), M(outermost));
#undef STRUCT
#define STRUCT struct sl_possession
SHAPE(possession, M(device), M(known), M(unused));
#undef STRUCT
#define STRUCT struct sl_outer
SHAPE(outer, M(label), M(step), M(serial));
#undef STRUCT
#define STRUCT struct sl_phase
SHAPE(phase, M(label), M(thread), M(step), M(number), M(serial), M(begin_ns), M(end_ns), M(begin_order), M(end_order), IN(before, possession),
      IN(after, possession), KEPT(outer, depth, outer), M(overlaps));
#undef STRUCT
#define STRUCT struct sl_collective
SHAPE(collective, M(name), M(thread), M(begin_ns), M(end_ns), M(communicator), M(bytes));
#undef STRUCT
#define STRUCT struct sl_meeting
SHAPE(meeting, M(ranks), M(begin_ns), M(end_ns));
#undef STRUCT
#define STRUCT struct sl_failed_free
SHAPE(failed_free, STACK(stack, ), M(code), M(time_ns), M(count), M(api));
#undef STRUCT
#define STRUCT struct sl_traffic
SHAPE(traffic, M(communicator), M(collectives), M(bytes));
#undef STRUCT
#define STRUCT struct sl_in_flight
SHAPE(in_flight, M(api), M(thread), M(bytes), M(since_ns));
#undef STRUCT
#define STRUCT struct sl_host
SHAPE(host, M(rss_peak), M(cgroup_limit), M(cgroup_peak), M(oom_kills), M(oom_kills_before), LINE(rss), LINE(cgroup));
#undef STRUCT
#define STRUCT struct sl_held
SHAPE(held, M(site), M(bytes), M(blocks));
#undef STRUCT
#define STRUCT struct sl_moment
SHAPE(moment, M(time_ns), M(known_bytes), LIST(held, count, held), M(rest_bytes), M(rest_blocks), LIST(unused_bytes, unused_count, u64));
#undef STRUCT
#define STRUCT struct sl_piece
SHAPE(piece, M(address), M(bytes), M(site));
#undef STRUCT
#define STRUCT struct sl_segments
SHAPE(segments, M(time_ns), M(device), LIST(segment, segment_count, piece), LIST(block, block_count, piece), M(left_out));
#undef STRUCT
#define STRUCT struct sl_mark
SHAPE(mark, M(time_ns), M(bytes), M(kind), M(device), M(api));
#undef STRUCT
#define STRUCT struct sl_moments
SHAPE(moments, LIST(moment, count, moment), IN(largest, segments), IN(at_oom, segments), VECTOR(at_end, segments), VECTOR(marks, mark));
#undef STRUCT
#define STRUCT struct sl_model
PUBLIC(sl_shape_model, M(events), M(unknown_frees), M(unknown_hooks), M(last_call_ns), M(folded_ns), M(first_ns), M(now_ns), VECTOR(sites, site),
       VECTOR(holders, holder), VECTOR(libraries, text), VECTOR(labelled, labelled), VECTOR(labels, label), VECTOR(phases, phase), M(phases_level),
       M(phases_seen), M(ranges_begun), M(boundaries), VECTOR(collectives, collective), M(collective_stride), M(collectives_seen),
       VECTOR(meetings, meeting), M(communicators), VECTOR(traffic, traffic), VECTOR(ooms, oom), M(ooms_total), VECTOR(failed_frees, failed_free),
       VECTOR(in_flight, in_flight), IN(tracks, tracks), IN(moments, moments), IN(host, host), M(torch_seen), VECTOR(called, called), VECTOR(paired, paired), M(crowded));
#undef STRUCT
#define STRUCT struct sl_bin
SHAPE(bin, M(min), M(max), M(max_ns), M(area), M(last), M(max_site));
#undef STRUCT
#define STRUCT struct sl_image_line
SHAPE(line, M(what), M(device), M(index), M(begun), M(first), M(bin), M(value), M(last_ns), M(site), LIST(bins, count, bin));
#undef STRUCT
#define STRUCT struct sl_image_lines
PUBLIC(sl_shape_lines, M(begin_ns), M(end_ns), M(shift), VECTOR(lines, line));
#undef STRUCT
#define STRUCT struct sl_image_slot
SHAPE(slot, M(slot), LIST(rows, row_count, row), LIST(state, state_count, state));
#undef STRUCT
#define STRUCT struct sl_image_slots
PUBLIC(sl_shape_slots, VECTOR(slots, slot), LIST(apis, api_count, api), VECTOR(files, own_text), M(ring), VECTOR(text_ids, u64),
       VECTOR(frame_ids, u64), VECTOR(python_ids, u64), VECTOR(native_ids, u64), VECTOR(thread_ids, u64));
#undef STRUCT
#define STRUCT struct sl_image_common
PUBLIC(sl_shape_common, KEPT(hooks, hook_count, hook), VECTOR(frames, frame), VECTOR(files, text), VECTOR(pythons, python),
       VECTOR(frame_ids, u64), VECTOR(python_ids, u64));
#undef STRUCT

/* ---- the process */
#define STRUCT struct sl_leak
SHAPE(leak, STACK(stack, ), M(kind), M(device), M(bytes), M(blocks), M(first_ns), M(last_ns), M(verdict), M(severity),
      M(suggestion), M(library), M(growing), M(passing), M(bytes_per_second), M(bytes_per_step), M(r_squared), M(step));
#undef STRUCT
#define STRUCT struct sl_holder_of_growth
SHAPE(growth_holder, STACK(stack, ), M(library), M(bytes_per_entry));
#undef STRUCT
#define STRUCT struct sl_growth
SHAPE(growth, M(label), M(slope), M(r_squared), M(error), M(at_most), M(verdict), FIXED(holders, holder_count, growth_holder), M(advice),
      M(credited));
#undef STRUCT
#define STRUCT struct sl_kept
SHAPE(kept, TRACK(track), M(verdict), M(count_only), M(amount), M(births), M(blocks), M(bytes), M(per_birth), M(per_second),
      M(per_second_error), M(confidence), M(since_ns), M(left_blocks), M(left_bytes), M(bursts), M(unsure));
#undef STRUCT
#define STRUCT struct sl_iterations
SHAPE(iterations, M(count), M(name), M(by_label));
#undef STRUCT
#define STRUCT struct sl_leak_series
SHAPE(series, M(monotonic), M(monotonic_high), M(rising_share), M(spikes), M(spike_limit), M(no_cleanup), M(first_average), M(last_average),
      M(periodic), M(correlation), M(stepped), M(steps), M(drift), M(drift_high), M(drift_slope), M(autocorrelated));
#undef STRUCT
#define STRUCT struct sl_heuristics
SHAPE(heuristics, M(device), M(samples), IN(series, series), M(fell), TRACK(larger), M(larger_from), M(larger_to), TRACK(grown),
      M(grown_bytes));
#undef STRUCT
#define STRUCT struct sl_process
PUBLIC(sl_shape_process, M(session_id), M(started_unix_ns), M(ended_unix_ns), M(gone), VECTOR(leaks, leak), VECTOR(growth, growth),
       VECTOR(kept, kept), IN(iterations, iterations), VECTOR(heuristics, heuristics));
#undef STRUCT
