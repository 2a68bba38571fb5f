// What an operator looks at: how far the read models are, what failed, and whether all of it is right.
import { useState } from "preact/hooks";

import { ask, lacks, post, Problem, tenant, useAccess, useGet, useWatch } from "./api";
import { Doctor } from "./doctor";
import { EventPanel } from "./event";
import { sent } from "./stream";
import { count, Notice, plural, Text, Time, useTitle } from "./text";
import { change, link, type Params } from "./url";

interface Partition { name: string; store: string; generation: number; partition: number; state: string; checkpoint: number; lag: number; failed: number; holder?: string; rate: number; error?: string }
interface Rebuild { projection: string; generation: number; state: string; applied?: number; total?: number; eta_seconds?: number; error?: string }
interface Process { name: string; program?: string; version?: string; started?: string; state: string; lag: number; rate: number; error?: string }
interface Status {
  stream: { head: number; messages: number; bytes: number; missing: number; error?: string };
  projections: Partition[];
  rebuilds: Rebuild[];
  processes: Process[];
  version: { version: string; go: string };
}
interface Failed { projection: string; seq: number; tenant: string; conversation: string; event_id: string; type: string; class: string; reason: string }
interface Verified { equal: boolean; projections: { name: string; equal: boolean; conversations: number; events: number; differences?: { conversation: string }[] }[] }
interface Setting { name: string; value: string; source: string; meaning: string }

type Section = "models" | "failed";

export function Operations({ p }: { p: Params }) {
  useTitle("Operations");
  const access = useAccess();
  const mayRetry = lacks(access, "operate"), mayRebuild = lacks(access, "operate", true);
  const status = useGet<Status>("/v1/status");
  const failed = useGet<{ failed: Failed[] }>(mayRetry === undefined ? "/v1/failed?limit=200" : null);
  const [said, setSaid] = useState<{ at: Section; text?: string; problem?: Problem }>();
  useWatch(status, 3000);
  // act asks first, because each of these changes or reads the whole log. It says in a section how it goes.
  const act = async (at: Section, question: string, doing: string, f: (say: (text: string) => void) => Promise<string>) => {
    if (!confirm(question)) return;
    const say = (text: string) => setSaid({ at, text });
    say(doing);
    try { say(await f(say)); failed.again(); status.again(); } catch (e) { setSaid({ at, problem: e as Problem }); }
  };
  const saidAt = (at: Section) => said?.at !== at ? null : said.problem ? <Notice error={said.problem} /> : <p class="notice" role="status">{said.text}</p>;
  const s = status.data;
  return (
    <div class="body"><div class="view"><div class="page">
      <h1>Operations</h1>
      {(!s || status.error) && <Notice error={status.error}>Loading…</Notice>}
      {s && <p class="figures">
        <span><b>{count(s.stream.head)}</b> head of the log</span>
        <span><b>{count(s.stream.messages)}</b> events</span>
        <span><b>{(s.stream.bytes / 1e6).toFixed(1)} MB</b> on disk</span>
        <span><b>{count(Math.max(0, ...s.projections.map((x) => x.lag)))}</b> lag</span>
        <span><b>{count(s.projections.filter((x) => x.partition === 0).reduce((n, x) => n + x.failed, 0))}</b> failed</span>
        <span><b>{s.version.version}</b> version</span>
      </p>}
      {s?.stream.error && <p class="notice error" role="alert">The log accepts no writes: <Text of={s.stream.error} /></p>}
      {mayRebuild === undefined && <Doctor asked={p["doctor"] !== undefined} />}
      {s && <section aria-label="Read models">
        <div class="bar"><h2>Read models</h2><span class="space" />{mayRebuild === undefined && <button onClick={() => void act("models", "Replay the whole log and compare the read models with it?", "Replaying the log…", verify)}>Verify against the log</button>}</div>
        {mayRebuild && <p class="dim">To check, verify or rebuild: {mayRebuild}</p>}
        {saidAt("models")}
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of read models"><table>
          <thead><tr><th>Projection</th><th>State</th><th><span class="hidden">Actions</span></th><th class="n">Lag</th><th class="n">Failed</th><th class="n">Checkpoint</th><th class="n">Events/s</th><th class="n">Partition</th><th class="n">Generation</th><th>Held by</th></tr></thead>
          <tbody>{s.projections.map((x) => (
            <tr key={`${x.name}-${x.generation}-${x.partition}-${x.store}`}>
              <td>{x.name}</td><td><State of={x.state} />{x.error && <div class={isBad(x.state) ? "bad-text" : "dim"}><Text of={x.error} /></div>}</td>
              <td>{mayRebuild === undefined && x.partition === 0 && <button class="quiet" onClick={() => void act("models", `Rebuild ${x.name} from the log? The old one serves until the new one has caught up.`, "Starting the rebuild…",
                async () => { await post("/v1/rebuilds", { projection: x.name }); return `The rebuild of ${x.name} has started.`; })}>Rebuild</button>}</td>
              <td class="n">{count(x.lag)}</td><td class="n">{x.partition === 0 && count(x.failed)}</td><td class="n">{count(x.checkpoint)}</td><td class="n">{count(Math.round(x.rate))}</td><td class="n">{x.partition}</td><td class="n">{x.generation}</td><td class="nowrap"><Text of={x.holder ?? ""} /></td>
            </tr>
          ))}</tbody>
        </table></div>
        {s.rebuilds.length > 0 && <><h3>Rebuilds</h3><ul class="rebuilds">{s.rebuilds.map((r) => <li key={r.projection}>
          <b>{r.projection}</b>, generation {r.generation}: {r.state}{r.total ? <> <progress value={r.applied ?? 0} max={r.total} aria-label={`Rebuild of ${r.projection}`} /> {count(r.applied ?? 0)} of {count(r.total)}</> : null}
          {r.eta_seconds !== undefined && `, about ${count(Math.ceil(r.eta_seconds))} s left`}{r.error && <div class="bad-text"><Text of={r.error} /></div>}</li>)}</ul></>}
      </section>}
      <section aria-label="Failed events">
        <div class="bar"><h2>Failed events</h2><span class="space" />{(failed.data?.failed.length ?? 0) > 0 && <button onClick={() => void act("failed", "Try all failed events again? Their conversations are rebuilt from the log.", "Trying again…", () => retry({ all: true }))}>Retry all</button>}</div>
        <Notice error={failed.error}>{mayRetry !== undefined ? mayRetry || "Loading…" : !failed.data ? "Loading…" : failed.data.failed.length === 0 ? "None. An event that a projection can't apply would be listed here, with the reason." : "The log keeps them. An invalid event breaks a rule: its producer must be fixed. An error could not be applied: fix the cause, then retry."}</Notice>
        {saidAt("failed")}
        {(failed.data?.failed.length ?? 0) > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of failed events"><table>
          <thead><tr><th>Event</th><th>Projection</th><th>Class</th><th>Reason</th><th>Conversation</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{failed.data!.failed.map((f) => (
            <tr key={`${f.projection}-${f.seq}`}><td><button class="quiet seq" title="Show the event as it is in the log" onClick={() => change({ event: String(f.seq), ...f.tenant === (tenant() ?? "default") ? {} : { tenant: f.tenant } })}>#{f.seq}</button></td><td>{f.projection}</td><td>{f.class}</td><td><Text of={f.reason} /></td><td><a href={link({ c: f.conversation, tenant: f.tenant === "default" ? undefined : f.tenant })}><Text of={f.conversation} /></a></td>
              <td><button class="quiet" onClick={() => void act("failed", `Try event ${f.seq} again? Its conversation is rebuilt from the log.`, "Trying again…", () => retry({ seq: f.seq }))}>Retry</button></td></tr>
          ))}</tbody>
        </table></div>}
      </section>
      {s && s.processes.length > 0 && <section aria-label="Processes">
        <h2>Processes</h2>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of processes"><table>
          <thead><tr><th>Process</th><th>Program</th><th>Version</th><th>Started</th><th>State</th><th class="n">Lag</th><th class="n">Events/s</th></tr></thead>
          <tbody>{s.processes.map((x) => <tr key={x.name}><td><Text of={x.name} /></td><td>{x.program}</td><td>{x.version}</td><td class="nowrap"><Time of={x.started} /></td><td><State of={x.state} />{x.error && <div class="dim"><Text of={x.error} /></div>}</td><td class="n">{count(x.lag)}</td><td class="n">{count(Math.round(x.rate))}</td></tr>)}</tbody>
        </table></div>
      </section>}
      {mayRebuild === undefined && <Settings />}
    </div></div>{p["event"] && <EventPanel seq={p["event"]} />}</div>
  );
}

const isBad = (state: string) => ["halted", "damaged", "unavailable"].includes(state);

function State({ of }: { of: string }) {
  return <span class={`state ${["live", "serving"].includes(of) ? "good" : isBad(of) ? "bad" : "busy"}`}>{of}</span>;
}

function Settings() {
  const [open, setOpen] = useState(false);
  const { data, error } = useGet<{ settings: Setting[] }>(open ? "/v1/settings" : null);
  return (
    <details class="settings" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Settings in effect</summary>
      {open && (!data ? <Notice error={error}>Loading…</Notice> : <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of settings"><table>
        <thead><tr><th>Setting</th><th>Value</th><th>From</th><th>Meaning</th></tr></thead>
        <tbody>{data.settings.map((x) => <tr key={x.name}><td class="path">{x.name}</td><td class="path"><Text of={x.value} /></td><td>{x.source}</td><td>{x.meaning}</td></tr>)}</tbody>
      </table></div>)}
    </details>
  );
}

interface Retried { applied: number; failed: number; next_after?: number; conversations: { projection: string; error?: string; rebuilding?: boolean }[] }

// retry tries skipped events again, page by page, and returns the result in a sentence.
async function retry(body: object): Promise<string> {
  let applied = 0, failed = 0, after: number | undefined;
  const rebuilding = new Set<string>(), errors = new Set<string>();
  do {
    const r: Retried = await post("/v1/retries", { ...body, after });
    applied += r.applied;
    failed += r.failed;
    for (const c of r.conversations) {
      if (c.rebuilding) rebuilding.add(c.projection);
      if (c.error) errors.add(c.error);
    }
    after = r.next_after;
  } while (after);
  return [
    applied > 0 && `Applied: ${plural(applied, "event")}.`, failed > 0 && `Failed again: ${plural(failed, "event")}. The table says why.`,
    rebuilding.size > 0 && `A conversation is too large for a retry, so the rebuild of ${[...rebuilding].join(", ")} runs instead.`, ...[...errors].slice(0, 3),
  ].filter(Boolean).join(" ") || "There was nothing to retry.";
}

// verify replays the log, says how far it is, and returns the result in a sentence.
async function verify(say: (text: string) => void): Promise<string> {
  for await (const message of sent(await ask("/v1/verify/stream", { method: "POST" }))) {
    if (message.name === "progress") {
      const now = JSON.parse(message.data) as { projection: string; done: number; total: number };
      say(`Replaying the log for ${now.projection}: ${count(now.done)} of ${count(now.total)} events.`);
    } else if (message.name === "error") {
      const { detail } = JSON.parse(message.data) as { detail?: string };
      throw new Problem(0, detail ?? "The verification failed.");
    } else if (message.name === "verified") {
      const v = JSON.parse(message.data) as Verified;
      const bad = v.projections.filter((x) => !x.equal);
      if (bad.length === 0) return `All ${v.projections.length} read models equal the log.`;
      const where = bad.flatMap((x) => (x.differences ?? []).map((d) => d.conversation));
      return `${bad.map((x) => x.name).join(", ")} ${bad.length === 1 ? "differs" : "differ"} from the log in ${plural(where.length, "conversation")}: ${where.slice(0, 5).join(", ")}. A rebuild repairs it.`;
    }
  }
  throw new Problem(0, "The server ended the verification.");
}
