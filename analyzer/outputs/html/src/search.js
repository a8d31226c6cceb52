/* SPDX-License-Identifier: MIT */
/* One search for every view: how many functions, cards, ranks and rows match, at once. */
import {h} from "./dom.js";
import {count} from "./format.js";

/* {functions, files, libraries}: how many distinct ones match; null for an empty query */
export function tally(page, query) {
	const q = query.trim().toLowerCase();
	if (!q)
		return null;
	const {frames, strings} = page, hit = strings.map((s) => s.toLowerCase().includes(q));
	const distinct = (column) => new Set(Array.from(column).filter((s) => hit[s])).size;
	return {functions: distinct(frames.function), files: distinct(frames.file),
		libraries: new Set([...Array.from(frames.module).filter((s) => hit[s]).map((s) => strings[s]),
			...page.processes.flatMap((p) => p.libraries ?? []).map((l) => l.library).filter((n) => n.toLowerCase().includes(q))]).size};
}

export function searchBox(page, state) {
	const found = h("span", {class: "soft", role: "status"});
	const input = h("input", {type: "search", placeholder: "Search ( / )", "aria-label": "Search functions, files and libraries in every view", value: state.get("q")});
	const tell = () => {
		const t = tally(page, state.get("q"));
		found.textContent = t ? `${count(t.functions)} functions, ${count(t.files)} files, ${count(t.libraries)} libraries` : "";
	};
	let waiting = 0;
	input.addEventListener("input", () => {
		clearTimeout(waiting);
		waiting = setTimeout(() => state.set({q: input.value}), 120);
	});
	state.on(["q"], () => {
		if (input.value !== state.get("q"))
			input.value = state.get("q");
		tell();
	});
	document.addEventListener("keydown", (event) => {
		if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
			event.preventDefault();
			input.focus();
		}
	});
	tell();
	return h("div", {class: "search"}, input, found);
}
