// What the scripts of this folder share. Each is run as: node SCRIPT.mjs JSON, and prints as JSON what is
// wrong, and the figures that it has measured.
import { chromium } from "playwright-core";

export const given = JSON.parse(process.argv[2]);
export const base = given.url;
export const patience = 180_000; // milliseconds, for a loaded machine
export const wrong = [];
export const figures = {};
export const of = (id, more = "") => `/?c=${encodeURIComponent(id)}${more}`;

export const launch = (...args) => chromium.launch({ executablePath: given.chromium, timeout: patience, args: ["--no-sandbox", ...args] });

// forgive forgets what the browser itself has said about answers that a test made fail.
export const forgive = (what) => { wrong.splice(0, wrong.length, ...wrong.filter((w) => !what.test(w))); };

// watched opens a page of which everything that is wrong is noted, such as a request to another server than those; where
// says what it shows.
export async function watched(context, where, ...servers) {
  if (!servers.length) servers = [base];
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const say = (what) => wrong.push(`${where()}: ${what}`);
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) say(`console: ${m.text()}`); });
  page.on("pageerror", (e) => say(`error: ${e.message}`));
  page.on("request", (r) => { if (!servers.some((url) => r.url().startsWith(url + "/"))) say(`request to ${r.url()}`); });
  return { page, say };
}

// settled waits until the page shows what it has asked for. Items with content-visibility have no innerText until the second
// frame after they came.
export async function settled(page) {
  await page.waitForFunction(() => {
    const main = document.querySelector("main:not([aria-busy=true])");
    return main && !/Loading…|Searching…|Rebuilding it…|connecting/.test(main.innerText);
  });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// collected returns the bytes of the page's JavaScript, after the garbage is collected.
export async function collected(context, page) {
  const devtools = await context.newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  await devtools.detach();
  return usedSize;
}

export async function end(browser) {
  await browser.close();
  console.log(JSON.stringify({ wrong, figures }));
}

export function share(list, part) {
  return Math.round(list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * part))]);
}
