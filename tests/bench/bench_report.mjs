/* SPDX-License-Identifier: MIT */
/*
 * bench_report.mjs MAKE_LARGE STORMLOG_ANALYZE [EVENTS...]: seconds to analyse and milliseconds until report.html shows
 * its first picture in a browser, of a training job with 10 thousand, 10 million and 200 million events (2 GB of disk).
 */
import {execFileSync} from "node:child_process";
import {mkdtempSync, rmSync, statSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {Browser, findBrowser} from "../web/browser.mjs";

const [, , makeLarge, analyze, ...counts] = process.argv, path = findBrowser();
if (!path) {
	console.log("no chromium: skipped");
	process.exit(77);
}
const browser = await new Browser(path).start();
for (const events of counts.length ? counts : ["10000", "10000000", "200000000"]) {
	const folder = mkdtempSync(join(tmpdir(), "stormlog-bench-"));
	execFileSync(makeLarge, ["steady", folder, events]);
	const began = performance.now();
	execFileSync(analyze, ["-q", folder]);
	const seconds = (performance.now() - began) / 1000, page = join(folder, "analysis/report.html"), times = [];
	for (let i = 0; i < 5; i++)
		times.push(await browser.open(`file://${page}`));
	times.sort((a, b) => a - b);
	console.log(`${events} events: analysed in ${seconds.toFixed(1)} s, page ${(statSync(page).size / 1024).toFixed(0)} KiB, first picture after ${times[2].toFixed(0)} ms (median of 5)`);
	rmSync(folder, {recursive: true});
}
await browser.stop();
