import { type Conversation, path, useGet } from "./api";
import { EventLink, TurnLink } from "./event";
import { Notice, plural, Text } from "./text";

interface File { path: string; kind: string; tool: string; turn: number; seq: number; count: number }

export function Files({ c }: { c: Conversation }) {
  const { data, error } = useGet<{ files: File[] }>(path("/v1/conversations/{}/files", [c.id], { limit: 500 }));
  return (
    <div class="pad">
      <Notice error={error}>{data ? `${plural(data.files.length, "file")} touched by tools, most recent first` : "Loading…"}</Notice>
      {data && data.files.length > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label="Files"><table>
        <thead><tr><th>File</th><th>Last</th><th>Tool</th><th class="n">Turn</th><th class="n">Times</th><th>Event</th></tr></thead>
        <tbody>{data.files.map((f) => (
          <tr key={f.path}><td class="path"><Text of={f.path} /></td><td>{f.kind}</td><td><Text of={f.tool} /></td><td class="n"><TurnLink of={c.id} turn={f.turn} event={f.seq} /></td><td class="n">{f.count}</td><td><EventLink seq={f.seq} /></td></tr>
        ))}</tbody>
      </table></div>}
    </div>
  );
}
