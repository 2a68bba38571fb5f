// An agent that records itself and remembers: node agent.mjs CONVERSATION QUESTION

import { readdirSync, realpathSync } from "node:fs";
import path from "node:path";

import { Memory } from "mneme";

const { OPENAI_BASE_URL = "https://api.openai.com/v1", OPENAI_MODEL = "gpt-4.1-mini", OPENAI_API_KEY = "none" } = process.env;
const system = { role: "system", content: "Answer briefly. Look at files with the tools; do not guess." };
const tools = [{
  type: "function",
  function: {
    name: "list_files",
    description: "Lists the files of a folder below the current one.",
    parameters: { type: "object", properties: { folder: { type: "string" } }, required: ["folder"] },
  },
}];

async function callModel(messages) {
  const answer = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: OPENAI_MODEL, messages: [system, ...messages], tools, max_tokens: 400 }),
  });
  if (!answer.ok) throw new Error(`the model answers ${answer.status}: ${await answer.text()}`);
  return (await answer.json()).choices[0].message;
}

/** Returns a result, or what went wrong, which the model reads. */
function runTool(name, args) {
  try {
    if (name !== "list_files") throw new Error(`there is no tool ${name}`);
    const folder = realpathSync(args.folder);
    if (path.relative(process.cwd(), folder).startsWith("..")) throw new Error("this folder is not below the current one");
    return { result: readdirSync(folder).sort() };
  } catch (error) {
    return { error: error.message };
  }
}

async function answer(conversation, question) {
  await conversation.user(question);
  for (let step = 0; step < 10; step++) {
    // What the model sees is what mneme chooses: this turn, and what matters of all the turns before.
    const context = await conversation.context({ format: "openai", max_chars: 20_000 });
    const { content, tool_calls: calls } = await callModel(context.messages);
    await conversation.assistant(content ?? "", { model: OPENAI_MODEL });
    if (!calls?.length) return content ?? "";
    for (const call of calls) {
      const name = call.function.name, args = JSON.parse(call.function.arguments);
      const recorded = await conversation.toolCall(name, args);
      const { result, error } = runTool(name, args);
      await conversation.toolResult(recorded, result, { error });
    }
  }
  return "I found no answer in 10 steps.";
}

const memory = new Memory(undefined, { source: "examples/start" }); // MNEME_URL says where it is
console.log(await answer(memory.conversation(process.argv[2]), process.argv[3]));
