// The turns of a conversation, of which only those near the rows in sight are kept. The API lists the
// turns up to a sequence, but rows are asked for by their number; so the sequence is looked for between
// those that are known.
import { useEffect, useRef, useState } from "preact/hooks";

import { type Conversation, getJSON, path, type Problem, type Turn } from "./api";

const page = 100;
const kept = 1500;
const maxTries = 24;

export class Turns {
  private known = new Map<number, Turn>();
  private wanted = { first: 0, last: 0 };
  private busy = false;
  private control = new AbortController();

  constructor(private of: Conversation, private changed: (error?: Problem) => void) {}

  get(number: number): Turn | undefined { return this.known.get(number); }
  get size(): number { return this.known.size; }
  end() { this.control.abort(); }

  // want asks for the turns of these numbers.
  want(first: number, last: number) {
    this.wanted = { first: Math.max(1, first), last: Math.min(this.of.turn_count, last) };
    if (!this.busy) void this.load();
  }

  private missing(): number {
    for (let n = this.wanted.last; n >= this.wanted.first; n--) if (!this.known.has(n)) return n;
    return 0;
  }

  private async load() {
    this.busy = true;
    try {
      for (let tries = 0, target = this.missing(); target > 0 && tries < maxTries; tries++) {
        await this.fetch(target, tries);
        const next = this.missing();
        if (next !== target) tries = 0;
        target = next;
      }
    } catch (e) {
      if (!this.control.signal.aborted) this.changed(e as Problem);
    } finally {
      this.busy = false;
    }
  }

  private low = new Map<number, number>(); // the highest number at which a sequence turned out too low, by target

  private async fetch(target: number, tries: number) {
    const atEnd = target + page / 2 >= this.of.turn_count;
    const asOf = atEnd ? this.of.last_seq : this.guess(target, tries);
    const url = path("/v1/conversations/{}/turns", [this.of.id], { limit: page, as_of: asOf });
    const { turns } = await getJSON<{ turns: Turn[] }>(url, this.control.signal);
    const newest = turns[0];
    if (newest && newest.number < target) this.low.set(target, Math.max(asOf, this.low.get(target) ?? 0));
    for (const turn of turns) {
      // The newest one may only be there in part.
      if (turn !== newest || asOf >= this.of.last_seq) this.known.set(turn.number, turn);
    }
    if (newest && newest.number === target && turns.length === 1 && asOf < this.of.last_seq) this.low.set(target, asOf);
    this.forget();
    this.changed();
  }

  // guess returns a sequence at which the target is likely among the newest turns.
  private guess(target: number, tries: number): number {
    let below = { number: 0, seq: this.of.first_seq };
    let above = { number: this.of.turn_count + 1, seq: this.of.last_seq };
    for (const [number, turn] of this.known) {
      if (number <= target && number > below.number) below = { number, seq: turn.last_seq };
      if (number > target && number < above.number) above = { number, seq: turn.first_seq };
    }
    below.seq = Math.max(below.seq, this.low.get(target) ?? 0);
    const part = tries % 3 === 2 ? 0.5 : (target + page / 3 - below.number) / (above.number - below.number);
    return Math.min(above.seq, Math.max(below.seq + 1, Math.ceil(below.seq + part * (above.seq - below.seq))));
  }

  private forget() {
    if (this.known.size <= kept) return;
    const middle = (this.wanted.first + this.wanted.last) / 2;
    const far = [...this.known.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
    for (const number of far.slice(0, this.known.size - kept)) this.known.delete(number);
  }
}

export function useTurns(of: Conversation): { turns: Turns; error?: Problem } {
  const [, redraw] = useState(0);
  const [error, setError] = useState<Problem>();
  const held = useRef<{ of: Conversation; turns: Turns } | undefined>(undefined);
  if (held.current?.of !== of) {
    held.current?.turns.end();
    held.current = { of, turns: new Turns(of, (e) => { setError(e); redraw((n) => n + 1); }) };
  }
  useEffect(() => () => held.current?.turns.end(), []);
  return { turns: held.current!.turns, error };
}
