// Records more than one request holds: batches.js URL, where the second request about "many" fails.

import assert from "node:assert/strict";

import { Memory, ProblemError, assistant, user } from "../src/index.js";

const memory = new Memory(process.argv[2], { tenant: "typescript" });

const many = memory.conversation("many-typescript");
const entries = Array.from({ length: 1001 }, (_, i) => assistant(`message ${i}`, { id: `m${i}` }));
await assert.rejects(many.record(entries), (error) => {
  assert(error instanceof ProblemError);
  assert.deepEqual(error.recorded.map(({ id }) => id), entries.slice(0, 1000).map(({ id }) => id));
  assert.equal(memory.seq, error.recorded.at(-1).seq);
  return true;
});
await many.toolCall("ls", {});
for await (const call of many.toolCalls()) assert.equal(call.message_id, "m999");

// The API stores all or none of up to 16 MiB, and takes no more than 64.
const large = memory.conversation("large-typescript");
const done = await large.record([1, 2, 3].map(() => user("x".repeat(6 << 20))));
assert.deepEqual(done.map(({ duplicate }) => duplicate), [false, false, false]);

// What is no entry is said to be none.
await assert.rejects(many.record([{ role: "user", content: "x" }]), /record takes what user\(\)/);
