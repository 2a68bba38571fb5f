// The errors that calls throw. All of them are a MnemeError.

/** Any failure of a call. */
export class MnemeError extends Error {
  name = this.constructor.name;
  /**
   * of record(): what the requests before the failed one stored
   * @type {import("./entries.js").Recorded[]}
   */
  recorded = [];
}

/**
 * The server could not be reached, or the connection broke, even at the last try. What you recorded may be
 * in the log nevertheless: record it again with the same id.
 */
export class UnreachableError extends MnemeError {}

/** The server refused a request; the subclasses say why. Its text is the server's, which says what to do. */
export class ProblemError extends MnemeError {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {Array<{location?: string, message?: string, value?: unknown}>} errors
   * @param {string | null} retryAfter
   */
  constructor(status, detail, errors, retryAfter) {
    const reasons = errors.filter((e) => !detail.includes(e.location ?? "")).map((e) => `${e.location}: ${e.message}`);
    super(`${status}: ${detail}${reasons.length ? ` (${reasons.join("; ")})` : ""}`);
    /** the HTTP status */
    this.status = status;
    this.detail = detail;
    /** what is wrong with which parameter or event; body[0] is the first event after recorded */
    this.errors = errors;
    /** the header Retry-After */
    this.retryAfter = retryAfter;
  }
}

/** A parameter or an event is wrong, or too large: errors names it. */
export class InvalidError extends ProblemError {}

/** The server asks for a token, and there is none that is valid. */
export class UnauthorizedError extends ProblemError {}

/** The token does not allow this. */
export class ForbiddenError extends ProblemError {}

/** There is no such conversation, project or route. */
export class NotFoundError extends ProblemError {}

/** Something else is recorded under this id already, or other clients are changing the conversation. */
export class ConflictError extends ProblemError {
  /**
   * sequence of the event that is recorded under the id, and counts
   * @type {number | undefined}
   */
  existingSeq;
}

/**
 * The server did not answer, or had too much to do, even at the last try. What you recorded may
 * be in the log nevertheless: record it again with the same id.
 */
export class UnavailableError extends ProblemError {}

/** What was recorded did not become readable in time (wait_ms). It is in the log: read again later. */
export class BehindError extends ProblemError {}

/** The log is full: an operator must make room. */
export class LogFullError extends ProblemError {}
