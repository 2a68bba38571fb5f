// The selected event as it is in the log.
import { useState } from "preact/hooks";

import { path, useGet } from "./api";
import { asText, Notice, Text } from "./text";
import { change } from "./url";

type CloudEvent = Record<string, unknown> & { data?: unknown };

export function EventPanel({ seq }: { seq: string }) {
  const url = path("/v1/events/{}", [seq]);
  const { data, error, loading } = useGet<CloudEvent>(url);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(`curl -s '${(location.origin + url).replaceAll("'", "%27")}'`);
    setCopied(true);
  };
  const { data: payload, ...envelope } = data ?? {};
  return (
    <aside class="event" aria-label={`Event ${seq}`}>
      <div class="bar">
        <h2>Event {seq}</h2>
        <span class="space" />
        <button class="quiet" onClick={() => void copy()}>{copied ? "Copied" : "Copy as curl"}</button>
        <button class="quiet" onClick={() => change({ event: undefined })} aria-label="Close the event">✕</button>
      </div>
      {(loading || error) && <Notice error={error}>Loading…</Notice>}
      {data && <div class="scroll" tabIndex={0} role="region" aria-label="The event">
        <dl class="envelope">{Object.entries(envelope).map(([name, value]) => <div key={name}><dt>{name}</dt><dd><Text of={asText(value)} /></dd></div>)}</dl>
        {Object.entries(typeof payload === "object" && payload !== null ? payload : { data: payload }).map(([name, value]) => (
          <section key={name}><h3>{name}</h3><pre><Text of={asText(value)} /></pre></section>
        ))}
        <details><summary>The whole CloudEvent as JSON</summary><pre><Text of={JSON.stringify(data, null, 2)} /></pre></details>
      </div>}
    </aside>
  );
}

export function EventLink({ seq }: { seq?: number }) {
  if (!seq) return null;
  return <button class="quiet seq" onClick={() => change({ event: String(seq) })} title="Show the event as it is in the log">#{seq}</button>;
}
