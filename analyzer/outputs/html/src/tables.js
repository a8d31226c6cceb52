/* SPDX-License-Identifier: MIT */
/* Plain tables for what has no picture: rows of memory, libraries, labels, calls. */
import {h, replace} from "./dom.js";
import {bytes, count, duration, visible} from "./format.js";

const ROWS = 40;

/* {title, head: [[name, format]], rows: [[...]]} largest first by column `by` */
function table(title, head, rows, q) {
	const texts = rows.map((row) => row.map((cell, k) => head[k][1](cell)));
	const found = texts.filter((row) => !q || row.join(" ").toLowerCase().includes(q));
	if (!rows.length || (q && !found.length))
		return null;
	const build = (part) => part.map((row) => h("tr", {}, row.map((cell, k) => h("td", {class: head[k][1] === word ? null : "num"}, cell))));
	const body = h("tbody", {}, build(found.slice(0, ROWS)));
	const more = found.length > ROWS && h("button", {onclick: () => {
		replace(body, build(found));
		more.remove();
	}}, `Show all ${count(found.length)}`);
	return h("section", {class: "table"}, h("h3", {}, title), h("div", {class: "table-wrap"}, h("table", {}, h("thead", {}, h("tr", {}, head.map(([name, format]) =>
		h("th", {scope: "col", class: format === word ? null : "num"}, name)))), body)), more);
}

const word = (value) => (value === null || value === "" ? "–" : visible(value, 80));

export class Tables {
	constructor({page, state, scope}) {
		Object.assign(this, {page, state, scope});
		this.node = h("div", {});
	}

	draw() {
		const q = this.state.get("q").trim().toLowerCase(), {process} = this.scope(), {page} = this;
		const of = (rows) => rows.filter((row) => process === null || row.process === process);
		const who = (row) => (page.processes[row.process].rank ?? page.processes[row.process].pid);
		const rank = ["Rank", word];
		const tables = [
			table("Memory by kind", [rank, ["Kind", word], ["Device", word], ["Peak", bytes], ["Live at the end", bytes], ["Blocks", count], ["Allocations", count], ["Frees", count], ["Failed", count], ["Allocated in all", bytes]],
				of(page.memory).sort((a, b) => b.peak - a.peak).map((r) => [who(r), r.kind, r.device, r.peak, r.live, r.blocks, r.allocations, r.frees, r.failed, r.allocated]), q),
			table("Libraries", [rank, ["Library", word], ["Device", word], ["Peak", bytes], ["Live at the end", bytes]],
				of(page.libraries).sort((a, b) => b.peak - a.peak).map((r) => [who(r), r.library, r.device, r.peak, r.live]), q),
			table("Labels", [rank, ["Label", word], ["Entries", count], ["Mean time", duration], ["Peak", bytes], ["Growth per entry", bytes], ["Verdict", word]],
				of(page.labels).sort((a, b) => b.peak - a.peak).map((r) => [who(r), r.label, r.entries, r.duration / Math.max(1, r.entries), r.peak, r.slope, r.verdict]), q),
			table("Calls", [rank, ["Call", word], ["Calls", count], ["Failures", count], ["Bytes", bytes], ["Time", duration]],
				of(page.apis).sort((a, b) => b.calls - a.calls).map((r) => [who(r), r.api, r.calls, r.failures, r.bytes, r.time]), q),
		].filter(Boolean);
		replace(this.node, tables.length ? tables : h("p", {class: "empty"}, q ? "No row matches the search." : "No rows."));
	}
}
