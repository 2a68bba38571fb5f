// Makes the calls of the contract and prints what each returned: contract.js CONTRACT URL TENANT.

import { readFileSync } from "node:fs";

import * as mneme from "../src/index.js";

const [contract, url, tenant] = process.argv.slice(2);

// Names in the contract are written with underscores. Arguments that are options are last.
const camel = (name) => name.replace(/_./g, (c) => c[1].toUpperCase());

/** Returns a result as JSON, and what an iterator gives as a list. */
async function plain(result, take) {
  result = await result;
  if (!result?.[Symbol.asyncIterator]) return result;
  const rows = [];
  for await (const row of result) {
    rows.push(row);
    if (rows.length === take) break;
  }
  return rows;
}

function call(memory, conversation, { call: name, args = [], options }) {
  const [verb, where] = camel(name).split(".").reverse();
  if (where === "project") return memory.project(args[0])[verb](options);
  if (verb === "record") return conversation.record(args[0].map(({ entry, args, options }) => mneme[camel(entry)](...placed(entry, args), options)));
  if (verb === "copy") {
    const other = new mneme.Memory(url, { tenant: `${tenant}-${args[0]}`, token: process.env.ELSEWHERE_TOKEN });
    return other.import(conversation.export());
  }
  return (where === "memory" ? memory : conversation)[verb](...placed(verb, args), ...(options ? [options] : []));
}

/** Returns arguments with an undefined result if a tool has none. */
const placed = (verb, args) => (camel(verb) === "toolResult" && args.length === 1 ? [...args, undefined] : args);

for (const { name, conversation: id = name, memory: settings, calls } of JSON.parse(readFileSync(contract, "utf8"))) {
  const memory = new mneme.Memory(url, { tenant, source: "contract", ...settings });
  let conversation = memory.conversation(id);
  const results = [];
  for (const one of calls) {
    if (one.call === "reopen") {
      conversation = memory.conversation(id);
      results.push({});
      continue;
    }
    try {
      let answer = (await plain(call(memory, conversation, one), one.take)) ?? null;
      if (one.call === "branch") [conversation, answer] = [answer, { id: answer.id }];
      results.push({ answer });
    } catch (error) {
      if (!(error instanceof mneme.MnemeError)) throw error;
      results.push({ error: { type: error.name, message: error.message, ...error, existing_seq: error.existingSeq } });
    }
  }
  console.log(JSON.stringify(results));
}
