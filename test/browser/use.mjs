// Uses the inspector page as people do, and measures how fast it is.
import { base, end, figures, forgive, given, launch, of, settled, share, watched } from "./common.mjs";

const { asked, long, recorded } = given;
const browser = await launch();
let step = "";
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const { page, say } = await watched(context, () => step);
const expect = (yes, what) => { if (!yes) say(what); };
const url = () => new URL(page.url()).searchParams;
const open = async (at) => { await page.goto(base + at); await settled(page); };

step = "first view";
const views = [];
for (let i = 0; i < 7; i++) {
  await page.goto(base + "/");
  views.push(await page.evaluate(() => new Promise((done) => {
    const look = () => document.querySelector(".cards li") ? done(performance.now()) : requestAnimationFrame(look);
    look();
  })));
}
figures["first view, median (goal: 300 ms)"] = share(views, 0.5) + " ms";

step = "slider";
await open(of(long, "&view=context"));
const reactions = await page.evaluate(async () => {
  const slider = document.querySelectorAll("input[type=range]")[1], list = [];
  for (let i = 1; i <= 40; i++) {
    const seq = Math.round(Number(slider.min) + i / 41 * (Number(slider.max) - Number(slider.min)));
    const began = performance.now();
    slider.value = String(seq);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    while (!document.querySelector(".budget")?.textContent.includes(`as of #${seq}`)) await new Promise(requestAnimationFrame);
    list.push(performance.now() - began);
  }
  return list;
});
figures["context of 1,000 turns after a move of the slider, median and p95 of 40 (goal: p95 150 ms)"] = `${share(reactions, 0.5)} and ${share(reactions, 0.95)} ms`;

step = "play";
await open(of(recorded, "&view=context&as_of=20&step=1"));
const after = () => page.locator(".steps .bar").innerText();
const before = await after();
await page.keyboard.press("]");
await page.waitForFunction((text) => document.querySelector(".steps .bar").innerText !== text, before);
await page.getByRole("button", { name: "Play" }).click();
await page.waitForFunction(() => /after turn 4/.test(document.querySelector(".steps .bar").innerText));
await page.getByText(/^Turn 4: .*entered/).waitFor();
await page.keyboard.press("[");
await page.getByText(/^Turn 3: .*entered/).waitFor();

step = "remember";
await page.getByRole("button", { name: "Remember this" }).click();
await page.getByText("Remembered as").waitFor();
await page.getByRole("link", { name: "Served" }).first().click();
await page.getByRole("button", { name: "Check all" }).click();
await page.getByText("equal", { exact: true }).first().waitFor();
await page.locator("tbody a").first().click();
await page.getByText("Rebuilt: identical to the byte.").waitFor();

step = "rows";
await open(of(long));
await page.getByRole("listbox", { name: "Turns" }).focus();
await page.keyboard.press("Home");
await page.waitForFunction(() => new URLSearchParams(location.search).get("turn") === "1");
await page.getByRole("option").getByText("Message 0 says").waitFor();
await page.keyboard.press("j");
await page.waitForFunction(() => new URLSearchParams(location.search).get("turn") === "2");

step = "the turn that is open";
await page.route("**/outline?*", async (route) => { // the newest turn has a summary
  const response = await route.fetch(), outline = await response.json();
  const { seq, end } = outline.turns[0];
  outline.summaries = [...outline.summaries ?? [], { id: "late", level: 1, seq, end, frontier: true }];
  await route.fulfill({ response, json: outline });
});
await open(of(long));
await page.getByText("1 summary covers turn 1000").waitFor(); // it comes later, and takes room from the list
await settled(page);
expect(await page.locator(".row[aria-selected=true]").evaluate((row) => row.getBoundingClientRect().bottom <= row.closest(".rows").getBoundingClientRect().bottom + 1), "its row is cut off");

await page.unroute("**/outline?*");

step = "focus";
await open("/");
await page.getByRole("link", { name: asked }).focus();
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.activeElement.id === "main");
const number = page.getByRole("button", { name: /^#/ }).first();
const opener = await number.innerText();
await number.focus();
await page.keyboard.press("Enter");
await page.getByRole("complementary").getByText("dev.mneme.message.created.v1").first().waitFor();
await page.getByRole("button", { name: "Close the event" }).press("Enter");
await page.waitForFunction((opener) => document.activeElement.innerText === opener, opener);

step = "back";
await open(of(recorded, "&view=context"));
await page.evaluate(() => scrollTo(0, 700));
await page.evaluate(() => [...document.querySelectorAll(".tabs a")].find((a) => a.innerText === "Files").click()); // without scrolling to it
await page.getByText(/files? touched by tools/).waitFor();
await page.goBack();
await page.waitForFunction(() => scrollY > 500); // nearly: what is drawn for the first time may turn out longer

step = "health";
await open(of(asked, "&view=health"));
await page.getByRole("region", { name: "Findings" }).getByText("The conversation ends with a request without an answer.").waitFor();
await page.getByRole("region", { name: "Failed calls" }).getByText("None.").waitFor();
await page.getByRole("link", { name: "turn 1" }).click();
await page.waitForFunction(() => new URLSearchParams(location.search).has("event"));
await page.getByRole("heading", { name: "Turn 1" }).waitFor();
await open(of(given.hostile, "&view=health"));
await page.getByRole("region", { name: "Failed calls" }).getByText("1 call that failed").waitFor();

step = "insights";
await open("/?view=insights");
await page.getByText("Costs are unknown: the server has no price file").waitFor();
await page.getByRole("combobox", { name: /^By/ }).selectOption("conversation");
await page.getByRole("columnheader", { name: "Tokens in" }).waitFor();
await page.getByRole("combobox", { name: /^First/ }).selectOption("most failed calls");
await page.locator("tbody tr").first().getByText(given.project).click(); // the title of the only one in which a call failed
await page.getByRole("region", { name: "Failed calls" }).waitFor();

step = "projects whose paths end alike";
const known = await (await fetch(base + "/v1/projects")).json();
await page.route("**/v1/projects?*", (route) => route.fulfill({ json: { ...known, projects: ["/home/ann/src/cli", "/home/bob/src/cli", "/home/bob/src/web"].map((name) => ({ name })) } }));
await open("/?view=insights");
const choices = await page.getByRole("combobox", { name: /^Project/ }).innerText();
expect(choices === "all\n/home/ann/src/cli\n/home/bob/src/cli\n…/src/web", `the choices are ${choices}`);
await page.unroute("**/v1/projects?*");

step = "insights that come late";
let come;
const called = new Promise((done) => { come = done; });
await page.route("**/v1/insights?by=tool*", async (route) => { await called; await route.continue(); });
await page.getByRole("combobox", { name: /^By/ }).selectOption("tool");
expect(await page.getByRole("columnheader").first().innerText() === "Day", "the old figures stand under new headings");
come();
await page.getByRole("columnheader", { name: "Success" }).waitFor();
await page.unroute("**/v1/insights?by=tool*");

step = "search";
await open(of(recorded, "&view=search&q=where+is+the+lease+renewed"));
for (const name of ["Words", "Meaning", "Fused"]) await page.getByRole("region", { name }).getByRole("listitem").first().waitFor();
await page.getByRole("button", { name: "mark" }).last().click();
await page.getByText(/^Event \d+: words rank .*fused rank/).waitFor();
await page.getByRole("region", { name: "Meaning" }).getByTitle("Show the event as it is in the log").first().click();
await page.getByText("How searches see it").click();
await page.getByText(/passages?, 128 numbers each/).waitFor();

step = "search for tool results";
await page.getByRole("combobox", { name: /^In/ }).selectOption("tool results");
await page.getByLabel("Search this conversation").fill("lease");
await page.getByRole("article").locator("mark").first().waitFor();
expect(await page.getByRole("region", { name: "Words" }).count() === 0, "the rankings of messages are still there");
await page.getByRole("article").getByRole("link").first().click();
await page.waitForFunction(() => new URLSearchParams(location.search).has("event"));

step = "search over conversations";
await open("/?q=" + encodeURIComponent('"shard 7" checkpoint'));
await page.getByRole("combobox", { name: /^Role/ }).selectOption("assistant");
await page.locator(".quote").filter({ hasText: /^assistant, turn \d+ Message \d+ says where the checkpoint of shard 7/ }).locator("mark").first().waitFor();
await settled(page);
expect(await page.locator(".quote").filter({ hasText: /^user/ }).count() === 0, "the role filters nothing");
await page.getByLabel("Since").fill("2100-01-01");
await page.getByText("Nothing found.").waitFor();

step = "follow";
await open(of(long, "&turn=990"));
await page.getByRole("button", { name: /^#/ }).first().click();
await page.getByRole("link", { name: "In the context?" }).click();
await page.getByLabel("Budget in characters").fill("2000");
await page.keyboard.press("Enter");
await page.getByText("of 2,000 characters").waitFor();
const stays = page.getByText(/is left out\. .*With a budget of [\d,]+ characters it would stay\./);
await stays.waitFor();
await stays.getByRole("button", { name: /characters$/ }).click();
await page.getByRole("status").getByText(/is in this context: (Queries|Recent|Past)/).waitFor();
await page.locator(".line.followed").waitFor();

step = "keys of a dialog";
await open(of(long, "&turn=990&event=" + given.message));
await page.keyboard.press("?");
await page.getByRole("dialog").waitFor();
await page.keyboard.press("h");
await page.keyboard.press("Escape");
await page.getByRole("dialog").waitFor({ state: "detached" });
expect(/[?&]c=/.test(page.url()) && /event=/.test(page.url()), "a key pressed in a dialog changes the view behind it");

step = "graph";
await open(of(recorded, "&view=graph"));
await page.locator(".node").first().focus();
for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "Enter"]) await page.keyboard.press(key);
await page.waitForFunction(() => new URLSearchParams(location.search).has("event"));

step = "verify";
await open("/?view=operations");
page.once("dialog", (d) => d.accept());
await page.getByRole("button", { name: "Verify against the log" }).click();
await page.getByText(/^All \d read models equal the log\.$/).waitFor();

step = "doctor";
const checks = [];
page.on("request", (r) => { if (new URL(r.url()).pathname === "/v1/doctor") checks.push(r); });
await open("/?view=operations");
expect(checks.length === 0, "the server checks itself unasked");
const doctor = page.getByRole("region", { name: "Doctor" });
await doctor.getByRole("button", { name: "Check this server" }).click();
await doctor.getByRole("listitem").getByText("What to do: mneme failed list").waitFor();
await doctor.getByRole("group").getByText(/^\d+ passed checks$/).click();
await doctor.getByRole("listitem").getByText("jetstream", { exact: true }).waitFor();
await doctor.getByRole("button", { name: "Check again" }).click();
await doctor.getByText(/^\d+ warnings?, \d+ passed checks\.$/).waitFor();
expect(checks.length === 2, `the server checked itself ${checks.length} times, not twice`);

step = "the conversation of a failed event";
expect(await page.getByRole("link", { name: given.hostile }).getAttribute("href") === of(given.hostile), "does not lead to it");

step = "retry";
page.once("dialog", (d) => d.accept());
await page.getByRole("button", { name: "Retry", exact: true }).click();
await page.getByText("Failed again: 1 event. The table says why.").waitFor();

step = "live";
await open("/?view=tail");
await page.getByText("live", { exact: true }).waitFor();
let published = 0;
async function publish(n) {
  for (let left = n; left > 0; left -= 500) {
    const batch = Array.from({ length: Math.min(500, left) }, () => {
      const id = `live-${published++}`;
      return { specversion: "1.0", id, source: "test", type: "dev.mneme.message.created.v1", subject: "test:live", data: { message_id: id, role: "user", content: `${id} ${"x".repeat(1000)}` } };
    });
    const answer = await fetch(base + "/v1/events", { method: "POST", headers: { "Content-Type": "application/cloudevents-batch+json" }, body: JSON.stringify(batch) });
    if (!answer.ok) throw new Error(`publish: ${answer.status} ${await answer.text()}`);
  }
}
const newest = () => page.getByRole("option").getByText(`live-${published - 1} `).waitFor();
await publish(20);
await newest();
step = "type while events come";
const field = page.getByRole("textbox", { name: "Conversation" });
await field.pressSequentially("test:");
await publish(20);
await newest();
await field.pressSequentially("live");
expect(await field.inputValue() === "test:live", `the field has lost what was typed: ${await field.inputValue()}`);
await field.press("Enter");
await page.waitForFunction(() => new URLSearchParams(location.search).get("conversation") === "test:live");
await field.fill("");
await field.press("Enter");
await page.waitForFunction(() => !new URLSearchParams(location.search).has("conversation"));
await page.getByText("live", { exact: true }).waitFor();
await newest();
step = "live";
await page.getByRole("button", { name: "Pause" }).click();
await publish(30);
await page.getByRole("button", { name: "Continue, 30 new" }).click();
await newest();
await page.locator(".row").nth(5).click();
await page.getByRole("complementary").getByText("dev.mneme.message.created.v1").first().waitFor();

step = "a conversation that goes on";
await open(of("test:live"));
await publish(2);
await page.getByRole("button", { name: "Show 2 new messages" }).click();
await newest();
expect(await page.locator(".row[aria-selected=true]").getByText(`live-${published - 1} `).count() === 1, "the newest turn is not open");

// A server that demands tokens, and a token that may only read.
step = "a token that only reads";
const reader = await watched(await browser.newContext(), () => step, given.guarded, given.provider);
await reader.page.goto(given.guarded + "/");
await reader.page.getByLabel("Token").fill("mneme_mistyped");
await reader.page.getByRole("button", { name: "Sign in" }).click();
await reader.page.getByText("The server refused this token.").waitFor();
forgive(/status of 401/);
await reader.page.getByLabel("Token").fill(given.token);
await reader.page.getByRole("button", { name: "Sign in" }).click();
await reader.page.getByRole("link", { name: "test:hostile" }).or(reader.page.locator(".cards .title")).first().click();
await reader.page.getByRole("link", { name: "Context", exact: true }).click();
await reader.page.getByText("Compare with another").waitFor();
if (await reader.page.getByRole("button", { name: "Remember this" }).count()) say("offers to remember a context");
await reader.page.getByRole("link", { name: "Live" }).first().click();
await reader.page.getByText("live", { exact: true }).waitFor();
await reader.page.getByRole("link", { name: "Operations" }).click();
await reader.page.getByText("This needs a token with the role operate; yours has the role read.").first().waitFor();
if (await reader.page.getByRole("button", { name: /Verify|Rebuild|Retry|Check/ }).count()) say("offers what the token may not do");
if (await reader.page.evaluate((token) => document.cookie.includes(token) || JSON.stringify([{ ...sessionStorage }, { ...localStorage }]).includes(token), given.token)) say("a script can read the token");

// The page asks for nothing that such a token may not read, or the browser would say so.
step = "a token of one project";
const guest = await watched(await browser.newContext(), () => step, given.guarded, given.provider);
await guest.page.goto(given.guarded + "/");
await guest.page.getByLabel("Token").fill(given.projectToken);
await guest.page.getByRole("button", { name: "Sign in" }).click();
await guest.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Project", exact: true }).waitFor();
forgive(/status of 401/);
const offered = await guest.page.getByRole("navigation", { name: "Views" }).innerText();
expect(/^Conversations\s+Project$/.test(offered), `offers ${offered}`);
await guest.page.getByRole("link", { name: "The voucher" }).waitFor();
await guest.page.getByRole("searchbox").fill("voucher");
await guest.page.getByText("1 conversation found").waitFor();
await guest.page.getByRole("link", { name: "The voucher", exact: true }).click();
await guest.page.getByRole("heading", { name: "Turn 1" }).waitFor();
expect(await guest.page.getByRole("link", { name: /^(Live|Insights)$/ }).count() === 0, "offers figures, or events, of the whole tenant");
await guest.page.keyboard.press("r");
await guest.page.getByRole("button", { name: /^#/ }).first().click();
await guest.page.getByRole("complementary").getByText("dev.mneme.message.created.v1").first().waitFor();
await guest.page.goto(given.guarded + "/?view=projects"); // a link from somebody who may read more
await guest.page.getByRole("heading", { name: "What a new session would see" }).waitFor();

step = "a token that can't be checked for a while";
await reader.page.route("**/session", (route) => route.fulfill({ json: { needed: true, signed_in: false, ended: false, tokens: true, problem: "The keys are away for a test." } }));
await reader.page.goto(given.guarded + "/?view=projects");
await reader.page.getByText("The keys are away for a test.").waitFor();
await reader.page.unroute("**/session");
await reader.page.getByRole("heading", { name: "Projects" }).waitFor(); // without being asked
await reader.page.getByRole("link", { name: "Operations" }).click();

step = "a token that has expired";
const cookies = await reader.page.context().cookies();
await reader.page.context().addCookies(cookies.map((c) => ({ ...c, value: "mneme_expired" }))); // to the server it is the same
await reader.page.getByRole("link", { name: "Projects" }).click();
await reader.page.getByText("You are signed out: your token has expired or was revoked.").waitFor();
forgive(/status of 401/);
await reader.page.reload();
await reader.page.getByText("You are signed out: your token has expired or was revoked.").waitFor();
await reader.page.getByLabel("Token").fill(given.token);
await reader.page.getByRole("button", { name: "Sign in" }).click();
await reader.page.getByRole("heading", { name: "Projects" }).waitFor(); // the view that it was in

// The same server: out, and in again at the identity provider, from the view of a link that somebody sent.
step = "the identity provider";
await reader.page.getByRole("button", { name: "Sign out" }).click();
await reader.page.getByLabel("Token").waitFor();
await reader.page.goto(given.guarded + "/?c=test%3Ashort&view=context");
await reader.page.getByRole("link", { name: /^Sign in at / }).click();
await reader.page.getByRole("link", { name: "Continue as Ada" }).click();
await reader.page.getByRole("button", { name: "Remember this" }).waitFor(); // this person may write
const back = new URL(reader.page.url());
if (back.pathname !== "/" || back.searchParams.get("c") !== "test:short" || back.searchParams.get("view") !== "context") say("does not come back to the view: " + back);

step = "another time zone";
const tokyo = await watched(await browser.newContext({ timezoneId: "Asia/Tokyo" }), () => step);
await tokyo.page.goto(base + of(recorded));
const time = tokyo.page.locator(".row time").first();
await time.waitFor();
const [shown, recordedAt, title] = await time.evaluate((e) => [e.innerText, e.dateTime, e.title]);
const here = new Date(Date.parse(recordedAt) + 9 * 3_600_000).toISOString().slice(0, 16).replace("T", " ");
expect(shown === here && title.includes("GMT+9"), `shows ${recordedAt} as ${shown}, and says ${title}`);

await end(browser);
