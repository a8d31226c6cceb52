/* SPDX-License-Identifier: MIT */
/* Puts the views together; every one draws from the data and the state, and nothing else. */
import {drawAnswer} from "./answer.js";
import {Cards} from "./cards.js";
import {load} from "./data.js";
import {append, h, replace} from "./dom.js";
import {Flame} from "./flame.js";
import {Ranks} from "./ranks.js";
import {searchBox} from "./search.js";
import {Segments} from "./segments.js";
import {Series} from "./series.js";
import {Stacks} from "./stacks.js";
import {Tables} from "./tables.js";
import {colours, isDark} from "./theme.js";
import {Timeline} from "./timeline.js";
import {State} from "./url.js";

function choices(state, key, list, label, now = () => state.get(key)) {
	const group = h("div", {class: "choices", role: "group", "aria-label": label});
	const draw = () => replace(group, list().map(([value, name]) =>
		h("button", {"aria-pressed": now() === value ? "true" : "false", onclick: () => state.set({[key]: value})}, name)));
	state.on([key, "rank", "device"], draw);
	draw();
	return group;
}

function selector(state, key, list, label) {
	const select = h("select", {onchange: (event) => state.set({[key]: event.target.value})});
	const draw = () => replace(select, list().map(([value, name]) => h("option", {value, selected: state.get(key) === value}, name)));
	state.on(["rank", "device"], draw);
	draw();
	return h("label", {}, label, " ", select);
}

/* The rank a reader comes for: the first out of memory, else the one with the highest peak. */
export function firstRank(page) {
	if (page.processes.length < 2)
		return "";
	const failed = page.ooms.filter((o) => o.recovered !== true).sort((a, b) => a.at - b.at)[0];
	if (failed)
		return String(failed.process);
	return String(page.processes.reduce((best, p, i) => (p.peak > page.processes[best].peak ? i : best), 0));
}

function build(page) {
	const state = new State(location.hash, (fragment) => history.replaceState(null, "", location.pathname + location.search + fragment));
	if (!location.hash.includes("rank="))
		state.value.rank = firstRank(page);
	const palette = () => colours(state.get("theme"));
	const scope = () => {
		const process = state.number("rank");
		return {process: process !== null && page.processes[process] ? process : null, device: state.number("device")};
	};
	const stacks = new Stacks(page), series = new Series(page), common = {page, stacks, series, state, palette, scope};
	const sections = [];
	const section = (id, title, controls, node, note) => {
		const s = h("section", {id, "aria-labelledby": `${id}-title`}, h("h2", {id: `${id}-title`}, title), note && h("p", {class: "soft"}, note), controls, node);
		sections.push([id, title, s]);
		return s;
	};
	const goto = (id) => document.getElementById(id).scrollIntoView({block: "start"});
	const timeline = new Timeline({...common, onPick: (t) => state.set({at: Math.round(t), flame: "moment"})});
	const flame = new Flame(common);
	const ranks = new Ranks({...common, onOpen: (i) => {
		state.set({rank: String(i), device: ""});
		goto("time");
	}});
	const cards = new Cards({...common, onShow: (c) => {
		const [a, b] = series.span(), margin = Math.max((b - a) / 20, (c.to - c.from) / 2);
		state.set({rank: c.process === null ? "" : String(c.process), device: "", at: String(Math.round(c.from)), flame: "moment",
			from: String(Math.floor(Math.max(a, c.from - margin))), to: String(Math.ceil(Math.min(b, c.to + margin)))});
		goto("time");
	}});
	const segments = new Segments(common), tables = new Tables(common);

	const rankList = () => [["", page.processes.length > 1 ? `all ${page.processes.length} ranks` : "all"],
		...page.processes.map((p, i) => [String(i), p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`])];
	const devices = () => [["", "all devices"], ...[...new Set(series.pick({...scope(), device: null}, "known").map((l) => l.device))].sort((a, b) => a - b).map((d) => [String(d), `device ${d}`])];
	const scopeControls = [page.processes.length > 1 && selector(state, "rank", rankList, "Show"), devices().length > 2 && selector(state, "device", devices, "on")];

	section("time", "Memory over time", h("div", {class: "controls"}, scopeControls,
		choices(state, "by", () => series.groups(scope()), "Stacked by", () => series.choose(scope(), state.get("by"))),
		choices(state, "mode", () => [["mean", "Mean"], ["max", "Max"], ["both", "Both"]], "Of each bin"),
		choices(state, "axis", () => [["since", "Since start"], ["clock", "Clock (UTC)"], ...(page.steps.length ? [["step", "Step"]] : [])], "Axis"),
		h("button", {onclick: () => timeline.zoom(...series.span())}, "Whole run")), timeline.node);
	section("stacks", "Who asked for it", h("div", {class: "controls"},
		choices(state, "flame", () => [["moment", "Picked moment"], ["peak", "Peak"], ["oom", "OOM"], ["end", "End"], ["leaks", "Leaks"], ["churn", "Churn"]]
			.filter(([kind]) => kind === "moment" || page.moments.some((m) => m.kind === kind)), "Of"),
		choices(state, "value", () => [["bytes", "Bytes"], ["count", "Blocks"]], "Measured in"),
		choices(state, "form", () => [["icicle", "Icicle"], ["flame", "Flame"]], "Drawn as"),
		choices(state, "inverted", () => [["", "From main"], ["1", "From the allocation"]], "Direction"),
		h("p", {class: "key"}, h("span", {class: "swatch py"}), "Python", h("span", {class: "swatch nat"}), "native")), flame.node);
	if (page.processes.length > 1)
		section("ranks", "Ranks", h("div", {class: "controls"}, choices(state, "order", () => [["outliers", "Outliers first"], ["peak", "Highest peak first"], ["rank", "By rank"]], "Order")), ranks.node);
	section("findings", "Findings", null, cards.node);
	if (page.segments.length)
		section("segments", "PyTorch's segments", null, segments.node, "Each frame is a segment PyTorch got from the driver; filled parts are tensors, one colour for one stack; the rest is kept and unused.");
	section("tables", "Numbers", null, tables.node);

	const header = h("header", {class: "answer-block"});
	drawAnswer(header, page);
	const theme = h("button", {"aria-label": "Switch between light and dark", onclick: () => state.set({theme: isDark(state.get("theme")) ? "light" : "dark"})}, "Light / dark");
	const nav = h("nav", {"aria-label": "Views"}, h("span", {class: "brand"}, "stormlog"),
		h("ul", {}, sections.map(([id, title]) => h("li", {}, h("button", {class: "link", onclick: () => goto(id)}, title)))), searchBox(page, state), theme);
	replace(document.body, nav, h("main", {}, header, sections.map(([, , s]) => s),
		h("footer", {class: "soft"}, `Made by stormlog ${page.generator}. Opens without a network; the address keeps the view, so it can be shared with this file.`)));

	const setTheme = () => {
		document.documentElement.dataset.theme = isDark(state.get("theme")) ? "dark" : "light";
		const p = palette();
		for (const [name, value] of [["--hidden", p.hidden], ["--py", p.python], ["--nat", p.native]])
			document.documentElement.style.setProperty(name, value);
	};
	const drawAll = () => {
		setTheme();
		for (const view of [timeline, flame, page.processes.length > 1 && ranks, cards, page.segments.length && segments, tables])
			view && view.draw();
	};
	state.on(["theme"], drawAll);
	state.on(["by", "mode", "axis", "rank", "device", "from", "to"], () => timeline.draw());
	state.on(["at"], () => timeline.plot.redraw(false));
	state.on(["at", "flame", "value", "inverted", "rank", "device", "form"], () => flame.draw());
	state.on(["order"], () => ranks.draw());
	state.on(["map", "rank", "device"], () => page.segments.length && segments.draw());
	state.on(["rank"], () => tables.draw());
	state.on(["q"], () => {
		timeline.plot.redraw(false);
		timeline.drawLegend(state.get("mode"));
		flame.search();
		for (const view of [page.processes.length > 1 && ranks, cards, page.segments.length && segments, tables])
			view && view.draw();
	});
	addEventListener("hashchange", () => state.reset(location.hash));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	drawAll();
	return {page, state, timeline, flame, ranks, cards, segments, series, stacks};
}

async function start() {
	const began = performance.now(), data = document.getElementById("data");
	try {
		const page = await load(data.textContent.trim());
		data.remove();
		document.title = `stormlog: ${page.title}`.slice(0, 200);
		globalThis.stormlog = build(page); /* for tests, and for curious readers in the console */
		globalThis.stormlog.ready_ms = performance.now();
		globalThis.stormlog.decode_and_draw_ms = performance.now() - began;
	} catch (error) {
		append(document.body, [h("p", {class: "failed", role: "alert"}, `This page could not be drawn: ${error.message}. A current Firefox, Chrome or Safari is needed; report.json and summary.md beside it say the same in text.`)]);
		console.error(error);
	}
}

start();
