// Where one event is in a context, or what it would take to get it there.
import { type Context, type Conversation, path, useGet } from "./api";
import { EventLink } from "./event";
import { sectionName } from "./lines";
import { contextQuery } from "./parameters";
import { count, Notice } from "./text";
import { change, type Params } from "./url";

export function Followed({ c, p, data, seq }: { c: Conversation; p: Params; data: Context; seq: number }) {
  const section = data.sections.find((s) => s.items.some((it) => it.seq === seq || it.result_seq === seq));
  const summary = data.sections.flatMap((s) => s.items).find((it) => it.summary && it.summary.first_seq <= seq && seq <= it.summary.last_seq);
  const later = seq > data.as_of;
  const { data: tried, error, loading } = useGet<Context>(section || later ? null : path("/v1/conversations/{}/context", [c.id], { ...contextQuery(p), explain: "candidates", follow: seq }), 300);
  const m = tried?.manifest;
  return (
    <div class="banner bar" role="status">
      <span>
        Event <EventLink seq={seq} />
        {section ? <> is in this context: <a href={`#e-${seq}`}>{sectionName(section.name)}</a>.</>
          : later ? ` is newer than #${data.as_of}, the position of this context.`
          : <>
            {" is left out. "}
            {summary && <>A summary of turns {summary.summary!.first_turn} to {summary.summary!.last_turn}, <EventLink seq={summary.seq} />, replaces it. </>}
            {error ? <Notice error={error} /> : !m || loading ? "Trying larger budgets…"
              : m.followed?.fits_at ? <>With a budget of <button class="quiet" onClick={() => change({ max: String(m.followed!.fits_at) })}>{count(m.followed.fits_at)} characters</button> it would stay.</>
              : `No larger budget up to ${count(Math.max(data.max_chars, ...m.tried_budgets ?? []))} characters shows it: another query may.`}
          </>}
      </span>
      <span class="space" />
      <button class="quiet" onClick={() => change({ follow: undefined })} aria-label="Follow no event">✕</button>
    </div>
  );
}
