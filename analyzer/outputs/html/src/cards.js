/* SPDX-License-Identifier: MIT */
/* The list of findings: the verdicts behind the open one, in the terminal's order, then what upstream's analyses say of samples. */
import {h, replace} from "./dom.js";
import {UNKNOWN, count, fine, instant, sentence, visible} from "./format.js";
import {listed, more, textOf} from "./verdicts.js";

const SHOWN = 12, MOST = 400;

/* When the memory of a verdict was held: at its error, at the peak, or at the end. */
export function momentOf(page, verdict) {
	const kinds = verdict.word === "OUT OF MEMORY" ? ["oom", "peak"] : ["peak", "end"];
	return kinds.map((kind) => page.moments.find((m) => m.kind === kind && m.process === verdict.process && m.at !== null &&
		(verdict.device === null || m.device === verdict.device))).find(Boolean) || null;
}

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

	show(at) {
		return at && h("p", {}, h("button", {class: "link", onclick: () => this.onShow(at)}, "Show on the time line"));
	}

	finding(f) {
		const at = fine(this.page.duration_ns);
		const where = [f.process === null ? null : this.rank(f.process), f.device === null ? null : `device ${f.device}`, f.from === null ? null :
			f.to > f.from ? `${instant(f.from, at)} to ${instant(f.to, at)}` : `at ${instant(f.from, at)}`].filter(Boolean).join(", ");
		return h("article", {class: `card ${f.severity === "critical" ? "bad" : f.severity === "info" ? "note" : "warn"}`},
			h("h3", {}, sentence(f.text, 400)), where && h("p", {class: "soft"}, where),
			h("dl", {}, f.evidence.filter(([, v]) => v !== UNKNOWN).map(([k, v]) => [h("dt", {}, visible(k, 60)), h("dd", {}, visible(v, 100))])),
			f.advice && h("p", {class: "todo"}, sentence(f.advice)), this.show(f.from !== null && f));
	}

	verdict(v) {
		const moment = v.process === null ? null : momentOf(this.page, v);
		return listed(v, this.show(moment && {process: v.process, from: moment.at, to: moment.at}));
	}

	draw() {
		const {page} = this, q = this.state.get("q").trim().toLowerCase(), matches = (text) => !q || text.toLowerCase().includes(q);
		const verdicts = (page.answer ? page.answer.verdicts : []).slice(q ? 0 : 1).filter((v) => matches(textOf(v)));
		const found = page.findings.filter((f) => matches(`${f.text} ${f.advice || ""}`));
		const cards = [...verdicts.map((v) => () => this.verdict(v)), ...found.map((f) => () => this.finding(f))];
		const some = cards.slice(0, this.all || q ? MOST : SHOWN);
		replace(this.list, some.map((make) => make()), !cards.length && h("p", {class: "empty"}, q ? "No finding matches the search." : "Nothing else was found."),
			more(this.all || q ? 0 : cards.length - some.length, () => {
				this.all = true;
				this.draw();
			}), q && cards.length > MOST && h("p", {class: "soft"}, `${count(cards.length - MOST)} more`));
	}
}
