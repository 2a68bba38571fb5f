// Scrolls through a conversation of very many messages, in jumps and from top to bottom.
import { base, collected, end, figures, given, launch, of, settled, share, watched } from "./common.mjs";

const steps = 60; // from top to bottom
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const { page, say } = await watched(context, () => "a long conversation");
const devtools = await context.newCDPSession(page);
await devtools.send("Network.enable");
let received = 0;
devtools.on("Network.loadingFinished", (e) => { received += e.encodedDataLength; });

const began = performance.now();
await page.goto(base + of(given.long));
await settled(page);
await page.locator(".row .what bdi").first().waitFor();
figures["opened, with the last turns in sight"] = `${Math.round(performance.now() - began)} ms`;

// scrolled scrolls to a part of the list, and returns after how many milliseconds each row in sight has its text.
async function scrolled(part) {
  const from = performance.now();
  await page.evaluate((part) => { const rows = document.querySelector(".rows"); rows.scrollTop = part * (rows.scrollHeight - rows.clientHeight); }, part);
  await page.waitForFunction(() => {
    const box = document.querySelector(".rows").getBoundingClientRect();
    const seen = [...document.querySelectorAll(".row")].filter((r) => { const b = r.getBoundingClientRect(); return b.bottom > box.top && b.top < box.bottom; });
    return seen.length > 3 && seen.every((r) => r.querySelector(".what bdi"));
  });
  const rows = await page.locator(".row").count();
  if (rows > 100) say(`keeps ${rows} rows`);
  return performance.now() - from;
}

const jumps = [];
for (const part of [0.5, 0.1, 0.9, 0.25, 0.75, 0]) jumps.push(Math.round(await scrolled(part)));
figures["jumps to the middle, and to five other places, until the rows have their texts"] = jumps.join(", ") + " ms";
const after = await collected(context, page);

const waits = [];
for (let step = 0; step <= steps; step++) waits.push(await scrolled(step / steps));
figures["from top to bottom in 60 steps, until the rows have their texts, median and p95"] = `${share(waits, 0.5)} and ${share(waits, 0.95)} ms`;
if (!await page.locator(".row").last().evaluate((r) => r.getAttribute("aria-posinset") === r.getAttribute("aria-setsize"))) say("does not end with the last turn");

// A wheel that turns fast: each frame a little more than half of what is in sight.
const frames = await page.evaluate(async () => {
  const rows = document.querySelector(".rows"), list = [];
  rows.scrollTop = 0;
  let last = await new Promise(requestAnimationFrame), most = 0;
  for (let i = 0; i < 200; i++) {
    rows.scrollTop += 300;
    const now = await new Promise(requestAnimationFrame);
    list.push(now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll(".row").length);
  }
  return { list, most };
});
if (frames.most > 100) say(`keeps ${frames.most} rows while it scrolls`);
figures["time of a frame while it scrolls by 300 pixels a frame, median, p95 and longest"] = `${share(frames.list, 0.5)}, ${share(frames.list, 0.95)} and ${share(frames.list, 1)} ms`;
const memory = await collected(context, page);
figures["memory of the page"] = `${(memory / 1e6).toFixed(1)} MB`;
if (memory - after > 3e6) say(`the memory grew from ${after} to ${memory} bytes while it scrolled`);
figures["received"] = `${(received / 1e6).toFixed(1)} MB`;
if (received > given.most) say(`received ${received} bytes, more than ${given.most}`);
await end(browser);
