// A context line by line, each beside the reason why it is there.
import { useEffect, useState } from "preact/hooks";

import { type Context, type Item } from "./api";
import { Parts } from "./bench";
import { EventLink, TurnLink } from "./event";
import { count, Notice, plural, Text } from "./text";
import { link } from "./url";

const sectionNames: Record<string, string> = {
  last_user_queries: "Queries", recent_turns: "Recent", relevant_past_context: "Past", relevant_code_context: "Code",
  story_so_far: "Story", recently_accessed_files: "Files", earlier_sessions: "Earlier",
};
export const sectionName = (name: string) => sectionNames[name] ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

// Budget shows what a context consists of. It links to what is below it: the lines, and what was left out.
export function Budget({ data, lines, left }: { data: Context; lines?: boolean; left?: boolean }) {
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
        {parts.map((s) => {
          const text = <><i class={`s-${s.name}`} />{sectionName(s.name)} <b>{percent(s.used)} %</b></>;
          return lines ? <a key={s.name} href={`#s-${s.name}`}>{text}</a> : <span key={s.name}>{text}</span>;
        })}
        <span class="space" />
        {left && <a href="#left">What was left out</a>}
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

// Lines shows the context of a conversation, or of a project.
export function Lines({ data, of, followed }: { data: Context; of?: string; followed?: number }) {
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
    const here = followed && (item.seq === followed || item.result_seq === followed);
    out.push(
      <div key={i} id={here ? `e-${followed}` : undefined} class={`line s-${name} ${here ? "followed" : ""}`}>
        <pre><Text of={shown.replace(/^\n+|\n+$/g, "")} /></pre>
        <div class="why"><Why item={item} of={of} /></div>
      </div>,
    );
    end = stop;
    section = name;
  });
  const rest = text.slice(end).trim();
  if (rest) out.push(<div key="rest" class="line heading"><pre><Text of={rest} /></pre></div>);
  return <section class="lines" aria-label="What the agent sees, and why">
    <div class="line titles"><h2>What the agent sees</h2><h2>Why</h2></div>
    {out.length ? out : <Notice>Nothing: the conversation had no messages yet.</Notice>}
  </section>;
}

export function reason(item: Item): string {
  switch (item.kind) {
    case "query": return "A request of the user.";
    case "message": case "tool_call": case "tool_result": return "Among the newest turns.";
    case "left_out": return "Marks what was left out here.";
    case "relevant": return "Found by the search.";
    case "code": return `${item.match ? "Code found by the search" : "Code"}${item.tool_name ? ", through " + item.tool_name : ""}.`;
    case "summary": return `Summary of turns ${item.summary?.first_turn} to ${item.summary?.last_turn}, level ${item.summary?.level}.`;
    case "file": return `Last access: ${item.access}.`;
    case "note": return "From another conversation of the project.";
    case "folder": return "Files touched by conversations of the project.";
  }
  return item.kind;
}

function Why({ item, of }: { item: Item; of?: string }) {
  const whole = item.result_whole_chars ?? item.whole_chars;
  return (
    <>
      <p><Text of={reason(item)} />{item.origin && <> Written by <Text of={item.origin} />.</>}</p>
      {item.match && <><p>Relevance {Math.round(item.match.relevance * 100)} %</p><Parts parts={item.match.parts} /></>}
      <p class="dim">{item.turn > 0 && <>{of && !item.session ? <TurnLink of={of} turn={item.turn} event={item.seq} /> : `turn ${item.turn}`} · </>}{item.session && <><a href={link({ c: item.session, turn: item.turn ? String(item.turn) : undefined })}>its conversation</a> · </>}{plural(item.chars, "character")}{whole ? ` of ${count(whole)}` : ""} <EventLink seq={item.seq} />{item.result_seq ? <EventLink seq={item.result_seq} /> : null}</p>
    </>
  );
}

// Bytes shows the text as an agent gets it, and checks its hash in the browser.
export function Bytes({ data }: { data: Context }) {
  const text = data.markdown ?? "", claimed = data.manifest!.hash;
  const [result, set] = useState("");
  useEffect(() => {
    let current = true;
    if (!crypto.subtle) { set("not checked: browsers compute hashes only over HTTPS or on localhost"); return; }
    void crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)).then((digest) => {
      const hex = [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0")).join("");
      if (current) set(hex === claimed ? "verified in this browser" : `differs from ${hex}, computed in this browser`);
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

// Dropped says what each section left out, and why.
export function Dropped({ data }: { data: Context }) {
  const dropped = data.manifest!.sections.filter((s) => s.dropped.length > 0);
  if (dropped.length === 0) return <p class="dim">Nothing: everything fits.</p>;
  return <ul class="drops">{dropped.map((s) => <li key={s.name}><i class={`s-${s.name}`} /><b>{sectionName(s.name)}</b> {s.dropped.map((d) => `${count(d.count)} ${d.what}: ${d.reason}`).join(" · ")}</li>)}</ul>;
}
