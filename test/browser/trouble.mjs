// Uses the inspector page while the server answers late or not at all, and the browser refuses something.
import { base, end, forgive, given, launch, of, settled, watched } from "./common.mjs";

const { long, recorded } = given;
const browser = await launch();
let step = "";
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const { page, say } = await watched(context, () => step);

step = "a status that takes longer than the time between two looks";
let asked = 0, meanwhile = 0;
const late = async (route) => {
  asked++;
  await new Promise((done) => setTimeout(done, 5_000));
  meanwhile ||= asked;
  await route.continue().catch(() => {}); // if the page has given it up
};
await page.route("**/v1/status*", late);
await page.goto(base + "/?view=operations");
await page.getByText("head of the log").waitFor();
if (meanwhile !== 1) say(`was asked for ${meanwhile} times before the first answer`);
for (const first = asked; asked === first;) await page.waitForTimeout(100);
await page.unroute("**/v1/status*", late);

const away = (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"detail": "The store is away for a test."}' });
// once makes the next request for such a URL fail.
const once = (url) => page.route(url, away, { times: 1 });
// recovers makes the first request for such a URL fail that an action causes. The page asks again by itself; that request waits
// until it was seen what the page says meanwhile.
async function recovers(url, act) {
  let failed = false, seen;
  const said = new Promise((done) => { seen = done; });
  const first = async (route) => {
    if (!failed) {
      failed = true;
      return away(route);
    }
    await said;
    await route.continue().catch(() => {}); // if the page has given it up
  };
  await page.route(url, first);
  await act();
  await page.getByText("The store is away for a test. Trying again…").waitFor();
  seen();
  await page.getByText("The store is away for a test.").waitFor({ state: "detached" });
  await page.unroute(url, first);
  forgive(/status of 503/);
}

step = "an outline that fails once";
await recovers(/\/outline\?/, () => page.goto(base + of(long)));
await page.getByRole("option").getByText("Message 1998 says").waitFor();

step = "texts of turns that fail once";
await recovers(/\/turns\?(?!.*limit=1(&|$))/, async () => { // with the texts of several turns
  await page.getByRole("listbox", { name: "Turns" }).focus();
  await page.keyboard.press("Home");
});
await page.getByRole("option").getByText("Message 0 says").waitFor();

step = "a further page of a list that fails once";
await page.goto(base + of(long, "&view=search&q=checkpoint"));
const more = page.getByRole("region", { name: "Words" }).getByRole("button", { name: /^Show more than/ });
await more.waitFor();
await once(/\/search\?.*cursor=/);
await more.click();
await page.getByText("The store is away for a test.").waitFor();
await more.click();
await page.getByRole("button", { name: "Show more than 50 messages" }).waitFor();
forgive(/status of 503/);

step = "a server that goes away and comes back";
const gone = (route) => route.abort();
await page.route("**/v1/**", gone);
await page.goto(base + of(long, "&view=files"));
await page.getByText("The server does not answer.").waitFor();
await page.unroute("**/v1/**", gone);
await page.getByText("0 files touched by tools").waitFor(); // without being asked
await page.goto(base + "/?view=operations");
await page.getByText("head of the log").waitFor();
await page.route("**/v1/**", gone);
await page.getByText("The server does not answer.").first().waitFor();
if (!await page.getByText("head of the log").count()) say("forgets what it knew");
await page.unroute("**/v1/**", gone);
await page.getByText("The server does not answer.").first().waitFor({ state: "detached" });
forgive(/ERR_FAILED/);

step = "a field that is done";
await page.goto(base + "/?view=tail");
const field = page.getByRole("textbox", { name: "Conversation" });
const entries = () => page.evaluate(() => history.length);
const before = await entries();
await field.pressSequentially("test:long");
await field.press("Enter");
await page.waitForFunction(() => new URLSearchParams(location.search).get("conversation") === "test:long");
await field.blur();
if (await entries() !== before + 1) say(`Enter adds ${await entries() - before} entries to the history`);
await field.fill("");
await field.blur();
await page.waitForFunction(() => !new URLSearchParams(location.search).has("conversation"));
if (await entries() !== before + 2) say(`leaving the field adds ${await entries() - before - 1} entries to the history`);

step = "a browser without a clipboard";
for (const clipboard of ["undefined", '{ writeText: async () => { throw new DOMException("refused", "NotAllowedError"); } }', "{ writeText: async () => {} }"]) {
  await page.goto(base + of(long, "&event=" + given.message));
  await page.evaluate(`Object.defineProperty(navigator, "clipboard", { configurable: true, value: ${clipboard} })`);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  const refused = page.getByText(/The browser does not let this page copy\. The command is: curl -s 'http.*\/v1\/events\/\d+'/);
  await (clipboard.includes("=> {}") ? page.getByRole("button", { name: "Copied" }) : refused).waitFor();
}

step = "the live view fails once";
await recovers(/\/stream\?/, () => page.goto(base + "/?view=tail"));
await page.getByText("live", { exact: true }).waitFor();

step = "a check of a context fails once";
await page.goto(base + of(given.hostile, "&view=served"));
await once(/\/contexts\/\d+/);
await page.getByRole("button", { name: "Check", exact: true }).first().click();
await page.getByText("The store is away for a test.").waitFor();
forgive(/status of 503/);
await page.getByRole("button", { name: "Check", exact: true }).first().click();
await page.getByText("equal", { exact: true }).waitFor();

step = "print";
await page.goto(base + of(recorded, "&turn=2&event=" + given.message));
await settled(page);
await page.emulateMedia({ media: "print" });
const parts = await page.evaluate(() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect(), turn = document.querySelector(".turn");
  return { cut: turn.scrollHeight - turn.clientHeight, over: box(".turn").bottom - box(".event").top, list: box(".rows").height };
});
if (parts.cut > 1 || parts.over > 1 || parts.list > 0) say(`cuts the turn by ${parts.cut} pixels, prints the event over ${parts.over} of it, and the list of turns ${parts.list} high`);

step = "large text";
const large = await launch("--blink-settings=defaultFontSize=26");
const magnified = await watched(await large.newContext({ viewport: { width: 1280, height: 800 } }), () => step);
await magnified.page.goto(base + of(recorded, "&turn=2"));
await settled(magnified.page);
if (await magnified.page.getByText("Reasoning").first().evaluate((e) => parseFloat(getComputedStyle(e).fontSize)) < 20) say("the text is not larger");
const overlap = await magnified.page.locator(".row").first().evaluate((row) => row.querySelector(".what").getBoundingClientRect().bottom - row.querySelector(".facts").getBoundingClientRect().top);
if (overlap > 2) say(`the two lines of a row overlap by ${overlap} pixels`);
await magnified.page.goto(base + of(recorded, "&view=graph"));
await settled(magnified.page);
if (await magnified.page.locator(".node").first().evaluate((n) => n.scrollHeight > n.clientHeight + 1)) say("the text of a node is cut off");
await large.close();

await end(browser);
