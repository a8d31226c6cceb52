/* SPDX-License-Identifier: MIT */
/* A browser over the DevTools protocol on a pipe: no package is needed.  One tab, network cut. */
import {spawn} from "node:child_process";
import {existsSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";

const NAMES = ["chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"];
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe"];

export function findBrowser() {
	for (const folder of (process.env.PATH || "").split(":"))
		for (const name of NAMES)
			if (existsSync(join(folder, name)))
				return join(folder, name);
	return null;
}

export class Browser {
	constructor(path) {
		this.profile = mkdtempSync(join(tmpdir(), "stormlog-web-"));
		this.child = spawn(path, [...FLAGS, `--user-data-dir=${this.profile}`, "about:blank"], {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
		this.next = 0;
		this.waiting = new Map();
		this.console = [];
		this.requests = [];
		let text = "";
		this.child.stdio[4].on("data", (data) => {
			text += data;
			for (let end; (end = text.indexOf("\0")) >= 0; text = text.slice(end + 1))
				this.receive(JSON.parse(text.slice(0, end)));
		});
	}

	receive(message) {
		if (message.id) {
			const {resolve, reject} = this.waiting.get(message.id);
			this.waiting.delete(message.id);
			return message.error ? reject(new Error(message.error.message)) : resolve(message.result);
		}
		const {method, params} = message;
		if (method === "Runtime.consoleAPICalled" && params.type !== "log")
			this.console.push(`${params.type}: ${params.args.map((a) => a.value ?? a.description).join(" ")}`);
		else if (method === "Runtime.exceptionThrown")
			this.console.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
		else if (method === "Log.entryAdded" && params.entry.level === "error")
			this.console.push(params.entry.text);
		else if (method === "Network.requestWillBeSent")
			this.requests.push(params.request.url.slice(0, 60));
	}

	send(method, params = {}) {
		return new Promise((resolve, reject) => {
			this.waiting.set(++this.next, {resolve, reject});
			this.child.stdio[3].write(JSON.stringify({id: this.next, method, params, sessionId: this.session}) + "\0");
		});
	}

	async start() {
		const {targetId} = await this.send("Target.createTarget", {url: "about:blank"});
		this.session = (await this.send("Target.attachToTarget", {targetId, flatten: true})).sessionId;
		for (const domain of ["Runtime", "Log", "Page", "Network"])
			await this.send(`${domain}.enable`);
		await this.send("Network.emulateNetworkConditions", {offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0});
		return this;
	}

	/* Open a page and wait until it is drawn; returns the milliseconds that took. */
	async open(url, {width = 1280, height = 900, dark = false, media = "screen"} = {}) {
		await this.send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
		await this.send("Emulation.setEmulatedMedia", {media, features: [{name: "prefers-color-scheme", value: dark ? "dark" : "light"}]});
		await this.send("Page.navigate", {url: "about:blank"});
		await this.send("Page.navigate", {url});
		for (let i = 0; i < 12000; i++, await sleep(25))
			if (await this.eval("document.querySelector('.failed') ? -1 : globalThis.stormlog?.ready_ms ?? null").catch(() => null)) /* navigating */
				break;
		await this.settle();
		return this.eval("globalThis.stormlog?.ready_ms ?? null");
	}

	async eval(expression) {
		const {result, exceptionDetails} = await this.send("Runtime.evaluate", {expression, awaitPromise: true, returnByValue: true});
		if (exceptionDetails)
			throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
		return result.value;
	}

	/* Wait until the page has handled and drawn the last action. */
	async settle() {
		await this.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))");
	}

	async mouse(type, x, y, extra = {}) {
		await this.send("Input.dispatchMouseEvent", {type, x, y, button: type === "mouseMoved" && !extra.buttons ? "none" : "left", buttons: type === "mousePressed" ? 1 : 0, clickCount: 1, ...extra});
	}

	async click(x, y) {
		await this.mouse("mouseMoved", x, y);
		await this.mouse("mousePressed", x, y);
		await this.mouse("mouseReleased", x, y);
		await this.settle();
	}

	async key(key) {
		await this.send("Input.dispatchKeyEvent", {type: "keyDown", key, text: key.length === 1 ? key : undefined});
		await this.send("Input.dispatchKeyEvent", {type: "keyUp", key});
		await this.settle();
	}

	async screenshot(clip) {
		const {cssContentSize: size} = await this.send("Page.getLayoutMetrics");
		const area = clip || {x: 0, y: 0, width: size.width, height: Math.min(size.height, 8000)};
		const {data} = await this.send("Page.captureScreenshot", {format: "png", captureBeyondViewport: true, clip: {...area, scale: 1}});
		return Buffer.from(data, "base64");
	}

	async stop() {
		const gone = new Promise((resolve) => this.child.once("exit", resolve));
		this.session = undefined;
		this.send("Browser.close").catch(() => {});
		await Promise.race([gone, sleep(5000)]);
		this.child.kill("SIGKILL");
		await gone;
		for (let i = 0; i < 20; i++, await sleep(100)) /* its helpers end a moment later */
			try {
				return rmSync(this.profile, {recursive: true, force: true});
			} catch {
				continue;
			}
	}
}
