// The newest events as they come.
import { useEffect, useRef, useState } from "preact/hooks";

import { ask, getJSON, path, Problem } from "./api";
import { EventPanel } from "./event";
import { Field } from "./field";
import { Rows } from "./rows";
import { sent } from "./stream";
import { asText, count, firstLine, Notice, plural, Text, Time, useTitle } from "./text";
import { change, link, type Params } from "./url";

const kept = 2000; // rows
const before = 50; // events that are shown at the start
const again = 2000; // milliseconds until the next try to connect
const redraw = 100; // milliseconds between two redraws

const kinds = ["message_created", "tool_called", "tool_returned", "summary_written", "tool_condensed", "conversation_started", "conversation_updated",
  "conversation_deleted", "context_served", "project_aliased", "other"];

interface Streamed { seq: number; conversation_id: string; kind: string; bytes: number; event?: { time?: string; data?: Record<string, unknown> }; error?: string }
interface Row { seq: number; kind: string; conversation: string; bytes: number; time?: string; text: string }

function rowOf(s: Streamed): Row {
  const d = s.event?.data ?? {};
  const text = d["content"] ?? d["result"] ?? d["error"] ?? d["title"] ?? d["conversation"] ?? d["query"] ?? d["arguments"] ?? "";
  const name = typeof d["tool_name"] === "string" ? d["tool_name"] + " " : s.kind === "context_served" ? `${d["chars"]} characters as of #${d["as_of"]} ` : "";
  return { seq: s.seq, kind: s.kind, conversation: s.conversation_id, bytes: s.bytes, time: s.event?.time, text: s.error ?? name + firstLine(asText(text), 200) };
}

// Follower keeps the newest rows of the log, in the order of the log. It continues after a break where it was.
class Follower {
  rows: Row[] = [];
  held: Row[] = []; // came while it is paused
  missed = 0; // came while it is paused, also those that are not kept
  paused = false;
  live = false;
  error?: Problem;
  private last = 0;
  private control?: AbortController;
  private timer = 0;

  constructor(private query: { conversation?: string; kind?: string }, private changed: () => void) {}

  start() {
    if (!this.control) void this.follow(this.control = new AbortController());
  }

  stop() {
    this.control?.abort();
    this.control = undefined;
    this.live = false;
    clearTimeout(this.timer);
    this.timer = 0;
  }

  pause(yes: boolean) {
    this.paused = yes;
    if (!yes) {
      this.rows = [...this.rows, ...this.held].slice(-kept);
      this.held = [];
      this.missed = 0;
    }
    this.changed();
  }

  private async follow(control: AbortController) {
    while (!control.signal.aborted) {
      try {
        await this.connect(control.signal);
        this.error = undefined; // the server ended the stream, as it does when it stops
      } catch (e) {
        if (control.signal.aborted) return;
        this.error = e instanceof Problem ? e : new Problem(0, "The connection was lost.");
      }
      this.live = false;
      const over = this.error !== undefined && [401, 403, 422].includes(this.error.status);
      if (this.error) this.error.again = !over;
      this.changed();
      if (over) return;
      await new Promise((done) => setTimeout(done, again));
    }
  }

  private async connect(signal: AbortSignal) {
    let from: number | undefined;
    if (this.last === 0) {
      const { stream } = await getJSON<{ stream: { head: number } }>("/v1/status", signal);
      from = Math.max(1, stream.head - before + 1);
    }
    const headers: Record<string, string> = this.last > 0 ? { "Last-Event-ID": String(this.last) } : {};
    const answer = await ask(path("/v1/stream", [], { ...this.query, from }), { signal, headers });
    this.live = true;
    this.error = undefined;
    this.changed();
    for await (const message of sent(answer)) {
      if (message.name !== "event") continue;
      const row = rowOf(JSON.parse(message.data) as Streamed);
      this.last = row.seq;
      const list = this.paused ? this.held : this.rows;
      list.push(row);
      if (list.length > kept + 200) list.splice(0, list.length - kept);
      if (this.paused) this.missed++;
      this.timer ||= setTimeout(() => { this.timer = 0; this.changed(); }, redraw);
    }
  }
}

export function Tail({ p }: { p: Params }) {
  const [, draw] = useState(0);
  useTitle("Live");
  const held = useRef<Follower | undefined>(undefined);
  useEffect(() => {
    const follower = held.current = new Follower({ conversation: p["conversation"], kind: p["kind"] }, () => draw((n) => n + 1));
    const look = () => document.hidden ? follower.stop() : follower.start();
    look();
    document.addEventListener("visibilitychange", look);
    return () => { follower.stop(); document.removeEventListener("visibilitychange", look); };
  }, [p["conversation"], p["kind"]]);
  const f = held.current;
  const rows = f?.rows ?? [], newest = rows.length - 1;
  const selected = p["event"] ? rows.findIndex((r) => r.seq === Number(p["event"])) : -1;
  const select = (i: number) => {
    f?.pause(true); // so that the row stays where it is
    change({ event: String(rows[newest - i]!.seq) }, true);
  };
  const state = !f || f.error ? "waits" : f.paused ? "paused" : f.live ? "live" : "connecting";
  return (
    <div class={`body tail ${p["event"] ? "with-event" : ""}`}>
      <div class="view">
        <div class="tailhead">
          <div class="bar"><h1>Live</h1><span class={`state ${state === "live" ? "good" : state === "waits" ? "bad" : "busy"}`} role="status">{state}</span><span class="space" />
            <button class={f?.paused ? "primary" : ""} onClick={() => f?.pause(!f.paused)}>{f?.paused ? `Continue${f.missed > 0 ? `, ${count(f.missed)} new` : ""}` : "Pause"}</button></div>
          <form class="filters" onSubmit={(e) => e.preventDefault()}>
            <label>Kind <select value={p["kind"] ?? ""} onChange={(e) => change({ kind: e.currentTarget.value })}><option value="">all</option>{kinds.map((k) => <option key={k} value={k}>{k.replace("_", " ")}</option>)}</select></label>
            <Field label="Conversation" type="text" placeholder="all, or an id" value={p["conversation"] ?? ""} onDone={(v) => change({ conversation: v.trim() })} />
            {p["conversation"] && <a href={link({ c: p["conversation"] })}>Open this conversation</a>}
          </form>
          {f?.error ? <Notice error={f.error} /> : <Notice>{rows.length === 0 ? "No events yet. They appear here as soon as an agent publishes them."
            : `The newest ${plural(Math.min(rows.length, kept), "event")}, latest first. This page keeps at most ${count(kept)}.`}</Notice>}
        </div>
        <Rows label="Events" count={rows.length} height={52} selected={selected < 0 ? -1 : newest - selected} onSelect={select} row={(i) => {
          const r = rows[newest - i]!;
          return <>
            <span class="number">#{r.seq}</span>
            <span class="what"><b>{r.kind.replace("_", " ")}</b> <Text of={r.text} /></span>
            <span class="facts"><Time of={r.time} /><span><Text of={r.conversation} /></span><span>{count(r.bytes)} bytes</span></span>
          </>;
        }} />
      </div>
      {p["event"] && <EventPanel seq={p["event"]} />}
    </div>
  );
}
