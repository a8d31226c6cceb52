/* SPDX-License-Identifier: MIT */
/* On a page that a stormlog-server sent: when the reader zooms in, asks for the part in view in finer bins, and draws it when it has come. */
import {ask} from "./data.js";
import {h, replace} from "./dom.js";
import {dataOf} from "./url.js";

const CELLS = 256; /* bins that a view should have; the server's answer has at least a third more */
const FINEST = 2; /* ns: the server has no finer bins */
const STILL_MS = 250; /* a view that has not changed for so long is asked for */

export const isCoarse = (width, from, to) => width > FINEST && to - from < width * CELLS;

export class Closer {
	constructor({series, stacks, state, draw, get = (address, signal) => ask(address, {signal})}) {
		Object.assign(this, {series, stacks, state, draw, get});
		this.node = h("span", {class: "soft", role: "status"});
		state.on(["from", "to"], () => this.look());
		this.look();
	}

	look() {
		const [begin, end] = this.series.span(), from = this.state.number("from") ?? begin, to = this.state.number("to") ?? end;
		clearTimeout(this.timer);
		this.asked?.abort();
		replace(this.node);
		if (this.series.lines.length && isCoarse(this.series.finest(from, to), from, to))
			this.timer = setTimeout(() => this.fetch(from, to), STILL_MS);
	}

	async fetch(from, to) {
		const asked = this.asked = new AbortController();
		replace(this.node, "Finer bins of this part are being computed.");
		try {
			const part = await this.get(dataOf(location, from, to), asked.signal);
			if (asked.signal.aborted)
				return;
			const adopted = this.stacks.adopt(part);
			this.series.take(part.lines.map((line) => ({...line, stack: line.stack.map(adopted)})));
			replace(this.node);
			this.draw();
		} catch (error) {
			if (!asked.signal.aborted)
				replace(this.node, `There are no finer bins: ${error.message}.`);
		}
	}
}
