// Moves events more slowly than the limits of a client: slow.js URL DEAD_URL.

import assert from "node:assert/strict";

import { Memory, UnreachableError, assistant, user } from "../src/index.js";

const [url, dead] = process.argv.slice(2);

// A stream that is silent for 45 seconds is dead; here for 0.3.
const { setTimeout } = globalThis;
globalThis.setTimeout = (run, ms, ...args) => setTimeout(run, ms === 45_000 ? 300 : ms, ...args);

/** Pauses at each line for longer than a client waits for the network. */
async function* slowly(lines) {
  for await (const line of lines) {
    yield line;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

const conversation = new Memory(url, { tenant: "typescript" }).conversation("slow");
await conversation.record([user("one", { id: "m1" }), assistant("two", { id: "m2" }), user("three", { id: "m3" })]);
const lines = [];
for await (const line of slowly(conversation.export())) lines.push(line);
assert.equal(lines.length, 3);

const copy = new Memory(url, { tenant: "typescript-copy", timeout: 300 });
assert.equal((await copy.import(slowly(lines))).published, 3);

// What the lines themselves throw is no failure of the network.
async function* broken() {
  yield lines[0];
  throw new RangeError("half a file");
}
await assert.rejects(copy.import(broken()), /^RangeError: half a file$/);

// A server that takes nothing and says nothing is still given up.
const nobody = new Memory(dead, { timeout: 300, retries: 0 });
const large = "x".repeat(1 << 20);
await assert.rejects(nobody.conversation("slow").info(), UnreachableError);
await assert.rejects(nobody.import(large.repeat(64)), UnreachableError);
await assert.rejects(nobody.import(Array(64).fill(large)), UnreachableError);
await assert.rejects(nobody.conversation("slow").export().next(), UnreachableError);

// And a caller that wants no more waits for nothing, whichever call it is.
const patient = new Memory(dead).conversation("slow");
const calls = {
  record: (options) => patient.user("lost", { id: "m1", ...options }),
  toolCall: (options) => patient.toolCall("ls", {}, options),
  toolResult: (options) => patient.toolResult("t1", "lost", options),
  start: (options) => patient.start({ title: "lost", ...options }),
  context: (options) => patient.context({ format: "openai", ...options }),
  search: (options) => patient.search("lost", options),
  messages: (options) => patient.messages(options).next(),
  info: (options) => patient.info(options),
  export: (options) => patient.export(options).next(),
  branch: (options) => patient.branch("m1", options),
  update: (options) => patient.update({ title: "lost" }, options),
  delete: (options) => patient.delete("lost", options),
  import: (options) => new Memory(dead).import(Array(64).fill(large), options),
  stream: (options) => patient.stream({ from_seq: 1, ...options }).next(),
};
await Promise.all(Object.entries(calls).map(async ([name, call]) => {
  const leaves = new AbortController();
  setTimeout(() => leaves.abort(new Error("enough")), 50);
  await assert.rejects(call({ signal: leaves.signal }), /^Error: enough$/, name);
}));
