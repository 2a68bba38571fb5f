import type { CallFields, ConversationFields, MessageFields, ResultFields } from "../types/types.js";
export type Entry = {
    readonly type: string;
    readonly eventId: string;
    readonly id: string;
    readonly data: Record<string, any>;
};
export type Recorded = {
    id: string;
    seq: number;
    duplicate: boolean;
    deleted: boolean;
};
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
export declare const user: (text: string, fields?: MessageFields & {
    id?: string;
}) => Entry;
/**
 * A message of the model: before its next tool calls, or as its answer.
 * @param {string} text
 * @param {MessageFields & {id?: string}} [fields]
 */
export declare const assistant: (text: string, fields?: MessageFields & {
    id?: string;
}) => Entry;
/**
 * A call of a tool. The id is the one that the model's API gave it; args are any JSON.
 * @param {string} tool
 * @param {any} args
 * @param {CallFields & {id?: string}} [fields]
 * @returns {Entry}
 */
export declare function toolCall(tool: string, args: any, { id, ...fields }?: CallFields & {
    id?: string;
}): Entry;
/**
 * What a tool returned, a text or any JSON. If there is an error, the call counts as failed.
 * @param {string | Recorded} call
 * @param {any} [result]
 * @param {ResultFields} [fields]
 * @returns {Entry}
 */
export declare function toolResult(call: string | Recorded, result?: any, fields?: ResultFields): Entry;
/** @param {ConversationFields} fields @returns {Entry} */
export declare function started(fields: ConversationFields): Entry;
export declare const newId: () => string;
export type Caller = {
    message: string | undefined;
    failed?: boolean;
    before?: Caller;
};
/**
 * What a request with messages says of the next calls: the message that makes them, whether the request failed, and,
 * until it has succeeded, what was so before it.
 * @typedef {{message: string | undefined, failed?: boolean, before?: Caller}} Caller
 */
/** Makes the events of one conversation from entries. */
export declare class Recorder {
    #private;
    /** @param {string} conversation @param {string} source */
    constructor(conversation: string, source: string);
    /**
     * Yields bodies of requests; to ask for the next one says that this one was recorded, to return says that it failed.
     * A call belongs to the message of the model before it, unless it says otherwise. That message may still be on its
     * way, but not have failed.
     * @param {Iterable<Entry>} entries
     * @returns {Generator<[Entry[], string], void>}
     */
    batches(entries: Iterable<Entry>): Generator<[Entry[], string], void>;
}
