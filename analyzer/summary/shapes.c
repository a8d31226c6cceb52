/* SPDX-License-Identifier: MIT */
/*
 * Which members of a replayed process are in a summary: all that outputs and analyses of several processes read.  If one of
 * those is missing here, tests/bench/test_summaries.py fails; it also fails for one that schemas/summary.schema.json does not
 * list.
 */
#include "analyzer/summary/summary.h"

/* clang-format off */
#define VALUE(s, m) ((struct s *)0)->m
#define KIND(s, m) _Generic(VALUE(s, m), double: SL_SHAPE_DOUBLE, const char *: SL_SHAPE_TEXT, char *: SL_SHAPE_OWN, int: SL_SHAPE_SIGNED, \
			    int16_t: SL_SHAPE_SIGNED, int64_t: SL_SHAPE_SIGNED, default: SL_SHAPE_UNSIGNED)
#define AT(s, m) .name = #m, .at = offsetof(struct s, m)
#define COUNT(s, n) .count = offsetof(struct s, n), .count_size = sizeof(VALUE(s, n))
#define LIMIT(s, m) .limit = sizeof(VALUE(s, m)) / sizeof(VALUE(s, m)[0])

/* How each kind of row is written below, and what it becomes once its struct is known. */
#define M(m) (MEMBER, m)
#define MEMBER(s, m) AS_(s, m, #m)
#define AS(m, as) (AS_, m, as) /* as: the name in the file */
#define AS_(s, m, as) {.name = as, .at = offsetof(struct s, m), .kind = KIND(s, m), .size = sizeof(VALUE(s, m)), .limit = _Generic(VALUE(s, m), bool: 1, default: 0)}
#define STACK(m, p) (STACK_, m, p)
#define STACK_(s, m, p) OF_STACK(s, m, p, python), OF_STACK(s, m, p, native), OF_STACK(s, m, p, caller)
#define OF_STACK(s, m, p, part) {.name = #p #part, .at = offsetof(struct s, m.part), .kind = SL_SHAPE_UNSIGNED, .size = sizeof(VALUE(s, m.part))}
#define IN(m, shape) (IN_, m, shape)
#define IN_(s, m, of) {AT(s, m), .kind = SL_SHAPE_STRUCT, .shape = &(of)}
#define VECTOR(m, shape) (VECTOR_, m, shape)
#define VECTOR_(s, m, of) VECTOR_AS_(s, m, #m, of)
#define VECTOR_AS(m, as, shape) (VECTOR_AS_, m, as, shape)
#define VECTOR_AS_(s, m, as, of) {.name = as, .at = offsetof(struct s, m.item), COUNT(s, m.count), .kind = SL_SHAPE_VECTOR, .shape = &(of)}
#define LIST(m, n, shape) (ARRAY, m, n, shape, SL_SHAPE_LIST)
#define LIST_AS(m, as, n, shape) (LIST_AS_, m, as, n, shape)
#define LIST_AS_(s, m, as, n, of) {.name = as, .at = offsetof(struct s, m), COUNT(s, n), .kind = SL_SHAPE_LIST, .shape = &(of)}
#define KEPT(m, n, shape) (ARRAY, m, n, shape, SL_SHAPE_KEPT)
#define ARRAY(s, m, n, of, k) {AT(s, m), COUNT(s, n), .kind = (k), .shape = &(of)}
#define FIXED(m, n, shape) (FIXED_, m, n, shape)
#define FIXED_(s, m, n, of) {AT(s, m), COUNT(s, n), .kind = SL_SHAPE_FIXED, LIMIT(s, m), .shape = &(of)}
#define WHOLE(m, shape) (WHOLE_, m, shape)
#define WHOLE_(s, m, of) {AT(s, m), .kind = SL_SHAPE_FIXED, LIMIT(s, m), .shape = &(of)}
#define LINE(m) (POINTER, m, SL_SHAPE_LINE)
#define TRACK(m) (POINTER, m, SL_SHAPE_TRACK)
#define POINTER(s, m, k) {AT(s, m), .kind = (k)}

/* EACH(s, rows): every row with its struct, up to 85: a macro inside itself is expanded only when AGAIN looks once more. */
#define EACH(...) AGAIN(EACH_OF(__VA_ARGS__))
#define EACH_OF(s, row, ...) ROW(s, WITHOUT_PARENTHESES row) __VA_OPT__(, EACH_MORE EMPTY_LIST (s, __VA_ARGS__))
#define EACH_MORE() EACH_OF
#define EMPTY_LIST ()
#define AGAIN(...) AGAIN1(AGAIN1(AGAIN1(AGAIN1(__VA_ARGS__))))
#define AGAIN1(...) AGAIN2(AGAIN2(AGAIN2(AGAIN2(__VA_ARGS__))))
#define AGAIN2(...) AGAIN3(AGAIN3(AGAIN3(AGAIN3(__VA_ARGS__))))
#define AGAIN3(...) __VA_ARGS__
#define ROW(...) ROW_(__VA_ARGS__)
#define ROW_(s, kind, ...) kind(s, __VA_ARGS__)
#define WITHOUT_PARENTHESES(...) __VA_ARGS__

#define SHAPE(shape, s, ...) static PUBLIC(shape, s, __VA_ARGS__)
#define PUBLIC(shape, s, ...) const struct sl_shape shape = OF_MEMBERS(sizeof(struct s), ((const struct sl_member_of[]){EACH(s, __VA_ARGS__)}))
#define PLAIN(shape, k, bytes) static const struct sl_shape shape = OF_MEMBERS(bytes, ((const struct sl_member_of[]){{.kind = (k), .size = (bytes)}}))
#define OF_MEMBERS(bytes, list) {bytes, sizeof list / sizeof(struct sl_member_of), list}

PLAIN(u32, SL_SHAPE_UNSIGNED, 4);
PLAIN(u64, SL_SHAPE_UNSIGNED, 8);
PLAIN(byte, SL_SHAPE_UNSIGNED, 1);
PLAIN(text, SL_SHAPE_TEXT, 8);
PLAIN(own_text, SL_SHAPE_OWN, 8);

/* ---- the trace */
SHAPE(hook, sl_hook, M(name), M(plain), M(verb), M(kind), M(family_name), M(family), M(oom), M(is_call));
SHAPE(pair, sl_pair, M(name), M(value));
SHAPE(header, sl_header, AS(is_known, "known"), M(version), M(agent), M(host), M(boot_id), M(run_id), M(job_id), M(exe), M(cwd), M(tag), M(ring), M(started_ns),
      M(monotonic_ns), M(process_start), M(watcher), M(pid), M(ppid), M(rank), M(local_rank), M(world_size), M(restart), M(unknown_verbs), M(unknown_kinds),
      KEPT(argv, argc, text), KEPT(metadata, metadata_count, pair), KEPT(settings, setting_count, pair),
      KEPT(environment, environment_count, pair), KEPT(system, system_count, pair), KEPT(dry, dry_count, pair), KEPT(hooks, hook_count, hook));
SHAPE(frame, sl_python_frame, M(function), M(file), M(line));
SHAPE(python, sl_python_stack, KEPT(frames, count, u32), KEPT(boundaries, boundary_count, u32), M(truncated));
SHAPE(native, sl_native_stack, KEPT(pcs, count, u64), M(truncated));
SHAPE(symbol, sl_symbol, M(function), M(file), M(line));
SHAPE(named, sl_named, M(pc), KEPT(symbols, count, symbol));
SHAPE(module, sl_module, M(base), M(end), M(ns), M(path), M(build_id));
SHAPE(eval, sl_eval_range, M(begin), M(end));
SHAPE(device, sl_device, M(ordinal), M(family), M(name), M(uuid), M(pci), M(total_bytes));
SHAPE(thread, sl_thread, M(id), M(tid), M(name));
SHAPE(communicator, sl_communicator, M(handle), M(ns), M(rank), M(world_size), M(device), M(name));
SHAPE(capability, sl_capability, M(name), M(value));
SHAPE(metadata, sl_metadata, M(key), M(value));
SHAPE(defs, sl_defs, VECTOR(texts, text), VECTOR(frames, frame), VECTOR(files, text), VECTOR(pythons, python), VECTOR(natives, native), VECTOR(named, named), VECTOR(modules, module),
      M(cut_names),
      VECTOR(evals, eval), VECTOR(devices, device), VECTOR(threads, thread), VECTOR(communicators, communicator),
      VECTOR(capabilities, capability), VECTOR(notes, text), VECTOR(metadata, metadata));
PUBLIC(sl_shape_damage, sl_damage, M(count), FIXED(line, lines, own_text), M(damaged), M(readable), M(lost_events));
SHAPE(slept, sl_slept, M(ns), M(maps), M(now_ns));
SHAPE(folded, sl_folded, M(through), M(until_ns), IN(slept, slept));
PUBLIC(sl_shape_trace, sl_trace, M(name), IN(header, header), IN(defs, defs), IN(damage, sl_shape_damage), M(status), M(how), M(footer_ns), M(exited), IN(folded, folded),
       M(gap_events), M(unknown_maps), M(unknown_columns));

/* ---- the model */
SHAPE(site, sl_site, STACK(stack, ), M(label), M(thread), M(api), M(device), M(kind), M(pooled), M(holder), M(track), M(live_bytes),
      M(live_blocks), M(total_bytes), M(total_blocks), M(at_peak_bytes), M(at_peak_blocks));
SHAPE(swing, sl_swing, M(low), M(high), M(count), AS(highest, "most"), M(second), AS(highest_ns, "most_ns"), M(high_ns), M(first), M(rose));
SHAPE(surge, sl_surge, M(bytes), AS(highest, "most"), M(count), M(first), M(rose));
SHAPE(track, sl_track, STACK(stack, ), M(last_label), M(kind), M(device), M(live_bytes), M(live_blocks),
      M(born_bytes), M(births), M(most_bytes), M(most_blocks), M(usual_bytes), M(first_ns), M(last_ns), M(turns));
SHAPE(tracks, sl_tracks, LIST(item, count, track), M(ticks), M(last_birth_ns), M(teardown_ns));
SHAPE(row, sl_row, M(used), M(allocations), M(frees), M(failed_allocations), M(implicit_frees), M(allocated_bytes), M(live_blocks), M(live_bytes),
      M(peak_bytes), M(peak_at_ns), LINE(line));
SHAPE(holder, sl_holder, M(library), M(device), M(live_bytes), M(peak_bytes), LINE(line));
SHAPE(labelled, sl_labelled, M(text), M(device), M(live_bytes), LINE(line));
SHAPE(given, sl_given, M(in_use), M(named), M(rounded));
SHAPE(torch, sl_torch, M(used), AS(reported, "told"), M(pooled), M(events), M(allocated_bytes), M(reserved_bytes), M(peak_allocated_bytes), M(peak_reserved_bytes), M(live_blocks), M(peak_blocks), M(ooms), M(rounding),
      M(pool_allocated_bytes), M(pool_reserved_bytes), M(pool_most_bytes), M(pool_site), M(graph_reserved_bytes), M(graph_allocated_bytes), M(graph_pools), STACK(graph_stack, graph_), M(fraction_bits), STACK(fraction_stack, fraction_), IN(most_given, given),
      LINE(allocated), LINE(reserved));
SHAPE(roomless, sl_jax_oom, M(bytes), M(held_bytes), M(used_bytes), M(time_ns), M(device), STACK(stack, ));
SHAPE(instant, sl_instant, M(time_ns), M(step), M(label));
SHAPE(part, sl_hidden_part, M(what), M(library), M(bytes), M(count), M(peak_bytes), IN(first, instant));
SHAPE(neighbour, sl_neighbour, M(pid), M(bytes), M(peak_bytes), IN(first, instant), M(last_ns));
SHAPE(neighbour_then, sl_neighbour_then, M(pid), M(bytes));
SHAPE(state, sl_device_state, M(device), M(used), AS(known_bytes, "known"), M(known_peak), M(known_peak_ns), M(peak_folded), IN(swing, swing), M(epoch), LINE(line), IN(torch, torch), IN(torch_at_peak, torch),
      M(primary), M(context_bytes), M(module_bytes), IN(context_made, instant), STACK(context_stack, context_), M(limit_bytes), M(limit_ns), M(limit_raised), M(limit_each), M(limit_printed), STACK(limit_stack, limit_), M(context_sampled), M(context_steady), VECTOR(parts, part),
      VECTOR(neighbours, neighbour), VECTOR(present, u32), VECTOR(crowd, neighbour_then), M(crowd_bytes), M(figure), M(total_bytes), M(used_peak_bytes), M(used_last_bytes), M(hidden_peak_bytes),
      M(hidden_last_bytes), M(hidden_peak_ns), M(hidden_peak_rounded), WHOLE(source, byte), LINE(used_line), LINE(hidden_line), LINE(others_line), LINE(samples_line), M(changes),
      M(sample_gap_ns), M(last_sample_ns));
SHAPE(oom_context, sl_oom_context, M(time_ns), M(seq), M(thread), M(device), M(free_bytes), M(total_bytes), M(vm_bytes), M(vm_limit_bytes), M(rss_bytes),
      M(cgroup_bytes), M(cgroup_limit_bytes));
SHAPE(owner, sl_owner, M(site), M(bytes), M(blocks));
SHAPE(known_at, sl_known_at, M(end_ns), AS(known_bytes, "known"), M(site), M(api));
SHAPE(oom, sl_oom, M(time_ns), M(requested_bytes), M(live_bytes), M(asked_bytes), M(free_bytes), M(total_bytes), IN(context, oom_context), M(code),
      M(thread), STACK(stack, ), M(label), M(stream), M(api), M(device), M(scope), M(recovered), M(injected),
      M(reported_by_torch), M(of_framework), M(nested), M(in_units), M(in_retry), M(group), FIXED(owners, owner_count, owner), IN(torch, torch),
      FIXED(neighbours, neighbour_count, neighbour_then), M(context_bytes), M(module_bytes), M(rounded), M(largest_cached), M(place_births),
      M(place_most), M(pass_births), M(pass_most), M(padded_bytes), IN(device_rise, surge), IN(place_rise, surge), M(surge), M(less_bytes), M(pool_most_bytes), M(pool_made), M(contexts), M(step), FIXED(pairs, pair_count, u32), KEPT(changes, change_count, known_at));
SHAPE(variable, sl_variable, M(text), M(site), M(track), M(look), AS(peak.blocks, "most.blocks"), AS(peak.bytes, "most.bytes"), AS(peak.seen, "most.seen"), AS(peak.live, "most.live"), M(named), M(among));
SHAPE(called, sl_called, M(text), M(device), M(blocks), M(live_bytes), M(peak_bytes));
SHAPE(paired, sl_paired, M(label), M(text), M(entries), M(duration_ns), M(peak_bytes), M(allocated_bytes));
SHAPE(api, sl_api_stats, M(calls), M(failures), M(bytes), M(time_ns));
SHAPE(step, sl_step, M(time_ns), M(number));
SHAPE(steps, sl_steps, LIST(item, count, step), M(stride), M(skipped));
SHAPE(label, sl_label, M(text), M(open), M(entries), M(duration_ns), M(before_bytes), M(after_bytes), M(peak_bytes), M(net_bytes), M(allocated_bytes),
      M(freed_bytes), M(blocks_created), M(blocks_freed), M(first_ns), M(last_ns), IN(steps, steps), M(points), M(outermost));
SHAPE(possession, sl_possession, M(device), AS(known_bytes, "known"), M(unused));
SHAPE(outer, sl_outer, M(label), M(step), M(serial));
SHAPE(phase, sl_phase, M(label), M(thread), M(step), M(number), M(serial), M(begin_ns), M(end_ns), M(begin_order), M(end_order), IN(before, possession),
      IN(after, possession), KEPT(outer, depth, outer), M(overlaps));
SHAPE(collective, sl_collective, M(name), M(thread), M(begin_ns), M(end_ns), M(communicator), M(bytes));
SHAPE(meeting, sl_meeting, M(ranks), M(begin_ns), M(end_ns));
SHAPE(failed_free, sl_failed_free, STACK(stack, ), M(code), M(time_ns), M(count), M(api));
SHAPE(traffic, sl_traffic, M(communicator), M(collectives), M(bytes));
SHAPE(in_flight, sl_in_flight, M(api), M(thread), M(bytes), M(since_ns));
SHAPE(host, sl_host, M(rss_peak), M(cgroup_limit), M(cgroup_peak), M(oom_kills), M(oom_kills_before), M(cgroup_id), M(cgroup_held), LINE(rss), LINE(cgroup));
SHAPE(moment_site, sl_moment_site, M(site), M(bytes), M(blocks));
SHAPE(moment, sl_moment, M(time_ns), M(known_bytes), LIST_AS(sites, "held", count, moment_site), M(rest_bytes), M(rest_blocks), LIST(unused_bytes, unused_count, u64), LIST(graph_bytes, graph_count, u64));
SHAPE(piece, sl_piece, M(address), M(bytes), M(site));
SHAPE(segments, sl_segments, M(time_ns), M(device), LIST(segment, segment_count, piece), LIST(block, block_count, piece), M(left_out));
SHAPE(mark, sl_mark, M(time_ns), M(bytes), M(kind), M(device), M(api));
SHAPE(moments, sl_moments, LIST(moment, count, moment), IN(largest, segments), IN(at_oom, segments), VECTOR(at_end, segments), VECTOR(marks, mark));
PUBLIC(sl_shape_model, sl_model, M(events), M(unknown_frees), M(unknown_hooks), M(last_call_ns), M(devices_set), M(folded_ns), M(first_ns), M(now_ns), VECTOR(sites, site),
       VECTOR(holders, holder), VECTOR(libraries, text), VECTOR(labelled, labelled), VECTOR(labels, label), VECTOR(phases, phase), M(phases_level),
       M(phases_seen), M(ranges_begun), M(boundaries), VECTOR(collectives, collective), M(collective_stride), M(collectives_seen),
       VECTOR(meetings, meeting), M(communicators), VECTOR(traffic, traffic), VECTOR(ooms, oom), M(ooms_total), VECTOR(failed_frees, failed_free),
       VECTOR(in_flight, in_flight), IN(tracks, tracks), IN(moments, moments), IN(host, host), M(torch_seen), M(keeps_bytes), STACK(keeps_stack, keeps_), IN(roomless, roomless), VECTOR(called, called), VECTOR(variables, variable), VECTOR(paired, paired), M(crowded), M(unlooked));
SHAPE(bin, sl_bin, M(min), M(max), M(max_ns), M(area), M(last), M(max_site));
SHAPE(line, sl_image_line, M(what), M(device), M(index), M(begun), M(first), M(bin), M(value), M(last_ns), M(site), LIST(bins, count, bin));
PUBLIC(sl_shape_lines, sl_image_lines, M(begin_ns), M(end_ns), M(shift), VECTOR(lines, line));
SHAPE(slot, sl_image_slot, M(slot), LIST(rows, row_count, row), LIST(state, state_count, state));
PUBLIC(sl_shape_slots, sl_image_slots, VECTOR(slots, slot), LIST(apis, api_count, api), VECTOR(text_ids, u64),
       VECTOR(native_ids, u64), VECTOR(thread_ids, u64));
PUBLIC(sl_shape_common, sl_image_common, KEPT(hooks, hook_count, hook), VECTOR(frames, frame), VECTOR(files, text), VECTOR(pythons, python),
       VECTOR(frame_ids, u64), VECTOR(python_ids, u64));

/* ---- the process */
SHAPE(leak, sl_leak, STACK(stack, ), M(kind), M(device), M(bytes), M(blocks), M(first_ns), M(last_ns), M(verdict), M(severity),
      M(library), M(growing), M(suppressed), M(bytes_per_second), M(bytes_per_step), M(r_squared), M(step));
SHAPE(growth_holder, sl_holder_of_growth, STACK(stack, ), M(library), M(bytes_per_entry));
SHAPE(growth, sl_growth, M(label), M(slope), M(r_squared), M(error), M(at_most), M(verdict), FIXED(holders, holder_count, growth_holder), M(inside), M(credited));
SHAPE(leak_line, sl_leak_line, TRACK(track), M(verdict), M(count_only), M(young), M(larger), M(amount), M(births), M(blocks), M(bytes), M(per_birth), M(per_second),
      M(per_second_error), M(confidence), M(since_ns), M(left_blocks), M(left_bytes), M(bursts), M(rounds), M(clock),
      STACK(clock_at, clock_), M(graph), M(ended_ns), M(bouts), STACK(joined_at, joined_));
SHAPE(iterations, sl_iterations, M(count), M(name), M(by_label));
SHAPE(series, sl_leak_series, M(monotonic), M(monotonic_high), M(rising_share), M(spikes), M(spike_limit), M(no_cleanup), M(first_average), M(last_average),
      M(periodic), M(correlation), M(stepped), M(steps), M(drift), M(drift_high), M(drift_slope), M(autocorrelated));
SHAPE(heuristics, sl_heuristics, M(device), M(samples), IN(series, series), TRACK(larger), M(larger_from), M(larger_to), M(larger_on));
PUBLIC(sl_shape_process, sl_process, M(session_id), M(started_unix_ns), M(ended_unix_ns), M(gone), VECTOR(leaks, leak), VECTOR(growth, growth),
       VECTOR_AS(leaks_by_line, "kept", leak_line), IN(iterations, iterations), VECTOR(heuristics, heuristics));
