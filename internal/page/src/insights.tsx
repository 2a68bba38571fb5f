// Figures over many conversations: where the tokens and the time go, what they cost, and what fails.
import { path, useGet } from "./api";
import { count, Notice, plural, ProjectOptions, shortPath, Text, useTitle } from "./text";
import { change, link, type Params } from "./url";

interface Group {
  name: string; tool?: string; title?: string; conversations: number; errors?: number;
  work?: { turns: number; steps: number };
  tokens?: { in: number; cached: number; out: number; unknown_steps: number };
  cost?: { amount?: number; currency: string; unknown?: string[] };
  calls?: { count: number; failed: number; refused: number; success_rate?: number; p50_ms?: number; p99_ms?: number; total_ms: number };
  files?: { reads: number; rereads: number; writes: number };
}
interface Report { by: string; conversation?: string; total: Group; groups: Group[]; left_out: number }
type Column = [heading: string, value: (g: Group) => string | number | undefined];

const groupings = ["day", "project", "conversation", "agent", "model", "tool", "command", "error", "file"];
const sorts: [string, string][] = [["tokens", "most tokens"], ["errors", "most failed calls"], ["rereads", "most repeated reads"], ["duration", "longest calls"]];

const most = 1000; // groups

const large = (n?: number) => n === undefined ? undefined : n < 10_000 ? count(n) : n < 10_000_000 ? `${count(Math.round(n / 1e3))}k` : `${(n / 1e6).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })}M`;
const duration = (ms?: number) => ms === undefined ? undefined : ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : ms < 3_600_000 ? `${(ms / 60_000).toFixed(1)} min` : `${(ms / 3_600_000).toFixed(1)} h`;
const cost = (g: Group) => g.cost?.amount?.toFixed(2);

const conversations: Column = ["Conversations", (g) => g.conversations];
const calls: Column[] = [
  ["Calls", (g) => g.calls?.count], ["Failed", (g) => g.calls?.failed], ["Refused", (g) => g.calls?.refused], ["Success", (g) => g.calls?.success_rate === undefined ? undefined : `${(100 * g.calls.success_rate).toFixed(1)} %`],
  ["Median", (g) => duration(g.calls?.p50_ms)], ["99 %", (g) => duration(g.calls?.p99_ms)], ["Time", (g) => duration(g.calls?.total_ms)], conversations,
];
const work: Column[] = [
  conversations, ["Turns", (g) => g.work?.turns], ["Steps", (g) => g.work?.steps], ["Tokens in", (g) => large(g.tokens?.in)], ["of these cached", (g) => large(g.tokens?.cached)], ["Tokens out", (g) => large(g.tokens?.out)],
  ["Cost", cost], ["Calls", (g) => g.calls?.count], ["Failed", (g) => g.calls?.failed], ["Rereads", (g) => g.files?.rereads], ["Time of calls", (g) => duration(g.calls?.total_ms)],
];
const special: Record<string, Column[]> = {
  tool: calls, command: calls, error: [["Tool", (g) => g.tool], ["Times", (g) => g.errors], conversations],
  file: [["Reads", (g) => g.files?.reads], ["Rereads", (g) => g.files?.rereads], ["Writes", (g) => g.files?.writes], conversations],
  conversation: work.slice(1),
};

export function Insights({ p }: { p: Params }) {
  const by = groupings.includes(p["by"] ?? "") ? p["by"]! : "day";
  useTitle(`By ${by}`, "Insights");
  const limit = Math.min(most, Number(p["limit"]) || 50);
  const projects = useGet<{ projects: { name: string }[] }>(path("/v1/projects", [], { limit: 200 })).data?.projects.map((x) => x.name) ?? [];
  const { data, error, loading } = useGet<Report>(path("/v1/insights", [], { by, project: p["project"], conversation: p["conversation"], since: p["since"], until: p["until"], sort: p["sort"], limit }));
  const of = data?.by ?? by; // the old answer stays until the new one is there
  const groups = of === "day" && !p["sort"] ? data?.groups.slice().reverse() : data?.groups; // today first
  const columns = (special[of] ?? work).filter(([heading]) => heading !== "Cost" || data?.total.cost);
  return (
    <div class="page">
      <h1>Insights</h1>
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>By <select value={by} onChange={(e) => change({ by: e.currentTarget.value, sort: undefined, limit: undefined })}>{groupings.map((x) => <option key={x}>{x}</option>)}</select></label>
        <label>Project <select value={p["project"] ?? ""} onChange={(e) => change({ project: e.currentTarget.value })}>
          <option value="">all</option><ProjectOptions of={projects} chosen={p["project"]} /></select></label>
        <label>Since <input type="date" value={p["since"] ?? ""} onChange={(e) => change({ since: e.currentTarget.value })} /></label>
        <label>Until <input type="date" value={p["until"] ?? ""} onChange={(e) => change({ until: e.currentTarget.value })} /></label>
        <label>First <select value={p["sort"] ?? ""} onChange={(e) => change({ sort: e.currentTarget.value })}>
          <option value="">{by === "day" ? "newest" : "largest"}</option>{sorts.map(([s, name]) => <option key={s} value={s}>{name}</option>)}</select></label>
      </form>
      {p["conversation"] && <p class="facts">Only the conversation <a href={link({ c: data?.conversation ?? p["conversation"] })}><Text of={data?.conversation ?? p["conversation"]} /></a>
        <button class="quiet" onClick={() => change({ conversation: undefined })} aria-label="All conversations">✕</button></p>}
      {(error || !data) && <Notice error={error}>Loading…</Notice>}
      {data && <div aria-busy={loading}>
        <p class="figures"><Figure name="conversations" of={count(data.total.conversations)} /><Figure name="turns" of={large(data.total.work?.turns)} />
          <Figure name="tokens read" of={large(data.total.tokens?.in)} /><Figure name="tokens written" of={large(data.total.tokens?.out)} />
          <Figure name={`cost in ${data.total.cost?.currency}`} of={cost(data.total)} /><Figure name="calls" of={large(data.total.calls?.count)} /><Figure name="failed calls" of={large(data.total.calls?.failed)} /></p>
        <Remarks of={data} />
        {groups!.length > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label={`Figures by ${of}`}><table>
          <thead><tr><th>{of.charAt(0).toUpperCase() + of.slice(1)}</th>{columns.map(([heading]) => <th key={heading} class={heading === "Tool" ? "" : "n"}>{heading}</th>)}</tr></thead>
          <tbody>{groups!.map((g) => (
            <tr key={`${g.tool} ${g.name}`}><td class={of === "file" || of === "command" ? "path" : "query"}><Name by={of} g={g} /></td>
              {columns.map(([heading, value]) => <td key={heading} class={heading === "Tool" ? "word" : "n nowrap"}>{shown(value(g))}</td>)}</tr>
          ))}</tbody>
        </table></div>}
        {data.left_out > 0 && (limit < most ? <button onClick={() => change({ limit: String(most) }, true)}>Show more</button> : <Notice>{count(data.left_out)} more are not shown.</Notice>)}
      </div>}
    </div>
  );
}

const shown = (v: string | number | undefined) => typeof v === "number" ? count(v) : v === undefined ? "" : <Text of={v} />;

function Figure({ name, of }: { name: string; of?: string }) {
  return of === undefined ? null : <span><b>{of}</b> {name}</span>;
}

// Name is that of a group, with a link to what it stands for.
function Name({ by, g }: { by: string; g: Group }) {
  if (!g.name) return <>(unknown)</>;
  if (by === "conversation") return <a href={link({ c: g.name, view: "health" })}><Text of={g.title || g.name} /></a>;
  if (by === "project") return <a href={link({ view: "project", project: g.name })} title={g.name}><Text of={shortPath(g.name)} /></a>;
  return <Text of={g.name} />;
}

// Remarks say what the figures leave out.
function Remarks({ of: { total, groups } }: { of: Report }) {
  if (groups.length === 0) return <Notice>No conversations to count.</Notice>;
  const unknown = total.cost?.unknown?.map((name) => name || "(unknown)") ?? [];
  return <Notice>
    Days are UTC days of the events' own times.
    {total.tokens && total.tokens.unknown_steps > 0 && ` ${count(total.tokens.unknown_steps)} of ${plural(total.work?.steps ?? 0, "step")} have no known tokens.`}
    {total.tokens && !total.cost && <> Costs are unknown: the server has no <a href="/help/insights#tokens-cost-and-how-long-until-something-changes">price file</a>.</>}
    {unknown.length > 0 && <> Costs are without those of <Text of={unknown.join(", ")} />, whose price is unknown.</>}
  </Notice>;
}
