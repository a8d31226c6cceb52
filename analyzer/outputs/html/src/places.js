/* SPDX-License-Identifier: MIT */
/* Where memory was asked for, as a table; how large its blocks were: over the run, or over the range of time in view. */
import {h, replace} from "./dom.js";
import {bytes, count, duration} from "./format.js";
import {CLASSES, classMost} from "./ranges.js";
import {table, word} from "./tables.js";

const sizeName = (k) => (classMost(k) === Infinity ? `above ${bytes(classMost(k - 1), 0)}` : bytes(classMost(k), 0));

const SUMS = ["born", "bornBytes", "kept", "keptBytes", "peak", "temporary", "ended", "ended_ns"];

/* Rows of one line and purpose as one: the stacks have its calls. */
export function byLine(rows) {
	const lines = new Map();
	for (const row of rows) {
		const key = `${row.role} ${row.name}`, line = lines.get(key);
		if (!line)
			lines.set(key, {...row});
		else
			SUMS.forEach((sum) => (line[sum] += row[sum]));
	}
	return [...lines.values()];
}

export class Places {
	constructor({page, state, ranges, scope, range, sayRange}) {
		Object.assign(this, {page, state, ranges, scope, range, sayRange});
		this.node = h("div", {});
		this.sizeNode = h("div", {class: "side"});
	}

	draw() {
		const scope = this.scope(), range = this.range();
		if (range && !this.ranges.canTell(scope)) {
			replace(this.node, h("p", {class: "empty"}, "Of a range of time this report cannot tell: births are folded (--keep), come from a summary, or have too many places. ",
				h("button", {class: "link", onclick: () => this.state.set({from: "", to: "", flame: "moment"})}, "Show the whole run")));
			return;
		}
		const found = this.ranges.rows(scope, range), {rows} = found;
		replace(this.node, this.title(range, found), this.table(range, rows));
		replace(this.sizeNode, this.sizes(range, found));
	}

	title(range, {stretch}) {
		return h("p", {class: "soft", "aria-live": "polite"}, range ?
			`${this.sayRange(stretch)}, the kept windows nearest to the range in view: what was born in it, and what of that was still held at its end.` :
			"Of the whole run. Drag over the time line for a part of it.");
	}

	/* How many blocks of which size, as bars; the dark part of a bar is still held. */
	sizes(range, {bornSizes, keptSizes}) {
		const most = Math.max(...bornSizes);
		if (!most)
			return null;
		const first = bornSizes.findIndex((n) => n > 0), last = CLASSES - 1 - [...bornSizes].reverse().findIndex((n) => n > 0);
		const rows = Array.from({length: last - first + 1}, (_, i) => first + i), part = (n) => `${n ? Math.max(0.6, (n / most) * 100) : 0}%`;
		return h("div", {class: "sizes"}, h("h3", {}, "Blocks by size"), h("table", {class: "mini"},
			h("thead", {}, h("tr", {}, ["up to", "", "asked for", range ? "kept to its end" : "kept to the end"].map((name, k) => h("th", {scope: "col", class: k === 1 ? null : "num"}, name)))),
			h("tbody", {}, rows.map((k) => h("tr", {}, h("td", {class: "num"}, sizeName(k)),
				h("td", {class: "bars"}, h("div", {class: "born", style: {width: part(bornSizes[k])}}), h("div", {class: "kept", style: {width: part(keptSizes[k])}})),
				h("td", {class: "num"}, count(bornSizes[k])), h("td", {class: "num"}, count(keptSizes[k])))))));
	}

	table(range, rows) {
		const kept = range ? "Still held at its end" : "Kept to the end", shown = byLine(rows.filter((row) => row.born > 0 || row.peak > 0));
		const known = shown.some((row) => row.role), whole = shown.every((row) => row.whole);
		const columns = [["Line", word, (r) => r.name],
			!range && ["At the peak", bytes, (r) => r.peak], [kept, bytes, (r) => r.keptBytes], ["Kept blocks", count, (r) => r.kept],
			["Asked for", bytes, (r) => r.bornBytes], ["Blocks", count, (r) => r.born], whole && [range ? "Temporary (run)" : "Temporary", count, (r) => r.temporary],
			whole && [range ? "Mean life (run)" : "Mean life", duration, (r) => (r.ended ? r.ended_ns / r.ended : null)],
			known && ["For", word, (r) => this.page.roles[r.role]]].filter(Boolean);
		const first = range ? (r) => r.keptBytes : (r) => r.peak;
		return table(null, columns.map(([name, format]) => [name, format]), shown.sort((a, b) => first(b) - first(a) || b.bornBytes - a.bornBytes)
			.map((row) => columns.map(([, , value]) => value(row))), this.state.get("q").trim().toLowerCase()) ?? h("p", {class: "empty"}, this.state.get("q") ? "No place matches the search." : "No memory was asked for then.");
	}
}
