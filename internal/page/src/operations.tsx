// What an operator looks at: how far the read models are, what failed, and whether all of it is right.
import { useEffect, useState } from "preact/hooks";

import { path, post, type Problem, useGet } from "./api";
import { count, Notice, plural, Text } from "./text";

interface Partition { name: string; store: string; generation: number; partition: number; state: string; checkpoint: number; lag: number; failed: number; holder?: string; rate: number; error?: string }
interface Rebuild { projection: string; state?: string; done?: number; head?: number }
interface Status {
  stream: { head: number; messages: number; bytes: number; missing: number };
  projections: Partition[];
  rebuilds: Rebuild[];
  processes: { name: string; program: string; version: string; state: string; lag: number }[];
  version: { version: string; go: string };
}
interface Failed { projection: string; seq: number; tenant: string; conversation: string; event_id: string; type: string; class: string; reason: string }

const every = 3000; // milliseconds between two looks, while the tab is in sight

export function Operations() {
  const status = useGet<Status>("/v1/status");
  const failed = useGet<{ failed: Failed[] }>("/v1/failed?limit=200");
  const [said, say] = useState("");
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) status.again(); }, every);
    return () => clearInterval(timer);
  }, []);
  // act asks first, because each of these changes or reads the whole log.
  const act = async (question: string, doing: string, f: () => Promise<string>) => {
    if (!confirm(question)) return;
    setProblem(undefined);
    say(doing);
    try { say(await f()); failed.again(); status.again(); } catch (e) { say(""); setProblem(e as Problem); }
  };
  const verify = () => act("Replay the whole log and compare the read models with it?", "Replaying the log and comparing…", async () => {
    const v = await post<{ equal: boolean; projections: unknown[] }>("/v1/verify");
    return v.equal ? `All ${v.projections.length} read models equal the log.` : "A read model differs from the log: mneme verify says where.";
  });
  const s = status.data;
  return (
    <div class="page">
      <h1>Operations</h1>
      {status.error && <Notice error={status.error} />}
      {s && <p class="figures">
        <span><b>{count(s.stream.head)}</b> head of the log</span>
        <span><b>{count(s.stream.messages)}</b> events</span>
        <span><b>{(s.stream.bytes / 1e6).toFixed(1)} MB</b> on disk</span>
        <span><b>{count(Math.max(0, ...s.projections.map((x) => x.lag)))}</b> lag</span>
        <span><b>{plural(s.processes.length, "process", "processes")}</b> {s.version.version}</span>
      </p>}
      {s && <section aria-label="Read models">
        <div class="bar"><h2>Read models</h2><span class="space" /><button onClick={() => void verify()}>Verify against the log</button></div>
        {said && <p class="notice" role="status">{said}</p>}
        {problem && <Notice error={problem} />}
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of read models"><table>
          <thead><tr><th>Projection</th><th class="n">Partition</th><th class="n">Generation</th><th>State</th><th class="n">Checkpoint</th><th class="n">Lag</th><th class="n">Failed</th><th class="n">Events/s</th><th>Held by</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{s.projections.map((x) => (
            <tr key={`${x.name}-${x.generation}-${x.partition}-${x.store}`}>
              <td>{x.name}</td><td class="n">{x.partition}</td><td class="n">{x.generation}</td><td><span class={`state ${x.state === "live" ? "good" : x.state === "halted" ? "bad" : "busy"}`}>{x.state}</span>{x.error && <div class="dim"><Text of={x.error} /></div>}</td>
              <td class="n">{count(x.checkpoint)}</td><td class="n">{count(x.lag)}</td><td class="n">{count(x.failed)}</td><td class="n">{count(Math.round(x.rate))}</td><td><Text of={x.holder ?? ""} /></td>
              <td><button class="quiet" onClick={() => void act(`Rebuild ${x.name} from the log? Readers see the old one until the new one has caught up.`, "Starting the rebuild…",
                async () => { await post("/v1/rebuilds", { projection: x.name }); return `The rebuild of ${x.name} runs.`; })}>Rebuild</button></td>
            </tr>
          ))}</tbody>
        </table></div>
        {s.rebuilds.length > 0 && <><h3>Rebuilds</h3><ul>{s.rebuilds.map((r, i) => <li key={i}><Text of={JSON.stringify(r)} /></li>)}</ul></>}
      </section>}
      <section aria-label="Failed events">
        <div class="bar"><h2>Failed events</h2><span class="space" />{(failed.data?.failed.length ?? 0) > 0 && <button onClick={() => void act("Repair every conversation with failed events?", "Repairing…", () => retry({ all: true }))}>Retry all</button>}</div>
        <Notice error={failed.error}>{!failed.data ? "Loading…" : failed.data.failed.length === 0 ? "None. An event that a projection can't apply would be listed here, with the reason." : plural(failed.data.failed.length, "failed event")}</Notice>
        {(failed.data?.failed.length ?? 0) > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of failed events"><table>
          <thead><tr><th>Event</th><th>Projection</th><th>Class</th><th>Reason</th><th>Conversation</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{failed.data!.failed.map((f) => (
            <tr key={`${f.projection}-${f.seq}`}><td><a href={path("/v1/events/{}", [String(f.seq)], { tenant: f.tenant })} title="the event as JSON">#{f.seq}</a></td><td>{f.projection}</td><td>{f.class}</td><td><Text of={f.reason} /></td><td><Text of={f.conversation} /></td>
              <td><button class="quiet" onClick={() => void act(`Repair the conversation of event ${f.seq}?`, "Repairing…", () => retry({ seq: f.seq }))}>Retry</button></td></tr>
          ))}</tbody>
        </table></div>}
      </section>
    </div>
  );
}

async function retry(body: object): Promise<string> {
  const r = await post<{ conversations?: unknown[] }>("/v1/retries", body);
  return `${plural(r.conversations?.length ?? 0, "conversation")} repaired.`;
}
