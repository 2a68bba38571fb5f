// One conversation: its head, its tabs, and the event that is selected.
import { useEffect, useRef, useState } from "preact/hooks";

import { type Conversation, path, useAccess, useGet, useWatch, withInherited } from "./api";
import { Bench } from "./bench";
import { Compare } from "./compare";
import { ContextView } from "./context";
import { EventPanel } from "./event";
import { Files } from "./files";
import { Graph } from "./graph";
import { Health } from "./health";
import { useOutline } from "./outline";
import { ServedContexts } from "./served";
import { count, Notice, plural, Text, useTitle } from "./text";
import { Timeline } from "./timeline";
import { link, type Params } from "./url";

// The tabs; keys 1, 2 and so on open them.
export const views: [string, string][] = [
  ["timeline", "Timeline"], ["context", "Context"], ["served", "Served"], ["compare", "Compare"], ["search", "Search"], ["graph", "Graph"], ["files", "Files"], ["health", "Health"],
];

export function ConversationView({ id, p }: { id: string; p: Params }) {
  const read = useGet<Conversation>(path("/v1/conversations/{}", [id])), { data: newest, error } = read;
  useWatch(read, 5000);
  const [shown, show] = useState<Conversation>();
  if (!shown && newest) show(newest); // what comes later is shown when somebody asks for it, so that nothing moves meanwhile
  const c = shown ?? newest;
  const outline = useOutline(c), only = useAccess()?.project;
  const view = views.some(([v]) => v === p["view"]) ? p["view"] : "timeline";
  useTitle(views.find(([v]) => v === view)![1], c?.title || id);
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [view, c, outline]); // the tabs come with the outline
  if (!c || !outline) return <div class="page">{error && <h1><Text of={id} /></h1>}<Notice error={error}>Loading…</Notice></div>;
  const all = withInherited(c);
  return (
    <div class={`conversation ${p["event"] ? "with-event" : ""}`}>
      <div class="head">
        <h1><Text of={c.title || c.id} /></h1>
        <p class="facts">
          {c.agent && <span><Text of={c.agent} /></span>}
          <span>{plural(all.turn_count, "turn")}</span><span>{plural(all.message_count, "message")}</span>
          <span>{plural(all.tool_call_count, "call")}</span><span>{count(all.total_chars)} characters</span>
          {c.inherited && <a href={link({ c: c.inherited.conversation_id, turn: String(c.inherited.turn_count) })}>branch, the first {plural(c.inherited.turn_count, "turn")} inherited</a>}
          {!only && <><a href={link({ view: "tail", conversation: id })}>Live</a><a href={link({ view: "insights", conversation: id, by: "tool" })}>Insights</a></>}
          <code class="id"><Text of={c.id} /></code>
          {newest && newest.last_seq > c.last_seq && <button class="quiet" onClick={() => show(newest)}>{added(c, newest)}</button>}
        </p>
        {error && <Notice error={error} />}
        <nav class="tabs" ref={tabs} aria-label="Views of this conversation">
          {views.map(([v, name]) => <a key={v} href={link({ c: id, view: v === "timeline" ? undefined : v })} aria-current={v === view ? "page" : undefined}>{name}</a>)}
        </nav>
      </div>
      <div class="body">
        <div class="view" key={c.last_seq}>
          {view === "timeline" && <Timeline c={c} outline={outline} p={p} />}
          {view === "context" && <ContextView c={c} outline={outline} p={p} />}
          {view === "served" && <ServedContexts c={c} />}
          {view === "compare" && <Compare c={c} p={p} />}
          {view === "search" && <Bench c={c} p={p} />}
          {view === "graph" && <Graph c={c} outline={outline} p={p} />}
          {view === "files" && <Files c={c} />}
          {view === "health" && <Health c={c} p={p} />}
        </div>
        {p["event"] && <EventPanel seq={p["event"]} of={id} />}
      </div>
    </div>
  );
}

// added says what a conversation has now that it did not have before.
function added(before: Conversation, now: Conversation): string {
  const messages = now.message_count - before.message_count, calls = now.tool_call_count - before.tool_call_count;
  return `Show ${messages > 0 ? plural(messages, "new message") : calls > 0 ? plural(calls, "new call") : "what is new"}`;
}
