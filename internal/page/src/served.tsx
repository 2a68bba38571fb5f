// The contexts that an agent was shown, and whether each can be made again to the byte.
import { useState } from "preact/hooks";

import { type Conversation, getJSON, path, type Problem, useGet, usePages } from "./api";
import { EventLink } from "./event";
import { count, firstLine, Notice, plural, Text, Time } from "./text";
import { link, type Params } from "./url";

interface Served {
  seq: number; source: string; time?: string; as_of: number; hash: string; chars: number; max_chars: number; strategy: string; query?: string;
  condense?: string; format?: string; project_memory?: boolean; embedded_up_to?: number;
}
interface Remade { served: Served; equal: boolean; hash: string }

const remade = (c: Conversation, seq: number | string) => path("/v1/conversations/{}/contexts/{}", [c.id, String(seq)]);

// whyDifferent says why a context that was made again may not be the one that was served.
const whyDifferent = "A source of it was erased or is missing, or this version of mneme chooses differently.";

// parameters open a context in the viewer as it was served.
function parameters(s: Served): Params {
  return {
    served: String(s.seq), as_of: String(s.as_of), q: s.query, max: String(s.max_chars), strategy: s.strategy, condense: s.condense,
    memory: s.project_memory ? "on" : "off", embedded: s.embedded_up_to ? String(s.embedded_up_to) : undefined,
  };
}

export function ServedContexts({ c }: { c: Conversation }) {
  const { list, error, loading, more } = usePages<Served>(path("/v1/conversations/{}/contexts", [c.id], { limit: 50 }), "contexts");
  const [results, set] = useState<Record<number, Remade | Problem>>({});
  const [checking, setChecking] = useState(false);
  const check = async (some: Served[]) => {
    setChecking(true);
    for (const s of some) {
      const result = await getJSON<Remade>(remade(c, s.seq)).catch((e: Problem) => e);
      set((before) => ({ ...before, [s.seq]: result }));
    }
    setChecking(false);
  };
  return (
    <div class="pad">
      <div class="bar"><Notice error={error}>{loading && list.length === 0 ? "Loading…" : list.length === 0
        ? "None yet. Only contexts requested with record=true are listed here; in the tab Context, “Remember this” adds one."
        : `${plural(list.length, "context")}${more ? " so far" : ""} shown to agents, oldest first`}</Notice>
      <span class="space" />{list.length > 0 && <button disabled={checking} onClick={() => void check(list)}>{checking ? "Checking…" : "Check all"}</button>}</div>
      {list.length > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label="Served contexts"><table>
        <thead><tr><th>Shown at</th><th>Query</th><th class="n">As of</th><th class="n">Characters</th><th>Strategy</th><th>SHA-256</th><th>Rebuilt</th><th>Event</th></tr></thead>
        <tbody>{list.map((s) => (
          <tr key={s.seq}>
            <td class="nowrap"><a href={link({ c: c.id, view: "context", ...parameters(s) })}>{s.time ? <Time of={s.time} /> : `#${s.seq}`}</a></td>
            <td class="query"><Text of={firstLine(s.query || "what the user said last", 90)} /></td><td class="n">#{s.as_of}</td>
            <td class="n">{count(s.chars)} of {count(s.max_chars)}</td><td>{s.strategy}{s.format && <span class="dim"> as {s.format}</span>}</td>
            <td><code title={s.hash}>{s.hash.slice(0, 10)}</code></td>
            <td class="nowrap"><Outcome of={results[s.seq]} />{!sure(results[s.seq]) && <button class="quiet" disabled={checking} onClick={() => void check([s])}>Check</button>}</td>
            <td><EventLink seq={s.seq} /></td>
          </tr>
        ))}</tbody>
      </table></div>}
      {Object.values(results).some((r) => "equal" in r && !r.equal) && <Notice>Why a context may differ: {whyDifferent}</Notice>}
      {more && <button onClick={more}>Show more</button>}
    </div>
  );
}

const sure = (r?: Remade | Problem) => r !== undefined && !(r instanceof Error);

function Outcome({ of }: { of?: Remade | Problem }) {
  if (!of) return null;
  if (of instanceof Error) return <span class="state bad">{of.message}</span>;
  return of.equal ? <span class="state good">equal</span> : <span class="state bad" title={`now ${of.hash}`}>differs</span>;
}

// ServedBanner says above a context that an agent was shown it, and whether it is the same now.
export function ServedBanner({ c, seq }: { c: Conversation; seq: string }) {
  const { data, error } = useGet<Remade>(remade(c, seq));
  if (!data) return <Notice error={error}>Rebuilding it…</Notice>;
  return (
    <p class="notice banner" role="status">
      An agent was shown this context{data.served.time && <> at <Time of={data.served.time} /></>} <EventLink seq={data.served.seq} />
      {" "}{data.equal ? <span class="state good">Rebuilt: identical to the byte.</span>
        : <><span class="state bad">Rebuilt: it differs.</span> {whyDifferent}</>}
    </p>
  );
}
