// Opens every view of the inspector page in a real browser, in both themes and on a wide and a narrow screen.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { base, end, given, launch, of, settled, watched } from "./common.mjs";

const { long, hostile, leftward, recorded, branch, project, served, pictures, docs } = given;
const shown = ["context", "timeline", "graph"]; // in the documentation
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const views = {
  conversations: "/", projects: "/?view=projects", project: `/?view=project&project=${encodeURIComponent(project)}`, live: "/?view=tail", operations: "/?view=operations", doctor: "/?view=operations&doctor=1",
  timeline: of(recorded, "&turn=2"), "long timeline": of(long, "&turn=500"), "hostile timeline": of(hostile, "&turn=1"), "timeline of a branch": of(branch, "&turn=300"), "timeline from right to left": of(leftward), "graph from right to left": of(leftward, "&view=graph"),
  context: of(recorded, "&view=context&max=9000"), "hostile context": of(hostile, "&view=context&left=1"), text: of(hostile, "&view=context&show=bytes"),
  play: of(recorded, "&view=context&max=9000&as_of=40&step=1&list=1"), remade: of(hostile, `&view=context&served=${served}`), served: of(hostile, "&view=served"),
  compare: of(recorded, "&view=compare&max_b=4000"), "hostile search": of(hostile, "&view=search&q=alert"), "hostile results": of(hostile, "&view=search&q=alert&kind=tool"), "hostile found": `/?q=alert&kind=all&project=${encodeURIComponent(project)}`, graph: of(recorded, "&view=graph"), "hostile graph": of(hostile, "&view=graph"),
  files: of(recorded, "&view=files"), "hostile health": of(hostile, "&view=health"), insights: "/?view=insights", "insights of one": `/?view=insights&by=tool&conversation=${encodeURIComponent(recorded)}`, "hostile insights": "/?view=insights&by=tool", event: of(hostile, "&turn=1&event=" + given.message), "sign-in": given.guarded + "/",
};
const servers = [base, given.guarded];
const open = (page, url) => page.goto(url.startsWith("/") ? base + url : url);
const wide = { width: 1280, height: 800 }, narrow = { width: 360, height: 667 };

const browser = await launch();
const rest = Object.entries(views).values(); // shared by the pages that look

// look checks views on their screens, one after the other in the same page, and lets axe look at each in both themes. The policy
// of the page forbids adding a script; axe comes through the debugger.
async function look() {
  let view = "";
  const { page, say } = await watched(await browser.newContext(), () => view, ...servers);
  page.on("dialog", (d) => { say(`dialog: ${d.message()}`); d.dismiss(); });
  for (const [name, url] of rest) {
    view = name;
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
    await page.setViewportSize(wide);
    await open(page, url);
    await settled(page);
    if (name === "hostile timeline") await page.locator(".row .facts", { hasText: "1 failed" }).first().waitFor();
    if (name === "live") await page.locator(".row", { hasText: "<img src=x onerror=" }).first().waitFor(); // rows come one by one
    const seen = await page.evaluate(() => ({
      rows: document.querySelectorAll(".row").length, nodes: document.querySelectorAll(".node").length,
      // texts whose first character is outside of the box that cuts them
      headless: [...document.querySelectorAll(".row .what bdi, .node bdi, .call .args bdi")].filter((e) => {
        if (!e.firstChild?.length) return false;
        const first = document.createRange(), box = e.parentElement.getBoundingClientRect();
        first.setStart(e.firstChild, 0); first.setEnd(e.firstChild, 1);
        const at = first.getBoundingClientRect();
        return at.left < box.left - 1 || at.right > box.right + 1;
      }).length,
      foreign: document.querySelectorAll("main img, main script, main iframe, main form[action], main a[href^='javascript']").length,
      text: document.querySelector("main").innerText, title: document.title,
      dead: [...document.querySelectorAll("a[href^='#']")].filter((a) => !document.getElementById(a.hash.slice(1))).map((a) => a.innerText),
    }));
    if (!/^.+ · mneme$/.test(seen.title)) say(`has the title ${seen.title}`);
    if (seen.dead.length) say(`has links that lead nowhere: ${seen.dead}`);
    if (seen.headless) say(`hides the beginnings of ${seen.headless} texts`);
    if (seen.foreign) say("made an element of a text");
    if (seen.rows > 100 || seen.nodes > 300) say(`keeps ${seen.rows} rows and ${seen.nodes} nodes`);
    if (/timeline|live/.test(name) && seen.rows === 0) say("has no rows");
    if (name === "timeline of a branch" && !seen.text.includes("Message 599 says")) say("does not show an inherited turn");
    if (name.endsWith("graph") && seen.nodes < 3) say("has no nodes");
    if (/hostile|live|event/.test(name) && !seen.text.includes("<img src=x onerror=")) say("does not show the hostile text as it is");
    if (name === "hostile context" && !seen.text.includes("nothingE0049E0047 to see")) say("does not show that a text hides another");
    if (/context|play|^project$/.test(name) && !(await page.getByText("Why", { exact: true }).count())) say("does not say why a line is there");
    if (name === "play" && !/Turn \d+: .*entered/.test(seen.text)) say("does not say what the turn changed");
    if (name === "doctor" && !/projection graph: .*skipped: 1\s+What to do: mneme failed list/.test(seen.text)) say(`does not say what to do about a skipped event: ${seen.text}`);
    if (name === "sign-in" && !/Sign in at 127.0.0.1/.test(seen.text)) say("does not offer the identity provider");
    if (name === "remade" && !seen.text.includes("identical to the byte")) say(`does not say that it is equal: ${seen.text}`);
    if (name === "context") { // the lines of a section stand below the bar, from which a link leads to them
      await page.locator(".budget").getByRole("link", { name: /^Past/ }).click();
      const [bar, heading] = await Promise.all([page.locator(".budget").boundingBox(), page.locator("#s-relevant_past_context").boundingBox()]);
      if (bar.y < -1 || bar.y > 1 || heading.y < bar.y + bar.height - 1 || heading.y > wide.height / 2) say(`shows the section at ${heading.y}, and the bar at ${bar.y}`);
    }
    if (shown.includes(name)) {
      await page.waitForFunction(() => ![...document.querySelectorAll(".row .what")].some((e) => e.innerText === "…")); // the texts of all turns
      await page.screenshot({ path: join(docs, `inspector-${name}.png`) });
    }
    await page.emulateMedia({ reducedMotion: "reduce" }); // a colour that is on its way to another has no contrast of its own
    await page.evaluate(axe);
    for (const [size, theme] of [[wide, "light"], [narrow, "dark"]]) {
      view = `${name}, ${size.width} pixels, ${theme}`;
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize(size);
      const rows = await page.locator(".row").count();
      if (rows > 100) say(`keeps ${rows} rows`);
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1)) say("is wider than the screen");
      if (await page.locator(".top nav").evaluate((e) => e.scrollWidth > e.clientWidth + 1)) say("does not show all its sections");
      const found = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "best-practice"], resultTypes: ["violations"] }));
      for (const v of found.violations) say(`axe ${v.id}: ${v.nodes[0].html.slice(0, 200)}`);
      for (const colorScheme of pictures ? ["light", "dark"] : []) {
        await page.emulateMedia({ colorScheme });
        await page.screenshot({ path: join(pictures, `${name.replaceAll(" ", "-")}-${colorScheme}-${size.width}.png`) });
      }
    }
  }
}

await Promise.all([look(), look()]);
await end(browser);
