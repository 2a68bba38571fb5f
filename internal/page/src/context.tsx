// The context viewer: what an agent would see, line by line, and why.
import { useState } from "preact/hooks";

import { ask, type Context, type Conversation, lacks, path, type Problem, useAccess, useGet } from "./api";
import { EventLink } from "./event";
import { Followed } from "./followed";
import { Budget, Bytes, Dropped, Lines, sectionName } from "./lines";
import type { Outline } from "./outline";
import { contextQuery, Controls } from "./parameters";
import { ServedBanner } from "./served";
import { Steps } from "./steps";
import { count, firstLine, Notice, Text } from "./text";
import { change, link, type Params } from "./url";

const formats: [string, string][] = [["", "Lines and reasons"], ["bytes", "Exact text"], ["anthropic", "Messages (Anthropic)"], ["openai", "Messages (OpenAI)"]];

export function ContextView({ c, outline, p }: { c: Conversation; outline: Outline; p: Params }) {
  const query = contextQuery(p);
  const url = path("/v1/conversations/{}/context", [c.id], { ...query, explain: "true", include_markdown: true });
  const { data, error, loading } = useGet<Context>(url);
  const m = data?.manifest;
  const shown = p["show"] ?? "";
  return (
    <div class="context">
      <Controls c={c} p={p} name="Parameters of the context" />
      <Steps c={c} outline={outline} p={p} data={data} />
      {p["served"] && <ServedBanner c={c} seq={p["served"]} />}
      {error && <Notice error={error} />}
      {data && m && <div aria-busy={loading}>
        {p["follow"] && <Followed c={c} p={p} data={data} seq={Number(p["follow"])} />}
        <Budget data={data} lines={shown === ""} left />
        <div class="bar formats">
          <div role="group" aria-label="Show as" class="choice">{formats.map(([f, name]) => <button key={f} aria-pressed={f === shown} onClick={() => change({ show: f })}>{name}</button>)}</div>
          <span class="space" />
          <Remember key={url} c={c} query={query} />
          <a href={link({ c: c.id, view: "compare", ...keep(p), ...keep(p, "_b") })}>Compare with another</a>
        </div>
        {shown === "bytes" ? <Bytes data={data} /> : shown === "anthropic" || shown === "openai" ? <Messages c={c} query={query} format={shown} /> : <Lines data={data} of={c.id} followed={Number(p["follow"])} />}
        <LeftOut c={c} p={p} data={data} />
      </div>}
      {!data && !error && <Notice>Loading…</Notice>}
    </div>
  );
}

// keep returns the parameters of the context that is shown, under other names.
function keep(p: Params, suffix = ""): Params {
  return Object.fromEntries(["q", "max", "strategy", "condense", "as_of", "memory", "embedded"].map((name) => [name + suffix, p[name]]));
}

// Remember lets mneme remember the context as one that an agent was shown. Only a token that may write sees it.
function Remember({ c, query }: { c: Conversation; query: Record<string, string | undefined> }) {
  const access = useAccess();
  const [done, set] = useState<{ seq?: number; error?: Problem }>({});
  const remember = () => ask(path("/v1/conversations/{}/context", [c.id], { ...query, record: true })).then(
    (answer) => set({ seq: Number(answer.headers.get("Mneme-Context-Seq")) }), (error: Problem) => set({ error }));
  if (lacks(access, "write") !== undefined) return null;
  if (done.seq) return <span role="status">Remembered as <EventLink seq={done.seq} />, see <a href={link({ c: c.id, view: "served" })}>Served</a></span>;
  return <>{done.error && <Notice error={done.error} />}<button class="quiet" onClick={() => void remember()} title="Store a small event, so that this context can be made again and checked">Remember this</button></>;
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
  return (
    <section class="left" id="left" aria-label="Left out">
      <div class="bar"><h2>Left out</h2><span class="space" /><button aria-expanded={open} onClick={() => change({ left: open ? undefined : "1" }, true)}>{open ? "Hide the items" : "Show the items, and when they fit"}</button></div>
      <Dropped data={data} />
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
