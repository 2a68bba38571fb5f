// What a context is asked for: its query, budget, strategy and moment, kept in the URL.
import type { Conversation } from "./api";
import { Field } from "./field";
import { count } from "./text";
import { change, type Params } from "./url";

const strategies = ["hybrid", "relevant", "levels", "recent", "pruned"];

// query returns the parameters of a context in the URL, as the API names them.
export function contextQuery(p: Params, suffix = ""): Record<string, string | undefined> {
  return {
    query: p["q" + suffix], max_chars: p["max" + suffix] ?? "20000", strategy: p["strategy" + suffix], condense: p["condense" + suffix],
    as_of: p["as_of" + suffix], project_memory: p["memory" + suffix], embedded_up_to: p["embedded" + suffix],
  };
}

// Controls are the parameters of one context. A comparison has two, the second with a suffix.
export function Controls({ c, p, suffix = "", name }: { c: Conversation; p: Params; suffix?: string; name: string }) {
  const set = (key: string, value: string, replace = true) => change({ [key + suffix]: value || undefined, served: undefined }, replace);
  const max = Number(p["max" + suffix] ?? 20000), asOf = Number(p["as_of" + suffix] ?? c.last_seq);
  return (
    <form class="controls" aria-label={name} onSubmit={(e) => e.preventDefault()}>
      <label class="wide">Query <input type="search" placeholder="what the user said last" value={p["q" + suffix] ?? ""} onInput={(e) => set("q", e.currentTarget.value)} /></label>
      <label>Strategy <select value={p["strategy" + suffix] ?? "hybrid"} onChange={(e) => set("strategy", e.currentTarget.value)}>{strategies.map((s) => <option key={s}>{s}</option>)}</select></label>
      <label>Condense <select value={p["condense" + suffix] ?? ""} onChange={(e) => set("condense", e.currentTarget.value)}>
        <option value="">server's setting</option><option>off</option><option>clear</option><option>extractive</option><option>llm</option></select></label>
      <label class="slider">Budget <input type="range" min="27" max="60" step="0.5" value={Math.log2(max) * 4 - 9.83} aria-valuetext={`${count(max)} characters`}
        onInput={(e) => set("max", String(Math.round(2 ** ((Number(e.currentTarget.value) + 9.83) / 4) / 100) * 100))} />
        <Field type="number" min="500" max="1000000" step="500" value={max} name="Budget in characters" onDone={(v) => set("max", v)} /></label>
      <label class="slider">As of <input type="range" min={c.first_seq} max={c.last_seq} value={asOf} aria-valuetext={`sequence ${asOf}`}
        onInput={(e) => set("as_of", Number(e.currentTarget.value) >= c.last_seq ? "" : e.currentTarget.value)} />
        <output>{asOf >= c.last_seq ? "now" : `#${asOf}`}</output></label>
    </form>
  );
}
