/* SPDX-License-Identifier: MIT */
/* What changed between runs: totals, the stacks that grew and shrank, and every difference as a row. */
import {dryLine, lacks} from "./answer.js";
import {h, replace} from "./dom.js";
import {Flame} from "./flame.js";
import {bytes, count, percent, visible} from "./format.js";
import {mix} from "./theme.js";

const SECTIONS = [["library", "Libraries, at their own peak"], ["stack", "Places, at the peak"], ["leak", "Leaks"], ["label", "Labels, at their peak"], ["growth", "Growth of each entry"]];
const SHOWN = 400; /* rows of a table */
const TOTALS = {peak: "Peak", allocated: "In tensors", hidden: "Hidden", leak: "Left at the end"};

export const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${bytes(Math.abs(value))}`;

/* Whether it is a change: neither the same, nor inside the spread of several runs, nor unknown. */
export const isReal = (row) => !["same", "noise", "unknown"].includes(row.change);

function spread(s) {
	return s === null ? "unknown" : s.min_bytes === s.max_bytes ? bytes(s.max_bytes) : `${bytes(s.min_bytes)} to ${bytes(s.max_bytes)}`;
}

/* One sample a stack: as wide as the larger of the two sides, or as one of them. */
export function changeSamples(stacks, width) {
	return Array.from(stacks.stack, (node, i) => [node, width === "before" ? stacks.before[i] : width === "after" ? stacks.after[i] : Math.max(stacks.before[i], stacks.after[i]),
		stacks.before[i], stacks.after[i]]);
}

export class DiffFlame extends Flame {
	choose() {
		const samples = changeSamples(this.page.stacks, this.state.get("width"));
		const sum = (k) => samples.reduce((a, s) => a + s[k], 0);
		return {title: `At the peak: ${bytes(sum(2))} before, ${bytes(sum(3))} after`, samples};
	}

	total() {
		return "";
	}

	/* Words beside the colour: nobody has to tell colours apart. */
	label(name, {before, after}) {
		return before === after ? name : `${signed(after - before)}  ${name}`;
	}

	drawKey() {}

	fill({node: data}, hit) {
		const p = this.palette(), most = Math.max(data.before, data.after), change = most ? (data.after - data.before) / most : 0;
		return hit ? p.hitFill : mix(p.unknown, change > 0 ? p.grown : p.shrunk, Math.sqrt(Math.abs(change)));
	}

	show(node) {
		const {name, frame, node: data} = node.data;
		this.current = node;
		replace(this.line, h("strong", {}, name), `: ${bytes(data.before)} before, ${bytes(data.after)} after`,
			data.before ? `, ${percent(data.after, data.before)} of before` : "", " ", h("span", {class: "soft"}, frame >= 0 ? this.stacks.place(frame) : ""));
	}
}

/* runs: on a server, the numbers of the runs before and after. */
export function drawChangesAnswer(node, page, runs = {}) {
	const order = Object.keys(TOTALS), totals = page.differences.filter((d) => d.of === "total").sort((a, b) => order.indexOf(a.key) - order.indexOf(b.key));
	const side = (name, paths, run) => h("p", {class: "soft"}, `${name}: `, run ? h("a", {href: `/runs/${Number(run)}`}, `run ${Number(run)}`) : visible(paths.slice(0, 6).join(", "), 600),
		paths.length > 6 ? ` and ${paths.length - 6} more` : "");
	replace(node, dryLine(page, ""), h("h1", {}, page.title), side("Before", page.before, runs.before), side("After", page.after, runs.after),
		h("ol", {class: "answer"}, totals.map((d) => h("li", {}, `${TOTALS[d.key] || d.key}: ${spread(d.before)} before, ${spread(d.after)} after${isReal(d) ? `, ${signed(d.change_bytes)}` : d.change === "noise" ? ", within what runs differ by anyway" : d.change === "same" ? ", the same" : ""}.`))),
		h("div", {class: "tiles"}, ["new", "gone", "more", "less"].map((change) => h("div", {class: "tile"}, h("p", {class: "label"}, `places and leaks: ${change}`), h("p", {class: "value"}, count(page.places[change]))))), lacks(page));
}

/* Why the peak differs: the terms, whose changes add up to the peak's. */
export function drawBecause(page) {
	const size = (n) => Number.isFinite(n) ? bytes(n) : "";
	return h("div", {class: "table-wrap"}, h("table", {},
		h("thead", {}, h("tr", {}, ["Term", "Change", "Before", "After"].map((t, k) => h("th", {scope: "col", class: k ? "num" : null}, t)))),
		h("tbody", {}, page.because.slice(0, SHOWN).map((r) => h("tr", {}, h("td", {class: r.line ? "soft" : null}, visible(r.what, 300)), h("td", {class: "num"}, signed(r.bytes)),
			h("td", {class: "num"}, size(r.before)), h("td", {class: "num"}, size(r.after)))))));
}

export class Changes {
	constructor({page, state}) {
		Object.assign(this, {page, state});
		this.node = h("div", {});
	}

	draw() {
		const q = this.state.get("q").trim().toLowerCase(), all = this.state.get("changed") === "all";
		const table = ([of, title]) => {
			const rows = this.page.differences.filter((d) => d.of === of && (all || isReal(d)) && (!q || `${d.what} ${d.change}`.toLowerCase().includes(q)));
			return rows.length > 0 && h("section", {class: "table"}, h("h3", {}, title), h("div", {class: "table-wrap"}, h("table", {},
				h("thead", {}, h("tr", {}, ["What", "Verdict", "Change", "Before", "After"].map((t, k) => h("th", {scope: "col", class: k > 1 ? "num" : null}, t)))),
				h("tbody", {}, rows.slice(0, SHOWN).map((d) => h("tr", {}, h("td", {}, visible(d.what, 300)), h("td", {}, d.change), h("td", {class: "num"}, isReal(d) || d.change === "noise" ? signed(d.change_bytes) : ""),
					h("td", {class: "num"}, spread(d.before)), h("td", {class: "num"}, spread(d.after)))))),
				rows.length > SHOWN && h("p", {class: "soft"}, `${count(rows.length - SHOWN)} more: search for a name, or diff --json.`)));
		};
		const tables = SECTIONS.map(table).filter(Boolean);
		replace(this.node, tables.length ? tables : h("p", {class: "empty"}, q ? "No row matches the search." : "Nothing changed."));
	}
}
