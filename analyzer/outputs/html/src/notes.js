/* SPDX-License-Identifier: MIT */
/* The notes of a run on a stormlog-server: those on moments are marks of the time line, and new ones are written on the run's page. */
import {h} from "./dom.js";
import {interfaceOf, runOf, seconds} from "./url.js";

export class Notes {
	constructor({page, state, draw}) {
		Object.assign(this, {page, state, draw, run: runOf(location)});
		this.node = h("a");
		state.on(["at"], () => this.point());
		this.point();
		this.fetch();
	}

	point() {
		const at = this.state.number("at");
		this.node.href = at === null ? this.run : `${this.run}?at=${seconds(at)}#notes`;
		this.node.textContent = at === null ? "Notes, pin, download" : "Note on this moment";
	}

	async fetch() {
		const response = await fetch(interfaceOf(location, this.run));
		if (!response.ok)
			return;
		for (const {at_ns: at, author, text} of (await response.json()).notes)
			if (at !== null)
				this.page.marks.push({process: null, device: null, at, kind: "note", text: author ? `${author}: ${text}` : text});
		this.draw();
	}
}
