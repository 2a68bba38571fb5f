// A conversation in time: its summaries as bars over its turns, the turns as rows, and the selected turn.
import { useState } from "preact/hooks";

import { asOf, type Conversation, hasFailed, path, type Step, type Summary, type ToolCall, type Turn, useGet, useGetLater, usePages } from "./api";
import { EventLink, TurnLink } from "./event";
import type { Outline, OutlinedSummary } from "./outline";
import { Rows } from "./rows";
import { asText, count, firstLine, Notice, plural, shortPath, Text, Time } from "./text";
import { change, link, type Params } from "./url";

export function Timeline({ c, outline: o, p }: { c: Conversation; outline: Outline; p: Params }) {
  const asked = Number(p["turn"] ?? NaN);
  const turn = Math.min(o.last, Math.max(o.first, isNaN(asked) ? o.last : asked));
  if (o.turns === 0) return <div class="pad"><Notice error={o.error}>No turns yet: a turn begins with a user message.</Notice></div>;
  return (
    <div class="timeline">
      <Strip o={o} turn={turn} />
      {o.error && <Notice error={o.error} />}
      <div class="panes">
        <Rows label="Turns" count={o.turns} height={58} selected={turn - o.first} onSelect={(i) => change({ turn: String(i + o.first) }, true)}
          onRange={(first, last) => o.want(first + o.first, last + o.first)} row={(i) => <TurnRow o={o} turn={i + o.first} />} />
        <section class="turn" aria-label={`Turn ${turn}`} tabIndex={0}>
          {o.has(turn) ? <OpenTurn key={turn} c={c} o={o} number={turn} /> : !o.error && <Notice>Loading…</Notice>}
        </section>
      </div>
      {o.summaries.length > 0 && <SummaryList key={turn} c={c} o={o} turn={turn} />}
    </div>
  );
}

function TurnRow({ o, turn }: { o: Outline; turn: number }) {
  const known = o.has(turn), text = o.text(turn);
  return <>
    <span class="number">{turn}</span>
    <span class="what">{!text ? <span class="loading">…</span> : turn === 0 ? "Before the first user message" : <>{text.origin && <span class="badge"><Text of={text.origin} /></span>} <Text of={text.text || "(no text)"} /></>}</span>
    <span class="facts">{known && <><Time of={o.time(turn)} />{o.calls(turn) > 0 && <span>{plural(o.calls(turn), "call")}</span>}{text?.failed && <span class="bad-text">{count(text.failed)} failed</span>}<span>{count(o.chars(turn))} characters</span></>}</span>
  </>;
}

const bins = 1000; // bars of the strip, at most

// Strip shows the lengths of the turns, and the summaries over the turns that they cover. A click opens the turn below it.
function Strip({ o, turn }: { o: Outline; turn: number }) {
  const list = o.summaries.filter((s) => s.end >= o.begin(o.known));
  const levels = Math.max(0, ...list.map((s) => s.level));
  const n = o.turns, lane = 11, ground = 30, width = 1000;
  const height = levels * lane + ground;
  const x = (number: number) => (number - o.first) / n * width;
  const open = (e: MouseEvent) => {
    const box = (e.currentTarget as Element).getBoundingClientRect();
    change({ turn: String(Math.min(o.last, o.first + Math.floor((e.clientX - box.left) / box.width * n))) }, true);
  };
  return (
    <div class="strip">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" style={{ height: `${height * 1.3}px` }} role="img" onClick={open}
        aria-label={`${plural(n, "turn")}, ${plural(list.length, "summary", "summaries")} above them; turn ${turn} is open`}>
        {list.map((s) => {
          const from = o.turnAt(s.seq), to = o.turnAt(s.end);
          return <rect key={s.id} class={s.frontier ? "frontier" : "consolidated"} x={x(from)} y={(levels - s.level) * lane + 1}
            width={Math.max(1.5, x(to + 1) - x(from) - 1)} height={lane - 3} rx="2"><title>{`level ${s.level}, turns ${from} to ${to}`}</title></rect>;
        })}
        <path class="sizes" d={sizes(o, x, height, ground - 4)} />
        <rect class="here" x={x(turn)} y={0} width={Math.max(3, width / n)} height={height} />
      </svg>
      <p class="legend"><span><i class="sizes" /> characters of a turn</span>
        {list.length > 0 && <><span><i class="frontier" /> summary</span><span><i class="consolidated" /> summary within a higher one</span></>}<span><i class="here" /> selected turn</span></p>
    </div>
  );
}

// sizes draws a bar for each turn, or for the longest of several where there are more turns than bars. The root of the
// length is drawn, so that short turns beside long ones can be seen.
function sizes(o: Outline, x: (turn: number) => number, bottom: number, height: number): string {
  const step = Math.max(1, o.turns / bins);
  const longest: { from: number; chars: number }[] = [];
  for (let from = o.first; from <= o.last; from += step) {
    let chars = 0;
    for (let n = Math.max(o.known, Math.floor(from)); n < Math.max(from + step, Math.floor(from) + 1) && n <= o.last; n++) chars = Math.max(chars, o.chars(n));
    longest.push({ from, chars });
  }
  const top = Math.max(1, ...longest.map((l) => l.chars));
  return longest.filter((l) => l.chars > 0).map((l) => {
    const left = x(l.from).toFixed(1), gap = o.turns < 200 ? 1 : 0, high = Math.max(1, Math.sqrt(l.chars / top) * height).toFixed(1);
    return `M${left} ${bottom}v-${high}h${Math.max(0.8, x(l.from + step) - x(l.from) - gap).toFixed(1)}v${high}z`;
  }).join("");
}

function SummaryList({ c, o, turn }: { c: Conversation; o: Outline; turn: number }) {
  const [open, setOpen] = useState(false);
  const over = o.summaries.filter((s) => s.seq <= o.end(turn) && s.end >= o.begin(turn)).sort((a, b) => a.level - b.level).slice(0, 20);
  if (over.length === 0) return null;
  return (
    <details class="summaries" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{plural(over.length, "summary covers", "summaries cover")} turn {turn}</summary>
      {open && over.map((s) => <OneSummary key={s.id} c={c} s={s} />)}
    </details>
  );
}

function OneSummary({ c, s }: { c: Conversation; s: OutlinedSummary }) {
  const { data: found, error } = useGet<Summary>(path("/v1/conversations/{}/summaries/{}", [c.id, s.id]));
  if (!found) return <Notice error={error}>Loading…</Notice>;
  return (
    <article>
      <h3>Level {found.level}, turns {found.first_turn} to {found.last_turn} <span class="dim">{found.method}{s.frontier ? "" : ", part of a higher summary"}</span> <EventLink seq={found.seq} /></h3>
      <p><Text of={found.conversation} /></p>
      {found.actions && <p class="dim"><Text of={found.actions} /></p>}
    </article>
  );
}

function OpenTurn({ c, o, number }: { c: Conversation; o: Outline; number: number }) {
  const user = useGetLater<{ turns: Turn[] }>(number > 0 ? `${c.id} ${number}` : null, () => asOf(c, o.end(number), "/v1/conversations/{}/turns", { limit: 1 }));
  const steps = usePages<Step>(path("/v1/conversations/{}/steps", [c.id], { turn: number, order: "oldest", limit: 30, include_reasoning: true }), "steps");
  const said = user.data?.turns.find((t) => t.number === number)?.user_message;
  return (
    <>
      <div class="bar"><h2>Turn {number}</h2><span class="space" />
        {o.end(number) >= c.first_seq && <a href={link({ c: c.id, view: "context", as_of: String(o.end(number)), step: "1" })}>Context after this turn</a>}
        <a href={link({ c: c.id, view: "graph", turn: String(number) })}>Graph</a></div>
      {user.error && <Notice error={user.error} />}
      {said && <article class="message user"><header><b><Text of={said.speaker ?? said.role} /></b>{said.origin && <span class="badge"><Text of={said.origin} /></span>}<Time of={said.time} /><EventLink seq={said.seq} /></header><Long of={said.content ?? ""} /></article>}
      {steps.list.map((s, i) => (
        <div key={i}>
          {s.message && (s.message.content || s.message.reasoning) && <article class="message"><header><b><Text of={s.message.speaker ?? s.message.role} /></b><Time of={s.message.time} /><EventLink seq={s.message.seq} /></header>
            {s.message.reasoning && <details><summary>Reasoning</summary><Long of={s.message.reasoning} /></details>}
            <Long of={s.message.content ?? ""} /></article>}
          {s.tool_calls?.map((call) => <Call key={call.seq} call={call} />)}
        </div>
      ))}
      {(steps.loading || steps.error) && <Notice error={steps.error}>Loading…</Notice>}
      {steps.more && <button onClick={steps.more}>Show more of this turn</button>}
    </>
  );
}

const fold = 900; // characters of a text that are shown before it is opened

export function Long({ of }: { of: string }) {
  if (of.length <= fold) return <pre class="said"><Text of={of} /></pre>;
  return (
    <details class="long">
      <summary><pre class="said"><Text of={of.slice(0, fold)} /></pre><span class="more">{count(of.length - fold)} more characters</span></summary>
      <pre class="said"><Text of={of.slice(fold)} /></pre>
    </details>
  );
}

const telling = ["command", "cmd", "pattern", "query", "url", "file_path", "path", "prompt"];

// gist is the argument that says most about a call, or all of them.
function gist(given: unknown): string {
  const all = typeof given === "object" && given !== null ? given as Record<string, unknown> : {};
  const name = telling.find((name) => typeof all[name] === "string" && all[name]);
  if (!name) return asText(given);
  return name.endsWith("path") ? shortPath(all[name] as string) : all[name] as string;
}

// Call shows a call with its result; with of, it links to its turn in that conversation.
export function Call({ call, of }: { call: ToolCall; of?: string }) {
  const r = call.result;
  const failed = hasFailed(call);
  const result = asText(r?.error ?? r?.result);
  return (
    <details class={`call ${failed ? "failed" : ""}`}>
      <summary>
        <span class="sign" aria-hidden="true">{!r ? "…" : failed ? "✗" : r.success ? "✓" : "·"}</span>
        <b><Text of={call.tool_name} /></b>
        <span class="args"><Text of={firstLine(gist(call.arguments), 240)} /></span>
        <span class="dim">{!r ? "no result" : r.not_run ?? (failed ? "failed" : `${count(result.length)} characters`)}{r?.duration_ms !== undefined && `, ${count(Math.round(r.duration_ms))} ms`}</span>
        {(failed || r?.not_run) && <span class="error"><Text of={firstLine(result)} /></span>}
      </summary>
      <header>{of && <TurnLink of={of} turn={call.turn} event={call.seq} />}<span class="dim">call</span><EventLink seq={call.seq} />{r && <><span class="dim">result</span><EventLink seq={r.seq} /></>}</header>
      <pre><Text of={asText(call.arguments)} max={20_000} /></pre>
      {r && <pre class="result"><Text of={result} max={20_000} /></pre>}
    </details>
  );
}
