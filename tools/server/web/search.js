/* SPDX-License-Identifier: MIT */
/* Suggests names while somebody types: functions, files, libraries, labels and what runs are called.  Text goes in as text, never as markup.  Also reloads a page that waits. */
"use strict";
const box = document.getElementById("q"), list = document.getElementById("names");
let asked = 0;

function show(names) {
	list.replaceChildren(...names.map(({kind, text, runs}) => {
		const item = document.createElement("li"), link = document.createElement("a");
		link.href = "/search?q=" + encodeURIComponent(`${kind}="${text.replaceAll('"', "")}"`);
		link.textContent = `${text} (${kind}, ${runs} ${runs === 1 ? "run" : "runs"})`;
		item.append(link);
		return item;
	}));
	list.hidden = !names.length;
}

async function ask() {
	const word = /[^\s()]*$/.exec(box.value)[0].replace(/^[a-z]+[:=]"?/, ""), mine = ++asked;
	if (word.length < 2)
		return show([]);
	const answer = await fetch(location.origin + "/api/v1/names?begins=" + encodeURIComponent(word));
	const {names} = answer.ok ? await answer.json() : {names: []};
	if (mine === asked)
		show(names);
}

/* Reloads as the header Refresh does, which takes an address with a fragment for a place in this page. */
if (document.getElementById("wait") && location.hash)
	setTimeout(() => location.reload(), 1000);

let waits;
box.addEventListener("input", () => {
	clearTimeout(waits);
	waits = setTimeout(ask, 100);
});
document.addEventListener("keydown", (event) => {
	if (event.key === "/" && !["INPUT", "TEXTAREA"].includes(document.activeElement.tagName)) {
		event.preventDefault();
		box.focus();
	} else if (event.key === "Escape") {
		show([]);
	} else if (["ArrowDown", "ArrowUp"].includes(event.key) && !list.hidden && (document.activeElement === box || list.contains(document.activeElement))) {
		const links = [box, ...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
		event.preventDefault();
		links[Math.max(0, Math.min(links.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))].focus();
	}
});
