import { UnreachableError } from "./errors.js";
export declare const firstPause = 250;
export type Options = Record<string, string | number | boolean | string[] | null | undefined>;
export type Request = {
    method: string;
    path: string;
    options?: Options;
    body?: string | AsyncIterable<string>;
    /**
     * the body's type
     */
    media?: string;
    /**
     * the type of the answer, by default JSON
     */
    expected?: string;
    /**
     * makes repeating a change harmless
     */
    key?: string;
    /**
     * not to be tried again
     */
    once?: boolean;
    /**
     * without the tenant: the status is of the whole log
     */
    bare?: boolean;
    signal?: AbortSignal;
};
/** @typedef {Record<string, string | number | boolean | string[] | null | undefined>} Options */
/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} path
 * @property {Options} [options]
 * @property {string | AsyncIterable<string>} [body]
 * @property {string} [media] the body's type
 * @property {string} [expected] the type of the answer, by default JSON
 * @property {string} [key] makes repeating a change harmless
 * @property {boolean} [once] not to be tried again
 * @property {boolean} [bare] without the tenant: the status is of the whole log
 * @property {AbortSignal} [signal]
 */
/**
 * Returns a path of the API; what is between its slashes may be any text.
 * @param {string[]} parts
 */
export declare const path: (...parts: string[]) => string;
/**
 * Returns an id that a path can carry. A URL loses the segments . and .., also if they are escaped.
 * @param {string} what
 * @param {string} text
 */
export declare function checked(what: string, text: string): string;
/**
 * @param {string} text
 * @returns {any}
 */
export declare function decode(text: string): any;
/**
 * Returns the JSON of what is to be recorded.
 * @param {unknown} value
 */
export declare function encode(value: unknown): string;
/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
export declare const sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
/** A connection that broke while an answer was read. */
export declare class BrokenOff extends UnreachableError {
    name: string;
}
/** Sends requests to a server. */
export declare class Sender {
    #private;
    settings: {
        url: string;
        token?: string;
        tenant?: string;
        retries: number;
        timeout: number;
        fetch: typeof fetch;
    };
    /** @param {{url: string, token?: string, tenant?: string, retries: number, timeout: number, fetch: typeof fetch}} settings */
    constructor(settings: {
        url: string;
        token?: string;
        tenant?: string;
        retries: number;
        timeout: number;
        fetch: typeof fetch;
    });
    /**
     * Returns the text of an answer.
     * @param {Request} request
     */
    text(request: Request): Promise<string>;
    /**
     * Yields the lines of an answer as they come. Once it has begun, nothing is tried again: the error is BrokenOff.
     * @param {Request} request
     */
    lines(request: Request): AsyncGenerator<string, void, unknown>;
}
export type Body = ReadableStream<Uint8Array> | null;
