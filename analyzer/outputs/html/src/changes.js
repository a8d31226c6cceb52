/* SPDX-License-Identifier: MIT */
/* Changes of the program that were replayed: a row for each, with its curve beside the recorded one; reads and tensors of a dry run. */
import {h, replace, svg} from "./dom.js";
import {bytes, count, visible} from "./format.js";
import {table, word} from "./tables.js";

const [WIDTH, HEIGHT] = [380, 72];

/* How far the replay came, in the words of report.json, and what it means. */
const PASSES = {"the whole step": "would have fitted", "this step": "this step passes", "this request": "this request passes", no: "fails", unknown: "not known"};
const verdict = (subject, c) => (subject.failed ? PASSES[c.passes] : c.passes === "the whole step" && c.less_bytes > 0 ? "lowers the peak" : c.passes === "the whole step" ? "no lower" : PASSES[c.passes]);

/* The points of a curve in a frame of 1 by 1, y from the top; a gap (NaN) ends it. */
export function path(curve, most) {
	const points = [];
	for (let i = 0; i < curve.length && !Number.isNaN(curve[i]); i++)
		points.push([(i + 0.5) / curve.length, 1 - curve[i] / most]);
	return points;
}

/* The most that the picture has to show. */
export function highest(...curves) {
	return Math.max(1, ...curves.flatMap((curve) => Array.from(curve).filter((v) => !Number.isNaN(v))));
}

function line(name, points) {
	return svg("polyline", {class: name, points: points.map(([x, y]) => `${(x * WIDTH).toFixed(1)},${(2 + y * (HEIGHT - 4)).toFixed(1)}`).join(" ")});
}

function picture(subject, change, most) {
	const end = path(subject.curve, most).at(-1), capacity = 1 - subject.capacity_bytes / most;
	return svg("svg", {class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
		"aria-label": `Reserved at most ${bytes(change.peak_reserved_bytes)} with the change; as recorded ${bytes(highest(subject.curve))} of ${bytes(subject.capacity_bytes)}`},
	line("limit", [[0, capacity], [1, capacity]]), line("was", path(subject.curve, most)), line("is", path(change.curve, most)),
	subject.failed && end && svg("circle", {class: "fails", cx: end[0] * WIDTH, cy: 2 + end[1] * (HEIGHT - 4), r: 3.5}));
}

/* What was replayed of each process: report.json's changes, with their curves and words. */
export const changesOf = (page) => page.processes.filter((p) => p.changes).map((p) => ({...p.changes, p, curve: p.replayed.curve,
	tried: p.changes.tried.map((one, i) => ({...one, ...p.replayed.tried[i]}))}));

export class Tried {
	constructor({page, state}) {
		Object.assign(this, {page, state, node: h("div", {})});
	}

	draw() {
		replace(this.node, changesOf(this.page).map((subject) => this.subject(subject)));
	}

	subject(subject) {
		const {p} = subject, q = this.state.get("q").trim().toLowerCase();
		const most = 1.04 * Math.max(subject.capacity_bytes, highest(subject.curve, ...subject.tried.map((c) => c.curve)));
		const rows = subject.tried.filter((c) => !q || `${c.text} ${c.words}`.toLowerCase().includes(q));
		return h("section", {class: "table"}, h("p", {class: "soft"}, `${p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`} device ${subject.device}${subject.capacity_bytes ? `, with ${bytes(subject.capacity_bytes)}` : ""}${subject.left_out ? `; ${visible(subject.left_out, 200)}` : ""}.`),
			rows.length > 0 && h("ul", {class: "legend tried-legend"}, [["is", "reserved with the change"], ["was", "as recorded"], ["limit", "capacity"]].map(([name, text]) => h("li", {}, svg("svg", {class: "curve", width: 22, height: 8}, svg("polyline", {class: name, points: "0,4 22,4"})), ` ${text}`))),
			rows.length > 0 && h("div", {class: "table-wrap"}, h("table", {class: "tried"},
				h("thead", {}, h("tr", {}, ["Change", "Replayed", "Reserved at most", "To the end of the step"].map((name, k) => h("th", {scope: "col", class: k === 2 ? "num" : null}, name)))),
				h("tbody", {}, rows.map((c) => h("tr", {}, h("td", {}, h("strong", {}, visible(c.text, 120)), h("br"), h("span", {class: "soft"}, visible(c.words, 160))),
					h("td", {class: c.passes === "the whole step" ? "good" : null}, verdict(subject, c)),
					h("td", {class: "num"}, bytes(c.peak_reserved_bytes)), h("td", {}, picture(subject, c, most))))))));
	}
}

/* Lines that read a value that no kernel computed: there the run may have gone another way than on the card. */
export class Reads {
	constructor({page, state}) {
		Object.assign(this, {page, state, node: h("div", {})});
	}

	draw() {
		const {page} = this, who = (row) => page.processes[row.process].rank ?? page.processes[row.process].pid;
		replace(this.node, table("", [["Line", word], ["What", word], ["Rank or pid", word]], page.reads.map((r) => [r.line, r.what, who(r)]), this.state.get("q").trim().toLowerCase()) ||
			h("p", {class: "empty"}, "No row matches the search."));
	}
}

/* A dry run's tensors at the peak, by module and by type. */
export class Tensors {
	constructor({page, state}) {
		Object.assign(this, {page, state, node: h("div", {})});
	}

	table(title, key, none) {
		const {page, state} = this, sums = new Map();
		for (const row of page.tensors) {
			const name = row[key] || none, sum = sums.get(name) || [name, 0, 0];
			sums.set(name, [name, sum[1] + row.bytes, sum[2] + row.blocks]);
		}
		return table("", [[title, word], ["Bytes", bytes], ["Blocks", count]], [...sums.values()].sort((a, b) => b[1] - a[1]), state.get("q").trim().toLowerCase());
	}

	draw() {
		const tables = [this.table("Module", "module", "in no module"), this.table("Type", "type", "no known type")].filter(Boolean);
		replace(this.node, ...(tables.length ? tables : [h("p", {class: "empty"}, "No row matches the search.")]));
	}
}
