import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { token } from "./api";
import { ConversationView, views } from "./conversation";
import { Conversations } from "./conversations";
import { Operations } from "./operations";
import { Projects, ProjectView } from "./projects";
import { Tail } from "./tail";
import { change, go, link, params, useParams } from "./url";

const keys: [string, string][] = [
  ["/", "go to the search field"], ["j  k", "next and previous row"], ["1 … 7", "the tabs of a conversation"],
  ["[  ]", "the context one turn back, or one turn on"], ["p", "play the context turn by turn"],
  ["h", "all conversations"], ["r", "projects"], ["l", "live"], ["o", "operations"], ["Esc", "close the event"], ["?", "this list"],
];

function SignIn({ done }: { done: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const submit = (e: Event) => {
    e.preventDefault();
    token.set(field.current!.value.trim());
    done();
  };
  useEffect(() => field.current?.focus(), []);
  return (
    <main class="signin">
      <h1>Sign in</h1>
      <p>{token.get() ? "The server refused this token. It may be mistyped, revoked or expired." : "This server demands a token."} Make one
        with <code>mneme tokens create</code>. It is kept until you close this tab.</p>
      <form onSubmit={submit}>
        <label>Token <input ref={field} type="password" autocomplete="off" spellcheck={false} required /></label>
        <button class="primary">Sign in</button>
      </form>
    </main>
  );
}

function Keys({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl>{keys.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <p><a href="/help">The documentation of this version</a></p>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}

const sections: Record<string, string> = { r: "projects", l: "tail", o: "operations" };

function useKeys(help: () => void) {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const field = (e.target as Element).matches("input, select, textarea");
      if (e.ctrlKey || e.metaKey || e.altKey || field && e.key !== "Escape") return;
      const c = params()["c"];
      if (e.key === "/") document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      else if (e.key === "?") help();
      else if (e.key === "h") go(link({}));
      else if (sections[e.key]) go(link({ view: sections[e.key] }));
      else if (e.key === "Escape" && field) (e.target as HTMLElement).blur();
      else if (e.key === "Escape" && params()["event"]) change({ event: undefined });
      else if (c && views[Number(e.key) - 1]) go(link({ c, view: views[Number(e.key) - 1]![0] }));
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function App() {
  const p = useParams();
  const [signIn, setSignIn] = useState(false);
  const [help, setHelp] = useState(false);
  token.onNeeded(() => setSignIn(true));
  useKeys(() => setHelp(true));
  const view = p["c"] ? "conversation" : ["projects", "project", "tail", "operations"].includes(p["view"] ?? "") ? p["view"]! : "";
  return (
    <>
      <a class="skip" href="#main">To the content</a>
      <header class="top">
        <a class="brand" href={link({})}>mneme</a>
        <nav aria-label="Views">
          {([["", "Conversations"], ["projects", "Projects"], ["tail", "Live"], ["operations", "Operations"]] as const).map(([v, name]) =>
            <a key={v} href={link({ view: v })} aria-current={view === v ? "page" : undefined}>{name}</a>)}
        </nav>
        <span class="space" />
        {token.get() && <button class="quiet" onClick={() => { token.clear(); location.reload(); }}>Sign out</button>}
        <button class="quiet" onClick={() => setHelp(true)} aria-label="Keys">?</button>
      </header>
      {help && <Keys close={() => setHelp(false)} />}
      {signIn ? <SignIn done={() => setSignIn(false)} />
        : <main id="main" tabIndex={-1}>
          {view === "conversation" ? <ConversationView key={p["c"]} id={p["c"]!} p={p} /> : view === "projects" ? <Projects /> : view === "project" ? <ProjectView name={p["project"] ?? ""} p={p} />
            : view === "tail" ? <Tail p={p} /> : view === "operations" ? <Operations p={p} /> : <Conversations p={p} />}
        </main>}
    </>
  );
}

render(<App />, document.getElementById("app")!);
