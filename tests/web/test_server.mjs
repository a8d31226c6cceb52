/* SPDX-License-Identifier: MIT */
/*
 * test_server.mjs MAKE_TRACE STORMLOG_ANALYZE STORMLOG_SERVER STORMLOG_PUSH: the server's pages in a real browser: upload, search, the link of a moment opened in
 * a fresh profile, comparison, trend, dark, narrow, keyboard.  Skips (77) without a browser.
 */
import assert from "node:assert/strict";
import {execFileSync, spawn} from "node:child_process";
import {mkdirSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {Browser, findBrowser} from "./browser.mjs";

const [, , makeTrace, analyze, program, push] = process.argv;
const work = mkdtempSync(join(tmpdir(), "stormlog-server-web-")), store = join(work, "store");
const tests = [];
const test = (name, run) => tests.push([name, run]);
let browser, server, url, said = "";

async function until(what, get) {
	for (let i = 0; i < 2400; i++, await sleep(25)) {
		const value = await get();
		if (value)
			return value;
	}
	throw new Error(`${what} did not happen`);
}

async function fresh() {
	const one = await new Browser(findBrowser()).start();
	await one.send("Network.emulateNetworkConditions", {offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1});
	return one;
}

/* Opens a page of the server's own and waits until it is drawn. */
async function go(path, {width = 1280, dark = false, on = browser} = {}) {
	on.console.length = on.requests.length = 0;
	await on.send("Emulation.setDeviceMetricsOverride", {width, height: 900, deviceScaleFactor: 1, mobile: false});
	await on.send("Emulation.setEmulatedMedia", {features: [{name: "prefers-color-scheme", value: dark ? "dark" : "light"}]});
	await on.send("Page.navigate", {url: "about:blank"});
	await on.send("Page.navigate", {url: url + path});
	await until(`${path} is there`, () => on.eval(`document.readyState === "complete" && location.href !== "about:blank"`).catch(() => false));
	await on.settle();
}

/* Opens a report or comparison page, which its own script draws. */
async function report(path, on = browser) {
	on.console.length = on.requests.length = 0;
	assert.ok(await on.open(url + path), `${path} is drawn: ${on.console.join("; ")}`);
}

function clean(on = browser) {
	assert.deepEqual(on.console, []);
	for (const request of on.requests)
		assert.ok(request.startsWith(url + "/") || /^(data|about):/.test(request), request);
}

const text = () => browser.eval("document.body.innerText");

test("a pushed run is on the landing page", async () => {
	await go("/");
	assert.match(await text(), /train\.py/);
	assert.equal(await browser.eval(`document.querySelectorAll(".runs tbody tr").length`), 2);
	clean();
});

test("names are offered as somebody types, and lead to runs", async () => {
	await go("/");
	await browser.key("/");
	assert.equal(await browser.eval("document.activeElement.id"), "q");
	for (const letter of "train_s")
		await browser.key(letter);
	const offered = await until("names", () => browser.eval(`[...document.querySelectorAll("#names a")].map((a) => a.textContent).join("|")`));
	assert.match(offered, /train_step \(function, 2 runs\)/);
	await browser.send("Input.dispatchKeyEvent", {type: "keyDown", key: "ArrowDown", code: "ArrowDown", windowsVirtualKeyCode: 40});
	assert.equal(await browser.eval("document.activeElement.tagName"), "A");
	await go(await browser.eval("document.activeElement.getAttribute('href')"));
	assert.match(await text(), /2 found/);
	clean();
});

test("the address of a moment opened in a fresh profile shows the same moment and stack", async () => {
	await report("/runs/1/report");
	await browser.eval(`(() => { const [a, b] = stormlog.series.span(); stormlog.state.set({rank: "1", at: Math.round(a + (b - a) / 3), flame: "moment", q: "attention"}); })()`);
	await browser.settle();
	const seen = `JSON.stringify([stormlog.state.get("at"), stormlog.state.get("rank"), stormlog.state.get("q"), document.querySelector("#stacks").innerText])`;
	const address = await browser.eval("location.pathname + location.hash"), first = await browser.eval(seen);
	assert.match(address, /^\/runs\/1\/report#.*at=\d+/);
	clean();
	const other = await fresh();
	try {
		await report(address, other);
		assert.equal(await other.eval(seen), first);
		clean(other);
	} finally {
		await other.stop();
	}
});

test("a zoomed part is drawn in finer bins, with its stacks, as soon as they are computed, and the whole run again", async () => {
	await report("/runs/1/report");
	const width = "stormlog.timeline.picture.grid.width", finest = "Math.min(...stormlog.timeline.picture.totalLines.map((l) => l.width))";
	const wide = await browser.eval(finest), view = await browser.eval(`(() => { const [a, b] = stormlog.series.span(), x = Math.floor(a + (b - a) / 3);
		stormlog.state.set({from: x, to: Math.ceil(x + (b - a) / 40)}); return [stormlog.state.number("from"), stormlog.state.number("to")]; })()`);
	await until("finer bins", () => browser.eval(`${finest} < ${wide}`));
	assert.ok(await browser.eval(`${width} < ${wide}`));
	assert.deepEqual(await browser.eval(`[stormlog.state.number("from"), stormlog.state.number("to")]`), view, "the same view");
	assert.ok(await browser.eval(`stormlog.series.part.from <= ${view[0]} && stormlog.series.part.to >= ${view[1]}`));
	const named = await browser.eval(`stormlog.series.part.lines.filter((l) => l.what === "known").flatMap((l) => [...l.stack]).filter((n) => n)
		.map((n) => stormlog.stacks.path(n).map((f) => stormlog.stacks.name(f)).join(" "))`);
	assert.ok(named.length && named.every((name) => /train\.py/.test(name)), named[0]);
	assert.equal(browser.requests.filter((r) => /\/page\?from=/.test(r)).length > 0, true);
	clean();
	await browser.eval(`[...document.querySelectorAll("#time button")].find((b) => b.innerText === "Whole run").click()`);
	await browser.settle();
	assert.equal(await browser.eval(finest), wide);
	await report("/runs/1/report#from=1000000&to=1100000");
	assert.ok(await browser.eval("document.documentElement.scrollWidth <= innerWidth"), "an address that names what is not in the run");
});

test("a page from a server runs no script but its own, whatever the data put into it", async () => {
	await report("/runs/1/report");
	const ran = await browser.eval(`new Promise((done) => {
		const script = document.createElement("script"), other = document.createElement("div"), link = document.createElement("a");
		script.textContent = "window.ran = 1";
		other.innerHTML = "<img src=x onerror='window.ran = 2'><svg onload='window.ran = 3'></svg>";
		link.href = "javascript:window.ran = 4";
		document.body.append(script, other, link);
		link.click();
		setTimeout(() => done(window.ran ?? "nothing"), 300);
	})`);
	assert.equal(ran, "nothing");
	const got = await browser.eval(`fetch("https://example.org/").then(() => "reached", () => "refused")`);
	assert.equal(got, "refused");
});

test("two runs are chosen and compared", async () => {
	await go("/");
	await browser.eval(`document.querySelector('input[name=before][value="1"]').click(), document.querySelector('input[name=after][value="2"]').click(),
		document.querySelector('form[action="/compare"] button').click()`);
	await until("the page of a comparison", () => browser.eval("globalThis.stormlog?.changes ? 1 : 0").catch(() => 0));
	assert.deepEqual(await browser.eval(`[location.pathname, ...["before", "after"].map((side) => new URLSearchParams(location.search).get(side))]`), ["/compare", "1", "2"]);
	assert.match(await text(), /Differences/);
	assert.match(await text(), /Before: run 1\s+After: run 2/);
	assert.deepEqual(await browser.eval(`[...document.querySelectorAll("header a")].map((a) => a.getAttribute("href"))`), ["/runs/1", "/runs/2"]);
});

test("a run is compared with the run before by one click", async () => {
	await go("/runs/2");
	await browser.eval(`[...document.querySelectorAll(".actions a")].find((a) => a.innerText === "Compare with the run before").click()`);
	await until("the page of a comparison", () => browser.eval("globalThis.stormlog?.changes ? 1 : 0").catch(() => 0));
	assert.equal(await browser.eval("location.pathname + location.search"), "/compare?before=1&after=2");
	assert.match(await text(), /Before: run 1\s+After: run 2/);
	await go("/runs/1");
	assert.doesNotMatch(await text(), /the run before/, "it is the first");
});

test("a trend has a point for each run, which leads there", async () => {
	await go("/trends?field=peak");
	assert.equal(await browser.eval(`document.querySelectorAll("circle").length`), 2);
	assert.ok(await browser.eval(`[...document.querySelectorAll("svg a")].every((a) => /^\\/runs\\/\\d$/.test(a.getAttribute("href")))`));
	clean();
});

test("dark and narrow: every text fits, text stays readable", async () => {
	for (const path of ["/", "/runs/1", "/trends?field=peak", "/search?q=((("])
		for (const dark of [false, true]) {
			await go(path, {width: 390, dark});
			assert.ok(await browser.eval("document.documentElement.scrollWidth <= innerWidth"), `${path} is wider than the window`);
			const [paper, ink] = await browser.eval(`[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]
				.map((c) => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))`);
			assert.ok(dark ? paper < 150 && ink > 500 : paper > 700 && ink < 200, `${path}: ${paper} ${ink}`);
		}
});

test("a note and a pin by keyboard alone", async () => {
	await browser.send("Network.setExtraHTTPHeaders", {headers: {Authorization: "Bearer " + token}});
	await go("/runs/2");
	await browser.eval(`document.querySelector("textarea").focus()`);
	await browser.send("Input.insertText", {text: "<b>kept</b>"});
	for (let i = 0; i < 2; i++)
		await browser.send("Input.dispatchKeyEvent", {type: "keyDown", key: "Tab", code: "Tab", windowsVirtualKeyCode: 9});
	assert.equal(await browser.eval("document.activeElement.tagName"), "BUTTON");
	await browser.send("Input.dispatchKeyEvent", {type: "keyDown", key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r"});
	await until("the note", () => browser.eval(`document.querySelector(".notes li p")?.textContent === "<b>kept</b>"`).catch(() => false));
	await browser.send("Network.setExtraHTTPHeaders", {headers: {}});
});

test("a note on the moment that is picked is a mark there, for everybody", async () => {
	await browser.send("Network.setExtraHTTPHeaders", {headers: {Authorization: "Bearer " + token}});
	await report("/runs/1/report");
	const at = await browser.eval(`(() => { const [a, b] = stormlog.series.span(); stormlog.state.set({at: Math.round(a + (b - a) / 2)}); return stormlog.state.number("at"); })()`);
	await go(await browser.eval(`[...document.querySelectorAll("#time a")].find((a) => a.innerText === "Note on this moment").getAttribute("href")`));
	await browser.eval(`document.querySelector("textarea").value = "<b>it grew</b> here", document.querySelector(".notes + form button").click()`);
	await until("the note", () => browser.eval(`document.querySelector(".notes li a")?.getAttribute("href") === "/runs/1/report#at=${at / 1e9}"`).catch(() => false));
	await browser.send("Network.setExtraHTTPHeaders", {headers: {}});
	await report("/runs/1/report");
	const mark = await until("its mark", () => browser.eval(`stormlog.timeline.marks().find((m) => m.kind === "note")`));
	assert.deepEqual([mark.at, mark.text], [at, "both: <b>it grew</b> here"]);
	clean();
});

if (!findBrowser()) {
	console.log("no Chromium here: skipped");
	process.exit(77);
}
const token = execFileSync(program, ["--store", store, "token", "add", "both", "--read", "--write"], {stdio: ["ignore", "pipe", "ignore"], encoding: "utf8"}).trim();
server = spawn(program, ["--store", store, "--open", "--listen", "127.0.0.1:0"], {stdio: ["ignore", "ignore", "pipe"]});
server.stderr.on("data", (data) => {
	said += data;
});
let failed = 0;
try {
	[, url] = await until("the server's address", () => /stormlog-server: (http:\S+)\/\n/.exec(said));
	for (const [number, steps] of [[1, 20], [2, 30]]) {
		const traces = join(work, `traces${number}`), pack = join(work, `${number}.stormlog`);
		mkdirSync(traces);
		execFileSync(makeTrace, ["training", traces, "2", String(steps)]);
		execFileSync(analyze, ["pack", "-o", pack, traces]);
		execFileSync(push, [url, pack], {env: {...process.env, STORMLOG_TOKEN: token}});
		await until("the run", async () => (await (await fetch(`${url}/api/v1/runs`)).json()).count === number);
	}
	browser = await fresh();
	for (const [name, run] of tests)
		try {
			await run();
			console.log(`ok: ${name}`);
		} catch (error) {
			failed++;
			console.log(`FAILED: ${name}\n${error.stack}`);
		}
} finally {
	await browser?.stop();
	server.kill();
	rmSync(work, {recursive: true, force: true});
}
process.exit(failed ? 1 : 0);
