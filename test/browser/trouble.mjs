// Uses the inspector page while the server answers late or not at all, and the browser refuses something.
import { base, end, given, launch, of, watched, wrong } from "./common.mjs";

const { long } = given;
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

// once makes the next request for such a URL fail.
async function once(url) {
  await page.route(url, (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"detail": "The store is away for a test."}' }), { times: 1 });
}
const recovered = async () => {
  await page.getByText("The store is away for a test.").waitFor();
  await page.getByText("The store is away for a test.").waitFor({ state: "detached", timeout: 30_000 });
  wrong.splice(0, wrong.length, ...wrong.filter((w) => !/status of 503/.test(w))); // the browser itself says that
};

step = "an outline that fails once";
await once(/\/outline\?/);
await page.goto(base + of(long));
await recovered();
await page.getByRole("option").getByText("Message 1998 says").waitFor();

step = "texts of turns that fail once";
await once(/\/turns\?(?!.*limit=1(&|$))/); // with the texts of several turns
await page.getByRole("listbox", { name: "Turns" }).focus();
await page.keyboard.press("Home");
await recovered();
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
wrong.splice(0, wrong.length, ...wrong.filter((w) => !/status of 503/.test(w))); // the browser itself says that

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
  await (clipboard.includes("=> {}") ? page.getByRole("button", { name: "Copied" }) : refused).waitFor({ timeout: 30_000 });
}

await end(browser);
