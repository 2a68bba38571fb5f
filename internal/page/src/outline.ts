// Where the turns and summaries of a conversation are, in few bytes and without texts; and how the turns
// in sight begin. The outline is read from its end, a page at a time, so that a conversation of any
// length opens at once.
import { useEffect, useRef, useState } from "preact/hooks";

import { asOf, type Conversation, getJSON, hasFailed, path, patient, type Problem, type ToolCall, type Turn } from "./api";
import { firstLine, typed } from "./text";

const page = 1000;
const eager = 100_000; // turns that are read without being in sight
const beginnings = 40; // turns whose texts are asked for at once
const kept = 1000; // texts
const searched = 5; // pages of calls that are searched for the failed ones of turns in sight

interface OutlinedTurn { n: number; seq: number; end: number; at?: number; chars: number; calls?: number }
export interface OutlinedSummary { id: string; level: number; seq: number; end: number; frontier?: boolean }
export interface Beginning { text: string; origin?: string; failed?: number }

export class Outline {
  first = 1; // number of the first turn; 0 if something comes before the first message of a user
  known: number; // the lowest turn that is known
  summaries: OutlinedSummary[] = [];
  private errors: { read?: Problem; ask?: Problem } = {};
  private starts: Float64Array;
  private ends: Float64Array;
  private times: Float64Array;
  private sizes: Uint32Array;
  private uses: Uint32Array;
  private texts = new Map<number, Beginning>();
  private wanted = { first: 0, last: 0 };
  private next: string | undefined;
  private begun = false;
  private reading = false;
  private asking = false;
  private control = new AbortController();

  readonly last: number; // number of the last turn

  constructor(private of: Conversation, private changed: () => void) {
    this.last = of.turn_count + (of.inherited?.turn_count ?? 0);
    const n = this.last + 1;
    this.known = n;
    this.starts = new Float64Array(n);
    this.ends = new Float64Array(n);
    this.times = new Float64Array(n);
    this.sizes = new Uint32Array(n);
    this.uses = new Uint32Array(n);
    void this.read();
  }

  stop() { this.control.abort(); }
  get error(): Problem | undefined { return this.errors.read ?? this.errors.ask; }
  get turns(): number { return this.last - this.first + 1; }
  has(turn: number): boolean { return turn >= this.known && turn <= this.last; }
  begin(turn: number): number { return this.starts[turn] ?? 0; }
  end(turn: number): number { return this.ends[turn] ?? 0; }
  chars(turn: number): number { return this.sizes[turn] ?? 0; }
  calls(turn: number): number { return this.uses[turn] ?? 0; }
  time(turn: number): string | undefined { return this.times[turn] ? new Date(this.times[turn]! * 1000).toISOString() : undefined; }
  text(turn: number): Beginning | undefined { return this.texts.get(turn); }

  // turnAt returns the turn that a sequence is in, or the lowest that is known.
  turnAt(seq: number): number {
    let low = this.known, high = this.last;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.begin(middle) <= seq) low = middle; else high = middle - 1;
    }
    return Math.min(low, this.last);
  }

  // want asks for the texts of turns, which are in sight.
  want(first: number, last: number) {
    this.wanted = { first: Math.max(this.first, first), last: Math.min(this.last, last) };
    void this.read();
    void this.ask();
  }

  // guarded does f patiently. An error is shown until there is an answer.
  private async guarded(what: "read" | "ask", f: (answered: () => void) => Promise<void>) {
    const recovered = () => {
      delete this.errors[what];
      this.changed();
    };
    const done = await patient((answered) => f(() => { answered(); recovered(); }), this.control.signal, (e) => {
      this.errors[what] = e;
      this.changed();
    });
    if (done && this.errors[what]) recovered(); // nothing is missing any more
  }

  private read = async () => {
    if (this.reading) return;
    this.reading = true;
    await this.guarded("read", async (answered) => {
      while (!this.begun || this.next && (this.last - this.known < eager || this.known > this.wanted.first)) {
        const url = path("/v1/conversations/{}/outline", [this.of.id], { as_of: this.of.last_seq, limit: page, cursor: this.next });
        const answer = await getJSON<{ turns: OutlinedTurn[]; summaries?: OutlinedSummary[]; next_cursor?: string }>(url, this.control.signal);
        if (!this.begun) this.summaries = answer.summaries ?? [];
        this.begun = true;
        this.next = answer.next_cursor;
        for (const t of answer.turns) {
          if (t.n === 0) this.first = 0;
          this.known = Math.min(this.known, t.n);
          this.starts[t.n] = t.seq;
          this.ends[t.n] = t.end;
          this.times[t.n] = t.at ?? 0;
          this.sizes[t.n] = t.chars;
          this.uses[t.n] = t.calls ?? 0;
        }
        answered();
        void this.ask();
      }
    });
    this.reading = false;
    if (this.next && this.known > this.wanted.first && this.goesOn("read")) void this.read();
  };

  // goesOn reports whether what came into sight while a request ended can be asked for.
  private goesOn(what: "read" | "ask"): boolean { return !this.errors[what] && !this.control.signal.aborted; }

  private missing(): number {
    for (let n = this.wanted.last; n >= Math.max(this.wanted.first, this.known); n--) if (!this.texts.has(n)) return n;
    return -1;
  }

  private ask = async () => {
    if (this.asking) return;
    this.asking = true;
    await this.guarded("ask", async (answered) => {
      for (let last = this.missing(); last >= 0; last = this.missing()) {
        const limit = Math.min(beginnings, last - Math.max(this.wanted.first, this.known) + 1);
        const url = await asOf(this.of, this.end(last), "/v1/conversations/{}/turns", { limit });
        const { turns } = await getJSON<{ turns: Turn[] }>(url, this.control.signal);
        for (const t of turns) this.texts.set(t.number, { text: firstLine(typed(t.user_message?.content ?? ""), 160), origin: t.user_message?.origin });
        if (!this.texts.has(last)) this.texts.set(last, { text: "" }); // the row shows its figures
        this.forget();
        answered();
        await this.askFailed(last - limit + 1, last);
        answered();
      }
    });
    this.asking = false;
    if (this.missing() >= 0 && this.goesOn("ask")) void this.ask();
  };

  // askFailed counts the failed calls of turns, from the last one back.
  private async askFailed(first: number, last: number) {
    if (!this.uses.subarray(first, last + 1).some((calls) => calls > 0)) return;
    let cursor: string | undefined, within = true;
    for (let i = 0; i < searched && within; i++) {
      const url = await asOf(this.of, this.end(last), "/v1/conversations/{}/tool-calls", { success: "false", limit: 100, cursor });
      const answer = await getJSON<{ tool_calls: ToolCall[]; next_cursor?: string }>(url, this.control.signal);
      for (const call of answer.tool_calls) {
        const turn = this.texts.get(call.turn);
        if (turn && call.turn >= first && hasFailed(call)) turn.failed = (turn.failed ?? 0) + 1;
      }
      cursor = answer.next_cursor;
      within = cursor !== undefined && !answer.tool_calls.some((call) => call.turn < first);
    }
  }

  private forget() {
    if (this.texts.size <= kept) return;
    const middle = (this.wanted.first + this.wanted.last) / 2;
    const far = [...this.texts.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
    for (const turn of far.slice(0, this.texts.size - kept)) this.texts.delete(turn);
  }
}

export function useOutline(of: Conversation | undefined): Outline | undefined {
  const [, redraw] = useState(0);
  const held = useRef<{ of: Conversation; outline: Outline } | undefined>(undefined);
  if (of && held.current?.of !== of) {
    held.current?.outline.stop();
    held.current = { of, outline: new Outline(of, () => redraw((n) => n + 1)) };
  }
  useEffect(() => () => held.current?.outline.stop(), []);
  return held.current?.outline;
}
