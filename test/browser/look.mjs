// Opens every view of the inspector page in a real browser, in both themes and on a wide and a narrow
// screen, and prints as JSON what is wrong: node look.mjs CHROMIUM URL LONG HOSTILE [PICTURES]. LONG is a
// conversation of many turns; HOSTILE has texts that must stay texts.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { chromium } from "playwright-core";

const [executablePath, base, long, hostile, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const wrong = [];
const of = (id, more = "") => `/?c=${encodeURIComponent(id)}${more}`;
const views = {
  conversations: "/", operations: "/?view=operations",
  timeline: of(long), "hostile timeline": of(hostile, "&turn=1"), "hostile context": of(hostile, "&view=context&left=1"),
  context: of(long, "&view=context&max=6000&q=checkpoint"), text: of(hostile, "&view=context&show=bytes"),
  compare: of(long, "&view=compare&max_b=4000"), search: of(hostile, "&view=search&q=alert"), files: of(long, "&view=files"),
};
const screens = [[1280, 800, "light"], [390, 844, "dark"]];

// settled waits until the page shows what it has asked for.
async function settled(page) {
  await page.waitForFunction(() => document.querySelector("main") && !/Loading…|Searching…/.test(document.querySelector("main").innerText), undefined, { timeout: 180_000 });
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [width, height, colorScheme] of screens) {
  // axe adds a script, which the policy of the page forbids: so it looks at a second page without the policy.
  for (const bypassCSP of colorScheme === "light" || pictures ? [false, true] : [false]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, bypassCSP });
    const page = await context.newPage();
    let view = "";
    const say = (what) => wrong.push(`${view}, ${width} pixels, ${colorScheme}: ${what}`);
    page.on("console", (m) => { if (["error", "warning"].includes(m.type())) say(`console: ${m.text()}`); });
    page.on("pageerror", (e) => say(`error: ${e.message}`));
    page.on("dialog", (d) => { say(`dialog: ${d.message()}`); d.dismiss(); });
    page.on("request", (r) => { if (!r.url().startsWith(base + "/")) say(`request to ${r.url()}`); });
    for (const [name, url] of Object.entries(views)) {
      view = name;
      await page.goto(base + url, { timeout: 180_000 });
      await settled(page);
      if (bypassCSP) {
        await page.evaluate(axe);
        const found = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "best-practice"] }));
        for (const v of found.violations) say(`axe ${v.id}: ${v.nodes[0].html.slice(0, 200)}`);
        continue;
      }
      const seen = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth > innerWidth + 1, rows: document.querySelectorAll(".row").length,
        foreign: document.querySelectorAll("main img, main script, main iframe, main form[action], main a[href^='javascript']").length,
        text: document.querySelector("main").innerText,
      }));
      if (seen.wide) say("is wider than the screen");
      if (seen.foreign) say("made an element of a text");
      if (seen.rows > 100) say(`keeps ${seen.rows} rows`);
      if (name === "timeline" && seen.rows === 0) say("has no rows");
      if (name.startsWith("hostile") && !seen.text.includes("<img src=x onerror=alert(1)>")) say("does not show the hostile text as it is");
      if (name === "context" && !(await page.getByText("Why", { exact: true }).count())) say("does not say why a line is there");
      if (pictures && ["timeline", "context", "operations"].includes(name)) await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) });
    }
    await context.close();
  }
}
await browser.close();
console.log(JSON.stringify(wrong));
