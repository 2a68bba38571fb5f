// The projects, and what an agent that begins to work in one would see.
import { type Context, path, useAccess, useGet, usePages } from "./api";
import { EventPanel } from "./event";
import { Field } from "./field";
import { Budget, Bytes, Dropped, Lines } from "./lines";
import { firstLine, Notice, plural, shortPath, Text, Time, useTitle } from "./text";
import { change, link, type Params } from "./url";

interface Session { id: string; title?: string; agent?: string; asked?: string; turn_count: number; updated_at?: string; unanswered: boolean }

export function Projects() {
  useTitle("Projects");
  const access = useAccess(); // of one project, this view is about to become that project's
  const { list, error, loading, more } = usePages<{ name: string; newest: Session }>(access && !access.project ? path("/v1/projects", [], { limit: 100 }) : null, "projects");
  return (
    <div class="page">
      <h1>Projects</h1>
      <Notice error={error}>{(loading || !access) && list.length === 0 ? "Loading…" : list.length === 0 ? "No projects yet. A conversation belongs to the project that it names, or else to its repository or working folder."
        : `${plural(list.length, "project")}${more ? " so far" : ""}, by name`}</Notice>
      <ul class="cards">{list.map((x) => (
        <li key={x.name}>
          <a class="title" href={link({ view: "project", project: x.name })} title={x.name}><Text of={shortPath(x.name)} /></a>
          <p class="facts"><span class="path"><Text of={x.name} /></span><Time of={x.newest.updated_at} /></p>
          {x.newest.asked && <p class="quote"><span class="dim">asked last</span> <Text of={firstLine(x.newest.asked, 160)} /></p>}
        </li>
      ))}</ul>
      {more && <button onClick={more}>Show more</button>}
    </div>
  );
}

export function ProjectView({ name, p }: { name: string; p: Params }) {
  const max = p["max"] ?? "8000";
  useTitle(shortPath(name), "Projects");
  const project = useGet<{ name: string; names: string[]; conversations: Session[] }>(path("/v1/projects/{}", [name], { query: p["q"] }), 200);
  const context = useGet<Context>(path("/v1/projects/{}/context", [name], { query: p["q"], max_chars: max, explain: true, include_markdown: true }), 200);
  const bytes = p["show"] === "bytes", only = useAccess()?.project;
  const shown = context.data?.sections.flatMap((s) => s.items).find((x) => String(x.seq) === p["event"]); // of the event
  return (
    <div class={`body ${p["event"] ? "with-event" : ""}`}>
      <div class="view"><div class="page">
        <h1 title={name}><Text of={shortPath(name)} /></h1>
        {project.error ? <Notice error={project.error} /> : project.data && <p class="facts">{project.data.names.map((n) => <code key={n} class="id"><Text of={n} /></code>)}
          <a href={link({ project: name })}>All its conversations</a>{!only && <a href={link({ view: "insights", project: name })}>Insights</a>}</p>}
        <section aria-label="Context of the project">
          <h2>What a new session would see</h2>
          <form class="filters" onSubmit={(e) => e.preventDefault()}>
            <input type="search" aria-label="What the agent is going to do" placeholder="What the agent is going to do" value={p["q"] ?? ""} onInput={(e) => change({ q: e.currentTarget.value }, true)} />
            <Field label="Budget" type="number" min="500" max="1000000" step="500" value={max} onDone={(v) => change({ max: v }, true)} />
            <div role="group" aria-label="Show as" class="choice"><button aria-pressed={!bytes} onClick={() => change({ show: undefined })}>Lines and reasons</button><button aria-pressed={bytes} onClick={() => change({ show: "bytes" })}>Exact text</button></div>
          </form>
          {context.error ? <Notice error={context.error} /> : !context.data?.manifest ? <Notice>Loading…</Notice> : <div class="context-of" aria-busy={context.loading}>
            <Budget data={context.data} lines={!bytes} left />{bytes ? <Bytes data={context.data} /> : <Lines data={context.data} />}
            <h3 id="left">Left out</h3><Dropped data={context.data} />
          </div>}
        </section>
        {project.data && <section aria-label="Conversations"><h2>Conversations</h2>
          <Notice>{plural(project.data.conversations.length, "conversation")}, newest first</Notice>
          <ul class="cards">{project.data.conversations.map((s) => (
            <li key={s.id}>
              <a class="title" href={link({ c: s.id })}><Text of={s.title || s.id} /></a>
              <p class="facts">{s.agent && <span><Text of={s.agent} /></span>}<span>{plural(s.turn_count, "turn")}</span>{s.unanswered && <span class="badge">not answered</span>}<Time of={s.updated_at} /></p>
            </li>
          ))}</ul></section>}
      </div></div>
      {p["event"] && <EventPanel seq={p["event"]} of={only && shown?.session} />}
    </div>
  );
}
