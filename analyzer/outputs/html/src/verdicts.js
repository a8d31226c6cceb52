/* SPDX-License-Identifier: MIT */
/* A verdict of the answer, as the terminal has it, and the source around its line. */
import {h} from "./dom.js";
import {count, visible} from "./format.js";

const LABELS = ["why", "fix", "tried", "need", "fits", "less", "else", "open", "note", "cards", "ran", "held"];
const OWN_LINE = ["open", "note"]; /* their sentences have no stop */

/* "train.py:79", "program+0xa74a" */
export const placeOf = (line) => (line.file && line.line ? `${line.file}:${line.line}` : line.file || line.function || "?");

/* The line that the verdict is about: the last one with a mark. */
export const markedOf = (verdict) => verdict.lines.filter((line) => line.mark).at(-1) || verdict.lines.at(-1) || null;

/* The sentences of a label as lines: one that begins with a line break stands on its own. */
export function linesOf(label, texts) {
	const lines = [];
	for (const text of texts)
		lines.length && !text.startsWith("\n") && !OWN_LINE.includes(label) ? (lines[lines.length - 1] += ` ${text}`) : lines.push(text.replace(/^\n/, ""));
	return lines;
}

/* A row of 0.00 says nothing. */
const rowsOf = (table) => table.rows.filter((row) => Number(row.amount));

/* All of it as text, for an issue. */
export function textOf(verdict) {
	const stack = verdict.lines.map((line) => `  ${placeOf(line)}  ${line.source || (line.file && line.function) || ""}${line.mark ? `  <- ${line.mark}` : ""}`);
	const labels = LABELS.filter((label) => verdict[label]).flatMap((label) => linesOf(label, verdict[label]).map((line, i) => `  ${(i ? "" : label).padEnd(6)} ${line}`));
	const rows = verdict.table ? [`  ${verdict.table.total}  ${verdict.table.unit} ${verdict.table.moment || ""}`,
		...rowsOf(verdict.table).map((row) => `  ${row.amount.padStart(verdict.table.total.length)}  ${row.name}${row.text ? `  ${row.text}` : ""}`)] : [];
	return [`${verdict.word}   ${verdict.headline}`, stack, labels, rows, verdict.next.map((next) => `next   ${next.command}`)]
		.map((part) => [part].flat().join("\n")).filter(Boolean).join("\n\n");
}

const stack = (verdict) => verdict.lines.length > 0 && h("ol", {class: "frames lines"}, verdict.lines.map((line) =>
	h("li", {class: line.mark ? "marked" : null}, h("strong", {}, visible(placeOf(line), 120)), ` ${visible(line.source || (line.file && line.function) || "", 200)}`,
		line.mark && h("span", {class: "mark"}, ` ← ${visible(line.mark, 80)}`))));

/* Seven lines of the file, or fewer. */
const around = ({around}) => around && h("figure", {class: "around"}, h("figcaption", {class: "soft"}, visible(around.file, 200)),
	h("pre", {}, around.lines.map((text, i) => h("span", {class: around.first + i === around.marked ? "marked" : null},
		h("b", {"aria-hidden": "true"}, `${around.first + i === around.marked ? "▶" : " "}${String(around.first + i).padStart(5)}  `), `${visible(text.replaceAll("\t", "    "), 200)}\n`))));

const labels = (verdict) => h("dl", {class: "said"}, LABELS.filter((label) => verdict[label]).map((label) =>
	[h("dt", {class: label}, label), h("dd", {class: label}, linesOf(label, verdict[label]).map((line) => h("p", {}, visible(line, 600))))]));

function table({table}) {
	if (!table)
		return null;
	const most = Math.max(...table.rows.filter((row) => row.barred).map((row) => row.bytes), 1);
	return h("table", {class: "parts"}, h("caption", {}, h("strong", {}, `${table.total} ${table.unit}`), ` ${visible(table.moment || "", 80)}`), h("tbody", {}, rowsOf(table).map((row) =>
		h("tr", {}, h("td", {class: "num"}, row.amount), h("td", {}, visible(row.name, 60)),
			h("td", {class: "part", "aria-hidden": "true"}, row.barred && h("div", {class: row.name === "unused" ? "unused" : null, style: {width: `${(100 * row.bytes) / most}%`}})),
			h("td", {class: "soft"}, visible(row.text || "", 200))))));
}

const copier = (name, text) => h("button", {class: "link", onclick: (event) => navigator.clipboard?.writeText(text).then(() => (event.target.textContent = "copied"))}, name);

const next = (verdict) => verdict.next.length > 0 && h("ul", {class: "next"}, verdict.next.map((one) =>
	h("li", {}, h("code", {}, visible(one.command, 300)), " ", copier("copy", one.command), one.shows && h("span", {class: "soft"}, ` ${visible(one.shows, 120)}`))));

const TONES = {bad: "bad", warning: "warn", good: "good"};
const head = (verdict, tag) => h(tag, {class: "headline"}, h("span", {class: "word"}, verdict.word), " ", visible(verdict.headline, 300));

/* The open verdict: all of it, with the source beside. */
export const opened = (verdict) => h("div", {class: `verdict ${TONES[verdict.tone]}`}, head(verdict, "p"),
	h("div", {class: "beside"}, h("div", {}, stack(verdict), labels(verdict)), around(verdict)), table(verdict), next(verdict), copier("copy as text", textOf(verdict)));

/* One of the list: its line and what to change; the rest when it is opened. */
export const listed = (verdict, more) => h("article", {class: `card verdict ${TONES[verdict.tone]}`}, head(verdict, "h3"), stack(verdict), labels(verdict),
	(verdict.table || verdict.around) && h("details", {}, h("summary", {}, "source and table"), around(verdict), table(verdict)), next(verdict), more);

/* "and 3 more" of a list */
export const more = (left, show) => left > 0 && h("button", {onclick: show}, `Show ${count(left)} more`);
