// Watches the live view while as many events come as in an hour of work, with a break in which it is paused.
import { base, collected, end, figures, given, launch, settled, share, watched } from "./common.mjs";

const { hour } = given; // events
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const { page, say } = await watched(context, () => "an hour of live view");
await page.goto(base + "/?view=tail");
await settled(page);
await page.getByText("live", { exact: true }).waitFor();
let published = 0;
async function publish(n) {
  for (let left = n; left > 0; left -= 500) {
    const batch = Array.from({ length: Math.min(500, left) }, () => {
      const id = `hour-${published++}`;
      return { specversion: "1.0", id, source: "test", type: "dev.mneme.message.created.v1", subject: "test:hour", data: { message_id: id, role: "user", content: `${id} ${"x".repeat(1000)}` } };
    });
    const answer = await fetch(base + "/v1/events", { method: "POST", headers: { "Content-Type": "application/cloudevents-batch+json" }, body: JSON.stringify(batch) });
    if (!answer.ok) throw new Error(`publish: ${answer.status} ${await answer.text()}`);
  }
}
const newest = () => page.getByRole("option").getByText(`hour-${published - 1} `).waitFor();
const bounded = async () => {
  const rows = await page.locator(".row").count();
  if (rows > 100) say(`makes ${rows} rows of elements`);
  const kept = Number(await page.locator(".row").first().getAttribute("aria-setsize"));
  if (kept > 2200) say(`keeps ${kept} rows`);
};

await page.evaluate(() => {
  window.frames = [];
  let last = performance.now();
  const look = (now) => { window.frames.push(now - last); last = now; requestAnimationFrame(look); };
  requestAnimationFrame(look);
});
const began = performance.now(), heaps = [];
for (let part = 0; part < 6; part++) {
  await publish(hour / 6);
  await newest();
  await bounded();
  heaps.push(await collected(context, page));
}
figures[`live view of ${hour} events`] = `${Math.round(performance.now() - began)} ms`;
const frames = await page.evaluate(() => window.frames.splice(0));
figures["live view, time of a frame, median and p99"] = `${share(frames, 0.5)} and ${share(frames, 0.99)} ms`;
figures["memory of the live view after each sixth of the hour"] = heaps.map((n) => (n / 1e6).toFixed(1)).join(", ") + " MB";
if (heaps.at(-1) - heaps[0] > 3e6) say(`the memory grew from ${heaps[0]} to ${heaps.at(-1)} bytes`);

await page.getByRole("button", { name: "Pause" }).click();
await publish(hour / 6);
await page.getByRole("button", { name: `Continue, ${(hour / 6).toLocaleString("en-US")} new` }).waitFor();
const paused = await collected(context, page);
figures["memory of the live view, paused for a sixth of the hour"] = `${(paused / 1e6).toFixed(1)} MB`;
if (paused - heaps[0] > 6e6) say(`the memory grew from ${heaps[0]} to ${paused} bytes while it was paused`);
await page.getByRole("button", { name: /^Continue/ }).click();
await newest();
await bounded();
await end(browser);
