/* SPDX-License-Identifier: MIT */
/* Puts the views together; every one draws from the data and the state, and nothing else. */
import {drawAnswer} from "./answer.js";
import {Cards} from "./cards.js";
import {changesOf, Reads, Tensors, Tried} from "./changes.js";
import {Closer} from "./closer.js";
import {ask, load} from "./data.js";
import {Changes, DiffFlame, drawBecause, drawChangesAnswer} from "./diff.js";
import {append, h, replace} from "./dom.js";
import {Fit} from "./fit.js";
import {Flame} from "./flame.js";
import {fine, instant} from "./format.js";
import {Notes} from "./notes.js";
import {Places} from "./places.js";
import {Ranges} from "./ranges.js";
import {Ranks} from "./ranks.js";
import {searchBox} from "./search.js";
import {Segments} from "./segments.js";
import {Series, hasPools} from "./series.js";
import {Stacks} from "./stacks.js";
import {Tables} from "./tables.js";
import {colours, isDark} from "./theme.js";
import {Timeline} from "./timeline.js";
import {State, dataOf} from "./url.js";

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

/* What is wrong and has a process, the worst first. */
const wrong = (page) => page.answer?.verdicts.find((v) => v.tone !== "good" && v.process !== null) || page.findings.find((f) => f.id === "oom.sampled");

/* The rank a reader comes for: that of the open verdict where something is wrong, else the one with the highest peak. */
export function firstRank(page) {
	if (page.processes.length < 2)
		return "";
	const open = wrong(page);
	if (open)
		return String(open.process);
	return String(page.processes.reduce((best, p, i) => (p.peak > page.processes[best].peak ? i : best), 0));
}

function makeState() {
	return new State(location.hash, (fragment) => history.replaceState(null, "", location.pathname + location.search + fragment));
}

/* The first three choices, and the one that was made: the others are among what few readers change. */
const first = (list, chosen) => list.filter(([value], i) => i < 3 || value === chosen);

const rest = (...nodes) => h("details", {class: "rest"}, h("summary", {title: "More choices"}, "…"), h("div", {class: "controls"}, nodes));

const goto = (id) => document.getElementById(id).scrollIntoView({block: "start"});

function makeSections() {
	const sections = [];
	return {sections, section(id, title, controls, node, note) {
		sections.push([id, title, h("section", {id, "aria-labelledby": `${id}-title`}, h("h2", {id: `${id}-title`}, title), note && h("p", {class: "soft"}, note), controls, node)]);
	}};
}

/* Where a title is too long for the navigation. */
const BRIEF = {time: "Over time", tried: "Changes", segments: "Segments", fit: "Fit", reads: "Not computed", tensors: "Tensors"};

/* The navigation, the answer, the views. */
function assemble(page, state, header, sections, served) {
	const theme = h("button", {"aria-label": "Switch between light and dark", onclick: () => state.set({theme: isDark(state.get("theme")) ? "light" : "dark"})}, "\u25d0");
	const nav = h("nav", {"aria-label": "Views"}, served ? h("a", {class: "brand", href: "/"}, "stormlog") : h("span", {class: "brand"}, "stormlog"),
		h("ul", {}, sections.map(([id, title]) => h("li", {}, h("button", {class: "link", onclick: () => goto(id)}, BRIEF[id] ?? title)))), searchBox(page, state), theme);
	replace(document.body, nav, h("main", {}, header, sections.map(([, , s]) => s),
		h("footer", {class: "soft"}, `Made by stormlog ${page.generator}. ${location.protocol === "file:" ? "Opens without a network; the address keeps the view, so it can be shared with this file." :
			"The address keeps the view."}`)));
}

function setTheme(state, p) {
	document.documentElement.dataset.theme = isDark(state.get("theme")) ? "dark" : "light";
	for (const [name, value] of [["--hidden", p.hidden], ["--grown", p.grown], ["--shrunk", p.shrunk]])
		document.documentElement.style.setProperty(name, value);
}

/* The page of `diff A B --html`. */
function buildDiff(page, served) {
	const state = makeState(), palette = () => colours(state.get("theme")), stacks = new Stacks(page), common = {page, stacks, state, palette};
	const {sections, section} = makeSections(), flame = new DiffFlame(common), changes = new Changes(common), header = h("header", {class: "answer-block"});
	if (page.because.length)
		section("because", "Why the peak changed", null, drawBecause(page), "At the peak of the process and device that held most. The terms are taken off in this order, and add up to the difference to the byte; soft rows are lines of the requests.");
	section("stacks", "Where it changed", h("div", {class: "controls"},
		choices(state, "width", () => [["larger", "Larger side"], ["before", "Before"], ["after", "After"]], "Width"),
		choices(state, "form", () => [["icicle", "Icicle"], ["flame", "Flame"]], "Drawn as"),
		choices(state, "inverted", () => [["", "From main"], ["1", "From the allocation"]], "Direction"),
		page.frames.folded.includes(1) && choices(state, "frames", () => [["", "Program's own"], ["all", "All frames"]], "Frames of the interpreter, libffi and the C library"),
		h("p", {class: "key"}, h("span", {class: "swatch grown"}), "grew", h("span", {class: "swatch shrunk"}), "shrank")), flame.node, "Stacks at the peak of every process, without their line numbers.");
	section("changes", "Differences", h("div", {class: "controls"}, choices(state, "changed", () => [["", "What changed"], ["all", "Everything"]], "Rows")), changes.node);
	drawChangesAnswer(header, page, served ? Object.fromEntries(new URLSearchParams(location.search)) : {});
	assemble(page, state, header, sections, served);
	const drawAll = () => {
		setTheme(state, palette());
		stacks.all = state.get("frames") === "all";
		flame.draw();
		changes.draw();
	};
	state.on(["theme", "frames"], drawAll);
	state.on(["width", "form", "inverted"], () => flame.draw());
	state.on(["changed"], () => changes.draw());
	state.on(["q"], () => {
		flame.search();
		changes.draw();
	});
	addEventListener("hashchange", () => state.reset(location.hash));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	drawAll();
	return {page, state, flame, changes, stacks, palette};
}

function build(page, served) {
	const state = makeState();
	if (!location.hash.includes("rank="))
		state.value.rank = firstRank(page);
	if (!location.hash.includes("device=") && page.processes[state.value.rank || 0]?.devices?.length > 1) /* no sum of several cards */
		state.value.device = String(wrong(page)?.device ?? "");
	const palette = () => colours(state.get("theme"));
	const scope = () => {
		const process = state.number("rank");
		return {process: process !== null && page.processes[process] ? process : null, device: state.number("device")};
	};
	const stacks = new Stacks(page), series = new Series(page), ranges = new Ranges(page);
	const span = () => series.span(scope());
	const range = () => {
		const [a, b] = span(), from = state.number("from") ?? a, to = state.number("to") ?? b;
		return from <= a && to >= b ? null : [from, to];
	};
	const sayRange = ({from, to}) => `${instant(Math.max(0, from), fine(to - from))} to ${instant(Math.min(page.duration_ns, to), fine(to - from))}`;
	const common = {page, stacks, series, ranges, range, span, sayRange, state, palette, scope, canTell: () => ranges.canTell(scope())};
	const {sections, section} = makeSections();
	const timeline = new Timeline({...common, onPick: (t) => state.set({at: Math.round(t), flame: "moment"})});
	const closer = served && new Closer({series, stacks, state, draw: () => timeline.draw()});
	const notes = served && new Notes({page, state, draw: () => timeline.plot.redraw(false)});
	const flame = new Flame(common);
	const ranks = new Ranks({...common, onOpen: (i) => {
		state.set({rank: String(i), device: ""});
		goto("time");
	}});
	const cards = new Cards({...common, onShow: (c) => {
		const [a, b] = [0, page.duration_ns], margin = Math.max((b - a) / 20, (c.to - c.from) / 2);
		state.set({rank: c.process === null ? "" : String(c.process), device: "", at: String(Math.round(c.from)), flame: "moment",
			from: String(Math.floor(Math.max(a, c.from - margin))), to: String(Math.ceil(Math.min(b, c.to + margin)))});
		goto("time");
	}});
	const segments = new Segments(common), tables = new Tables(common), places = new Places(common), fit = page.fit?.length ? new Fit(common) : null;
	const tried = changesOf(page).some((c) => c.tried.length) ? new Tried(common) : null, reads = page.reads?.length ? new Reads(common) : null;
	const tensors = page.tensors?.length ? new Tensors(common) : null;

	const rankList = () => [["", page.processes.length > 1 ? `all ${page.processes.length} ranks` : "all"],
		...page.processes.map((p, i) => [String(i), p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`])];
	const devices = () => [["", "all devices"], ...[...new Set(series.pick({...scope(), device: null}, "known").map((l) => l.device))].sort((a, b) => a - b).map((d) => [String(d), `device ${d}`])];
	const scopeControls = [page.processes.length > 1 && selector(state, "rank", rankList, "Show"), devices().length > 2 && selector(state, "device", devices, "on")];

	const by = () => series.choose(scope(), state.get("by"));
	const wholeRun = h("button", {onclick: () => timeline.zoom(...span())}, "Whole run");
	section("time", "Memory over time", h("div", {class: "controls"}, scopeControls,
		choices(state, "by", () => first(series.groups(scope()), by()), "Stacked by", by), wholeRun, notes && notes.node, closer && closer.node,
		rest(choices(state, "by", () => series.groups(scope()).slice(3), "Stacked by", by),
			choices(state, "axis", () => [["since", "Since start"], ...(page.timeless ? [] : [["clock", "Clock (UTC)"]]), ...(page.steps.length ? [["step", "Step"]] : [])], "Axis"))), timeline.node);
	const recorded = page.source === "trace";
	const kinds = [["moment", "Picked moment"], ["oom", "OOM"], ["peak", "Peak"], ["leaks", "Leaks"], ["range", "Range in view"], ["end", "End"], ["churn", "Churn"]]
		.filter(([kind]) => kind === "moment" || (kind === "range" && ranges.of.some((p) => p.stays)) || page.moments.some((m) => m.kind === kind));
	const absent = h("p", {class: "empty"}, "Samples do not say who asked for memory: these files have no calls, no stacks and no leaks. To see them record the program with stormlog-run.");
	section("stacks", "Who asked for it", recorded && h("div", {class: "controls"},
		choices(state, "flame", () => first(kinds, state.get("flame")), "Of"),
		rest(choices(state, "flame", () => kinds.slice(3), "Of"), choices(state, "value", () => [["bytes", "Bytes"], ["count", "Blocks"]], "Measured in"),
			choices(state, "form", () => [["icicle", "Icicle"], ["flame", "Flame"]], "Drawn as"),
			choices(state, "inverted", () => [["", "From main"], ["1", "From the allocation"]], "Direction"),
			page.frames.folded.includes(1) && choices(state, "frames", () => [["", "Program's own"], ["all", "All frames"]], "Frames of the interpreter, libffi and the C library")), flame.key), recorded ? flame.node : absent);
	section("findings", "Other findings", null, cards.node);
	if (ranges.of.length)
		section("places", "Places", null, places.node);
	if (page.processes.length > 1)
		section("ranks", "Ranks", h("div", {class: "controls"}, choices(state, "order", () => [["outliers", "Outliers first"], ["peak", "Highest peak first"], ["rank", "By rank"]], "Order")), ranks.node);
	if (tried)
		section("tried", changesOf(page).some((c) => c.failed) ? "What would have let it fit?" : "What would lower the peak?", null, tried.node,
			"The program with one change, replayed by the rules of PyTorch's allocator. Curves run over its calls of the allocator; a dot is where the recorded one failed.");
	if (reads)
		section("reads", "Values that were not computed", null, reads.node, "These lines decided by one: there the run may have gone another way than on the card.");
	if (tensors)
		section("tensors", "Tensors at the peak", null, tensors.node, "The job's tensors at the peak of the fullest device, by the module that ran and by type.");
	if (page.segments.length)
		section("segments", hasPools(page) ? "Segments of pools" : "PyTorch's segments", null, segments.node, (hasPools(page) ? "Each frame is a segment that a framework's pool got from the driver" : "Each frame is a segment PyTorch got from the driver") + "; filled parts are tensors, one colour for one stack; the rest is kept and unused.");
	if (fit)
		section("fit", "Would it have fit?", null, fit.node, "The run replayed by the rules of PyTorch's allocator, on other devices and with other settings.");
	if (recorded)
		section("tables", "Numbers", null, h("div", {}, tables.node, places.sizeNode));

	const header = h("header", {class: "answer-block"});
	drawAnswer(header, page);
	assemble(page, state, header, sections, served);

	const drawAll = () => {
		setTheme(state, palette());
		wholeRun.hidden = !range();
		stacks.all = state.get("frames") === "all";
		for (const view of [timeline, recorded && flame, ranges.of.length && places, page.processes.length > 1 && ranks, cards, tried, reads, tensors, page.segments.length && segments, fit, recorded && tables])
			view && view.draw();
	};
	state.on(["theme", "frames"], drawAll);
	state.on(["by", "axis", "rank", "device", "from", "to"], () => timeline.draw());
	state.on(["from", "to", "rank", "device"], () => {
		wholeRun.hidden = !range();
		if (ranges.of.length)
			places.draw();
	});
	state.on(["at"], () => timeline.plot.redraw(false));
	state.on(["at", "flame", "value", "inverted", "rank", "device", "form"], () => recorded && flame.draw());
	state.on(["from", "to"], (changed) => recorded && state.get("flame") === "range" && !changed.includes("flame") && flame.draw());
	state.on(["order"], () => ranks.draw());
	state.on(["map", "rank", "device"], () => page.segments.length && segments.draw());
	state.on(["fit", "with"], () => fit?.draw());
	state.on(["rank"], () => recorded && tables.draw());
	state.on(["q"], () => {
		timeline.plot.redraw(false);
		timeline.drawLegend();
		if (recorded)
			flame.search();
		for (const view of [ranges.of.length && places, page.processes.length > 1 && ranks, cards, tried, reads, tensors, page.segments.length && segments, recorded && tables])
			view && view.draw();
	});
	addEventListener("hashchange", () => state.reset(location.hash));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	drawAll();
	return {page, state, timeline, flame, ranges, range, places, ranks, cards, segments, fit, series, stacks};
}

async function start() {
	const began = performance.now(), data = document.getElementById("data");
	try {
		const text = data?.textContent, page = await (text ? load(text) : ask(dataOf(location)));
		document.title = `stormlog: ${page.title}`.slice(0, 200);
		globalThis.stormlog = (page.source === "diff" ? buildDiff : build)(page, !text); /* for tests, and for curious readers in the console */
		globalThis.stormlog.ready_ms = performance.now();
		globalThis.stormlog.decode_and_draw_ms = performance.now() - began;
	} catch (error) {
		append(document.body, [h("p", {class: "failed", role: "alert"}, `This page could not be drawn: ${error.message}. A current Firefox, Chrome or Safari is needed; report.json and summary.md beside it say the same in text.`)]);
		console.error(error);
	}
}

start();
