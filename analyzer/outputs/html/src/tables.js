/* SPDX-License-Identifier: MIT */
/* Plain tables for what has no picture: rows of memory, libraries, labels, calls. */
import {h, replace} from "./dom.js";
import {bytes, count, duration, visible} from "./format.js";

const ROWS = 40;

/* Rows by a column; what is not known comes last, whichever way. */
export function sorted(rows, k, down) {
	const known = (row) => row[k] !== null && row[k] !== undefined && row[k] !== "";
	const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true}));
	return [...rows].sort((a, b) => known(b) - known(a) || (known(a) ? (down ? -1 : 1) * compare(a[k], b[k]) : 0));
}

/* {title, head: [[name, format]], rows: [[...]]} as they come, until a column's name is clicked */
export function table(title, head, rows, q) {
	const text = (row) => row.map((cell, k) => head[k][1](cell));
	const found = rows.filter((row) => !q || text(row).join(" ").toLowerCase().includes(q));
	if (!rows.length || (q && !found.length))
		return null;
	const body = h("tbody", {}), view = {rows: found, by: null, down: false, all: found.length <= ROWS};
	const build = () => replace(body, view.rows.slice(0, view.all ? undefined : ROWS).map((row) =>
		h("tr", {}, text(row).map((cell, k) => h("td", head[k][1] === word ? {class: "cut", title: cell.length > 20 && cell} : {class: "num"}, cell)))));
	const more = !view.all && h("button", {onclick: () => {
		view.all = true;
		build();
		more.remove();
	}}, `Show all ${count(found.length)}`);
	const names = head.map(([name, format], k) => h("th", {scope: "col", class: format === word ? null : "num"}, h("button", {class: "link", onclick: () => {
		view.down = view.by === k ? !view.down : format !== word; /* numbers: the largest first */
		view.by = k;
		view.rows = sorted(found, k, view.down);
		names.forEach((th, other) => (other === k ? th.setAttribute("aria-sort", view.down ? "descending" : "ascending") : th.removeAttribute("aria-sort")));
		build();
	}}, name)));
	build();
	return h("section", {class: "table"}, title && h("h3", {}, title), h("div", {class: "table-wrap"}, h("table", {}, h("thead", {}, h("tr", {}, names)), body)), more);
}

const byPeak = (a, b) => b.peak_bytes - a.peak_bytes;

export const word = (value) => (value === null || value === "" ? "–" : visible(value, 80));

export class Tables {
	constructor({page, state, scope}) {
		Object.assign(this, {page, state, scope});
		this.node = h("div", {});
	}

	draw() {
		const q = this.state.get("q").trim().toLowerCase(), {process} = this.scope(), {page} = this;
		const of = (name) => page.processes.flatMap((p, i) => (process === null || i === process ? p[name] ?? [] : []).map((row) => ({...row, who: p.rank ?? p.pid})));
		const rank = [page.processes.some((p) => p.rank === null) ? "Rank or pid" : "Rank", word];
		const tables = [
			table("Memory by kind", [rank, ["Kind", word], ["Device", word], ["Peak", bytes], ["Live at the end", bytes], ["Blocks", count], ["Allocations", count], ["Frees", count], ["Freed with their owner", count], ["Failed", count], ["Allocated in all", bytes]],
				of("memory").sort(byPeak).map((r) => [r.who, r.kind, r.device, r.peak_bytes, r.live_bytes, r.live_blocks, r.allocations, r.frees, r.implicit_frees, r.failed_allocations, r.allocated_bytes]), q),
			table("Libraries", [rank, ["Library", word], ["Device", word], ["Peak", bytes], ["Live at the end", bytes]],
				of("libraries").sort(byPeak).map((r) => [r.who, r.library, r.device, r.peak_bytes, r.live_bytes]), q),
			table("Labels", [rank, ["Label", word], ["Entries", count], ["Still open", count], ["Mean time", duration], ["Peak", bytes], ["Growth per entry", bytes], ["Verdict", word]],
				of("labels").sort(byPeak).map((r) => [r.who, r.label, r.entries, r.open, r.entries ? r.duration_ns / r.entries : null, r.peak_bytes, r.growth_bytes_per_entry, r.verdict]), q),
			table("Given out by the framework's pool, when that was most", [rank, ["Device", word], ["In use", bytes], ["Named", bytes], ["Rounding", bytes], ["Unnamed", bytes]],
				of("pytorch").filter((r) => r.given_out).sort((a, b) => b.given_out.in_use_bytes - a.given_out.in_use_bytes).map(({who, device, given_out: g}) => [who, device, g.in_use_bytes, g.named_bytes, g.rounding_bytes, g.unnamed_bytes]), q),
			table("Pairs that the program gave its ranges", [rank, ["Label", word], ["Said", word], ["Entries", count], ["Mean time", duration], ["Peak", bytes], ["Allocated in all", bytes]],
				of("pairs").sort(byPeak).map((r) => [r.who, r.label, r.pair, r.entries, r.duration_ns / Math.max(1, r.entries), r.peak_bytes, r.allocated_bytes]), q),
			table("Names the program gave", [rank, ["Name", word], ["Device", word], ["Peak", bytes], ["Live at the end", bytes], ["Blocks", count]],
				of("names").sort(byPeak).map((r) => [r.who, r.name, r.device, r.peak_bytes, r.live_bytes, r.blocks]), q),
			table("Calls", [rank, ["Call", word], ["Calls", count], ["Failures", count], ["Bytes", bytes], ["Time", duration]],
				of("apis").sort((a, b) => b.calls - a.calls).map((r) => [r.who, r.api, r.calls, r.failures, r.bytes, r.time_ns]), q),
		].filter(Boolean);
		replace(this.node, tables.length ? tables : h("p", {class: "empty"}, q ? "No row matches the search." : "No rows."));
	}
}
