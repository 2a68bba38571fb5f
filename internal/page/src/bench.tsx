// One query, and how words, meaning and both together rank the messages of the conversation.
import { type Conversation, type FoundResult, type Hit, path, usePages } from "./api";
import { EventLink, TurnLink } from "./event";
import { Field } from "./field";
import { ToolResult } from "./found";
import { Lit, Notice, plural, share, Text } from "./text";
import { change, type Params } from "./url";

type Method = "words" | "meaning" | "fused";

const columns: [Method, string, string][] = [["words", "Words", "BM25"], ["meaning", "Meaning", "cosine of the embeddings"], ["fused", "Fused", "what contexts use"]];

export function Bench({ c, p }: { c: Conversation; p: Params }) {
  const query = p["q"] ?? "", expected = Number(p["expect"]) || 0, tools = p["kind"] === "tool";
  const read = (method: Method) => usePages<Hit>(query && !tools ? path("/v1/conversations/{}/search", [c.id], {
    query, method, ranks: true, limit: 25, max_chars: 300, role: p["role"], speaker: p["speaker"], from_seq: p["from"], as_of: c.last_seq,
  }) : null, "messages", 200);
  const found = { words: read("words"), meaning: read("meaning"), fused: read("fused") };
  const results = usePages<FoundResult>(tools ? path("/v1/conversations/{}/search", [c.id], {
    query, kind: "tool", tool: p["tool"], file: p["file"], from_seq: p["from"], limit: 25, max_chars: 600, as_of: c.last_seq,
  }) : null, "tool_results", 200);
  const ranks = Object.values(found).flatMap((f) => f.list).find((h) => h.seq === expected)?.ranks;
  const rest = found.fused.rest as { embedding_model?: string; embedding_missing?: string } | undefined;
  const error = results.error ?? found.fused.error ?? found.words.error ?? found.meaning.error;
  return (
    <div class="pad bench">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <input type="search" aria-label="Search this conversation" placeholder="Search this conversation" value={query} onInput={(e) => change({ q: e.currentTarget.value }, true)} />
        <label>In <select value={tools ? "tool" : ""} onChange={(e) => change({ kind: e.currentTarget.value }, true)}><option value="">messages</option><option value="tool">tool results</option></select></label>
        {tools ? <>
          <Field label="Tool" type="text" size={10} value={p["tool"] ?? ""} placeholder="all" onDone={(v) => change({ tool: v }, true)} />
          <Field label="File" type="text" size={14} value={p["file"] ?? ""} placeholder="any" onDone={(v) => change({ file: v }, true)} />
        </> : <>
          <label>Role <select value={p["role"] ?? ""} onChange={(e) => change({ role: e.currentTarget.value }, true)}><option value="">all</option><option>user</option><option>assistant</option><option>system</option></select></label>
          <Field label="Speaker" type="text" size={10} value={p["speaker"] ?? ""} placeholder="all" onDone={(v) => change({ speaker: v }, true)} />
        </>}
        <Field label="From event" type="number" min="0" value={p["from"] ?? ""} placeholder="first" onDone={(v) => change({ from: v }, true)} />
        {!tools && <label>Expected event <input type="number" min="0" value={expected || ""} placeholder="sequence" onInput={(e) => change({ expect: e.currentTarget.value }, true)} /></label>}
      </form>
      <Notice error={error}>{tools ? results.loading && results.list.length === 0 ? "Searching…" : results.list.length === 0 ? "No tool results found." : query ? "Tool results, ranked by words, best first." : "Tool results, newest first."
        : !query ? "Type a query. Each column ranks the messages by one method and shows their rank in the other two."
        : Object.values(found).some((f) => f.loading && f.list.length === 0) ? "Searching…"
        : rest?.embedding_missing ?? `Meaning by ${rest?.embedding_model ?? "no model"}.`}</Notice>
      {tools && <>{results.list.map((r) => <ToolResult key={r.seq} r={r} of={c.id} />)}{results.more && <button onClick={results.more}>Show more</button>}</>}
      {expected > 0 && query && !tools && <p class="notice">Event {expected}: {ranks ? columns.map(([m, name]) => `${name.toLowerCase()} rank ${ranks[m] ?? "over 1,000"}`).join(", ") : "not among the messages listed so far"}.</p>}
      {query && !tools && <div class="columns">{columns.map(([method, name, what]) => {
        const { list, more, loading, error } = found[method];
        return (
          <section key={method} aria-label={name}>
            <h2>{name} <span class="dim">{what}</span></h2>
            {!loading && !error && list.length === 0 && <Notice>Nothing found.</Notice>}
            <ol>{list.map((h) => <Result key={h.seq} of={c.id} h={h} method={method} expected={expected} />)}</ol>
            {more && <button onClick={more}>Show more than {plural(list.length, "message")}</button>}
          </section>
        );
      })}</div>}
    </div>
  );
}

function Result({ of, h, method, expected }: { of: string; h: Hit; method: Method; expected: number }) {
  return (
    <li class={h.seq === expected ? "expected" : ""}>
      <p class="facts"><b>{share(h.score)}</b><TurnLink of={of} turn={h.turn} event={h.seq} /><span><Text of={h.speaker ?? h.role} /></span><EventLink seq={h.seq} />
        <button class="quiet" onClick={() => change({ expect: String(h.seq) }, true)} title="Show its rank in each column">mark</button></p>
      <p><Lit of={h.text ?? ""} highlights={h.highlights} /></p>
      <p class="parts">{columns.filter(([m]) => m !== method).map(([m, name]) => <span key={m} class="part rank">{name.toLowerCase()} {h.ranks?.[m] ? `rank ${h.ranks[m]}` : "not found"}</span>)}
        {h.bm25 !== undefined && method === "words" && <span class="part">BM25 {h.bm25.toFixed(2)}</span>}
        {h.cosine !== undefined && method === "meaning" && <span class="part">cosine {share(h.cosine)}</span>}</p>
      {method === "fused" && <Parts parts={h.parts} />}
    </li>
  );
}

export function Parts({ parts }: { parts: Record<string, number> }) {
  const list = Object.entries(parts).filter(([, v]) => v > 0);
  return <p class="parts">{list.map(([name, v]) => <span key={name} class={`part ${name}`}>{partNames[name] ?? name} {share(v)}</span>)}</p>;
}

const partNames: Record<string, string> = { lexical: "words", dense: "meaning" };
