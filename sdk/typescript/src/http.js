// Requests, and when to try them again.

import {
  BehindError, ConflictError, ForbiddenError, InvalidError, LogFullError, MnemeError, NotFoundError, ProblemError,
  UnauthorizedError, UnavailableError, UnreachableError,
} from "./errors.js";

export const firstPause = 250; // milliseconds between tries
const longestPause = 8_000;
const longestRetryAfter = 60_000;
const silence = 45_000; // without a word, not even a comment, after which a stream is dead
const maxWhole = 1 << 20; // characters of a body that is sent in one piece, which shows no progress
const pieceSize = 64 << 10;

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
export const path = (...parts) => "/v1/" + parts.map(encodeURIComponent).join("/");

/**
 * Returns an id that a path can carry. A URL loses the segments . and .., also if they are escaped.
 * @param {string} what
 * @param {string} text
 */
export function checked(what, text) {
  if (!isWellFormed(text)) throw new MnemeError(`the ${what} has half a character, a lone surrogate`);
  if (text === "." || text === "..") throw new MnemeError(`the ${what} cannot be "${text}", because no address of the API can hold that`);
  return text;
}

/** @param {string} text */
const isWellFormed = (text) => !/\p{Surrogate}/u.test(text);

/**
 * Checks the media type of an answer: a proxy may have answered, such as with its page to sign in.
 * @param {string} url
 * @param {string | null} got
 * @param {string} expected
 */
function checkType(url, got, expected) {
  if (got?.split(";")[0].trim().toLowerCase() === expected) return;
  throw new MnemeError(`mneme did not answer at ${url}: an answer of the type ${expected} was expected, and it is ${got || "of none"}`);
}

/**
 * Returns the error for a redirect. It is not followed, because it would take a token, and what is recorded, elsewhere.
 * @param {string} url
 * @param {Response} response of which a browser hides everything
 */
function moved(url, { status, headers }) {
  const where = headers.get("Location")?.split("?")[0] || "another address";
  return new MnemeError(`mneme did not answer at ${url}: HTTP ${status || "3xx"} leads to ${where}; if mneme is there, give that address as the url`);
}

/**
 * @param {string} text
 * @returns {any}
 */
export function decode(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MnemeError(`mneme did not answer: what came is not JSON: ${reason(error)}`, { cause: error });
  }
}

/**
 * Returns the JSON of what is to be recorded.
 * @param {unknown} value
 */
export function encode(value) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new MnemeError(`this cannot be recorded, because it has no form in JSON: ${reason(error)}`, { cause: error });
  }
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
export const sleep = (ms, signal) => new Promise((resolve, reject) => {
  signal?.throwIfAborted();
  const stop = () => { clearTimeout(timer); reject(signal?.reason); };
  const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); resolve(); }, ms);
  signal?.addEventListener("abort", stop, { once: true });
});

/** A connection that broke while an answer was read. */
export class BrokenOff extends UnreachableError {
  name = "UnreachableError";
}

/** Sends requests to a server. */
export class Sender {
  /** @param {{url: string, token?: string, tenant?: string, retries: number, timeout: number, fetch: typeof fetch}} settings */
  constructor(settings) {
    this.settings = settings;
  }

  /**
   * Returns the text of an answer.
   * @param {Request} request
   */
  async text(request) {
    const { timeout } = this.settings;
    return this.#send(request, timeout && timeout + Number(request.options?.wait_ms ?? 0), async (body, watch) => {
      const text = await textOf(body, watch);
      watch.end();
      return text;
    });
  }

  /**
   * Yields the lines of an answer as they come. Once it has begun, nothing is tried again: the error is BrokenOff.
   * @param {Request} request
   */
  async *lines(request) {
    const [body, watch] = await this.#send(request, silence, async (body, watch) => /** @type {const} */ ([body, watch]));
    try {
      const decoder = new TextDecoder();
      let begun = ""; // of the line that has not ended; only added to, as it may be long
      // Only line feeds end lines: JSON may hold every other line end.
      for await (const piece of pieces(body, watch)) {
        const lines = decoder.decode(piece, { stream: true }).split("\n");
        lines[0] = begun + lines[0];
        begun = lines.pop() ?? "";
        yield* lines;
      }
    } finally {
      watch.end();
    }
  }

  /**
   * @template T
   * @param {Request} request
   * @param {number} limit of each wait for the network, in milliseconds, 0 for none
   * @param {(body: Body, watch: Watch) => Promise<T>} read ends the watch, now or later
   * @returns {Promise<T>}
   */
  async #send({ method, path, options = {}, body, media, expected = "application/json", key, once, bare, signal }, limit, read) {
    const { url, token, tenant, retries, fetch } = this.settings;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ tenant: bare ? undefined : tenant, ...options })) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== null) query.append(name, String(one));
    }
    const address = `${url}${path}?${query}`;
    const headers = new Headers();
    if (token) headers.set("Authorization", `Bearer ${token}`);
    if (media && body !== undefined) headers.set("Content-Type", media);
    if (key) headers.set("Idempotency-Key", key);
    for (let tried = 1; ; tried++) {
      /** @type {MnemeError} */
      let failure;
      /** @type {{error?: unknown}} */
      const own = {}; // set if what the caller sends failed
      const watch = new Watch(limit, signal);
      try {
        const whole = body === undefined || (typeof body === "string" && body.length <= maxWhole);
        const sent = whole ? { body } : { body: upload(typeof body === "string" ? [body] : body, watch, own), duplex: "half" };
        watch.begin();
        const response = await fetch(address, /** @type {RequestInit} */ ({ method, headers, signal: watch.signal, redirect: "manual", ...sent }));
        if (response.ok) {
          checkType(url, response.headers.get("Content-Type"), expected);
          return await read(response.body, watch);
        }
        if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) throw moved(url, response);
        failure = problem(method, response, await textOf(response.body, watch));
      } catch (error) {
        watch.end();
        if (signal?.aborted) throw error; // the caller wants no more
        if ("error" in own) throw own.error;
        if (error instanceof MnemeError && !(error instanceof BrokenOff)) throw error;
        failure = error instanceof BrokenOff ? error : new UnreachableError(`no answer from ${url}: ${reason(error)}`, { cause: error });
      }
      watch.end();
      const pause = once ? undefined : pauseAfter(failure, tried, retries);
      if (pause === undefined) throw failure;
      await sleep(pause, signal);
    }
  }
}

/** @type {Record<number, typeof ProblemError>} */
const byStatus = {
  400: InvalidError, 401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError, 413: InvalidError,
  415: InvalidError, 422: InvalidError, 429: UnavailableError, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError, 507: LogFullError,
};

/**
 * Returns the error for an answer.
 * @param {string} method
 * @param {Response} response
 * @param {string} body
 */
function problem(method, { status, headers }, body) {
  let document;
  if (headers.get("Content-Type")?.startsWith("application/problem+json")) {
    try {
      document = JSON.parse(body);
    } catch {} // it is handled as a proxy's
  }
  let kind = byStatus[status] ?? ProblemError;
  const wait = headers.get("Retry-After");
  if (typeof document !== "object" || document === null) { // the answer is a proxy's
    return new kind(status, body.slice(0, 300).trim() || "the server gave no reason", [], wait);
  }
  if (status === 504 && method === "GET") kind = BehindError;
  const error = new kind(status, document.detail || document.title || "the server gave no reason", document.errors ?? [], wait);
  if (error instanceof ConflictError) error.existingSeq = document.existing_seq;
  return error;
}

/**
 * Returns the milliseconds until the next try, undefined if there is none.
 * @param {MnemeError} failure
 * @param {number} tried
 * @param {number} retries
 */
function pauseAfter(failure, tried, retries) {
  if (tried > retries || (failure instanceof ProblemError && !(failure instanceof UnavailableError))) return undefined;
  const asked = failure instanceof UnavailableError ? retryAfter(failure.retryAfter) : undefined;
  if (asked !== undefined) return asked <= longestRetryAfter ? asked : undefined;
  const longest = Math.min(longestPause, firstPause * 2 ** (tried - 1));
  return longest * (0.5 + Math.random() / 2);
}

/**
 * Returns the milliseconds of a header Retry-After, which has a number of seconds or a date.
 * @param {string | null} text
 */
function retryAfter(text) {
  if (!text) return undefined;
  const ms = Number.isNaN(Number(text)) ? Date.parse(text) - Date.now() : Number(text) * 1000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** @param {unknown} error @returns {string} */
function reason(error) {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}

/** @typedef {ReadableStream<Uint8Array> | null} Body */

/** Aborts a request on which nothing moves for too long, or that its caller has left. */
class Watch {
  #controller = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #limit;

  /**
   * @param {number} limit in milliseconds, 0 for none
   * @param {AbortSignal} [caller]
   */
  constructor(limit, caller) {
    this.#limit = limit;
    this.caller = caller;
    this.signal = caller ? AbortSignal.any([caller, this.#controller.signal]) : this.#controller.signal;
  }

  /** Begins to wait for the network, or begins again because something has moved. */
  begin() {
    this.rest();
    if (!this.#limit || this.signal.aborted) return;
    const late = () => this.#controller.abort(new Error(`nothing moved for ${this.#limit / 1000} seconds`));
    this.#timer = setTimeout(late, this.#limit);
  }

  /** Stops the clock while the caller's own code is waited for. */
  rest() {
    clearTimeout(this.#timer);
  }

  end() {
    this.rest();
    this.#controller.abort();
  }
}

/**
 * Yields the pieces of an answer.
 * @param {Body} body
 * @param {Watch} watch
 */
async function* pieces(body, watch) {
  const reader = body?.getReader();
  while (reader) {
    let piece;
    watch.begin();
    try {
      piece = await reader.read();
    } catch (error) {
      if (watch.caller?.aborted) throw error;
      throw new BrokenOff(`the connection broke: ${reason(error)}`, { cause: error });
    } finally {
      watch.rest();
    }
    if (piece.done) return;
    yield piece.value;
  }
}

/** @param {Body} body @param {Watch} watch */
async function textOf(body, watch) {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of pieces(body, watch)) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}

/**
 * Returns the body of a request that is sent as its parts come.
 * @param {AsyncIterable<string> | string[]} parts
 * @param {Watch} watch
 * @param {{error?: unknown}} own gets the error if there are no more parts because of one
 * @returns {ReadableStream<Uint8Array>}
 */
function upload(parts, watch, own) {
  const bytes = bytesOf(parts, watch);
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await bytes.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        own.error = error;
        throw error;
      }
    },
    async cancel() {
      await bytes.return();
    },
  });
}

/**
 * Yields what is to be sent in pieces, each of which is progress.
 * @param {AsyncIterable<string> | string[]} parts
 * @param {Watch} watch
 * @returns {AsyncGenerator<Uint8Array, void, void>}
 */
async function* bytesOf(parts, watch) {
  const encoder = new TextEncoder();
  watch.rest();
  for await (const part of parts) {
    const bytes = encoder.encode(part);
    for (let i = 0; i < bytes.length; i += pieceSize) {
      watch.begin();
      yield bytes.subarray(i, i + pieceSize);
    }
    watch.rest();
  }
  watch.begin();
}
