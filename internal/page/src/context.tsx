// The context viewer: what an agent would see, line by line, and why.
import { useEffect, useState } from "preact/hooks";

import { type Context, type Conversation, type Item, path, type Problem, useGet } from "./api";
import { Parts } from "./bench";
import { EventLink } from "./event";
import { count, firstLine, Notice, plural, Text } from "./text";
import { change, link, type Params } from "./url";

export const strategies = ["hybrid", "relevant", "levels", "recent", "pruned"];

// query returns the parameters of a context in the URL, as the API names them.
export function contextQuery(p: Params, suffix = ""): Record<string, string | undefined> {
  return {
    query: p["q" + suffix], max_chars: p["max" + suffix] ?? "20000", strategy: p["strategy" + suffix], condense: p["condense" + suffix],
    as_of: p["as_of" + suffix],
  };
}

// Controls are the parameters of one context. A comparison has two, the second with a suffix.
export function Controls({ c, p, suffix = "", name }: { c: Conversation; p: Params; suffix?: string; name: string }) {
  const set = (key: string, value: string, replace = true) => change({ [key + suffix]: value || undefined }, replace);
  const max = Number(p["max" + suffix] ?? 20000), asOf = Number(p["as_of" + suffix] ?? c.last_seq);
  return (
    <form class="controls" aria-label={name} onSubmit={(e) => e.preventDefault()}>
      <label class="wide">Query <input type="search" placeholder="what the user said last" value={p["q" + suffix] ?? ""} onInput={(e) => set("q", e.currentTarget.value)} /></label>
      <label>Strategy <select value={p["strategy" + suffix] ?? "hybrid"} onChange={(e) => set("strategy", e.currentTarget.value)}>{strategies.map((s) => <option key={s}>{s}</option>)}</select></label>
      <label>Condense <select value={p["condense" + suffix] ?? ""} onChange={(e) => set("condense", e.currentTarget.value)}>
        <option value="">server's setting</option><option>off</option><option>clear</option><option>extractive</option><option>llm</option></select></label>
      <label class="slider">Budget <input type="range" min="27" max="60" step="0.5" value={Math.log2(max) * 4 - 9.83} aria-valuetext={`${count(max)} characters`}
        onInput={(e) => set("max", String(Math.round(2 ** ((Number(e.currentTarget.value) + 9.83) / 4) / 100) * 100))} />
        <input type="number" min="500" max="1000000" step="500" value={max} aria-label="Budget in characters" onChange={(e) => set("max", e.currentTarget.value)} /></label>
      <label class="slider">As of <input type="range" min={c.first_seq} max={c.last_seq} value={asOf} aria-valuetext={`sequence ${asOf}`}
        onInput={(e) => set("as_of", Number(e.currentTarget.value) >= c.last_seq ? "" : e.currentTarget.value)} />
        <output>{asOf >= c.last_seq ? "now" : `#${asOf}`}</output></label>
    </form>
  );
}

export const sectionNames: Record<string, string> = {
  last_user_queries: "Queries", recent_turns: "Recent", relevant_past_context: "Past", relevant_code_context: "Code",
  story_so_far: "Story", recently_accessed_files: "Files", earlier_sessions: "Earlier",
};
export const sectionName = (name: string) => sectionNames[name] ?? name.replaceAll("_", " ");

const formats: [string, string][] = [["", "Lines and reasons"], ["bytes", "Exact text"], ["anthropic", "Messages (Anthropic)"], ["openai", "Messages (OpenAI)"]];

export function ContextView({ c, p }: { c: Conversation; p: Params }) {
  const query = contextQuery(p);
  const url = path("/v1/conversations/{}/context", [c.id], { ...query, explain: "true", include_markdown: true });
  const { data, error, loading } = useGet<Context>(url);
  const m = data?.manifest;
  const shown = p["show"] ?? "";
  return (
    <div class="context">
      <Controls c={c} p={p} name="Parameters of the context" />
      {error && <Notice error={error} />}
      {data && m && <div aria-busy={loading}>
        <Budget data={data} />
        <div class="bar formats">
          <div role="group" aria-label="Show as" class="choice">{formats.map(([f, name]) => <button key={f} aria-pressed={f === shown} onClick={() => change({ show: f })}>{name}</button>)}</div>
          <span class="space" />
          <a href={link({ c: c.id, view: "compare", ...keep(p), ...keep(p, "_b") })}>Compare with another</a>
        </div>
        {shown === "bytes" ? <Bytes data={data} /> : shown === "anthropic" || shown === "openai" ? <Messages c={c} query={query} format={shown} /> : <Lines data={data} />}
        <LeftOut c={c} p={p} data={data} />
      </div>}
      {!data && !error && <Notice>Loading…</Notice>}
    </div>
  );
}

// keep returns the parameters of the context that is shown, under other names.
function keep(p: Params, suffix = ""): Params {
  return Object.fromEntries(["q", "max", "strategy", "condense", "as_of"].map((name) => [name + suffix, p[name]]));
}

export function Budget({ data }: { data: Context }) {
  const m = data.manifest!;
  const parts = m.sections.filter((s) => s.used > 0);
  const percent = (n: number) => Math.round(n / m.budget * 100);
  return (
    <div class="budget">
      <div class="track" role="img" aria-label={parts.map((s) => `${sectionName(s.name)} ${percent(s.used)} %`).join(", ") + `, free ${percent(m.budget - m.used)} %`}>
        {parts.map((s) => <span key={s.name} class={`s-${s.name}`} style={{ flexGrow: s.used }} />)}
        <span class="free" style={{ flexGrow: Math.max(0, m.budget - m.used) }} />
      </div>
      <p class="legend">
        {parts.map((s) => <a key={s.name} href={`#s-${s.name}`}><i class={`s-${s.name}`} />{sectionName(s.name)} <b>{percent(s.used)} %</b></a>)}
        <span class="space" />
        <span><b>{count(m.used)}</b> of {count(m.budget)} characters, as of #{data.as_of}</span>
      </p>
    </div>
  );
}

interface Line { start: number; end: number; text: string }

// split cuts the Markdown at the ranges of the items, which count code points.
function split(markdown: string, ranges: { start: number; end: number }[]): Line[] {
  let at = 0, units = 0;
  const unitAt = (point: number) => {
    for (; at < point && units < markdown.length; at++) units += markdown.codePointAt(units)! > 0xffff ? 2 : 1;
    return units;
  };
  return ranges.map((r) => {
    const start = unitAt(r.start), end = unitAt(r.end);
    return { start, end, text: markdown.slice(start, end) };
  });
}

function Lines({ data }: { data: Context }) {
  const text = data.markdown ?? "";
  const all = data.sections.flatMap((s) => {
    const ranges = data.manifest!.sections.find((m) => m.name === s.name)?.ranges ?? [];
    return s.items.map((item, i) => ({ section: s.name, item, range: ranges[i] })).filter((x) => x.range);
  });
  const lines = split(text, all.map((x) => x.range!));
  const out = [];
  let end = 0, section = "";
  all.forEach(({ section: name, item }, i) => {
    const { start, end: stop, text: shown } = lines[i]!;
    const between = text.slice(end, start).trim();
    if (between) out.push(<div key={`b${i}`} id={name !== section ? `s-${name}` : undefined} class={`line heading ${name !== section ? "first" : ""}`}>{between.split(/\n\n+/).map((part, j, parts) => <pre key={j} class={j === parts.length - 1 ? "last" : ""}><Text of={part} /></pre>)}</div>);
    out.push(
      <div key={i} class={`line s-${name}`}>
        <pre><Text of={shown.replace(/^\n+|\n+$/g, "")} /></pre>
        <div class="why"><Why item={item} /></div>
      </div>,
    );
    end = stop;
    section = name;
  });
  const rest = text.slice(end).trim();
  if (rest) out.push(<div key="rest" class="line heading"><pre><Text of={rest} /></pre></div>);
  return <section class="lines" aria-label="What the agent sees, and why">
    <div class="line titles"><h2>What the agent sees</h2><h2>Why</h2></div>
    {out.length ? out : <Notice>Nothing: the conversation had no messages then.</Notice>}
  </section>;
}

export function reason(item: Item): string {
  switch (item.kind) {
    case "query": return "A question of the user.";
    case "message": case "tool_call": case "tool_result": return "Among the newest turns.";
    case "left_out": return "Says that something is missing here.";
    case "relevant": return "The search found it.";
    case "code": return `${item.match ? "Code that the search found" : "Code"}${item.tool_name ? ", through " + item.tool_name : ""}.`;
    case "summary": return `Summary of turns ${item.summary?.first_turn} to ${item.summary?.last_turn}, level ${item.summary?.level}.`;
    case "file": return `Last access: ${item.access}.`;
    case "note": case "folder": return "From earlier sessions of the project.";
  }
  return item.kind;
}

function Why({ item }: { item: Item }) {
  const whole = item.result_whole_chars ?? item.whole_chars;
  return (
    <>
      <p><Text of={reason(item)} />{item.origin && <> Written by <Text of={item.origin} />.</>}</p>
      {item.match && <><p>Relevance {Math.round(item.match.relevance * 100)} %</p><Parts parts={item.match.parts} /></>}
      <p class="dim">{item.turn > 0 && <>turn {item.turn} · </>}{plural(item.chars, "character")}{whole ? ` of ${count(whole)}` : ""} <EventLink seq={item.seq} />{item.result_seq ? <EventLink seq={item.result_seq} /> : null}</p>
    </>
  );
}

// Bytes shows the text as an agent gets it, and checks its hash in the browser.
function Bytes({ data }: { data: Context }) {
  const text = data.markdown ?? "", claimed = data.manifest!.hash;
  const [result, set] = useState("");
  useEffect(() => {
    let current = true;
    if (!crypto.subtle) { set("not checked: browsers compute it only over HTTPS or on this machine"); return; }
    void crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)).then((digest) => {
      const hex = [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0")).join("");
      if (current) set(hex === claimed ? "computed here too: equal" : `computed here: ${hex}, which differs`);
    });
    return () => { current = false; };
  }, [text, claimed]);
  return (
    <section aria-label="Exact text">
      <p class="hash"><span class="dim">SHA-256</span> <code>{claimed}</code> <span class="dim">{result}</span></p>
      <pre class="exact" tabIndex={0}><Text of={text} max={1_000_000} /></pre>
    </section>
  );
}

function Messages({ c, query, format }: { c: Conversation; query: Record<string, string | undefined>; format: string }) {
  const { data, error } = useGet<{ system?: string; messages: { role: string; content: unknown; tool_calls?: unknown; tool_call_id?: string }[] }>(
    path("/v1/conversations/{}/context", [c.id], { ...query, format }));
  if (!data) return <Notice error={error}>Loading…</Notice>;
  const list = data.system ? [{ role: "system", content: data.system as unknown }, ...data.messages] : data.messages;
  return <section aria-label="Messages for a model">{list.map((m, i) => {
    const { role, content, ...rest } = m;
    return <article key={i} class={`message ${role}`}><header><b>{role}</b></header>{blocks(content).map((b, j) => <pre key={j} class="said"><Text of={b} /></pre>)}
      {Object.keys(rest).length > 0 && <pre><Text of={JSON.stringify(rest, null, 2)} /></pre>}</article>;
  })}</section>;
}

function blocks(content: unknown): string[] {
  if (typeof content === "string") return [content];
  if (!Array.isArray(content)) return content == null ? [] : [JSON.stringify(content, null, 2)];
  return (content as Record<string, unknown>[]).map((b) => b["type"] === "text" && typeof b["text"] === "string" ? b["text"] : JSON.stringify(b, null, 2));
}

// LeftOut shows what did not fit. Trying the larger budgets takes the server a dozen times as long as a
// context, so it happens only when somebody wants to know.
function LeftOut({ c, p, data }: { c: Conversation; p: Params; data: Context }) {
  const open = p["left"] === "1";
  const tried = useGet<Context>(open ? path("/v1/conversations/{}/context", [c.id], { ...contextQuery(p), explain: "candidates" }) : null, 400);
  const dropped = data.manifest!.sections.filter((s) => s.dropped.length > 0);
  return (
    <section class="left" aria-label="Left out">
      <div class="bar"><h2>Left out</h2><span class="space" /><button aria-expanded={open} onClick={() => change({ left: open ? undefined : "1" }, true)}>{open ? "Hide the items" : "Show the items, and when they fit"}</button></div>
      <ul class="drops">{dropped.map((s) => <li key={s.name}><i class={`s-${s.name}`} /><b>{sectionName(s.name)}</b> {s.dropped.map((d) => `${count(d.count)} ${d.what}: ${d.reason}`).join(" · ")}</li>)}</ul>
      {dropped.length === 0 && <p class="dim">Nothing: all of it fits.</p>}
      {open && !tried.data && <Notice error={tried.error as Problem}>Trying larger budgets…</Notice>}
      {tried.data?.manifest?.sections.filter((s) => s.candidates?.length).map((s) => (
        <div key={s.name} class="scroll-x" tabIndex={0} role="region" aria-label={`Left out of ${sectionName(s.name)}`}><table>
          <caption>{sectionName(s.name)}</caption>
          <thead><tr><th>Event</th><th>Text</th><th class="n">Characters</th><th class="n">Score</th><th>Fits at</th></tr></thead>
          <tbody>{s.candidates!.map((x, i) => (
            <tr key={i}><td><EventLink seq={x.seq} /></td><td>{x.path ? <span class="path"><Text of={x.path} /> </span> : null}<Text of={firstLine(x.text, 130)} /><span class="dim"> turn {x.turn}, {x.reason}</span></td>
              <td class="n">{count(x.chars)}</td><td class="n">{x.match ? x.match.score.toFixed(2) : ""}</td>
              <td>{x.fits_at ? <button class="quiet" onClick={() => change({ max: String(x.fits_at) })}>{count(x.fits_at)}</button> : "none tried"}</td></tr>
          ))}</tbody>
        </table></div>
      ))}
    </section>
  );
}

