import { assistant, toolCall, toolResult, user } from "./entries.js";
export type Entry = import("./entries.js").Entry;
export type Recorded = import("./entries.js").Recorded;
import type * as t from "../types/types.js";
/** @typedef {import("./entries.js").Entry} Entry */
/** @typedef {import("./entries.js").Recorded} Recorded */
/** @import { Options } from "./http.js" */
/** @import * as t from "../types/types.js" */
export * from "./errors.js";
export { assistant, toolCall, toolResult, user };
export type Event = {
    seq: number;
    conversation_id: string;
    kind: string;
    id: string;
    source: string;
    time: string;
    data: any;
};
export type StreamOptions = {
    from_seq?: number;
    kinds?: string[];
    signal?: AbortSignal;
};
export type Abortable = {
    signal?: AbortSignal | undefined;
};
export type Format = "markdown" | "openai" | "anthropic" | "json";
export type ContextIn<F extends Format> = F extends "openai" ? t.OpenAIChat : F extends "anthropic" ? t.AnthropicChat : F extends "json" ? t.Context : string;
/**
 * A server of mneme. Everything that is read includes what was recorded through the same object.
 */
export declare class Memory {
    #private;
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
    constructor(url?: string, options?: {
        token?: string;
        tenant?: string;
        source?: string;
        retries?: number;
        timeout?: number;
        fetch?: typeof globalThis.fetch;
    });
    /** The highest sequence recorded through this object, 0 if there is none. */
    get seq(): number;
    /**
     * Returns a conversation, which need not exist; without an id, a new one. It sends nothing.
     * @param {string} [id]
     */
    conversation(id?: string): Conversation;
    /**
     * Returns a project: what conversations have in common. Name it when a conversation starts.
     * @param {string} name
     */
    project(name: string): Project;
    /**
     * Iterates over conversations, by default those with the newest events first.
     * @param {t.ConversationsOptions & Abortable} [options]
     * @returns {AsyncGenerator<t.ConversationInfo, void>}
     */
    conversations(options?: t.ConversationsOptions & Abortable): AsyncGenerator<t.ConversationInfo, void>;
    /**
     * Finds conversations, each with its best messages, best first.
     * @param {string} query
     * @param {t.SearchAllOptions & Abortable} [options]
     * @returns {Promise<t.FoundConversation[]>}
     */
    search(query: string, options?: t.SearchAllOptions & Abortable): Promise<t.FoundConversation[]>;
    /**
     * Records exported events again, here or in another tenant, from a text or line by line. Known ones are
     * skipped. An import line by line is not tried again by itself, because its lines are gone.
     * @param {string | AsyncIterable<string> | Iterable<string>} events
     * @param {Abortable} [options]
     * @returns {Promise<t.ImportReport>}
     */
    import(events: string | AsyncIterable<string> | Iterable<string>, { signal }?: Abortable): Promise<t.ImportReport>;
    /**
     * Iterates over the events of the log as they come, without end. When the connection breaks, it continues
     * after the last event, so that none is missed and none comes twice.
     * @param {StreamOptions & {conversation?: string}} [options]
     * @returns {AsyncGenerator<Event, never>}
     */
    stream({ conversation, from_seq, kinds, signal }?: StreamOptions & {
        conversation?: string;
    }): AsyncGenerator<Event, never>;
}
/** A conversation. One agent at a time should record in it, because order is the order of arrival. */
export declare class Conversation {
    #private;
    id: string;
    /**
     * Describes a new conversation: its title, project, working directory. It is optional; call it first, and once.
     *
     * Another description later is refused, or has no effect; update() changes title and tags.
     * @param {t.ConversationFields & Abortable} [fields]
     */
    start({ signal, ...fields }?: t.ConversationFields & Abortable): Promise<void>;
    /**
     * Records a message of the user, which begins a turn.
     * @param {string} text
     * @param {t.MessageFields & Abortable & {id?: string}} [fields]
     */
    user(text: string, { signal, ...fields }?: t.MessageFields & Abortable & {
        id?: string;
    }): Promise<import("./entries.js").Recorded>;
    /**
     * Records a message of the model: before its next tool calls, or as its answer.
     * @param {string} text
     * @param {t.MessageFields & Abortable & {id?: string}} [fields]
     */
    assistant(text: string, { signal, ...fields }?: t.MessageFields & Abortable & {
        id?: string;
    }): Promise<import("./entries.js").Recorded>;
    /**
     * Records a call of a tool. The id is the one that the model's API gave it; args are any JSON.
     *
     * It belongs to the message of the model that was last recorded through this object. To record a call again
     * through another object, record that message again first, or pass its id as message_id.
     * @param {string} tool
     * @param {any} args
     * @param {t.CallFields & Abortable & {id?: string}} [fields]
     */
    toolCall(tool: string, args: any, { signal, ...fields }?: t.CallFields & Abortable & {
        id?: string;
    }): Promise<import("./entries.js").Recorded>;
    /**
     * Records what a tool returned, a text or any JSON. If there is an error, the call counts as failed.
     * @param {string | Recorded} call
     * @param {any} [result]
     * @param {t.ResultFields & Abortable} [fields]
     */
    toolResult(call: string | Recorded, result?: any, { signal, ...fields }?: t.ResultFields & Abortable): Promise<import("./entries.js").Recorded>;
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
    record(entries: Iterable<Entry>, { signal }?: Abortable): Promise<Recorded[]>;
    /**
     * Returns what an agent should see now, in max_chars characters (100,000): as a text, as arguments of a call
     * of OpenAI's or Anthropic's client, or as data.
     * @template {Format} [F="markdown"]
     * @param {t.ContextOptions & Abortable & {format?: F}} [options]
     * @returns {Promise<ContextIn<F>>}
     */
    context<F extends Format = "markdown">(options?: t.ContextOptions & Abortable & {
        format?: F;
    }): Promise<ContextIn<F>>;
    /**
     * Finds messages, best first.
     * @param {string} query
     * @param {t.SearchOptions & Abortable} [options]
     * @returns {Promise<t.Found[]>}
     */
    search(query: string, options?: t.SearchOptions & Abortable): Promise<t.Found[]>;
    /**
     * Finds results of tools, best first; without a query the newest.
     * @param {string} [query]
     * @param {t.SearchOptions & Abortable} [options]
     * @returns {Promise<t.FoundResult[]>}
     */
    searchTools(query?: string, options?: t.SearchOptions & Abortable): Promise<t.FoundResult[]>;
    /**
     * Returns its title, status, counts and so on. A NotFoundError means that nothing is recorded yet.
     * @param {Abortable} [options]
     * @returns {Promise<t.ConversationInfo>}
     */
    info(options?: Abortable): Promise<t.ConversationInfo>;
    /**
     * Iterates over messages, newest first unless order is "oldest".
     * @param {t.MessagesOptions & Abortable} [options]
     * @returns {AsyncGenerator<t.Message, void>}
     */
    messages(options?: t.MessagesOptions & Abortable): AsyncGenerator<t.Message, void>;
    /**
     * Iterates over turns, newest first unless order is "oldest".
     * @param {t.TurnsOptions & Abortable} [options]
     * @returns {AsyncGenerator<t.Turn, void>}
     */
    turns(options?: t.TurnsOptions & Abortable): AsyncGenerator<t.Turn, void>;
    /**
     * Iterates over tool calls, newest first unless order is "oldest".
     * @param {t.ToolCallsOptions & Abortable} [options]
     * @returns {AsyncGenerator<t.ToolCall, void>}
     */
    toolCalls(options?: t.ToolCallsOptions & Abortable): AsyncGenerator<t.ToolCall, void>;
    /**
     * Iterates over summaries, those written last first unless order is "oldest".
     * @param {t.SummariesOptions & Abortable} [options]
     * @returns {AsyncGenerator<t.Summary, void>}
     */
    summaries(options?: t.SummariesOptions & Abortable): AsyncGenerator<t.Summary, void>;
    /**
     * Returns the files that its tools touched, the newest access first.
     * @param {t.FilesOptions & Abortable} [options]
     * @returns {Promise<t.File[]>}
     */
    files(options?: t.FilesOptions & Abortable): Promise<t.File[]>;
    /**
     * Returns conversations about the same subject, each with its best messages, best first.
     * @param {t.SimilarOptions & Abortable} [options]
     * @returns {Promise<t.FoundConversation[]>}
     */
    similar(options?: t.SimilarOptions & Abortable): Promise<t.FoundConversation[]>;
    /**
     * Begins a conversation that sees this one up to a message, and continues differently; without an id, a new one.
     * @param {string | Recorded} message
     * @param {t.BranchFields & Abortable & {id?: string}} [fields]
     */
    branch(message: string | Recorded, { id, signal, ...fields }?: t.BranchFields & Abortable & {
        id?: string;
    }): Promise<Conversation>;
    /**
     * Iterates over its events as they come, as stream() of the memory does.
     * @param {StreamOptions} [options]
     */
    stream(options?: StreamOptions): AsyncGenerator<Event, never, any>;
    /**
     * Iterates over its events, one line each, for import() or a file. An error means that lines are missing.
     * @param {Abortable} [options]
     * @returns {AsyncGenerator<string, void>}
     */
    export(options?: Abortable): AsyncGenerator<string, void>;
    /**
     * Changes its title, tags or status.
     * @param {{title?: string, tags?: string[], status?: "active" | "archived"}} change
     * @param {Abortable} [options]
     * @returns {Promise<void>}
     */
    update(change: {
        title?: string;
        tags?: string[];
        status?: "active" | "archived";
    }, options?: Abortable): Promise<void>;
    /**
     * Deletes it: nothing shows it any more, nor what is recorded in it afterwards, which throws no error.
     * The log keeps its events until an operator runs `mneme erase`.
     * @param {string} [reason]
     * @param {Abortable} [options]
     * @returns {Promise<void>}
     */
    delete(reason?: string, options?: Abortable): Promise<void>;
}
/** A project: what its conversations have in common. */
export declare class Project {
    #private;
    name: string;
    /**
     * Returns what a new conversation should know of earlier ones, in max_chars characters (8,000), in the
     * formats that a conversation's context has.
     * @template {Format} [F="markdown"]
     * @param {t.ProjectContextOptions & Abortable & {format?: F}} [options]
     * @returns {Promise<ContextIn<F>>}
     */
    context<F extends Format = "markdown">(options?: t.ProjectContextOptions & Abortable & {
        format?: F;
    }): Promise<ContextIn<F>>;
}
