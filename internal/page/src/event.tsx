// The selected event as it is in the log.
import { useLayoutEffect, useState } from "preact/hooks";

import { path, useAccess, useGet } from "./api";
import { asText, count, firstLine, Notice, plural, Text } from "./text";
import { change, link, params } from "./url";

type CloudEvent = Record<string, unknown> & { data?: unknown };
interface Listed { events: { seq: number; bytes: number; event?: CloudEvent }[] }

// EventPanel shows an event. A token of one project may read it only as part of its conversation, of.
export function EventPanel({ seq, of }: { seq: string; of?: string }) {
  const access = useAccess(), apart = access?.project && !of; // not known as part of a conversation
  const url = access?.project && of ? path("/v1/conversations/{}/events", [of], { as_of: seq, limit: 1 }) : path("/v1/events/{}", [seq]);
  const { data: answer, error, loading } = useGet<CloudEvent | Listed>(!access || apart ? null : url);
  const [copy, setCopy] = useState<{ url: string; done: boolean }>();
  useLayoutEffect(() => () => opener?.focus({ preventScroll: true }), []); // nothing happens if it is gone
  const copied = copy?.url === url ? copy.done : undefined; // of this event
  const command = `curl -s '${(location.origin + url).replaceAll("'", "%27")}'`;
  const copyCommand = async () => {
    try {
      await navigator.clipboard.writeText(command); // there is none on plain HTTP, except on this machine
      setCopy({ url, done: true });
    } catch { setCopy({ url, done: false }); }
  };
  const data = answer && Array.isArray((answer as Listed).events) ? (answer as Listed).events.find((e) => e.seq === Number(seq))?.event : answer as CloudEvent | undefined;
  const { data: payload, ...envelope } = data ?? {};
  const message = data?.["type"] === "dev.mneme.message.created.v1" ? payload as { message_id?: string; content?: string } : undefined;
  return (
    <aside class="event" aria-label={`Event ${seq}`}>
      <div class="bar">
        <h2>Event {seq}</h2>
        <span class="space" />
        {followable.test(String(data?.["type"])) && <a href={follow(String(data!["subject"] ?? of), seq)} title="Whether the context shows this event, or at which budget it would">In the context?</a>}
        <button class="quiet" onClick={() => void copyCommand()}>{copied ? "Copied" : "Copy as curl"}</button>
        <button class="quiet" onClick={() => change({ event: undefined })} aria-label="Close the event">✕</button>
      </div>
      {copied === false && <p class="notice error" role="alert">The browser does not let this page copy. The command is: <code><Text of={command} /></code></p>}
      {(loading || error) && <Notice error={error}>Loading…</Notice>}
      {(answer || apart) && !data && !loading && <Notice>This token may not read the event, or it is too large to show here.</Notice>}
      {data && <div class="scroll" tabIndex={0} role="region" aria-label="The event">
        <dl class="envelope">{Object.entries(envelope).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{name === "subject" && value !== of ? <a href={link({ c: String(value) })}><Text of={asText(value)} /></a> : <Text of={asText(value)} />}</dd></div>)}</dl>
        {Object.entries(typeof payload === "object" && payload !== null ? payload : { data: payload }).map(([name, value]) => (
          <section key={name}><h3>{name}</h3><pre><Text of={asText(value)} /></pre></section>
        ))}
        {message?.message_id && <Embedding key={seq} conversation={String(data["subject"] ?? of)} id={message.message_id} content={message.content ?? ""} />}
        <details><summary>The whole CloudEvent as JSON</summary><pre><Text of={JSON.stringify(data, null, 2)} /></pre></details>
      </div>}
    </aside>
  );
}

const followable = /^dev\.mneme\.(message\.created|tool\.called|tool\.returned)\.v1$/;

// follow links to the context of the event's conversation, with the parameters of the one that is open.
function follow(conversation: string, seq: string): string {
  const p = params();
  return link({ ...p["c"] === conversation && p["view"] === "context" ? p : {}, c: conversation, view: "context", follow: seq, event: undefined });
}

interface Embedded { model?: string; dimensions: number; passages: { start: number; end: number; terms: number; vector?: number[] }[] }

// Embedding shows the stored vectors of a message, one for each of its passages.
function Embedding({ conversation, id, content }: { conversation: string; id: string; content: string }) {
  const [open, setOpen] = useState(false);
  const { data, error } = useGet<Embedded>(open ? path("/v1/conversations/{}/messages/{}/embedding", [conversation, id]) : null);
  const bytes = open ? new TextEncoder().encode(content) : undefined;
  return (
    <details class="embedding" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>How searches see it</summary>
      {open && (!data ? <Notice error={error}>Loading…</Notice> : <>
        <p>{data.model ? <>{plural(data.passages.length, "passage")}, {data.dimensions} numbers each by <Text of={data.model} />.</> : "No embeddings: searches rank it by words alone."}</p>
        {data.passages.slice(0, 20).map((passage, i) => (
          <section key={i}>
            <p class="dim">bytes {count(passage.start)} to {count(passage.end)}, {plural(passage.terms, "word")} that count{passage.vector ? "" : ", no vector yet"}</p>
            <p><Text of={firstLine(new TextDecoder().decode(bytes!.slice(passage.start, passage.end)), 140)} /></p>
            {passage.vector && <>
              <svg class="vector" viewBox={`0 -128 ${passage.vector.length} 256`} preserveAspectRatio="none" role="img" aria-label={`${plural(passage.vector.length, "number")} from ${Math.min(...passage.vector)} to ${Math.max(...passage.vector)}`}>
                <path d={passage.vector.map((v, x) => `M${x + 0.5} 0V${-v}`).join("")} /></svg>
              <details><summary>Numbers</summary><pre>{passage.vector.join(" ")}</pre></details>
            </>}
          </section>
        ))}
        {data.passages.length > 20 && <p class="dim">and {count(data.passages.length - 20)} more</p>}
      </>)}
    </details>
  );
}

let opener: HTMLElement | undefined; // of the event that is open; it gets the focus again

export function EventLink({ seq }: { seq?: number }) {
  if (!seq) return null;
  const open = (e: MouseEvent) => {
    opener = e.currentTarget as HTMLElement;
    change({ event: String(seq) });
  };
  return <button class="quiet seq" onClick={open} title="Show the event as it is in the log">#{seq}</button>;
}

// TurnLink leads to a turn in the timeline, with the event in it that is asked about.
export function TurnLink({ of, turn, event }: { of: string; turn: number; event?: number }) {
  return <a href={link({ c: of, turn: String(turn), event: event ? String(event) : undefined })}>turn {turn}</a>;
}
