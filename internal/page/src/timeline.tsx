// A conversation in time: its summaries as bars over its turns, the turns as rows, and the open turn.
import { type Conversation, path, type Step, type Summary, type ToolCall, useGet, usePages } from "./api";
import { EventLink } from "./event";
import { Rows } from "./rows";
import { asText, count, firstLine, Notice, plural, Text, Time } from "./text";
import { useTurns } from "./turns";
import { change, type Params } from "./url";

const rowHeight = 58;

export function Timeline({ c, p }: { c: Conversation; p: Params }) {
  const { turns, error } = useTurns(c);
  const turn = Math.min(c.turn_count, Math.max(1, Number(p["turn"]) || c.turn_count));
  const summaries = useGet<{ summaries: Summary[] }>(path("/v1/conversations/{}/summaries", [c.id], { limit: 500 }));
  if (c.turn_count === 0) return <div class="pad"><Notice>No turns yet: a turn begins with a message of the user.</Notice></div>;
  return (
    <div class="timeline">
      <Strip c={c} turn={turn} summaries={summaries.data?.summaries ?? []} />
      <div class="panes">
        <Rows label="Turns" count={c.turn_count} height={rowHeight} selected={turn - 1} onSelect={(i) => change({ turn: String(i + 1) }, true)}
          onRange={(first, last) => turns.want(first + 1, last + 1)} row={(i) => {
            const t = turns.get(i + 1);
            return <>
              <span class="number">{i + 1}</span>
              <span class="what">{t ? <Text of={firstLine(t.user_message?.content ?? "(begins without a user message)", 160)} /> : <span class="loading">…</span>}</span>
              <span class="facts">{t && <><Time of={t.time} /><span>{plural(t.message_count, "message")}</span>{t.tool_call_count > 0 && <span>{plural(t.tool_call_count, "call")}</span>}</>}</span>
            </>;
          }} />
        <section class="turn" aria-label={`Turn ${turn}`} tabIndex={0}>
          {error && <Notice error={error} />}
          <OpenTurn key={turn} c={c} number={turn} turn={turns.get(turn)?.user_message} />
        </section>
      </div>
      {summaries.data && summaries.data.summaries.length > 0 && <SummaryList list={summaries.data.summaries} turn={turn} />}
    </div>
  );
}

// Strip shows the summaries over the turns that they cover. A click opens the turn below it.
function Strip({ c, turn, summaries }: { c: Conversation; turn: number; summaries: Summary[] }) {
  const current = summaries.filter((s) => !s.superseded);
  const levels = Math.max(1, ...current.map((s) => s.level));
  const n = c.turn_count, lane = 11, width = 1000;
  const x = (number: number) => (number - 1) / n * width;
  const open = (e: MouseEvent) => {
    const box = (e.currentTarget as Element).getBoundingClientRect();
    change({ turn: String(Math.min(n, 1 + Math.floor((e.clientX - box.left) / box.width * n))) }, true);
  };
  const height = (levels + 1) * lane;
  return (
    <div class="strip">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" style={{ height: `${height * 1.3}px` }} role="img" onClick={open}
        aria-label={`${plural(n, "turn")}, ${plural(current.length, "summary", "summaries")} above them; turn ${turn} is open`}>
        {current.map((s) => (
          <rect key={s.seq} class={s.frontier ? "frontier" : "consolidated"} x={x(s.first_turn)} y={(levels - s.level) * lane + 1}
            width={Math.max(1.5, x(s.last_turn + 1) - x(s.first_turn) - 1)} height={lane - 3} rx="2">
            <title>{`level ${s.level}, turns ${s.first_turn} to ${s.last_turn}`}</title>
          </rect>
        ))}
        <rect class="ground" x="0" y={levels * lane + 2} width={width} height={lane - 4} rx="2" />
        <rect class="here" x={x(turn)} y={0} width={Math.max(3, width / n)} height={height} />
      </svg>
      <p class="legend"><span><i class="frontier" /> summary</span><span><i class="consolidated" /> part of a higher one</span><span><i class="here" /> the open turn</span></p>
    </div>
  );
}

function SummaryList({ list, turn }: { list: Summary[]; turn: number }) {
  const over = list.filter((s) => !s.superseded && s.first_turn <= turn && turn <= s.last_turn).slice(0, 20);
  return (
    <details class="summaries">
      <summary>{plural(over.length, "summary", "summaries")} of turn {turn}</summary>
      {over.map((s) => (
        <article key={s.seq}>
          <h3>Level {s.level}, turns {s.first_turn} to {s.last_turn} <span class="dim">{s.method}{s.frontier ? "" : ", part of a higher summary"}</span> <EventLink seq={s.seq} /></h3>
          <p><Text of={s.conversation} /></p>
          {s.actions && <p class="dim"><Text of={s.actions} /></p>}
        </article>
      ))}
    </details>
  );
}

function OpenTurn({ c, number, turn }: { c: Conversation; number: number; turn?: { seq: number; content?: string; time?: string; speaker?: string; role: string; origin?: string } }) {
  const steps = usePages<Step>(path("/v1/conversations/{}/steps", [c.id], { turn: number, order: "oldest", limit: 30, include_reasoning: true }), "steps");
  return (
    <>
      <h2>Turn {number}</h2>
      {turn && <article class="message user"><header><b><Text of={turn.speaker ?? turn.role} /></b>{turn.origin && <span class="badge"><Text of={turn.origin} /></span>}<Time of={turn.time} /><EventLink seq={turn.seq} /></header><Long of={turn.content ?? ""} /></article>}
      {steps.list.map((s, i) => (
        <div key={i}>
          {s.message && (s.message.content || s.message.reasoning) && <article class="message"><header><b><Text of={s.message.speaker ?? s.message.role} /></b><Time of={s.message.time} /><EventLink seq={s.message.seq} /></header>
            {s.message.reasoning && <details><summary>Reasoning</summary><Long of={s.message.reasoning} /></details>}
            <Long of={s.message.content ?? ""} /></article>}
          {s.tool_calls?.map((call) => <Call key={call.seq} call={call} />)}
        </div>
      ))}
      {(steps.loading || steps.error) && <Notice error={steps.error}>Loading…</Notice>}
      {steps.more && <button onClick={steps.more}>Show more of this turn</button>}
    </>
  );
}

const fold = 900; // characters of a text that are shown before it is opened

export function Long({ of }: { of: string }) {
  if (of.length <= fold) return <pre class="said"><Text of={of} /></pre>;
  return (
    <details class="long">
      <summary><pre class="said"><Text of={of.slice(0, fold)} /></pre><span class="more">{count(of.length - fold)} more characters</span></summary>
      <pre class="said"><Text of={of.slice(fold)} /></pre>
    </details>
  );
}

function Call({ call }: { call: ToolCall }) {
  const r = call.result;
  const failed = r?.success === false;
  const result = asText(r?.error ?? r?.result);
  return (
    <details class={`call ${failed ? "failed" : ""}`}>
      <summary>
        <span class="sign" aria-hidden="true">{!r ? "…" : failed ? "✗" : "✓"}</span>
        <b><Text of={call.tool_name} /></b>
        <span class="args"><Text of={firstLine(asText(call.arguments), 120)} /></span>
        <span class="dim">{!r ? "no result" : failed ? "failed" : `${count(result.length)} characters`}{r?.duration_ms !== undefined && `, ${count(Math.round(r.duration_ms))} ms`}</span>
      </summary>
      <header><span class="dim">call</span><EventLink seq={call.seq} />{r && <><span class="dim">result</span><EventLink seq={r.seq} /></>}</header>
      <pre><Text of={asText(call.arguments)} max={20_000} /></pre>
      {r && <pre class="result"><Text of={result} max={20_000} /></pre>}
    </details>
  );
}
