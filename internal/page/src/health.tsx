// What went wrong in a conversation: the findings of its health, and the calls that failed.
import { type Conversation, path, type ToolCall, useGet, usePages } from "./api";
import { EventLink, TurnLink } from "./event";
import { Call } from "./timeline";
import { count, Notice, plural, Text } from "./text";
import { change, type Params } from "./url";

interface Finding { rule: string; count: number; tool?: string; subject: string; turn: number; seqs: number[] }
interface Found { findings: Finding[]; found: number; rows: number; complete: boolean; next_from?: number }

// said are what the rules find, in words.
const said: Record<string, (n: number) => string> = {
  loop: (n) => `The same call had the same result ${n} times, with nothing new between.`,
  failing: (n) => `The same call failed ${n} times, with nothing new between.`,
  rereads: (n) => `The same part of a file was read again ${plural(n, "time")}, with no write between.`,
  long_turn: (n) => `A turn has ${count(n)} steps.`,
  unanswered: (n) => `The conversation ends with ${n === 1 ? "a request" : `${n} requests`} without an answer.`,
};

export function Health({ c, p }: { c: Conversation; p: Params }) {
  const { data, error } = useGet<Found>(path("/v1/conversations/{}/health", [c.id], { from: p["from"] }));
  const failed = usePages<ToolCall>(path("/v1/conversations/{}/tool-calls", [c.id], { success: "false", limit: 50 }), "tool_calls");
  return (
    <div class="pad health">
      <section aria-label="Findings">
        <h2>Findings</h2>
        <Notice error={error}>{!data ? "Loading…" : data.found === 0 ? `Nothing odd in ${plural(data.rows, "message, call or result", "messages, calls and results")}.`
          : `${plural(data.found, "finding")} in ${plural(data.rows, "message, call or result", "messages, calls and results")}, oldest first.`} <a href="/help/health">How they are found</a></Notice>
        {data && data.findings.length > 0 && <ul class="cards">{data.findings.map((f) => (
          <li key={`${f.rule} ${f.seqs[0]}`}>
            <b>{said[f.rule]?.(f.count) ?? `${f.rule}: ${count(f.count)}`}</b>
            <p class="path">{f.tool && <><Text of={f.tool} /> </>}<Text of={f.subject} /></p>
            <p class="facts"><TurnLink of={c.id} turn={f.turn} event={f.seqs[0]} /><span>{f.seqs.map((seq) => <EventLink key={seq} seq={seq} />)}{f.seqs.length === 20 && "…"}</span></p>
          </li>
        ))}</ul>}
        {data && data.found > data.findings.length && <Notice>The first {count(data.findings.length)} are listed.</Notice>}
        {data && !data.complete && <button onClick={() => change({ from: String(data.next_from) })}>Examine what comes after event {data.next_from}</button>}
      </section>
      <section aria-label="Failed calls">
        <h2>Failed calls</h2>
        <Notice error={failed.error}>{failed.loading && failed.list.length === 0 ? "Loading…" : failed.list.length === 0 ? "None."
          : `${plural(failed.list.length, "call")}${failed.more ? " so far" : ""} that failed or that the user refused, newest first.`}</Notice>
        {failed.list.map((call) => <Call key={call.seq} call={call} of={c.id} />)}
        {failed.more && <button onClick={failed.more}>Show more</button>}
      </section>
    </div>
  );
}
