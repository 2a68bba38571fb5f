// The client. See the README of the folder sdk for its use.
//
// It is JavaScript with types in comments, because that runs as it is on Node 20: no step of a build
// stands between this text and what runs. The declarations in the folder types are made from it by tsc.

import { Recorder, assistant, newId, started, toolCall, toolResult, user } from "./entries.js";
import { MnemeError } from "./errors.js";
import { BrokenOff, Sender, checked, decode, firstPause, path, sleep } from "./http.js";

/** @typedef {import("./entries.js").Entry} Entry */
/** @typedef {import("./entries.js").Recorded} Recorded */
/** @import { Options } from "./http.js" */
/** @import * as t from "../types/types.js" */

export * from "./errors.js";
export { assistant, toolCall, toolResult, user };

/**
 * An event of the log, as a stream gives it: kind is such as message_created, time is "" if its producer
 * gave none, data is null if it is over 64 KiB or not readable.
 * @typedef {{seq: number, conversation_id: string, kind: string, id: string, source: string, time: string, data: any}} Event
 */

/**
 * From which sequence on to follow the log (by default from now on), and which kinds of events.
 * @typedef {{from_seq?: number, kinds?: string[], signal?: AbortSignal}} StreamOptions
 */

/**
 * Ends a call early: it throws the signal's reason. What it recorded may be in the log nevertheless.
 * @typedef {{signal?: AbortSignal | undefined}} Abortable
 */

/** @typedef {"markdown" | "openai" | "anthropic" | "json"} Format */

/**
 * A context in a format.
 * @template {Format} F
 * @typedef {F extends "openai" ? t.OpenAIChat : F extends "anthropic" ? t.AnthropicChat : F extends "json" ? t.Context : string} ContextIn
 */

const variables = /** @type {{process?: {env: Record<string, string | undefined>}}} */ (globalThis).process?.env ?? {};

/**
 * A server of mneme. Everything that is read includes what was recorded through the same object.
 */
export class Memory {
  #sender;
  #source;
  #seq = 0;

  /**
   * url, token and tenant default to the variables MNEME_URL, MNEME_TOKEN and MNEME_TENANT, then to
   * http://127.0.0.1:8420, no token, and the token's tenant or "default". Pass "" for no token.
   *
   * source names your program. Conversation, source and id identify what is recorded, so recording it
   * again is harmless: after a connection error, 429, 502, 503 or 504 each call is tried again, up to retries
   * (4) times, waiting longer each time or as long as the server asks. timeout is in milliseconds (30,000), for each
   * wait on the network.
   * @param {string} [url]
   * @param {{token?: string, tenant?: string, source?: string, retries?: number, timeout?: number, fetch?: typeof fetch}} [options]
   */
  constructor(url = variables.MNEME_URL || "http://127.0.0.1:8420", options = {}) {
    const { token = variables.MNEME_TOKEN, tenant = variables.MNEME_TENANT || undefined, source = "mneme-sdk" } = options;
    const { retries = 4, timeout = 30_000, fetch = globalThis.fetch } = options;
    if (!/^https?:\/\//.test(url)) throw new MnemeError(`the url of mneme must begin with http:// or https://, and is ${url}`);
    this.#sender = new Sender({ url: url.replace(/\/+$/, ""), token: token?.trim(), tenant, retries, timeout, fetch });
    this.#source = source;
  }

  /** The highest sequence recorded through this object, 0 if there is none. */
  get seq() {
    return this.#seq;
  }

  /**
   * Returns a conversation, which need not exist; without an id, a new one. It sends nothing.
   * @param {string} [id]
   */
  conversation(id = newId()) {
    return new Conversation(this, this.#calls, checked("id of a conversation", id), this.#source);
  }

  /**
   * Returns a project: what conversations have in common. Name it when a conversation starts.
   * @param {string} name
   */
  project(name) {
    return new Project(this.#calls, checked("name of a project", name));
  }

  /**
   * Iterates over conversations, by default those with the newest events first.
   * @param {t.ConversationsOptions & Abortable} [options]
   * @returns {AsyncGenerator<t.ConversationInfo, void>}
   */
  conversations(options) {
    return this.#calls.pages(path("conversations"), "conversations", options);
  }

  /**
   * Finds conversations, each with its best messages, best first.
   * @param {string} query
   * @param {t.SearchAllOptions & Abortable} [options]
   * @returns {Promise<t.FoundConversation[]>}
   */
  async search(query, options) {
    return (await this.#calls.get(path("search"), { ...options, query })).conversations;
  }

  /**
   * Records exported events again, here or in another tenant, from a text or line by line. Known ones are
   * skipped. An import line by line is not tried again by itself, because its lines are gone.
   * @param {string | AsyncIterable<string> | Iterable<string>} events
   * @param {Abortable} [options]
   * @returns {Promise<t.ImportReport>}
   */
  async import(events, { signal } = {}) {
    const once = typeof events !== "string";
    const body = once ? withLineEnds(events) : events;
    const report = decode(await this.#sender.text({ method: "POST", path: path("import"), body, media: "application/x-ndjson", once, signal }));
    this.#reached(report.seq);
    return report;
  }

  /**
   * Iterates over the events of the log as they come, without end. When the connection breaks, it continues
   * after the last event, so that none is missed and none comes twice.
   * @param {StreamOptions & {conversation?: string}} [options]
   * @returns {AsyncGenerator<Event, never>}
   */
  async *stream({ conversation, from_seq, kinds, signal } = {}) {
    // Fixed now: events that come while the connection is broken count.
    let from = from_seq ?? (await this.#head(signal)) + 1;
    for (;;) {
      try {
        let name = "", data = "";
        const request = { method: "GET", path: path("stream"), expected: "text/event-stream", options: { conversation, kind: kinds, from }, signal };
        for await (const line of this.#sender.lines(request)) {
          const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
          if (field === "event") name = value;
          else if (field === "data") data += value;
          if (line) continue;
          if (name === "event") {
            const sent = decode(data);
            const { id = "", source = "", time = "", data: payload = null } = sent.event ?? {};
            from = sent.seq + 1;
            yield { seq: sent.seq, conversation_id: sent.conversation_id, kind: sent.kind, id, source, time, data: payload };
          }
          name = data = "";
        }
      } catch (error) {
        if (!(error instanceof BrokenOff)) throw error;
      }
      await sleep(firstPause, signal);
    }
  }

  /** @param {AbortSignal} [signal] @returns {Promise<number>} */
  async #head(signal) {
    return decode(await this.#sender.text({ method: "GET", path: path("status"), bare: true, signal })).stream.head;
  }

  /** @param {number} seq */
  #reached(seq) {
    this.#seq = Math.max(this.#seq, seq);
  }

  /** What conversations and projects ask of the server. */
  #calls = {
    /** @param {Recorder} recorder @param {Iterable<Entry>} entries @param {AbortSignal} [signal] @returns {Promise<Recorded[]>} */
    record: async (recorder, entries, signal) => {
      /** @type {Recorded[]} */
      const done = [];
      try {
        for (const [batch, body] of recorder.batches(entries)) {
          const request = { method: "POST", path: path("events"), body, media: "application/cloudevents-batch+json", signal };
          const answer = decode(await this.#sender.text(request));
          this.#reached(answer.seq);
          const deleted = Boolean(answer.deleted?.length); // the events are of one conversation
          batch.forEach(({ id }, i) => done.push({ id, seq: answer.events[i].seq, duplicate: answer.events[i].duplicate, deleted }));
        }
      } catch (error) {
        if (error instanceof MnemeError) error.recorded = done;
        throw error;
      }
      return done;
    },
    /** @param {string} method @param {string} to @param {object | undefined} change @param {Abortable} [abortable] @param {Options} [options] */
    change: async (method, to, change, { signal } = {}, options) => {
      const body = change && JSON.stringify(change);
      const written = decode(await this.#sender.text({ method, path: to, options, body, media: "application/json", key: newId(), signal }));
      this.#reached(written.seq);
      return written;
    },
    /** @param {string} to @param {Abortable & Record<string, any>} [options] @param {string} [expected] */
    read: (to, { signal, ...options } = {}, expected) =>
      this.#sender.text({ method: "GET", path: to, options: this.#atLeast(options), expected, signal }),
    /** @param {string} to @param {Abortable & Record<string, any>} [options] @returns {Promise<any>} */
    get: async (to, options) => decode(await this.#calls.read(to, options)),
    /** @param {string} to @param {Abortable} [abortable] */
    lines: (to, { signal } = {}) => this.#sender.lines({ method: "GET", path: to, options: this.#atLeast(), expected: "application/x-ndjson", signal }),
    /** @param {string} to @param {string} member @param {Abortable} [options] @returns {AsyncGenerator<any, void>} */
    pages: async function* (to, member, options) {
      let cursor;
      do {
        const page = await this.get(to, { ...options, cursor });
        yield* page[member];
        cursor = page.next_cursor;
      } while (cursor !== undefined);
    },
  };

  /** @param {object} [options] @returns {Options} */
  #atLeast(options) {
    return { at_least: this.#seq || undefined, ...options };
  }
}

/** A conversation. One agent at a time should record in it, because order is the order of arrival. */
export class Conversation {
  #memory;
  #calls;
  #source;
  #recorder;

  /** @internal @param {Memory} memory @param {any} calls @param {string} id @param {string} source */
  constructor(memory, calls, id, source) {
    this.id = id;
    this.#memory = memory;
    this.#calls = calls;
    this.#source = source;
    this.#recorder = new Recorder(id, source);
  }

  /**
   * Describes a new conversation: its title, project, working directory. It is optional; call it first, and once.
   *
   * Another description later is refused, or has no effect; update() changes title and tags.
   * @param {t.ConversationFields & Abortable} [fields]
   */
  async start({ signal, ...fields } = {}) {
    await this.record([started(fields)], { signal });
  }

  /**
   * Records a message of the user, which begins a turn.
   * @param {string} text
   * @param {t.MessageFields & Abortable & {id?: string}} [fields]
   */
  async user(text, { signal, ...fields } = {}) {
    return (await this.record([user(text, fields)], { signal }))[0];
  }

  /**
   * Records a message of the model: before its next tool calls, or as its answer.
   * @param {string} text
   * @param {t.MessageFields & Abortable & {id?: string}} [fields]
   */
  async assistant(text, { signal, ...fields } = {}) {
    return (await this.record([assistant(text, fields)], { signal }))[0];
  }

  /**
   * Records a call of a tool. The id is the one that the model's API gave it; args are any JSON.
   *
   * It belongs to the message of the model that was last recorded through this object. To record a call again
   * through another object, record that message again first, or pass its id as message_id.
   * @param {string} tool
   * @param {any} args
   * @param {t.CallFields & Abortable & {id?: string}} [fields]
   */
  async toolCall(tool, args, { signal, ...fields } = {}) {
    return (await this.record([toolCall(tool, args, fields)], { signal }))[0];
  }

  /**
   * Records what a tool returned, a text or any JSON. If there is an error, the call counts as failed.
   * @param {string | Recorded} call
   * @param {any} [result]
   * @param {t.ResultFields & Abortable} [fields]
   */
  async toolResult(call, result, { signal, ...fields } = {}) {
    return (await this.record([toolResult(call, result, fields)], { signal }))[0];
  }

  /**
   * Records several entries, in order.
   *
   * Up to 1,000 entries of up to 16 MiB are sent in one request, more in several. A request is stored whole or not
   * at all, unless one of its ids was recorded in the last 30 seconds: then its entries are stored up to the first
   * whose id has other content, which throws a ConflictError. The error's recorded lists what the requests before it
   * stored. To continue, record the same entries again.
   * @param {Iterable<Entry>} entries
   * @param {Abortable} [options]
   * @returns {Promise<Recorded[]>}
   */
  async record(entries, { signal } = {}) {
    return this.#calls.record(this.#recorder, entries, signal);
  }

  /**
   * Returns what an agent should see now, in max_chars characters (100,000): as a text, as arguments of a call
   * of OpenAI's or Anthropic's client, or as data.
   * @template {Format} [F="markdown"]
   * @param {t.ContextOptions & Abortable & {format?: F}} [options]
   * @returns {Promise<ContextIn<F>>}
   */
  async context(options) {
    return contextOf(this.#calls, path("conversations", this.id, "context"), options);
  }

  /**
   * Finds messages, best first.
   * @param {string} query
   * @param {t.SearchOptions & Abortable} [options]
   * @returns {Promise<t.Found[]>}
   */
  async search(query, options) {
    return (await this.#calls.get(path("conversations", this.id, "search"), { ...options, query })).messages;
  }

  /**
   * Finds results of tools, best first; without a query the newest.
   * @param {string} [query]
   * @param {t.SearchOptions & Abortable} [options]
   * @returns {Promise<t.FoundResult[]>}
   */
  async searchTools(query, options) {
    return (await this.#calls.get(path("conversations", this.id, "search"), { ...options, query: query || undefined, kind: "tool" })).tool_results ?? [];
  }

  /**
   * Returns its title, status, counts and so on. A NotFoundError means that nothing is recorded yet.
   * @param {Abortable} [options]
   * @returns {Promise<t.ConversationInfo>}
   */
  async info(options) {
    return this.#calls.get(path("conversations", this.id), options);
  }

  /**
   * Iterates over messages, newest first unless order is "oldest".
   * @param {t.MessagesOptions & Abortable} [options]
   * @returns {AsyncGenerator<t.Message, void>}
   */
  messages(options) {
    return this.#calls.pages(path("conversations", this.id, "messages"), "messages", options);
  }

  /**
   * Iterates over turns, newest first unless order is "oldest".
   * @param {t.TurnsOptions & Abortable} [options]
   * @returns {AsyncGenerator<t.Turn, void>}
   */
  turns(options) {
    return this.#calls.pages(path("conversations", this.id, "turns"), "turns", options);
  }

  /**
   * Iterates over tool calls, newest first unless order is "oldest".
   * @param {t.ToolCallsOptions & Abortable} [options]
   * @returns {AsyncGenerator<t.ToolCall, void>}
   */
  toolCalls(options) {
    return this.#calls.pages(path("conversations", this.id, "tool-calls"), "tool_calls", options);
  }

  /**
   * Iterates over summaries, those written last first unless order is "oldest".
   * @param {t.SummariesOptions & Abortable} [options]
   * @returns {AsyncGenerator<t.Summary, void>}
   */
  summaries(options) {
    return this.#calls.pages(path("conversations", this.id, "summaries"), "summaries", options);
  }

  /**
   * Returns the files that its tools touched, the newest access first.
   * @param {t.FilesOptions & Abortable} [options]
   * @returns {Promise<t.File[]>}
   */
  async files(options) {
    return (await this.#calls.get(path("conversations", this.id, "files"), options)).files;
  }

  /**
   * Returns conversations about the same subject, each with its best messages, best first.
   * @param {t.SimilarOptions & Abortable} [options]
   * @returns {Promise<t.FoundConversation[]>}
   */
  async similar(options) {
    return (await this.#calls.get(path("conversations", this.id, "similar"), options)).conversations;
  }

  /**
   * Begins a conversation that sees this one up to a message, and continues differently; without an id, a new one.
   * @param {string | Recorded} message
   * @param {t.BranchFields & Abortable & {id?: string}} [fields]
   */
  async branch(message, { id = newId(), signal, ...fields } = {}) {
    const change = { message_id: typeof message === "string" ? message : message.id, id: checked("id of a conversation", id), ...fields };
    const written = await this.#calls.change("POST", path("conversations", this.id, "branches"), change, { signal });
    return new Conversation(this.#memory, this.#calls, written.conversation_id, this.#source);
  }

  /**
   * Iterates over its events as they come, as stream() of the memory does.
   * @param {StreamOptions} [options]
   */
  stream(options) {
    return this.#memory.stream({ ...options, conversation: this.id });
  }

  /**
   * Iterates over its events, one line each, for import() or a file. An error means that lines are missing.
   * @param {Abortable} [options]
   * @returns {AsyncGenerator<string, void>}
   */
  export(options) {
    return this.#calls.lines(path("conversations", this.id, "export"), options);
  }

  /**
   * Changes its title, tags or status.
   * @param {{title?: string, tags?: string[], status?: "active" | "archived"}} change
   * @param {Abortable} [options]
   * @returns {Promise<void>}
   */
  async update(change, options) {
    await this.#calls.change("PATCH", path("conversations", this.id), change, options);
  }

  /**
   * Deletes it: nothing shows it any more, nor what is recorded in it afterwards, which throws no error.
   * The log keeps its events until an operator runs `mneme erase`.
   * @param {string} [reason]
   * @param {Abortable} [options]
   * @returns {Promise<void>}
   */
  async delete(reason, options) {
    await this.#calls.change("DELETE", path("conversations", this.id), undefined, options, { reason });
  }
}

/** A project: what its conversations have in common. */
export class Project {
  #calls;

  /** @internal @param {any} calls @param {string} name */
  constructor(calls, name) {
    this.#calls = calls;
    this.name = name;
  }

  /**
   * Returns what a new conversation should know of earlier ones, in max_chars characters (8,000), in the
   * formats that a conversation's context has.
   * @template {Format} [F="markdown"]
   * @param {t.ProjectContextOptions & Abortable & {format?: F}} [options]
   * @returns {Promise<ContextIn<F>>}
   */
  async context(options) {
    return contextOf(this.#calls, path("projects", this.name, "context"), options);
  }
}

/** @param {any} calls @param {string} to @param {Abortable & {format?: Format}} [options] */
async function contextOf(calls, to, options) {
  const format = options?.format ?? "markdown";
  return format === "markdown" ? calls.read(to, { ...options, format }, "text/markdown") : calls.get(to, { ...options, format });
}

/** @param {AsyncIterable<string> | Iterable<string>} lines */
async function* withLineEnds(lines) {
  for await (const line of lines) yield line.endsWith("\n") ? line : line + "\n";
}
