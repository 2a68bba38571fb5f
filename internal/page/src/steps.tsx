// The context after each turn, one after the other, and what each turn changed.
import { useEffect, useState } from "preact/hooks";

import { type Context, type Conversation, path, useGet } from "./api";
import { Differences, differences, type Words } from "./compare";
import { contextQuery } from "./parameters";
import type { Outline } from "./outline";
import { count, Notice } from "./text";
import { change, type Params } from "./url";

const pause = 900; // milliseconds that a step stays while it plays

const words: Words = {
  states: { gone: "left", new: "entered", shorter: "shortened", longer: "grew", moved: "moved" }, first: "before", second: "now",
  notInFirst: "there was no room for it, or it ranked too low", notInSecond: "there is no more room for it, or it ranks too low",
};

export function Steps({ c, outline: o, p, data }: { c: Conversation; outline: Outline; p: Params; data?: Context }) {
  const [playing, play] = useState(false);
  const asOf = Number(p["as_of"] ?? c.last_seq);
  const turn = o.turnAt(asOf);
  const there = (n: number) => o.has(n) && n >= o.first && n <= o.last && o.end(n) >= c.first_seq; // a branch did not exist before
  const to = (n: number) => {
    if (there(n)) change({ as_of: n >= o.last ? undefined : String(o.end(n)), step: "1", served: undefined }, true);
  };
  const shown = data?.as_of === asOf;
  useEffect(() => {
    if (!playing || !shown) return;
    if (turn >= o.last) { play(false); return; }
    const timer = setTimeout(() => to(turn + 1), pause);
    return () => clearTimeout(timer);
  }, [playing, shown, turn]);
  const toggle = () => {
    if (!playing && turn >= o.last) to(Math.max(o.first, o.known, o.turnAt(c.first_seq)));
    play(!playing);
  };
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if ((e.target as Element).matches("input, select, textarea") || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "[") to(turn - 1);
      else if (e.key === "]") to(turn + 1);
      else if (e.key === "p") toggle();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const open = p["step"] === "1", before = there(turn - 1) ? o.end(turn - 1) : 0;
  if (o.turns === 0) return null;
  return (
    <section class="steps" aria-label="Turn by turn">
      <div class="bar">
        <button onClick={() => to(turn - 1)} disabled={!there(turn - 1)} aria-label="One turn back" title="One turn back: [">◀</button>
        <button class={playing ? "primary" : ""} onClick={toggle} title="p">{playing ? "Pause" : "Play"}</button>
        <button onClick={() => to(turn + 1)} disabled={turn >= o.last} aria-label="One turn on" title="One turn on: ]">▶</button>
        <span>after turn <b>{count(turn)}</b> of {count(o.last)}</span>
        <span class="space" />
        <button aria-expanded={open} onClick={() => change({ step: open ? undefined : "1" }, true)}>{open ? "Hide what the turn changed" : "Show what the turn changed"}</button>
      </div>
      {open && (before === 0 ? <Notice>This is the first turn.</Notice> : <Changes c={c} p={p} before={before} turn={turn} data={data} />)}
    </section>
  );
}

function Changes({ c, p, before, turn, data }: { c: Conversation; p: Params; before: number; turn: number; data?: Context }) {
  const { data: earlier, error } = useGet<Context>(path("/v1/conversations/{}/context", [c.id], { ...contextQuery(p), as_of: before, explain: "true" }));
  if (error || !earlier || !data) return <Notice error={error}>Loading…</Notice>;
  if (earlier.as_of >= data.as_of) return null; // one of the two is about to come
  const d = differences(earlier, data, words);
  const of = (state: string) => d.list.filter((x) => x.state === state).length;
  const counts = Object.entries(words.states).map(([state, name]) => [of(state), name] as const).filter(([n]) => n > 0).map(([n, name]) => `${count(n)} ${name}`);
  return (
    <details class="changes" open={p["list"] === "1"} onToggle={(e) => change({ list: e.currentTarget.open ? "1" : undefined }, true)}>
      <summary>{counts.length === 0 ? `Turn ${turn} changed nothing.` : `Turn ${turn}: ${counts.join(", ")}; ${count(d.same)} stayed.`}</summary>
      <Differences list={d.list} words={words} />
    </details>
  );
}
