// Requests, and when to try them again.

import {
  BehindError, ConflictError, ForbiddenError, InvalidError, LogFullError, MnemeError, NotFoundError, ProblemError,
  UnauthorizedError, UnavailableError, UnreachableError,
} from "./errors.js";

export const firstPause = 250; // milliseconds between tries
const longestPause = 8_000;
const longestRetryAfter = 60_000;
const silence = 45_000; // without a word, not even a comment, after which a stream is dead

/** @typedef {Record<string, string | number | boolean | string[] | null | undefined>} Options */

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} path
 * @property {Options} [options]
 * @property {string | ReadableStream<Uint8Array>} [body]
 * @property {string} [media] the body's type
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
    return this.#send(request, timeout && timeout + Number(request.options?.wait_ms ?? 0), (response) => response.text());
  }

  /**
   * Yields the lines of an answer as they come. Once it has begun, nothing is tried again: the error is BrokenOff.
   * @param {Request} request
   */
  async *lines(request) {
    const watch = new Watch(request.signal);
    try {
      const body = await this.#send({ ...request, signal: watch.signal }, 0, async (response) => response.body, watch);
      if (!body) return;
      const decoder = new TextDecoder();
      let rest = "";
      // Only line feeds end lines: JSON may hold every other line end.
      for await (const piece of pieces(body, watch)) {
        const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        yield* lines;
      }
    } finally {
      watch.end();
    }
  }

  /**
   * @template T
   * @param {Request} request
   * @param {number} timeout in milliseconds for each try, 0 if watch decides
   * @param {(response: Response) => Promise<T>} read
   * @param {Watch} [watch]
   * @returns {Promise<T>}
   */
  async #send({ method, path, options = {}, body, media, key, once, bare, signal }, timeout, read, watch) {
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
      const tooLong = timeout ? AbortSignal.timeout(timeout) : undefined;
      const signals = [signal, tooLong].filter((s) => s !== undefined);
      try {
        watch?.alive();
        const init = { method, headers, body, signal: AbortSignal.any(signals), ...(typeof body === "object" && { duplex: "half" }) };
        const response = await fetch(address, /** @type {RequestInit} */ (init));
        if (response.ok) return await read(response);
        failure = problem(method, response, await response.text());
      } catch (error) {
        if (signal?.aborted && !watch?.silent) throw error; // the caller wants no more
        failure = new UnreachableError(`no answer from ${url}: ${reason(error)}`, { cause: error });
      }
      const pause = once || watch?.silent ? undefined : pauseAfter(failure, tried, retries);
      if (pause === undefined) throw failure;
      watch?.rest();
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
  return new kind(status, document.detail || document.title || "the server gave no reason", document.errors ?? [], wait);
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

/** Aborts a stream that is silent for too long, or that its reader has left. */
class Watch {
  #controller = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  silent = false;

  /** @param {AbortSignal} [outer] */
  constructor(outer) {
    this.signal = outer ? AbortSignal.any([outer, this.#controller.signal]) : this.#controller.signal;
  }

  alive() {
    this.rest();
    this.#timer = setTimeout(() => { this.silent = true; this.end(); }, silence);
  }

  rest() {
    clearTimeout(this.#timer);
  }

  end() {
    this.rest();
    this.#controller.abort();
  }
}

/**
 * Yields the pieces of a body.
 * @param {ReadableStream<Uint8Array>} body
 * @param {Watch} watch
 */
async function* pieces(body, watch) {
  const reader = body.getReader();
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (watch.signal.aborted && !watch.silent) throw error;
      throw new BrokenOff(`the connection broke: ${reason(error)}`, { cause: error });
    }
    if (piece.done) return;
    watch.alive();
    yield piece.value;
  }
}
