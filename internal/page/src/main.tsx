import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Problem, Session, session, useAccess } from "./api";
import { ConversationView, views } from "./conversation";
import { Conversations } from "./conversations";
import { Insights } from "./insights";
import { Operations } from "./operations";
import { Projects, ProjectView } from "./projects";
import { Tail } from "./tail";
import { useTitle } from "./text";
import { change, go, link, type Params, params, useParams } from "./url";

const keys = (only?: string): [string, string][] => [
  ["/", "go to the search field"], ["j  k", "next and previous row"], ["1 … 8", "tabs of a conversation"],
  ["[  ]", "the context one turn earlier or later"], ["p", "play the context turn by turn"],
  ...places(only).map(({ key, name }): [string, string] => [key, name.toLowerCase()]), ["Esc", "close the event"], ["?", "this list"],
];

const unkept = "The browser did not send the session cookie. Check that it accepts cookies. Behind a proxy, check that the proxy adds no Authorization header, and sends X-Forwarded-Proto: https only if the browser uses TLS.";

// SignIn asks for a token, or sends the reader to the identity provider. Afterwards the page is loaded again where it was.
function SignIn({ state }: { state: Session }) {
  useTitle("Sign in");
  const field = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState("");
  const submit = (e: Event) => {
    e.preventDefault();
    session.start(field.current!.value.trim()).then(session.get).then(
      (now) => now.signed_in ? location.reload() : setWrong(unkept),
      (problem: Problem) => setWrong(problem.status === 401 ? "The server refused this token. It may be mistyped, revoked or expired." : problem.message));
  };
  useEffect(() => field.current?.focus(), []);
  return (
    <main id="main" class="signin" tabIndex={-1}>
      <h1>Sign in</h1>
      {state.ended && <p class="notice error" role="alert">You are signed out: your token has expired or was revoked.</p>}
      {state.problem && <p class="notice error" role="alert">{state.problem}</p>}
      {state.provider && <p><a class="button primary" href={`/signin?${new URLSearchParams({ view: location.search.slice(1) })}`}>Sign in at {new URL(state.provider).host}</a></p>}
      {state.tokens && <>
        <p>{wrong || (state.provider || state.problem ? "Or use a token." : state.ended ? "Sign in again with another token." : "This server requires a token.")} Make one with <code>mneme tokens create</code>. It is kept until
          you close the browser, in a cookie that no script can read.</p>
        <form onSubmit={submit}>
          <label>Token <input ref={field} type="password" autocomplete="off" spellcheck={false} required /></label>
          <button class={state.provider ? undefined : "primary"}>Sign in</button>
        </form>
      </>}
      {!state.provider && !state.tokens && <p>This server accepts only tokens of an identity provider, and signing in there is not set up: its operator can
        set <code>MNEME_OIDC_CLIENT_ID</code>.</p>}
    </main>
  );
}

function Keys({ only, close }: { only?: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="keys-title">
      <h2 id="keys-title">Keyboard shortcuts</h2>
      <dl>{keys(only).map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <p><a href="/help">Documentation of this version</a></p>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}

// places are the views that are not of one conversation, with their keys. A token of one project shows nothing of the others.
function places(only?: string): { key: string; name: string; at: Params }[] {
  return [{ key: "h", name: "Conversations", at: {} }, ...only ? [{ key: "r", name: "Project", at: { view: "project", project: only } }]
    : [{ key: "r", name: "Projects", at: { view: "projects" } }, { key: "i", name: "Insights", at: { view: "insights" } }, { key: "l", name: "Live", at: { view: "tail" } }, { key: "o", name: "Operations", at: { view: "operations" } }]];
}

function useKeys(help: () => void, only?: string) {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const field = (e.target as Element).matches("input, select, textarea");
      if (e.ctrlKey || e.metaKey || e.altKey || field && e.key !== "Escape" || document.querySelector("dialog[open]")) return; // a dialog has its own keys
      const c = params()["c"], place = places(only).find((x) => x.key === e.key);
      if (e.key === "/") document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      else if (e.key === "?") help();
      else if (place) go(link(place.at));
      else if (e.key === "Escape" && field) (e.target as HTMLElement).blur();
      else if (e.key === "Escape" && params()["event"]) change({ event: undefined });
      else if (c && views[Number(e.key) - 1]) go(link({ c, view: views[Number(e.key) - 1]![0] }));
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [only]);
}

const again = 2000; // milliseconds until the session is asked for again

function App() {
  const p = useParams();
  const [state, setState] = useState<Session>();
  const [help, setHelp] = useState(false);
  const look = () => { session.get().then(setState, unknown); };
  const unknown = (e: Problem) => setState({ needed: false, signed_in: false, ended: false, tokens: false, problem: e.message }); // the view then says what is wrong
  session.onNeeded(look);
  useEffect(look, []);
  useEffect(() => { // until the server knows who this is
    if (!state?.problem) return;
    const timer = setTimeout(look, again);
    return () => clearTimeout(timer);
  }, [state]);
  const only = useAccess(!!state && (!state.needed || state.signed_in) && !state.problem)?.project;
  useKeys(() => setHelp(true), only);
  const view = p["c"] ? "conversation" : ["projects", "project", "insights", "tail", "operations"].includes(p["view"] ?? "") ? p["view"]! : "";
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      <header class="top">
        <a class="brand" href={link({})}>mneme</a>
        <nav aria-label="Views">
          {places(only).map(({ name, at }) => <a key={name} href={link(at)} aria-current={view === (at["view"] ?? "") ? "page" : undefined}>{name}</a>)}
        </nav>
        <span class="space" />
        {state?.needed && state.signed_in && <button class="quiet" onClick={() => { session.end().finally(() => location.reload()); }}>Sign out</button>}
        <a class="help" href="/help">Help</a>
        <button class="quiet" onClick={() => setHelp(true)} aria-label="Keyboard shortcuts" title="Keyboard shortcuts">?</button>
      </header>
      {help && <Keys only={only} close={() => setHelp(false)} />}
      {state?.needed && !state.signed_in ? <SignIn state={state} />
        : <main id="main" tabIndex={-1} aria-busy={!state}>
          {!state ? null : view === "conversation" ? <ConversationView key={p["c"]} id={p["c"]!} p={p} /> : view === "projects" ? only ? <ProjectView name={only} p={p} /> : <Projects /> : view === "project" ? <ProjectView name={p["project"] ?? ""} p={p} />
            : view === "insights" ? <Insights p={p} /> : view === "tail" ? <Tail p={p} /> : view === "operations" ? <Operations p={p} /> : <Conversations p={p} />}
        </main>}
    </>
  );
}

render(<App />, document.getElementById("app")!);
