// Records without waiting for what was recorded before: together.js URL.

import assert from "node:assert/strict";

import { Memory, InvalidError } from "../src/index.js";

const conversation = new Memory(process.argv[2], { tenant: "typescript" }).conversation("together");
const refused = (entry) => assert.rejects(conversation[entry]("lost", { references: [{ file: "" }] }), InvalidError);
const call = (id) => conversation.toolCall("ls", {}, { id });

await Promise.all([conversation.user("Where is it?"), call("t1"), conversation.assistant("I look.", { id: "m1" }), call("t2"), call("t3")]);
await call("t4");
await Promise.all([refused("assistant"), refused("assistant"), refused("user")]);
await call("t5");
await Promise.all([refused("assistant"), conversation.assistant("I look again.", { id: "m2" }), refused("user")]);
await call("t6");
await Promise.all([refused("assistant"), conversation.user("And now?", { id: "m3" }), refused("assistant")]);
await call("t7");

await assert.rejects(async () => conversation.toolResult("t7", new Uint8Array([1])), TypeError);

const made = {};
for await (const { tool_call_id: id, message_id: by } of conversation.toolCalls()) made[id] = by ?? null;
assert.deepEqual(made, { t1: null, t2: "m1", t3: "m1", t4: "m1", t5: "m1", t6: "m2", t7: null });
