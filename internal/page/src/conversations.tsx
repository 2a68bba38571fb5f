// The list of conversations and projects, and the search of all of them.
import { type Conversation, type Hit, path, useGet, usePages, withInherited } from "./api";
import { count, firstLine, Notice, plural, shortPath, Text, Time } from "./text";
import { change, link, type Params } from "./url";

interface Found extends Conversation { relevance: number; messages: Hit[] }

export function Conversations({ p }: { p: Params }) {
  const query = p["q"] ?? "";
  const projects = useGet<{ projects: { name: string }[] }>(path("/v1/projects", [], { limit: 200 }));
  const list = usePages<Conversation>(query ? null : path("/v1/conversations", [], {
    limit: 50, project: p["project"], agent: p["agent"], status: p["status"], order: p["order"], updated_after: p["since"] && p["since"] + "T00:00:00Z",
  }), "conversations");
  const found = useGet<{ conversations: Found[] }>(query ? path("/v1/search", [], { query, project: p["project"], limit: 30 }) : null, 200);
  const agents = [...new Set([...list.list.map((c) => c.agent ?? ""), p["agent"] ?? ""])].filter(Boolean).sort();
  const chosen = p["project"] && !projects.data?.projects.some((x) => x.name === p["project"]) ? [{ name: p["project"] }] : [];
  return (
    <div class="page">
      <h1>Conversations</h1>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <input type="search" placeholder="Search by words and meaning" aria-label="Search all conversations" value={query}
          onInput={(e) => change({ q: e.currentTarget.value }, true)} />
        <label>Project <select value={p["project"] ?? ""} onChange={(e) => change({ project: e.currentTarget.value })}>
          <option value="">all</option>
          {[...chosen, ...projects.data?.projects ?? []].map((x) => <option key={x.name} value={x.name}>{shortPath(x.name)}</option>)}
        </select></label>
        {!query && <>
          <label>Agent <select value={p["agent"] ?? ""} onChange={(e) => change({ agent: e.currentTarget.value })}>
            <option value="">all</option>
            {agents.map((a) => <option key={a}>{a}</option>)}
          </select></label>
          <label>Status <select value={p["status"] ?? ""} onChange={(e) => change({ status: e.currentTarget.value })}>
            <option value="">all</option><option>active</option><option>archived</option>
          </select></label>
          <label>Since <input type="date" value={p["since"] ?? ""} onChange={(e) => change({ since: e.currentTarget.value })} /></label>
        </>}
      </form>
      <Notice error={found.error ?? list.error}>
        {query ? found.loading ? "Searching…" : `${plural(found.data?.conversations.length ?? 0, "conversation")} found, the best first`
          : list.loading && list.list.length === 0 ? "Loading…" : list.list.length === 0 ? "No conversations here yet. An agent that publishes events, or mneme import, adds them."
          : `${plural(list.list.length, "conversation")}${list.more ? " so far" : ""}, the last recorded first`}
      </Notice>
      <ul class="cards">
        {(query ? found.data?.conversations ?? [] : list.list).map((c) => <Card key={c.id} c={c} />)}
      </ul>
      {!query && list.more && <button onClick={list.more}>Show more</button>}
    </div>
  );
}

function Card({ c }: { c: Conversation & { messages?: Hit[]; relevance?: number } }) {
  const all = withInherited(c);
  return (
    <li>
      <a class="title" href={link({ c: c.id })}><Text of={c.title || c.id} /></a>
      <p class="facts">
        {c.agent && <span><Text of={c.agent} /></span>}
        {c.cwd && <span title={c.cwd}><Text of={shortPath(c.cwd)} /></span>}
        <span>{plural(all.turn_count, "turn")}{c.branched_from && !c.inherited && " of its own"}</span>
        <span>{plural(all.tool_call_count, "call")}</span>
        <span>{count(all.total_chars)} characters</span>
        {(c.branched_from || c.inherited) && <span class="badge">branch</span>}
        {c.status !== "active" && <span class="badge">{c.status}</span>}
        {c.tags.map((t) => <span key={t} class="badge"><Text of={t} /></span>)}
        <Time of={c.updated_at} />
      </p>
      {c.messages?.slice(0, 2).map((m) => (
        <a key={m.seq} class="quote" href={link({ c: c.id, turn: String(m.turn), event: String(m.seq) })}>
          <span class="dim">turn {m.turn}</span> <Text of={firstLine(m.text ?? "")} />
        </a>
      ))}
    </li>
  );
}
