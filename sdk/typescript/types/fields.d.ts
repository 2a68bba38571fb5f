/** @type {Record<string, string[]>} */
export declare const known: Record<string, string[]>;
