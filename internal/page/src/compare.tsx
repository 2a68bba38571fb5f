// What two contexts have in common, and why they differ.
import { type Context, type Conversation, type Item, path, useGet } from "./api";
import { Controls, contextQuery } from "./parameters";
import { EventLink } from "./event";
import { Budget, sectionName } from "./lines";
import { count, firstLine, Notice, Text } from "./text";
import { type Params } from "./url";

interface Placed { section: string; item: Item }
type State = "gone" | "new" | "shorter" | "longer" | "moved"; // from the first context to the second
export interface Difference { key: string; section: string; state: State; item: Item; because: string }

// Words name two contexts in sentences: first and second are where or when they are, and the others say why something
// is not in one of them.
export interface Words { states: Record<State, string>; first: string; second: string; notInFirst: string; notInSecond: string }

function identity(item: Item): string {
  return [item.event_id || item.label || item.text, item.path, item.start_line].join("\u0000");
}

// Two places that show one event are told apart by their order.
function placed(c: Context): Map<string, Placed> {
  const all = new Map<string, Placed>();
  for (const s of c.sections) {
    for (const item of s.items) {
      if (item.kind === "left_out") continue;
      let key = identity(item);
      while (all.has(key)) key += "\u0000again";
      all.set(key, { section: s.name, item });
    }
  }
  return all;
}

function absence(item: Item, other: Context, otherwise: string): string {
  if ((item.seq ?? 0) > other.as_of) return "it did not exist yet";
  const summary = other.sections.flatMap((s) => s.items).find((x) => x.summary && item.seq && item.kind !== "summary" && x.summary.first_seq <= item.seq && item.seq <= x.summary.last_seq)?.summary;
  return summary ? `${otherwise}; the summary of turns ${summary.first_turn} to ${summary.last_turn} covers it` : otherwise;
}

export function differences(a: Context, b: Context, words: Words): { same: number; list: Difference[] } {
  const inA = placed(a), inB = placed(b);
  const list: Difference[] = [];
  let same = 0;
  for (const [key, { section, item }] of inA) {
    const other = inB.get(key);
    if (!other) list.push({ key, section, item, state: "gone", because: "because " + absence(item, b, words.notInSecond) });
    else if (other.section !== section) list.push({ key, section, item, state: "moved", because: `${words.second} in ${sectionName(other.section)}` });
    else if (other.item.chars !== item.chars) list.push({ key, section, item, state: item.chars > other.item.chars ? "shorter" : "longer", because: `${count(item.chars)} characters ${words.first}, ${count(other.item.chars)} ${words.second}` });
    else same++;
  }
  for (const [key, { section, item }] of inB) if (!inA.has(key)) list.push({ key, section, item, state: "new", because: "because " + absence(item, a, words.notInFirst) });
  return { same, list };
}

function shown(item: Item): string {
  const text = [item.label, item.path, item.tool_name, item.text || item.arguments].filter(Boolean).join(" ");
  return text || (item.kind === "message" ? "a message without text" : item.kind.replace("_", " "));
}

const signs: Record<State, string> = { gone: "−", new: "+", shorter: "◂", longer: "▸", moved: "↔" };

export function Differences({ list, words }: { list: Difference[]; words: Words }) {
  return <>{[...new Set(list.map((x) => x.section))].map((section) => (
    <section key={section} class="diff" aria-label={sectionName(section)}>
      <h2><i class={`s-${section}`} />{sectionName(section)}</h2>
      <ul>{list.filter((x) => x.section === section).map((x) => (
        <li key={x.key} class={x.state}>
          <span class="sign" aria-hidden="true">{signs[x.state]}</span>
          <span><b>{words.states[x.state]}</b> <span class="dim">{x.because}</span> <EventLink seq={x.item.seq} /><br />
            <Text of={firstLine(shown(x.item), 180)} /></span>
        </li>
      ))}</ul>
    </section>
  ))}</>;
}

const words: Words = {
  states: { gone: "only in A", new: "only in B", shorter: "longer in A", longer: "longer in B", moved: "moved" }, first: "in A", second: "in B",
  notInFirst: "A has no room for it, or ranks it too low", notInSecond: "B has no room for it, or ranks it too low",
};

export function Compare({ c, p }: { c: Conversation; p: Params }) {
  const read = (suffix: string) => useGet<Context>(path("/v1/conversations/{}/context", [c.id], { ...contextQuery(p, suffix), explain: "true" }));
  const a = read(""), b = read("_b");
  const d = a.data && b.data ? differences(a.data, b.data, words) : undefined;
  return (
    <div class="context compare">
      <div class="two">
        {([["A", "", a], ["B", "_b", b]] as const).map(([name, suffix, read]) => (
          <section key={name} aria-label={`Context ${name}`}><h2>{name}</h2><Controls c={c} p={p} suffix={suffix} name={`Parameters of ${name}`} />
            {read.error ? <Notice error={read.error} /> : read.data?.manifest ? <Budget data={read.data} /> : <Notice>Loading…</Notice>}</section>
        ))}
      </div>
      {d && <Notice>{d.list.length === 0 ? `Both show the same ${count(d.same)} items.` : `${count(d.same)} items are the same, ${count(d.list.length)} differ.`}</Notice>}
      {d && <Differences list={d.list} words={words} />}
    </div>
  );
}
