/* SPDX-License-Identifier: MIT */
/*
 * test_page.mjs MAKE_TRACE STORMLOG_ANALYZE [EVENTS [PICTURES]]: report.html in a real browser, from file:// with
 * the network cut.  MAKE_RECORDING in the environment: tests/fit/make_recording.  STORMLOG_TEST_RANKS is the number of ranks of the largest report.  Skips (77) without a browser.  PICTURES is a folder for screenshots of every view.
 */
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {Browser, findBrowser} from "./browser.mjs";

const [, , makeTrace, analyze, eventsText, pictures] = process.argv;
const EVENTS = Number(eventsText || 2000000), RANKS = Number(process.env.STORMLOG_TEST_RANKS || 4096), GIB = 2 ** 30, MIB = 2 ** 20;
const work = mkdtempSync(join(tmpdir(), "stormlog-page-"));
const tests = [];
const test = (name, run) => tests.push([name, run]);
let browser;

// Frames in place of their numbers.
function named(json) {
	for (const row of [...json.ooms, ...json.leaks, ...json.findings])
		row.stack = row.stack.map((number) => json.frames[number]);
	return json;
}

function report(kind, ...more) {
	const folder = join(work, kind);
	try {
		statSync(folder);
	} catch {
		mkdirSync(folder);
		execFileSync(makeTrace, [kind, folder, ...more.map(String)]);
		execFileSync(analyze, ["-q", folder]);
	}
	return {url: `file://${folder}/analysis/report.html`, json: named(JSON.parse(readFileSync(join(folder, "analysis/report.json"), "utf8"))),
		size: statSync(join(folder, "analysis/report.html")).size};
}

async function open(url, options) {
	browser.console.length = browser.requests.length = 0;
	const ms = await browser.open(url, options);
	assert.ok(ms, `${url} is drawn: ${browser.console.join("; ")}`);
	return ms;
}

function clean() {
	assert.deepEqual(browser.console, []);
	for (const url of browser.requests)
		assert.match(url, /^(file|data|about):/);
}

const plot = () => browser.eval(`(() => { const over = document.querySelector(".u-over"), b = (over.scrollIntoView({block: "center"}), over.getBoundingClientRect());
	return {x: b.left, y: b.top, width: b.width, height: b.height}; })()`);
const xOf = async (t) => (await plot()).x + await browser.eval(`stormlog.timeline.plot.valToPos(${t}, "x")`);
const names = (frames) => frames.map((f) => f.function).reverse();

async function picture(name, clip) {
	const png = await browser.screenshot(clip);
	if (pictures)
		writeFileSync(join(pictures, `${name}.png`), png);
	return png;
}

test("a page opens from file:// with the network cut, without an error or a request", async () => {
	await open(report("training", 4, 60).url);
	await browser.settle();
	clean();
	for (const title of ["Memory over time", "Who asked for it", "Places", "Ranks", "Other findings", "PyTorch's segments", "Numbers"])
		assert.ok((await browser.eval(`document.querySelector("main").innerText`)).includes(title), title);
	assert.deepEqual(await browser.eval("stormlog.series.groups(stormlog.timeline.scope()).map(([key]) => key)"), ["role", "line", "library", "kind", "pytorch", "label", "rank"]);
	await picture("training-light");
});

test("the chart is by role, begins where its process begins, and has the card's size; three buttons stand over it and over the stacks", async () => {
	const {json} = report("training", 4, 60);
	await open(report("training", 4, 60).url);
	const rank = await browser.eval("stormlog.timeline.scope().process"), device = json.run.devices.find((d) => d.processes.includes(json.processes[rank].pid)), peak = await browser.eval(`stormlog.page.moments.find((m) => m.kind === "peak" && m.process === ${rank})`);
	const shown = await browser.eval(`[...document.querySelectorAll("#time > .controls > .choices, #stacks > .controls > .choices")].map((group) => [...group.children].map((b) => b.textContent))`);
	assert.deepEqual(shown, [["Role", "Line", "Library"], ["Picked moment", "OOM", "Peak"]]);
	assert.equal(await browser.eval(`document.querySelector("#time [aria-pressed=true]").textContent`), "Role");
	const [from, to] = await browser.eval("stormlog.timeline.view()"), width = await browser.eval("stormlog.timeline.picture.grid.width");
	assert.ok(from >= 2e9 && from < 3e9 && to > 60e9, `${from}, ${to}`); /* make_trace asks for memory after two seconds */
	assert.ok(await browser.eval(`stormlog.timeline.plot.data.some((line) => line.every((bytes) => bytes === ${device.total_bytes}))`));
	const parts = await browser.eval(`(({layers}) => layers.filter((l) => l.max).map((l) => [l.name, l.max]))(stormlog.timeline.facts(Math.floor((${peak.at} - stormlog.timeline.picture.grid.start) / ${width})))`);
	assert.ok(parts.length > 3 && parts.some(([name]) => name === "activations"), parts);
	assert.equal(await browser.eval(`document.querySelectorAll(".answer-block .course").length`), json.run.devices.length);
	const sum = parts.reduce((a, [, bytes]) => a + bytes, 0);
	assert.ok(Math.abs(sum - device.known_peak_bytes) < device.known_peak_bytes / 1e6, `${sum}, ${device.known_peak_bytes}`);
	clean();
});

test("a page has the terminal's screen until it is drawn, and its commands name the run", async () => {
	const {url, json} = report("training", 4, 60), [first] = json.answer.verdicts, folder = join(work, "training");
	const [, text] = /<pre class="undrawn">([^]*?)<\/pre>/.exec(readFileSync(new URL(url), "utf8"));
	assert.ok(text.includes(`${first.word}   ${first.headline}`), text);
	await open(url);
	assert.equal(await browser.eval(`document.querySelector(".undrawn")`), null);
	for (const command of (await seen(".next code")).filter((one) => one.startsWith("stormlog-analyze"))) {
		assert.ok(command.endsWith(` ${folder}`), command);
		assert.equal(spawnSync("sh", ["-c", command.replace("stormlog-analyze", analyze)]).status, 0, command);
	}
});

test("stacks are coloured by role, calls through wrappers are folded, and narrow cells are one that opens", async () => {
	await open(report("training", 4, 60).url + "#rank=0&flame=churn", {width: 420, height: 844});
	const drawn = () => browser.eval(`[...document.querySelectorAll("g.frame")].map((g) => ({name: g.getAttribute("name"), width: Number(g.getAttribute("width")), fill: g.querySelector("rect").getAttribute("fill"), below: (g.__data__.children || []).length, value: g.__data__.value}))`);
	const cells = await drawn(), small = cells.find((cell) => /^\+\d+ small$/.test(cell.name));
	for (const {name, width, below} of cells)
		assert.ok(width >= 36 || !below, `${name} of ${width} px`);
	assert.ok(new Set(cells.map((cell) => cell.fill)).size > 2);
	assert.match((await seen("#stacks .key"))[0], /activations/);
	await browser.eval(`[...document.querySelectorAll("g.frame")].find((g) => g.getAttribute("name") === ${JSON.stringify(small.name)}).dispatchEvent(new MouseEvent("click", {bubbles: true}))`);
	const within = (await drawn()).filter((cell) => cell.value < small.value).map((cell) => cell.name);
	assert.ok(within.length > 0 && !within.some((name) => cells.some((cell) => cell.name === name)), within);
	await browser.eval(`document.querySelector(".flame").focus()`);
	await browser.key("Escape");
	assert.deepEqual(await drawn(), cells);
	clean();
});

test(`a spike of one event in ${EVENTS} is drawn at every zoom, in data and in pixels`, async () => {
	const {url, json} = report("spike", EVENTS);
	await open(url);
	const peak = json.processes[0].memory[0].peak_bytes, at = json.processes[0].memory[0].peak_at_ns - json.run.started_at_ns;
	assert.ok(peak > 2 * GIB);
	const span = await browser.eval("stormlog.series.span()[1]");
	for (let width = span; width > 1e6; width /= 7) {
		const from = Math.max(0, at - width * 0.4), to = from + width;
		await browser.eval(`stormlog.state.set({from: ${Math.floor(from)}, to: ${Math.ceil(to)}})`);
		const drawn = await browser.eval(`Math.max(...stormlog.timeline.plot.data.flatMap((d, i) => i ? Array.from(d) : []).filter((v) => v !== null))`);
		assert.ok(Math.abs(drawn - peak) < 1, `drawn ${drawn}, is ${peak}, window ${width}`);
		/* pixels: at 80 % of the peak only the spike is drawn, over the grid's thin lines */
		const columns = await browser.eval(`(() => { const u = stormlog.timeline.plot, {left, width} = u.bbox;
			const y = Math.round(u.valToPos(${peak} * 0.8, "y", true)), d = u.ctx.getImageData(left, y, width, 1).data, out = [];
			for (let i = 0; i < width; i++) if (d[i * 4 + 3] > 100 && d[i * 4] + d[i * 4 + 1] + d[i * 4 + 2] < 630) out.push(i + left);
			return {out, x: u.valToPos(${at}, "x", true), pixel: ${width} / width}; })()`);
		assert.ok(columns.out.length > 0, `no pixel of the spike, window ${width}`);
		const cell = await browser.eval("stormlog.timeline.picture.grid.width");
		for (const x of columns.out)
			assert.ok(Math.abs(x - columns.x) <= cell / columns.pixel + 3, `a spike at ${x}, should be near ${columns.x}`);
	}
	clean();
	await browser.eval(`stormlog.state.set({from: "", to: ""})`);
	await picture("spike");
});

test("hover names the stack that made the spike, as report.json has it", async () => {
	const {url, json} = report("spike", EVENTS);
	await open(url);
	const at = json.processes[0].memory[0].peak_at_ns - json.run.started_at_ns, box = await plot();
	await browser.mouse("mouseMoved", await xOf(at), box.y + 40);
	await browser.settle();
	assert.ok((await browser.eval(`document.querySelector(".inspector").innerText`)).includes("2.25 GiB"));
	const facts = await browser.eval(`(() => { const t = stormlog.timeline, f = t.facts(t.cursor); return f.peak.peakStack && t.stacks.path(f.peak.peakStack).map((x) => t.stacks.frame(x).function); })()`);
	assert.deepEqual(facts, ["<module>", "main", "train_step", "loop", "work", "huge_once"]);
});

test("a click shows who held memory then", async () => {
	await open(report("training", 4, 60).url);
	const box = await plot();
	await browser.click(box.x + box.width * 0.5, box.y + 60);
	assert.match(await browser.eval("location.hash"), /at=\d+/);
	assert.match(await browser.eval(`document.querySelector("#stacks h3").textContent`), /^Live at /);
	assert.ok(await browser.eval("stormlog.flame.tree.value") > 20 * GIB);
	await picture("picked");
});

/* What a reader sees of a node, with one blank for many. */
const seen = (selector) => browser.eval(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((node) => node.textContent.replace(/\\s+/g, " "))`);

test("the head is the first verdict of report.json, the list has the others in their order, each with a way to its moment", async () => {
	const {url, json} = report("training", 4, 60), [first, ...others] = json.answer.verdicts;
	await open(url);
	const [head] = await seen(".answer-block"), cards = await seen("#findings .card");
	assert.ok(others.length > 1);
	assert.equal(cards.length, others.length);
	[first, ...others].forEach((verdict, i) => {
		const text = i ? cards[i - 1] : head;
		for (const part of [verdict.word, verdict.headline, ...(verdict.fix || []), ...(verdict.why || []), ...verdict.lines.map((line) => line.mark || ""), ...verdict.next.map((next) => next.command)])
			assert.ok(text.includes(part.trim()), `${verdict.id}: ${part}`);
	});
	const oom = json.ooms[0];
	assert.equal(await browser.eval(`(stormlog.state.set({map: "0"}), Math.max(...stormlog.segments.free.map((f) => f.bytes)))`), oom.largest_cached_bytes);
	const shown = others.findIndex((verdict) => verdict.process !== null);
	await browser.eval(`[...document.querySelectorAll("#findings .card")[${shown}].querySelectorAll("button")].at(-1).click()`);
	assert.match(await browser.eval("location.hash"), /at=\d+/);
	assert.equal(await browser.eval("stormlog.timeline.scope().process"), others[shown].process);
	clean();
});

test("Stormlog's own files have their page: it draws the figures of samples and lists the others", async () => {
	const {json} = report("training", 4, 60), sinks = join(work, "training", "analysis", "telemetry"), file = join(work, "ranks.jsonl"), out = join(work, "imported");
	const lines = readdirSync(sinks).sort().flatMap((sink, rank) => readFileSync(join(sinks, sink, "segment-000001.jsonl"), "utf8").trim().split("\n")
		.map((line) => JSON.stringify({...JSON.parse(line), rank, local_rank: rank, world_size: 4, session_id: "one"})));
	writeFileSync(file, lines.join("\n") + "\n");
	execFileSync(analyze, ["-o", out, file], {stdio: "ignore"});
	await open(`file://${out}/report.html`);
	assert.equal(await browser.eval("stormlog.page.source"), "telemetry");
	assert.deepEqual(await browser.eval("stormlog.page.processes.map((p) => p.rank)"), [0, 1, 2, 3]);
	const peak = Math.max(...json.run.devices.map((d) => d.known_peak_bytes));
	assert.equal(await browser.eval("Math.max(...stormlog.page.lines.filter((l) => l.what === 'known').map((l) => l.peak))"), peak);
	assert.equal(await browser.eval("stormlog.ranks.rows.length"), 4);
	assert.match(await browser.eval(`document.querySelector("#stacks").innerText`), /no calls, no stacks/);
	assert.ok(await browser.eval(`[...document.querySelectorAll(".card")].some((c) => c.textContent.includes("Out of memory, with"))`));
	await browser.eval(`stormlog.state.set({rank: "2", q: "rank 2"})`);
	const box = await plot();
	await browser.click(box.x + 200, box.y + 100);
	assert.match(await browser.eval(`document.querySelector(".inspector").innerText`), /allocated/);
	clean();
	await picture("imported");
	const gaps = `stormlog.page.findings.filter((f) => f.id.startsWith("gap.")).length`;
	assert.equal(await browser.eval(gaps), 0);
	execFileSync(analyze, ["--set", "gap-ratio=0", "--html-max-bytes", "260K", "-o", out, file], {stdio: "ignore"});
	assert.ok(statSync(join(out, "report.html")).size <= 260 << 10);
	await open(`file://${out}/report.html#again`);
	assert.ok(await browser.eval(gaps) > 0);
});

test("the peak's stacks add up to the peak of report.json", async () => {
	const {url, json} = report("training", 4, 60);
	await open(url + "#rank=0&flame=peak");
	const peak = json.processes[0].memory.filter((m) => ["device", "pool", "vmm", "array", "graph"].includes(m.kind));
	const known = json.run.devices.find((d) => d.processes.includes(json.processes[0].pid)).known_peak_bytes;
	assert.ok(peak.length);
	assert.ok(Math.abs(await browser.eval("stormlog.flame.tree.value") - known) < known * 0.01);
});

test("drag zooms, double click and Escape go back, the address follows", async () => {
	await open(report("training", 4, 60).url);
	const box = await plot();
	await browser.mouse("mouseMoved", box.x + 100, box.y + 60);
	await browser.mouse("mousePressed", box.x + 100, box.y + 60);
	await browser.mouse("mouseMoved", box.x + 300, box.y + 60, {buttons: 1, button: "left"});
	await browser.mouse("mouseReleased", box.x + 300, box.y + 60);
	await browser.settle();
	const zoomed = await browser.eval("stormlog.timeline.picture.grid.width");
	assert.match(await browser.eval("location.hash"), /from=[\d.]+&to=[\d.]+/);
	await browser.eval(`document.querySelector(".chart").dispatchEvent(new MouseEvent("dblclick", {bubbles: true}))`);
	assert.doesNotMatch(await browser.eval("location.hash"), /from=/);
	assert.ok(await browser.eval("stormlog.timeline.picture.grid.width") >= zoomed);
	await browser.eval(`document.querySelector(".chart").focus()`);
	await browser.key("+");
	assert.match(await browser.eval("location.hash"), /from=[\d.]+&to=[\d.]+/);
	await browser.key("ArrowRight");
	await browser.key("Enter");
	assert.match(await browser.eval("location.hash"), /at=\d+/);
	await browser.key("Escape");
	assert.doesNotMatch(await browser.eval("location.hash"), /from=/);
	clean();
});

test("a part of the time line that is dragged over has its own figures, tree, places and sizes", async () => {
	await open(report("training", 4, 60).url + "#rank=1");
	const whole = await browser.eval("stormlog.ranges.rows(stormlog.timeline.scope(), null)"), box = await plot();
	const made = (await browser.eval("stormlog.page.places.find((p) => p.process === 1).made.reduce((a, b) => a + b, 0)"));
	assert.equal(whole.rows.reduce((a, row) => a + row.born, 0), made);
	assert.match(await browser.eval(`document.querySelector("#tables .sizes").innerText`), /above 512 MiB/);
	assert.match(await browser.eval(`document.querySelector(".inspector").innerText`), /The whole run[^]*asked for/);
	await browser.mouse("mouseMoved", box.x + 200, box.y + 60);
	await browser.mouse("mousePressed", box.x + 200, box.y + 60);
	await browser.mouse("mouseMoved", box.x + 400, box.y + 60, {buttons: 1, button: "left"});
	await browser.mouse("mouseReleased", box.x + 400, box.y + 60);
	await browser.settle();
	assert.match(await browser.eval("location.hash"), /from=[\d.]+&to=[\d.]+&flame=range/);
	const part = await browser.eval(`(({rows, stretch}) => ({rows, stretch}))(stormlog.ranges.rows(stormlog.timeline.scope(), stormlog.range()))`);
	const sum = (rows, key) => rows.reduce((a, row) => a + row[key], 0);
	assert.ok(sum(part.rows, "born") > 0 && sum(part.rows, "born") < made);
	assert.equal(await browser.eval("stormlog.flame.tree.value"), sum(part.rows, "keptBytes"));
	assert.match(await browser.eval(`document.querySelector("#stacks h3").textContent`), /^Born in .* and still held at its end/);
	const cells = await browser.eval(`[...document.querySelectorAll("#places tbody tr")].map((row) => row.firstChild.textContent)`), roles = await browser.eval(`[...document.querySelectorAll("#places tbody tr")].map((row) => row.lastChild.textContent)`);
	for (const row of part.rows.filter((row) => row.keptBytes > 0))
		assert.ok(cells.includes(row.name.slice(0, 79)) || cells.includes(`${row.name.slice(0, 79)}…`), row.name);
	assert.equal(new Set(cells.map((line, i) => `${roles[i]} ${line}`)).size, cells.length, "a row a line and role");
	assert.ok(part.rows.some((row) => row.keptBytes > 0 && row.name.includes("append")), "the line that keeps");
	/* sort by another column, then select another part on the overview */
	await browser.eval(`[...document.querySelectorAll("#places th button")].find((b) => b.textContent === "Asked for").click()`);
	const first = await browser.eval(`document.querySelector("#places .table tbody tr").firstChild.textContent`);
	assert.equal(first, part.rows.reduce((a, b) => (b.bornBytes > a.bornBytes ? b : a)).name);
	const small = await browser.eval(`(() => { const b = document.querySelector(".overview .u-over").getBoundingClientRect(); return {x: b.left, y: b.top}; })()`);
	await browser.mouse("mouseMoved", small.x + 20, small.y + 10);
	await browser.mouse("mousePressed", small.x + 20, small.y + 10);
	await browser.mouse("mouseMoved", small.x + 90, small.y + 10, {buttons: 1, button: "left"});
	await browser.mouse("mouseReleased", small.x + 90, small.y + 10);
	await browser.settle();
	const [from] = await browser.eval("stormlog.timeline.view()");
	assert.ok(from < part.stretch.from);
	await picture("range");
	await browser.eval(`[...document.querySelectorAll("#time button")].find((b) => b.textContent === "Whole run").click()`);
	assert.doesNotMatch(await browser.eval("location.hash"), /from=|flame=range/);
	clean();
});

test("the panel describes a view the same way at every width of the window", async () => {
	const {url} = report("training", 4, 60), said = [];
	for (const width of [420, 800, 1600]) {
		await open(`${url}#rank=3&by=pytorch`, {width, height: 844});
		said.push(await browser.eval(`document.querySelector(".inspector").innerText`));
	}
	assert.match(said[0], /outside PyTorch\s+at most/);
	assert.deepEqual(said.slice(1), [said[0], said[0]]);
	await open(url);
});

test("a shared address opens the same view", async () => {
	const {url} = report("training", 4, 60);
	await open(`${url}#by=library&rank=1&from=5&to=20&flame=churn&q=attention&theme=dark`);
	assert.equal(await browser.eval("document.documentElement.dataset.theme"), "dark");
	assert.deepEqual(await browser.eval("stormlog.timeline.view()"), [5e9, 20e9]);
	assert.equal(await browser.eval(`document.querySelector("input[type=search]").value`), "attention");
	assert.equal(await browser.eval("stormlog.timeline.scope().process"), 1);
});

test("search finds in every view", async () => {
	await open(report("training", 4, 60).url + "#rank=3&flame=oom");
	await browser.eval(`stormlog.state.set({q: "attention"})`);
	await browser.settle();
	assert.match(await browser.eval(`document.querySelector(".search").innerText`), /[1-9]\d* function/);
	assert.ok(await browser.eval(`[...document.querySelectorAll(".flame rect")].filter((r) => r.getAttribute("fill") === stormlog.timeline.palette().hitFill).length`) > 0);
	assert.ok(await browser.eval(`document.querySelectorAll(".card").length`) > 0);
	assert.ok(await browser.eval(`[...document.querySelectorAll(".card")].every((card) => card.textContent.includes("attention"))`));
	assert.ok(await browser.eval("stormlog.timeline.hitBins") > 0);
	await picture("search");
	await browser.eval(`stormlog.state.set({q: "no such name anywhere"})`);
	await browser.settle();
	assert.match(await browser.eval(`document.querySelector("#findings").innerText`), /No finding matches/);
	clean();
});

test("a page of a few bytes of markup in names shows them as text and runs no script", async () => {
	await open(report("hostile").url);
	await browser.settle();
	clean();
	assert.equal(await browser.eval("typeof globalThis.hacked"), "undefined");
	assert.equal(await browser.eval(`document.querySelectorAll("main img, main script").length`), 0);
	const text = await browser.eval(`document.body.textContent`);
	for (const part of ["</script><script>globalThis.hacked=1</script>", "<img src=x onerror=globalThis.hacked=1>", "@DATA@ @SCRIPT@ $& $1", "bell<0007>", "right<202E>to"])
		assert.ok(text.includes(part), part);
	assert.equal(await browser.eval(`/[\\u0007\\u001b\\u202e]/.test(document.body.textContent)`), false);
	assert.ok(await browser.eval("document.documentElement.scrollWidth <= innerWidth"));
	await browser.eval(`stormlog.state.set({q: "</script>"})`);
	await browser.eval(`stormlog.state.set({q: "__proto__", inverted: "1", flame: "churn"})`);
	clean();
	await picture("hostile");
});

test(`${RANKS} ranks draw, those unlike the others first, and a click opens one`, async () => {
	const {url, size} = report("ranks", RANKS);
	const ms = await open(url);
	assert.ok(size <= 8 * MIB, `${size} bytes`);
	assert.ok(ms > 0);
	assert.equal(await browser.eval("stormlog.ranks.rows.length"), RANKS);
	assert.deepEqual((await browser.eval("stormlog.ranks.rows.slice(0, 2).map((i) => stormlog.page.processes[i].rank)")), [1234 % RANKS, RANKS / 2]);
	await browser.eval(`document.getElementById("ranks").scrollIntoView()`);
	const box = await browser.eval(`(() => { const b = document.querySelector(".heat").getBoundingClientRect(); return {x: b.left, y: b.top}; })()`);
	await browser.click(box.x + 200, box.y + 3);
	assert.equal(await browser.eval("stormlog.page.processes[stormlog.timeline.scope().process].rank"), RANKS > 200 ? RANKS / 2 : 1234 % RANKS);
	const before = await browser.eval(`document.querySelector(".heat canvas").toDataURL()`);
	await browser.eval(`document.querySelector(".heat").scrollTop = 1e6`);
	await browser.settle();
	if (RANKS > 500)
		assert.notEqual(await browser.eval(`document.querySelector(".heat canvas").toDataURL()`), before);
	clean();
	await picture("ranks");
});

const CONTRAST = `(() => {
	const lum = ([r, g, b]) => { const f = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const rgba = (s) => (s.match(/[\\d.]+/g) || []).map(Number);
	const back = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest("svg") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
		const style = getComputedStyle(e), a = lum(rgba(style.color)), b = lum(back(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) bad.push(e.tagName + "." + e.className + " " + ratio.toFixed(2) + " " + e.textContent.slice(0, 30));
	}
	return bad;
})()`;

for (const dark of [false, true])
	for (const width of [1280, 390])
		test(`${dark ? "dark" : "light"} at ${width} px: nothing sticks out, all text has AA contrast`, async () => {
			await open(report("training", 4, 60).url, {dark, width, height: 844});
			assert.equal(await browser.eval("document.documentElement.scrollWidth"), width);
			assert.deepEqual(await browser.eval(CONTRAST), []);
			assert.ok(await browser.eval(`document.querySelector("nav").offsetHeight`) < (width > 620 ? 60 : 90), "links in one row");
			clean();
			await picture(`${dark ? "dark" : "light"}-${width}`);
		});

test("prints: controls are gone, the views are there", async () => {
	await open(report("training", 4, 60).url, {media: "print"});
	assert.equal(await browser.eval(`getComputedStyle(document.querySelector("nav")).display`), "none");
	assert.match(await browser.eval(`document.querySelector("#ranks").innerText`), /rank 3/);
	const {data} = await browser.send("Page.printToPDF", {printBackground: true});
	const pdf = Buffer.from(data, "base64");
	assert.ok(pdf.length > 20000);
	if (pictures)
		writeFileSync(join(pictures, "print.pdf"), pdf);
	await picture("print");
});

test("a smaller limit gives a smaller page that says what it gave up", async () => {
	const {json} = report("training", 4, 60), folder = join(work, "training"), out = join(work, "small");
	execFileSync(analyze, ["-q", "--html-max-bytes", "260K", "-o", out, folder]);
	assert.ok(statSync(join(out, "report.html")).size <= 260 * 1024);
	await open(`file://${out}/report.html`);
	assert.match(await browser.eval("document.body.textContent"), /To keep this page small every line has \d+ bins/);
	const peak = Math.max(...json.processes.map((p) => Math.max(...p.memory.map((m) => m.peak_bytes))));
	assert.ok(await browser.eval("Math.max(...stormlog.page.lines.filter((l) => l.what === 'known').map((l) => l.peak))") >= peak);
	clean();
});

test("changes between two runs are a page: the rows of diff --json, stacks that grew and shrank, words beside colours", async () => {
	report("training", 4, 60);
	const more = join(work, "more"), page = join(work, "diff.html");
	mkdirSync(more);
	execFileSync(makeTrace, ["training", more, "4", "90"]);
	const json = JSON.parse(execFileSync(analyze, ["diff", "--json", "--html", page, join(work, "training"), more]));
	for (const [dark, width] of [[false, 390], [true, 390], [true, 1280], [false, 1280]]) {
		await open(`file://${page}`, {dark, width, height: 844});
		assert.equal(await browser.eval("document.documentElement.scrollWidth"), width);
		assert.deepEqual(await browser.eval(CONTRAST), []);
		await picture(`diff-${dark ? "dark" : "light"}-${width}`);
	}
	assert.deepEqual(await browser.eval("stormlog.page.differences.map((d) => [d.of, d.key, d.change, d.change_bytes])"), json.differences.map((d) => [d.of, d.key, d.change, d.change_bytes]));
	const changed = json.differences.filter((d) => ["more", "less", "new", "gone"].includes(d.change) && d.of !== "total");
	assert.equal(await browser.eval(`document.querySelectorAll("#changes tbody tr").length`), changed.length);
	const told = await browser.eval("stormlog.page.because.map((r) => [r.line, r.bytes])"), sum = (rows, line) => rows.filter((r) => r[0] === line).reduce((a, r) => a + r[1], 0);
	assert.equal(sum(told, false), json.because.after.peak_bytes - json.because.before.peak_bytes);
	assert.equal(sum(told, true), json.because.terms.find((t) => t.term === "requests").change_bytes);
	assert.equal(await browser.eval(`document.querySelectorAll("#because tbody tr").length`), told.length);
	assert.ok(changed.some((d) => d.of === "stack" && d.change === "more" && d.what.includes("append")));
	const tree = await browser.eval("(({before, after, value}) => ({before, after, value}))(stormlog.flame.tree)");
	assert.ok(tree.after > tree.before && tree.value >= tree.after);
	await browser.eval(`stormlog.state.set({width: "after", theme: "light", inverted: "1", q: "append"})`);
	await browser.settle();
	assert.equal(await browser.eval("stormlog.flame.tree.value"), tree.after);
	assert.ok(await browser.eval(`[...document.querySelectorAll(".flame .d3-flame-graph-label")].some((t) => /^\\+[0-9.]+ .iB  append/.test(t.textContent))`));
	assert.equal(await browser.eval(`document.querySelectorAll("#changes tbody tr").length`), changed.filter((d) => d.what.includes("append")).length);
	assert.match(await browser.eval("location.hash"), /inverted=1&width=after&q=append/);
	await open(`file://${page}#width=before&changed=all`);
	assert.equal(await browser.eval("stormlog.flame.tree.value"), tree.before);
	assert.equal(await browser.eval(`document.querySelectorAll("#changes tbody tr").length`), json.differences.filter((d) => d.of !== "total").length);
	await browser.eval(`document.querySelector(".flame").focus()`);
	await browser.key("ArrowDown");
	assert.match(await browser.eval(`document.querySelector(".detail").innerText`), /before, .* after/);
	clean();
	execFileSync(analyze, ["diff", "--html", page, report("hostile") && join(work, "hostile"), more], {stdio: "ignore"});
	await open(`file://${page}`);
	assert.equal(await browser.eval("typeof globalThis.hacked"), "undefined");
	assert.ok(await browser.eval(`document.body.textContent.includes("<img src=x onerror=globalThis.hacked=1>")`));
	clean();
});

test("would it have fit: the verdicts of the verb, and the run beside capacities", async () => {
	const maker = process.env.MAKE_RECORDING, folder = join(work, "fit");
	if (!maker)
		return;
	mkdirSync(folder);
	execFileSync(maker, [folder, "2.14", "batch=24"]);
	execFileSync(analyze, ["-q", folder]);
	await open(`file://${folder}/analysis/report.html`);
	const {capacities, choices} = await browser.eval("(({capacities, choices}) => ({capacities, choices: choices.map(({settings, runs}) => ({settings, runs}))}))(stormlog.page.fit[0])");
	const json = JSON.parse(spawnSync(analyze, ["fit", "--json", "--capacity", capacities.join(","), ...choices.flatMap(({settings}) => ["--settings", settings === "(none)" ? "" : settings]), folder]).stdout);
	const cells = await browser.eval(`[...document.querySelectorAll("#fit tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent))`);
	assert.equal(cells.length, choices.length);
	for (const [i, row] of cells.entries())
		assert.deepEqual(row.slice(4), capacities.map((c) => (json.runs.find((run) => run.capacity_bytes === c && run.settings === choices[i].settings.replace("(none)", "")).fits ? "fits" : "no")));
	assert.ok(cells[0].includes("no") && cells[0].includes("fits"), cells[0]);
	const failed = json.runs.find((run) => run.failed_at && run.settings === "").failed_at;
	assert.match(await browser.eval(`document.querySelector("#fit .failures").textContent`), new RegExp(`^With 1.00 GiB it fails at .*: request ${failed.request}, of 89.3 MiB`));
	assert.match(await browser.eval(`document.querySelector("#fit").innerText`), /reproduces the recorded run exactly/);
	const said = (at) => browser.eval(`(() => { const slider = document.querySelector(".what-if input"); slider.value = ${at}; slider.dispatchEvent(new Event("input")); return document.querySelector(".what-if output").textContent; })()`);
	for (const [at, verdict] of cells[0].slice(4).entries())
		assert.match(await said(at), verdict === "no" ? /iB: no, it fails at / : /iB: fits$/);
	const highest = () => browser.eval("Math.max(...stormlog.fit.plot.data[1])");
	assert.equal(await highest(), json.runs.find((run) => run.fits && run.settings === "").peak_reserved_bytes);
	await browser.eval(`stormlog.state.set({with: "1"})`);
	assert.equal(await highest(), json.runs.find((run) => run.fits && run.settings === choices[1].settings).peak_reserved_bytes);
	assert.match(await browser.eval("location.hash"), /with=1/);
	clean();
	const box = await browser.eval(`(() => { document.querySelector("#fit").scrollIntoView(); const b = document.querySelector("#fit").getBoundingClientRect(); return {x: b.left, y: b.top + scrollY, width: b.width, height: b.height, scale: 1}; })()`);
	await picture("fit", box);
});

async function main() {
	const path = findBrowser();
	if (!path || process.env.STORMLOG_NO_BROWSER) {
		console.log("no chromium: skipped");
		process.exit(77);
	}
	if (pictures)
		mkdirSync(pictures, {recursive: true});
	browser = await new Browser(path).start();
	let failed = 0;
	console.log(`1..${tests.length}`);
	for (const [i, [name, run]] of tests.entries()) {
		const began = performance.now();
		try {
			await run();
			console.log(`ok ${i + 1} - ${name} # ${(performance.now() - began).toFixed(0)} ms`);
		} catch (error) {
			failed++;
			console.log(`not ok ${i + 1} - ${name}`);
			console.log(String(error.stack || error).replace(/^/gm, "# ").slice(0, 1500));
		}
	}
	await browser.stop();
	rmSync(work, {recursive: true, force: true});
	process.exit(failed ? 1 : 0);
}

main();
