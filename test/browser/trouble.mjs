// Uses the inspector page while the server answers late or not at all, and the browser refuses something.
import { base, end, given, launch, of, settled, watched } from "./common.mjs";

const browser = await launch();
let step = "";
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const { page, say } = await watched(context, () => step);

step = "a status that takes longer than the time between two looks";
let asked = 0;
const late = async (route) => {
  asked++;
  await new Promise((done) => setTimeout(done, 5_000));
  await route.continue().catch(() => {}); // if the page has given it up
};
await page.route("**/v1/status*", late);
await page.goto(base + "/?view=operations");
await page.getByText("head of the log").waitFor({ timeout: 30_000 });
if (asked !== 1) say(`was asked for ${asked} times before the first answer`);
for (const first = asked; asked === first;) await page.waitForTimeout(100);
await page.unroute("**/v1/status*", late);

await end(browser);
