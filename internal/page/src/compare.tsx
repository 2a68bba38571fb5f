// What two contexts of a conversation have in common, and why they differ.
import { type Context, type Conversation, type Item, path, useGet } from "./api";
import { Budget, Controls, contextQuery, sectionName } from "./context";
import { EventLink } from "./event";
import { count, firstLine, Notice, Text } from "./text";
import { type Params } from "./url";

interface Placed { section: string; item: Item }
export interface Difference { key: string; section: string; state: "only in A" | "only in B" | "longer in A" | "longer in B" | "moved"; item: Item; because: string }

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

function absence(item: Item, other: Context): string {
  if ((item.seq ?? 0) > other.as_of) return "it did not exist yet";
  const summary = other.sections.flatMap((s) => s.items).find((x) => x.summary && item.seq && item.kind !== "summary" && x.summary.first_seq <= item.seq && item.seq <= x.summary.last_seq);
  if (summary) return `it is over the budget there, or ranks lower; the summary of turns ${summary.summary!.first_turn} to ${summary.summary!.last_turn} covers it`;
  return "it is over the budget there, or ranks lower";
}

export function differences(a: Context, b: Context): { same: number; list: Difference[] } {
  const inA = placed(a), inB = placed(b);
  const list: Difference[] = [];
  let same = 0;
  for (const [key, { section, item }] of inA) {
    const other = inB.get(key);
    if (!other) list.push({ key, section, item, state: "only in A", because: absence(item, b) });
    else if (other.section !== section) list.push({ key, section, item, state: "moved", because: `in B it is in ${sectionName(other.section)}` });
    else if (other.item.chars !== item.chars) list.push({ key, section, item, state: item.chars > other.item.chars ? "longer in A" : "longer in B", because: `${count(item.chars)} characters in A, ${count(other.item.chars)} in B` });
    else same++;
  }
  for (const [key, { section, item }] of inB) if (!inA.has(key)) list.push({ key, section, item, state: "only in B", because: absence(item, a) });
  return { same, list };
}

const signs = { "only in A": "−", "only in B": "+", "longer in A": "◂", "longer in B": "▸", moved: "↔" };

export function Compare({ c, p }: { c: Conversation; p: Params }) {
  const read = (suffix: string) => useGet<Context>(path("/v1/conversations/{}/context", [c.id], { ...contextQuery(p, suffix), explain: "true" }));
  const a = read(""), b = read("_b");
  const d = a.data && b.data ? differences(a.data, b.data) : undefined;
  const sections = [...new Set(d?.list.map((x) => x.section))];
  return (
    <div class="context compare">
      <div class="two">
        {([["A", "", a], ["B", "_b", b]] as const).map(([name, suffix, read]) => (
          <section key={name} aria-label={`Context ${name}`}><h2>{name}</h2><Controls c={c} p={p} suffix={suffix} name={`Parameters of ${name}`} />
            {read.error ? <Notice error={read.error} /> : read.data?.manifest ? <Budget data={read.data} /> : <Notice>Loading…</Notice>}</section>
        ))}
      </div>
      {d && <Notice>{d.list.length === 0 ? `Both show the same ${count(d.same)} items.` : `${count(d.same)} items are the same, ${count(d.list.length)} differ.`}</Notice>}
      {sections.map((section) => (
        <section key={section} class="diff" aria-label={sectionName(section)}>
          <h2><i class={`s-${section}`} />{sectionName(section)}</h2>
          <ul>{d!.list.filter((x) => x.section === section).map((x) => (
            <li key={x.key} class={x.state.replaceAll(" ", "-")}>
              <span class="sign" aria-hidden="true">{signs[x.state]}</span>
              <span><b>{x.state}</b> <span class="dim">because {x.because}</span> <EventLink seq={x.item.seq} /><br />
                <Text of={firstLine([x.item.label, x.item.path, x.item.tool_name, x.item.text].filter(Boolean).join(" "), 180)} /></span>
            </li>
          ))}</ul>
        </section>
      ))}
    </div>
  );
}
