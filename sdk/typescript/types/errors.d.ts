/** Any failure of a call. */
export declare class MnemeError extends Error {
    name: string;
    /**
     * of record(): what the requests before the failed one stored
     * @type {import("./entries.js").Recorded[]}
     */
    recorded: import("./entries.js").Recorded[];
}
/**
 * The server could not be reached, or the connection broke, even at the last try. What you recorded may be
 * in the log nevertheless: record it again with the same id.
 */
export declare class UnreachableError extends MnemeError {
}
/** The server refused a request; the subclasses say why. Its text is the server's, which says what to do. */
export declare class ProblemError extends MnemeError {
    /** the HTTP status */
    status: number;
    detail: string;
    /** what is wrong with which parameter or event; body[0] is the first event after recorded */
    errors: {
        location?: string;
        message?: string;
        value?: unknown;
    }[];
    /** the header Retry-After */
    retryAfter: string | null;
    /**
     * @param {number} status
     * @param {string} detail
     * @param {Array<{location?: string, message?: string, value?: unknown}>} errors
     * @param {string | null} retryAfter
     */
    constructor(status: number, detail: string, errors: Array<{
        location?: string;
        message?: string;
        value?: unknown;
    }>, retryAfter: string | null);
}
/** A parameter or an event is wrong, or too large: errors names it. */
export declare class InvalidError extends ProblemError {
}
/** The server asks for a token, and there is none that is valid. */
export declare class UnauthorizedError extends ProblemError {
}
/** The token does not allow this. */
export declare class ForbiddenError extends ProblemError {
}
/** There is no such conversation, project or route. */
export declare class NotFoundError extends ProblemError {
}
/** Something else is recorded under this id already, or other clients are changing the conversation. */
export declare class ConflictError extends ProblemError {
    /**
     * sequence of the event that is recorded under the id, and counts
     * @type {number | undefined}
     */
    existingSeq: number | undefined;
}
/**
 * The server did not answer, or had too much to do, even at the last try. What you recorded may
 * be in the log nevertheless: record it again with the same id.
 */
export declare class UnavailableError extends ProblemError {
}
/** What was recorded did not become readable in time (wait_ms). It is in the log: read again later. */
export declare class BehindError extends ProblemError {
}
/** The log is full: an operator must make room. */
export declare class LogFullError extends ProblemError {
}
