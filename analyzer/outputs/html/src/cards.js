/* SPDX-License-Identifier: MIT */
/* Findings, leaks and out-of-memory errors as cards: what, evidence, where, what to do. */
import {h, replace} from "./dom.js";
import {UNKNOWN, bytes, count, duration, fine, instant, sentence, visible} from "./format.js";
import {restName} from "./series.js";

const VERDICTS = {
	live_at_exit: "still live when the process ended", growing: "grows", cache: "kept by an allocator to hand out again",
	workspace: "a workspace its library keeps",
};

/* The first part of a finding's id, in words. */
const KINDS = {leak: "Leak", ranks: "Ranks", device: "Device", allocator: "Allocator", gap: "Hidden memory", collective: "Collectives", first_cause: "Ranks"};

/* Ranks that say the same thing are one card: [{first, all, ranks, bytes, blocks}], by `key`. */
export function together(items, key) {
	const groups = new Map();
	for (const item of items) {
		const group = groups.get(key(item));
		if (!group) {
			groups.set(key(item), {first: item, all: [item], ranks: [item.process], bytes: item.bytes || 0, blocks: item.blocks || 0});
			continue;
		}
		group.all.push(item);
		if (!group.ranks.includes(item.process))
			group.ranks.push(item.process);
		group.bytes += item.bytes || 0;
		group.blocks += item.blocks || 0;
	}
	return [...groups.values()];
}

/* Most severe first, then most bytes first, then as they were found. */
const TONES = {bad: 0, warn: 1, note: 2};

export function bySeverity(a, b) {
	return TONES[a.tone] - TONES[b.tone] || (b.bytes || 0) - (a.bytes || 0);
}

/* The verdict where every card is a note, in the terminal's words; null: a card is more than a note. */
export function nothing(page, cards) {
	return cards.some((c) => c.tone !== "note") ? null : page.source === "telemetry" ? "Nothing to report in these samples." :
		"Nothing to report: no out-of-memory error, no leak, no growth.";
}

/* Holders as the terminal has them: stacks of one place are one. */
export function byPlace(owners) {
	const rows = new Map();
	for (const o of owners) {
		const key = `${o.name}\n${o.place || ""}`, row = rows.get(key);
		rows.set(key, row ? {...row, bytes: row.bytes + o.bytes} : o);
	}
	return [...rows.values()].sort((a, b) => b.bytes - a.bytes);
}

/* Where a leak is; if on several devices, with what is on each. */
function onDevices(leaks) {
	const byDevice = new Map();
	for (const l of leaks)
		if (l.device !== null)
			byDevice.set(l.device, (byDevice.get(l.device) || 0) + l.bytes);
	const devices = [...byDevice].sort((a, b) => a[0] - b[0]).slice(0, 8);
	return devices.length < 2 ? devices.map(([device]) => `, device ${device}`).join("") : devices.map(([device, held]) => `, ${bytes(held)} on device ${device}`).join("");
}

const ORDER = {growing: 0, live_at_exit: 1, workspace: 2, cache: 3};

export class Cards {
	constructor({page, stacks, state, onShow}) {
		Object.assign(this, {page, stacks, state, onShow});
		this.list = h("div", {class: "cards"});
		this.node = h("div", {}, this.list);
		this.all = false;
	}

	rank(process) {
		const p = this.page.processes[process];
		return p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`;
	}

	ranks(list) {
		const names = list.slice(0, 6).map((p) => this.rank(p));
		return names.join(", ") + (list.length > names.length ? ` and ${count(list.length - names.length)} more` : "");
	}

	stack(node) {
		const path = this.stacks.path(node);
		if (!path.length)
			return h("p", {class: "soft"}, "No stack recorded.");
		const item = (f) => h("li", {class: this.stacks.isPython(f) ? "py" : "nat", title: this.stacks.place(f)}, visible(this.stacks.name(f), 160));
		const inner = this.stacks.foremost(path, 5), rest = path.filter((f, i) => !inner.includes(i)).reverse();
		return [h("ol", {class: "frames inner"}, inner.map((i) => item(path[i]))),
			rest.length ? h("details", {}, h("summary", {}, `${rest.length} more frame${rest.length === 1 ? "" : "s"}`), h("ol", {class: "frames inner"}, rest.map(item))) : null];
	}

	facts(rows) {
		return h("dl", {}, rows.filter(([, v]) => v !== null && v !== UNKNOWN).map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
	}

	oom(o) {
		const where = `${this.rank(o.process)}${o.device === null ? "" : `, device ${o.device}`}`;
		const hidden = [[["context", o.context_bound].filter(Boolean).join(" "), o.context], ["modules", o.modules], ["rounding to 2 MiB about", o.rounding], ["set aside by its limit", o.aside], ["unexplained", o.unexplained]].filter(([, v]) => v).map(([k, v]) => `${k} ${bytes(v)}`).join(", ") || null;
		const scope = {vram: "device memory", host: "host memory", address_space: "address space", context: "a context", code: "memory for code"}[o.scope] || o.scope;
		return {kind: "Out of memory", tone: o.recovered === true ? "warn" : "bad", bytes: o.requested, process: o.process, device: o.device, from: o.at, to: o.at, stack: o.stack,
			title: o.requested === null ? "Out of memory" : `${visible(o.api || "A call", 60)} asked for ${bytes(o.requested)}${o.free === null ? "" : ` with ${bytes(o.free)} free of ${bytes(o.total)}`}`,
			where: `${where} at ${instant(o.at, fine(this.page.duration_ns))}${o.attempts > 1 ? `, ${count(o.attempts)} attempts` : ""}${o.injected ? ", injected for a test" : ""}`,
			facts: [["at", o.place && visible(o.place, 200)], ["why", o.cause && visible(o.cause, 600)], ["ran out", scope], ["held by this process", bytes(o.live)], [restName(this.page), o.cached === null ? null : `${bytes(o.cached)}, the largest piece ${bytes(o.largest_cached)}`],
				["hidden", hidden], ["said of the range", o.said?.length ? o.said.map((pair) => visible(pair, 80)).join(", ") : null], ["recovered", o.recovered === null ? null : o.recovered ? "yes, a later try succeeded, of the same size or less" : "no"]],
			owners: o.owners,
			todo: o.recovered === true ? "A later try succeeded, of the same size or less; each such round costs time." :
				!o.owners.length ? o.advice || "Samples do not say who held the memory: record with stormlog-run to see it." :
					`${o.advice ? `${visible(o.advice, 300)}. ` : ""}The flame graph at that moment shows all that held it.`};
	}

	leak({first: l, all: same, ranks, bytes: all, blocks}) {
		return {kind: l.verdict === "growing" ? "Leak" : l.verdict === "live_at_exit" ? "Left" : "Kept", tone: l.severity === "critical" ? "bad" : l.severity === "info" ? "note" : "warn", bytes: all, process: l.process, device: l.device, from: l.first, to: l.last, stack: l.stack,
			title: `${bytes(all)} in ${count(blocks)} block${blocks === 1 ? "" : "s"}, ${VERDICTS[l.verdict] || l.verdict}`,
			where: `${this.ranks(ranks)}${onDevices(same)}, ${visible(l.library || l.kind, 60)}, ${l.kind}`,
			facts: [["allocated", l.first === l.last ? `at ${instant(l.first, fine(this.page.duration_ns))}` : `from ${instant(l.first, fine(this.page.duration_ns))} to ${instant(l.last, fine(this.page.duration_ns))}`],
				["grows", l.growth === null ? null : `${l.step_growth === null ? `${bytes(l.growth)} per second` : `${bytes(l.step_growth)} with each ${visible(l.step, 60)}`}${l.confidence === null ? "" : `, r² ${l.confidence.toFixed(2)}`}`]],
			todo: l.suggestion};
	}

	finding(f) {
		const at = fine(this.page.duration_ns);
		return {kind: KINDS[f.id.split(".")[0]] || "Finding", tone: f.severity === "critical" ? "bad" : f.severity === "info" ? "note" : "warn", bytes: f.bytes,
			process: f.process, device: f.device, from: f.from, to: f.to, stack: f.stack, title: sentence(f.text, 400),
			where: [f.process === null ? null : this.rank(f.process), f.device === null ? null : `device ${f.device}`, f.from === null ? null :
				f.to > f.from ? `${instant(f.from, at)} to ${instant(f.to, at)}` : `at ${instant(f.from, at)}`].filter(Boolean).join(", "),
			facts: f.evidence.map(([k, v]) => [visible(k, 60), visible(v, 100)]), todo: f.advice};
	}

	growth({first: g, all, ranks}) {
		const also = [...new Set(all.map((l) => l.label))].filter((label) => label !== g.label);
		return {kind: "Growth", tone: all.some((l) => l.credited) ? "warn" : "note", process: g.process, device: null, from: g.first, to: g.last, stack: g.stack,
			title: `${g.slope < 0 ? "" : "+"}${bytes(g.slope)} per ${visible(g.label, 60)}`, where: this.ranks(ranks),
			facts: [["over", `${count(g.points)} of ${count(g.entries)} entries, r² ${g.r_squared.toFixed(2)}`], ["each lasts", duration(g.duration / Math.max(1, g.entries))],
				["grows as much per", also.length ? visible(also.join(", "), 200) : null], ["held by the stack below", g.held === null ? null : `${bytes(g.held)} of each`]],
			todo: g.advice};
	}

	draw() {
		const {page} = this, q = this.state.get("q").trim().toLowerCase(), hit = this.stacks.matching(q);
		const growing = together(page.labels.filter((l) => l.verdict === "growing").sort((a, b) => b.duration - a.duration), (l) => (l.stack ? `${l.stack} ${bytes(l.slope)}` : l.label));
		const leaks = together(page.leaks.filter((l) => l.verdict !== "kept"), (l) => /* kept: a finding reports these */ `${l.verdict} ${l.stack} ${l.kind} ${l.library}`)
			.sort((a, b) => (ORDER[a.first.verdict] ?? 1) - (ORDER[b.first.verdict] ?? 1) || b.bytes - a.bytes);
		const cards = [...page.ooms.map((o) => this.oom(o)), ...page.findings.map((f) => this.finding(f)), ...growing.map((g) => this.growth(g)),
			...leaks.map((l) => this.leak(l))].sort(bySeverity);
		const shown = q ? cards.filter((c) => (c.stack && hit[c.stack]) || `${c.kind} ${c.title} ${c.where} ${c.todo || ""}`.toLowerCase().includes(q)) : cards;
		const first = shown.filter((c) => c.kind !== "Kept"), some = this.all || q ? shown.slice(0, 400) : first.slice(0, 12);
		const quiet = q ? null : nothing(page, cards);
		replace(this.list, quiet && h("p", {class: "empty"}, quiet), some.map((c) => this.card(c)), q && !shown.length && h("p", {class: "empty"}, "No card matches the search."),
			shown.length > some.length && h("button", {onclick: () => {
				this.all = true;
				this.draw();
			}}, `Show all ${count(shown.length)}, of which ${count(shown.length - first.length)} are kept on purpose by libraries and allocators`));
	}

	card(c) {
		const owners = c.owners && c.owners.length ? h("table", {class: "mini"}, h("tbody", {}, byPlace(c.owners).slice(0, 6).map((o) =>
			h("tr", {}, h("td", {class: "num"}, bytes(o.bytes)), h("td", {}, visible(o.name, 40)), h("td", {class: "soft"}, o.place ? visible(o.place, 160) : ""))))) : null;
		return h("article", {class: `card ${c.tone}`},
			h("header", {}, h("span", {class: "tag"}, visible(c.kind, 40)), h("h3", {}, c.title)),
			c.where && h("p", {class: "soft"}, c.where), this.facts(c.facts), owners, c.stack ? this.stack(c.stack) : null,
			c.todo && h("p", {class: "todo"}, visible(c.todo, 600)),
			c.from !== null && c.from !== undefined && h("button", {onclick: () => this.onShow(c)}, "Show on the time line"));
	}
}
