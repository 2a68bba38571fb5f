// A tool result that a search found.
import type { FoundResult } from "./api";
import { count, Lit, Text, Time } from "./text";
import { link } from "./url";

// ToolResult shows it with its call. of is its conversation, whose title is shown where several are searched.
export function ToolResult({ r, of, title }: { r: FoundResult; of: string; title?: string }) {
  return (
    <article class="found">
      <p class="facts">
        <a href={link({ c: of, turn: String(r.turn), event: String(r.seq) })}><Text of={r.tool_name || "unknown tool"} /></a>
        {r.argument && <code><Text of={r.argument} /></code>}
        {r.success === false && <span class={`badge state ${r.not_run ? "" : "bad"}`}>{r.not_run ?? "failed"}</span>}
        <span>turn {r.turn}</span>
        {r.duplicates && <span>{count(r.duplicates)} more like it</span>}
        {title && <span><Text of={title} /></span>}
        <Time of={r.time} />
      </p>
      <pre><Lit of={r.text} highlights={r.highlights} /></pre>
    </article>
  );
}
