// Scrolls through a conversation of very many messages.
import { base, end, figures, given, launch, of, settled, watched } from "./common.mjs";

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const { page, say } = await watched(context, () => "a long conversation");
let received = 0;
page.on("response", async (r) => { received += Number((await r.allHeaders())["content-length"] ?? 0) || (await r.body().catch(() => "")).length; });
const began = performance.now();
await page.goto(base + of(given.long));
await settled(page);
await page.locator(".row .what bdi").first().waitFor();
figures["opened, with the last turns in sight"] = `${Math.round(performance.now() - began)} ms`;
const waits = [];
for (const part of [0.5, 0.1, 0.9, 0.25, 0.75, 0]) {
  const from = performance.now();
  await page.evaluate((part) => { const rows = document.querySelector(".rows"); rows.scrollTop = part * (rows.scrollHeight - rows.clientHeight); }, part);
  await page.waitForFunction(() => {
    const box = document.querySelector(".rows").getBoundingClientRect();
    const seen = [...document.querySelectorAll(".row")].filter((r) => { const b = r.getBoundingClientRect(); return b.bottom > box.top && b.top < box.bottom; });
    return seen.length > 3 && seen.every((r) => r.querySelector(".what bdi"));
  });
  waits.push(Math.round(performance.now() - from));
  const rows = await page.locator(".row").count();
  if (rows > 100) say(`keeps ${rows} rows`);
}
figures["jumps to the middle, and to five other places, until the rows have their texts"] = waits.join(", ") + " ms";
const devtools = await context.newCDPSession(page);
await devtools.send("HeapProfiler.collectGarbage");
figures["memory of the page"] = `${((await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6).toFixed(1)} MB`;
figures["received"] = `${(received / 1e6).toFixed(1)} MB`;
await end(browser);
