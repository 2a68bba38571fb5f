// What can be recorded, and the events that are made of it.

import { MnemeError } from "./errors.js";
import { known } from "./fields.js";
import { encode } from "./http.js";

/** @import { CallFields, ConversationFields, MessageFields, ResultFields } from "../types/types.js" */

/**
 * Something to record: made by user(), assistant(), toolCall() and toolResult().
 * @typedef {{readonly type: string, readonly eventId: string, readonly id: string, readonly data: Record<string, any>}} Entry
 */

/**
 * What was recorded: the id of the message or the tool call, its sequence in the log, whether the log
 * had it already, so that nothing was stored again, and whether the conversation was deleted before,
 * so that nothing shows it.
 * @typedef {{id: string, seq: number, duplicate: boolean, deleted: boolean}} Recorded
 */

/**
 * A message of the user, which begins a turn.
 * @param {string} text
 * @param {MessageFields & {id?: string}} [fields]
 */
export const user = (text, fields) => message("user", text, fields);

/**
 * A message of the model: before its next tool calls, or as its answer.
 * @param {string} text
 * @param {MessageFields & {id?: string}} [fields]
 */
export const assistant = (text, fields) => message("assistant", text, fields);

/**
 * A call of a tool. The id is the one that the model's API gave it; args are any JSON.
 * @param {string} tool
 * @param {any} args
 * @param {CallFields & {id?: string}} [fields]
 * @returns {Entry}
 */
export function toolCall(tool, args, { id = newId(), ...fields } = {}) {
  check("CallFields", fields);
  return { type: "tool.called", eventId: `tool_call/${id}`, id, data: { tool_call_id: id, tool_name: tool, arguments: args, ...fields } };
}

/**
 * What a tool returned, a text or any JSON. If there is an error, the call counts as failed.
 * @param {string | Recorded} call
 * @param {any} [result]
 * @param {ResultFields} [fields]
 * @returns {Entry}
 */
export function toolResult(call, result, fields = {}) {
  if (ArrayBuffer.isView(result) || result instanceof ArrayBuffer) throw new TypeError("the result has bytes: record them as text, such as in Base64");
  check("ResultFields", fields);
  const id = typeof call === "string" ? call : call.id;
  const { error } = fields;
  const given = Object.fromEntries(Object.entries(fields).filter(([name, value]) => name !== "error" || value));
  const data = { success: !error, ...given, tool_call_id: id, result: result ?? (error || null) };
  return { type: "tool.returned", eventId: `tool_result/${id}`, id, data };
}

/** @param {ConversationFields} fields @returns {Entry} */
export function started(fields) {
  check("ConversationFields", fields);
  return { type: "conversation.started", eventId: "started", id: "started", data: { ...fields } };
}

/** @param {string} role @param {string} text @param {MessageFields & {id?: string}} [fields] @returns {Entry} */
function message(role, text, { id = newId(), ...fields } = {}) {
  check("MessageFields", fields);
  return { type: "message.created", eventId: `message/${id}`, id, data: { message_id: id, role, content: text, ...fields } };
}

/**
 * Refuses a mistyped option: the server would store it, and nothing would read it.
 * @param {string} type @param {object} fields
 */
function check(type, fields) {
  const names = /** @type {string[]} */ (known[type]), wrong = Object.keys({ ...fields }).find((name) => !names.includes(name));
  if (wrong !== undefined) throw new MnemeError(`there is no option ${wrong} here, only ${names.join(", ")}`);
}

export const newId = () => crypto.randomUUID().replaceAll("-", "");

const batchSize = 1000; // events that the server stores all or none
const batchBytes = 16 << 20; // and how large they are in total

/**
 * Returns the message that makes the calls after an entry; before it, it was message.
 * @param {Entry} entry
 * @param {string | undefined} message
 */
function maker({ type, id, data }, message) {
  if (type !== "message.created") return message;
  return data.role === "assistant" ? id : undefined;
}

/**
 * What a request with messages says of the next calls: the message that makes them, whether the request failed, and,
 * until it has succeeded, what was so before it.
 * @typedef {{message: string | undefined, failed?: boolean, before?: Caller}} Caller
 */

/** Makes the events of one conversation from entries. */
export class Recorder {
  #conversation;
  #source;
  /** @type {Caller} of the last request that has not failed */
  #caller = { message: undefined };

  /** @param {string} conversation @param {string} source */
  constructor(conversation, source) {
    this.#conversation = conversation;
    this.#source = source;
  }

  /**
   * Yields bodies of requests; to ask for the next one says that this one was recorded, to return says that it failed.
   * A call belongs to the message of the model before it, unless it says otherwise. That message may still be on its
   * way, but not have failed.
   * @param {Iterable<Entry>} entries
   * @returns {Generator<[Entry[], string], void>}
   */
  *batches(entries) {
    const encoder = new TextEncoder();
    let { message } = this.#caller, size = 0;
    /** @type {Entry[]} */
    let batch = [];
    /** @type {string[]} */
    let events = [];
    for (const entry of [...entries]) {
      if (!entry?.data) throw new MnemeError("record takes what user(), assistant(), toolCall() and toolResult() return, and was given something else");
      const event = encode(this.#event(entry, message));
      const { length } = encoder.encode(event);
      message = maker(entry, message);
      if (batch.length > 0 && (batch.length === batchSize || size + length > batchBytes)) {
        yield* this.#request(batch, events);
        [batch, events, size] = [[], [], 0];
      }
      batch.push(entry);
      events.push(event);
      size += length;
    }
    if (batch.length > 0) yield* this.#request(batch, events);
  }

  /** @param {Entry[]} batch @param {string[]} events @returns {Generator<[Entry[], string], void>} */
  *#request(batch, events) {
    const last = batch.findLast(({ type }) => type === "message.created");
    /** @type {Caller} */
    const caller = last ? { message: maker(last, undefined), before: this.#caller } : this.#caller;
    this.#caller = caller;
    let failed = true;
    try {
      yield [batch, `[${events}]`];
      failed = false;
    } finally {
      if (last) {
        caller.failed = failed;
        if (!failed) caller.before = undefined;
        while (this.#caller.failed && this.#caller.before) this.#caller = this.#caller.before;
      }
    }
  }

  /** @param {Entry} entry @param {string | undefined} message */
  #event(entry, message) {
    let data = entry.data;
    if (entry.type === "tool.called") {
      const { message_id = message, ...rest } = data;
      data = { ...rest, message_id }; // always the last member, because their order is part of the content
    }
    return {
      specversion: "1.0", type: `dev.mneme.${entry.type}.v1`, source: this.#source, id: entry.eventId, subject: this.#conversation,
      time: new Date().toISOString(), datacontenttype: "application/json", data,
    };
  }
}
