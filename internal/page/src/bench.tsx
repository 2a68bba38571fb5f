// One query, and how words, meaning and both together rank the messages of the conversation.
import { type Conversation, type Hit, path, useGet } from "./api";
import { EventLink } from "./event";
import { firstLine, Notice, plural, share, Text } from "./text";
import { change, type Params } from "./url";

const shown = 25;

export function Bench({ c, p }: { c: Conversation; p: Params }) {
  const query = p["q"] ?? "";
  const expected = Number(p["expect"]) || 0;
  const { data, error, loading } = useGet<{ messages: Hit[]; embedding_model?: string; embedding_missing?: string }>(
    query ? path("/v1/conversations/{}/search", [c.id], { query, limit: 200, max_chars: 300 }) : null, 200);
  const fused = data?.messages ?? [];
  const by = (score: (h: Hit) => number) => fused.filter((h) => score(h) > 0).sort((a, b) => score(b) - score(a) || a.seq - b.seq);
  const columns: [string, string, Hit[], (h: Hit) => number][] = [
    ["Words", "BM25", by((h) => h.bm25 ?? 0), (h) => h.bm25 ?? 0],
    ["Meaning", "cosine of the embeddings", by((h) => h.cosine ?? 0), (h) => h.cosine ?? 0],
    ["Fused", "what contexts use", fused, (h) => h.score],
  ];
  return (
    <div class="pad bench">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <input type="search" aria-label="Search this conversation" placeholder="Search this conversation" value={query} onInput={(e) => change({ q: e.currentTarget.value }, true)} />
        <label>Expected event <input type="number" min="0" value={expected || ""} placeholder="sequence" onInput={(e) => change({ expect: e.currentTarget.value }, true)} /></label>
      </form>
      <Notice error={error}>{!query ? "Type a query. Each column then shows its own ranking of what the search found." : loading ? "Searching…"
        : `${plural(fused.length, "message")} found. ${data?.embedding_missing ?? `Meaning by ${data?.embedding_model ?? "no model"}.`}`}</Notice>
      {fused.length > 0 && <div class="columns">{columns.map(([name, what, hits, score]) => {
        const rank = hits.findIndex((h) => h.seq === expected) + 1;
        return (
          <section key={name} aria-label={name}>
            <h2>{name} <span class="dim">{what}</span></h2>
            {expected > 0 && <p class="notice">{rank ? `The expected event has rank ${rank}.` : "The expected event is not here."}</p>}
            <ol>{hits.slice(0, shown).map((h) => (
              <li key={h.seq} class={h.seq === expected ? "expected" : ""}>
                <p class="facts"><b>{share(score(h))}</b><span>turn {h.turn}</span><span>{h.role}</span><EventLink seq={h.seq} />
                  <button class="quiet" onClick={() => change({ expect: String(h.seq) }, true)} title="Show its rank in each column">mark</button></p>
                <p><Text of={firstLine(h.text ?? "", 200)} /></p>
                {name === "Fused" && <Parts parts={h.parts} />}
              </li>
            ))}</ol>
          </section>
        );
      })}</div>}
    </div>
  );
}

export function Parts({ parts }: { parts: Record<string, number> }) {
  const list = Object.entries(parts).filter(([, v]) => v > 0);
  return <p class="parts">{list.map(([name, v]) => <span key={name} class={`part ${name}`}>{partNames[name] ?? name} {share(v)}</span>)}</p>;
}

export const partNames: Record<string, string> = { lexical: "words", dense: "meaning" };
