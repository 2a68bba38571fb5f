// A part of a conversation as a graph: turns, their messages, the tools that these called, and the files.
import { useEffect, useRef, useState } from "preact/hooks";

import { asOf, type Conversation, getJSON, type Step, type Turn, useGetLater } from "./api";
import { columns, draw, type Drawn, type File, type Node, width } from "./layout";
import type { Outline } from "./outline";
import { count, Notice, Text, useTextScale } from "./text";
import { change, type Params } from "./url";

const mostTurns = 8;
const mostSteps = 120;

// useFiles returns the files that were read and written in each of some turns. The API knows the latest access of each
// file, so it is asked for the end of each turn.
function useFiles(c: Conversation, turns: Turn[]): File[] {
  const [files, set] = useState<File[]>([]);
  useEffect(() => {
    const control = new AbortController();
    set([]);
    for (const { number, last_seq } of turns) {
      asOf(c, last_seq, "/v1/conversations/{}/files", { limit: 12, kind: ["read", "write"] }).then((url) => getJSON<{ files: File[] }>(url, control.signal)).then(
        (answer) => set((before) => [...before, ...answer.files.filter((f) => f.turn === number)]), () => {}); // the graph is there without them
    }
    return () => control.abort();
  }, [c, turns.map((t) => t.number).join()]);
  return files;
}

export function Graph({ c, outline: o, p }: { c: Conversation; outline: Outline; p: Params }) {
  const asked = Number(p["turn"] ?? NaN);
  const last = Math.min(o.last, Math.max(o.first, isNaN(asked) ? o.last : asked));
  const ready = o.has(last);
  const key = ready ? `${c.id} ${last}` : null, end = o.end(last);
  const turns = useGetLater<{ turns: Turn[] }>(key, () => asOf(c, end, "/v1/conversations/{}/turns", { limit: mostTurns }));
  const steps = useGetLater<{ steps: Step[] }>(key, () => asOf(c, end, "/v1/conversations/{}/steps", { limit: mostSteps }));
  const files = useFiles(c, turns.data?.turns ?? []);
  const error = o.error ?? turns.error ?? steps.error;
  if (o.turns === 0) return <div class="pad"><Notice>No turns yet: a turn begins with a user message.</Notice></div>;
  if (!turns.data || !steps.data) return <div class="pad"><Notice error={error}>Loading…</Notice></div>;
  const list = steps.data.steps.slice().reverse();
  // Of the oldest turn that the steps reach, the first ones may be missing.
  const reached = steps.data.steps.length < mostSteps ? turns.data.turns : turns.data.turns.filter((t, i) => i === 0 || t.number > list[0]!.turn);
  const g = draw(c, reached, list, files);
  const to = (turn: number) => change({ turn: turn >= o.last ? undefined : String(Math.max(o.first, turn)) }, true);
  return (
    <div class="pad graph">
      <div class="bar">
        <button onClick={() => to(g.first - 1)} disabled={g.first <= o.first}>Earlier turns</button>
        <button onClick={() => to(last + mostTurns)} disabled={last >= o.last}>Later turns</button>
        <span>turns <b>{count(g.first)}</b> to <b>{count(last)}</b> of {count(o.last)}{!g.whole && <span class="dim">; the first messages are not drawn</span>}</span>
        <span class="space" /><span class="dim">Arrow keys move, Enter opens.</span>
      </div>
      <Drawing g={g} shown={p["event"]} />
      <details class="aslist"><summary>As a list</summary><ListOf nodes={[g.root]} /></details>
    </div>
  );
}

function Drawing({ g, shown }: { g: Drawn; shown?: string }) {
  const box = useRef<HTMLDivElement>(null);
  const zoom = useTextScale();
  const keys = (e: KeyboardEvent) => {
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[e.key];
    const here = g.nodes.find((n) => n.id === (e.target as HTMLElement).dataset["node"]);
    if (!step || !here) return;
    e.preventDefault();
    const [across, down] = step as [number, number];
    const near = g.nodes.filter((n) => n !== here && n.column === here.column + across && (across !== 0 || (n.y - here.y) * down > 0))
      .sort((a, b) => Math.abs(a.y - here.y) - Math.abs(b.y - here.y))[0];
    if (near) box.current?.querySelector<HTMLElement>(`[data-node="${CSS.escape(near.id)}"]`)?.focus();
  };
  return (
    <div class="scroll-x" role="region" aria-label="Graph" tabIndex={0}>
      <div class="drawing" ref={box} style={{ width: `${width}px`, height: `${g.height}px`, zoom }} onKeyDown={keys}>
        <svg width={width} height={g.height} aria-hidden="true">{g.edges.map(([a, b]) => {
          const from = columns[a.column]!.x + columns[a.column]!.width, to = columns[b.column]!.x, middle = (from + to) / 2;
          return <path key={`${a.id} ${b.id}`} d={`M${from} ${a.y}C${middle} ${a.y} ${middle} ${b.y} ${to} ${b.y}`} />;
        })}</svg>
        {g.nodes.map((n) => (
          <button key={n.id} data-node={n.id} tabIndex={n === g.root ? 0 : -1} class={`node k-${n.kind} ${n.failed ? "failed" : ""}`} title={n.title} aria-pressed={n.open["event"] ? n.open["event"] === shown : undefined}
            style={{ left: `${columns[n.column]!.x}px`, top: `${n.y - 13}px`, width: `${columns[n.column]!.width}px` }} onClick={() => change(n.open)}>
            {n.failed && <span aria-hidden="true">✗ </span>}<Text of={n.label} />
          </button>
        ))}
      </div>
    </div>
  );
}

function ListOf({ nodes }: { nodes: Node[] }) {
  return <ul>{nodes.map((n) => <li key={n.id}><button class="quiet" onClick={() => change(n.open)}><Text of={n.label} /></button> <span class="dim"><Text of={n.title} /></span>{n.children.length > 0 && <ListOf nodes={n.children} />}</li>)}</ul>;
}
