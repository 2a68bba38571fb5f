// The list of conversations and projects, and the search of all of them.
import { type Conversation, type FoundResult, type Hit, path, useAccess, useGet, usePages, withInherited } from "./api";
import { ToolResult } from "./found";
import { count, Lit, Notice, plain, plural, ProjectOptions, shortPath, Text, Time, useTitle } from "./text";
import { change, link, type Params } from "./url";

interface Found extends Conversation { relevance: number; messages: Hit[] }
interface Answer { conversations: Found[]; tool_results?: FoundResult[]; conversations_searched?: number; conversations_left_out?: number }

// midnight returns when a day begins for whoever looks, or so many days later, as the API wants it.
function midnight(day: string | undefined, later = 0): string | undefined {
  const at = new Date(`${day}T00:00:00`);
  if (!day || isNaN(at.getTime())) return day; // the API says what is wrong
  at.setDate(at.getDate() + later);
  return at.toISOString();
}

export function Conversations({ p }: { p: Params }) {
  const query = p["q"] ?? "";
  useTitle(query, "Conversations");
  const access = useAccess(), only = access?.project;
  const projects = useGet<{ projects: { name: string }[] }>(access && !only ? path("/v1/projects", [], { limit: 200 }) : null);
  const list = usePages<Conversation>(query ? null : path("/v1/conversations", [], {
    limit: 50, project: p["project"], agent: p["agent"], status: p["status"], order: p["order"], updated_after: midnight(p["since"]),
  }), "conversations");
  const kind = p["project"] || only ? p["kind"] : undefined; // tool results are searched in one project
  const found = useGet<Answer>(query ? path("/v1/search", [], {
    query, project: p["project"], kind, role: kind === "tool" ? undefined : p["role"], since: midnight(p["since"]), until: midnight(p["until"], 1), limit: 30, max_chars: 300,
  }) : null, 200);
  const filtered = p["project"] || p["agent"] || p["status"] || p["since"];
  const agents = [...new Set([...list.list.map((c) => c.agent ?? ""), p["agent"] ?? ""])].filter(Boolean).sort();
  return (
    <div class="page">
      <h1>Conversations</h1>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <input type="search" placeholder="Search by words and meaning" aria-label="Search all conversations" value={query}
          onInput={(e) => change({ q: e.currentTarget.value }, true)} />
        {!only && <label>Project <select value={p["project"] ?? ""} onChange={(e) => change({ project: e.currentTarget.value })}>
          <option value="">all</option>
          <ProjectOptions of={projects.data?.projects.map((x) => x.name) ?? []} chosen={p["project"]} />
        </select></label>}
        {query ? <>
          {(p["project"] || only) && <label>In <select value={kind ?? ""} onChange={(e) => change({ kind: e.currentTarget.value }, true)}>
            <option value="">messages</option><option value="tool">tool results</option><option value="all">both</option>
          </select></label>}
          {kind !== "tool" && <label>Role <select value={p["role"] ?? ""} onChange={(e) => change({ role: e.currentTarget.value }, true)}>
            <option value="">all</option><option>user</option><option>assistant</option>
          </select></label>}
          <label>Since <input type="date" value={p["since"] ?? ""} onChange={(e) => change({ since: e.currentTarget.value }, true)} /></label>
          <label>Until <input type="date" value={p["until"] ?? ""} onChange={(e) => change({ until: e.currentTarget.value }, true)} /></label>
        </> : <>
          <label>Agent <select value={p["agent"] ?? ""} onChange={(e) => change({ agent: e.currentTarget.value })}>
            <option value="">all</option>
            {agents.map((a) => <option key={a} value={a}>{plain(a)}</option>)}
          </select></label>
          <label>Status <select value={p["status"] ?? ""} onChange={(e) => change({ status: e.currentTarget.value })}>
            <option value="">all</option><option>active</option><option>archived</option>
          </select></label>
          <label>Since <input type="date" value={p["since"] ?? ""} onChange={(e) => change({ since: e.currentTarget.value })} /></label>
        </>}
      </form>
      <Notice error={found.error ?? list.error}>
        {query ? found.loading ? "Searching…" : summary(found.data, kind)
          : list.loading && list.list.length === 0 ? "Loading…" : list.list.length === 0 ? filtered ? "No conversation matches these filters." : <Empty />
          : `${plural(list.list.length, "conversation")}${list.more ? " so far" : ""}, most recently recorded first`}
      </Notice>
      <ul class="cards">
        {(query ? found.data?.conversations ?? [] : list.list).map((c) => <Card key={c.id} c={c} />)}
      </ul>
      {(query && found.data?.tool_results || []).map((r) => <ToolResult key={r.seq} r={r} of={r.conversation_id!} title={r.title || r.conversation_id} />)}
      {!query && list.more && <button onClick={list.more}>Show more</button>}
    </div>
  );
}

// Empty says how to get the first conversation.
function Empty() {
  return <>No conversations yet. <a href="/help/agents">Connect a coding agent</a>, <a href="/help/start/record">record an agent of your own</a>,
    or <a href="/help/publish#import-recorded-sessions">import sessions</a> with <code>mneme import</code>.</>;
}

// summary says what a search found.
function summary(found: Answer | undefined, kind: string | undefined): string {
  const parts = kind === "tool" ? [] : [plural(found?.conversations.length ?? 0, "conversation")];
  if (kind) parts.push(plural(found?.tool_results?.length ?? 0, "tool result"));
  const left = found?.conversations_left_out;
  if (!found?.conversations.length && !found?.tool_results?.length && !left) return "Nothing found.";
  return `${parts.join(" and ")} found, best first${left ? `; tool results of ${plural(left, "older conversation")} were not searched` : ""}`;
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
          <span class="dim">{m.role}, turn {m.turn}</span> <Lit of={m.text ?? ""} highlights={m.highlights} />
        </a>
      ))}
    </li>
  );
}
