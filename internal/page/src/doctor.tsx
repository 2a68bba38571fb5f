// What the server finds when it checks itself, as mneme doctor does, and what to do about each problem.
import { useState } from "preact/hooks";

import { useGet } from "./api";
import { Notice, plural, Text } from "./text";
import { change } from "./url";

type Level = "ok" | "warning" | "failed";
interface Check { check: string; level: Level; detail: string; remedy?: string }

const signs: Record<Level, string> = { failed: "bad", warning: "busy", ok: "good" };

// Doctor checks only when it is asked to, because that may take seconds.
export function Doctor({ asked }: { asked: boolean }) {
  const [round, next] = useState(0);
  return (
    <section aria-label="Doctor">
      <div class="bar"><h2>Doctor</h2><span class="space" />
        {asked ? <button onClick={() => next(round + 1)}>Check again</button> : <button onClick={() => change({ doctor: "1" })}>Check this server</button>}</div>
      {asked ? <Findings key={round} /> : <Notice>Checks settings, limits, certificates, NATS, the log, read models and disk, and says what to do about each problem. It changes nothing.</Notice>}
    </section>
  );
}

function Findings() {
  const { data, error } = useGet<{ checks: Check[] }>("/v1/doctor");
  if (!data) return <Notice error={error}>Loading… This takes at most ten seconds.</Notice>;
  const of = (level: Level) => data.checks.filter((c) => c.level === level);
  const failed = of("failed"), warnings = of("warning"), passed = of("ok");
  const sum = [failed.length > 0 && plural(failed.length, "failure"), warnings.length > 0 && plural(warnings.length, "warning"), plural(passed.length, "passed check")];
  return (
    <>
      <p class="notice" role="status">{sum.filter(Boolean).join(", ")}.</p>
      <List of={[...failed, ...warnings]} />
      <details><summary>{plural(passed.length, "passed check")}</summary><List of={passed} /></details>
    </>
  );
}

function List({ of }: { of: Check[] }) {
  return (
    <ul class="cards findings">{of.map((c, n) => (
      <li key={n}>
        <span class={`state ${signs[c.level]}`}>{c.level}</span>
        <div><b>{c.check}</b>: <Text of={c.detail} />{c.remedy && <p><span class="dim">What to do:</span> <Text of={c.remedy} /></p>}</div>
      </li>
    ))}</ul>
  );
}
