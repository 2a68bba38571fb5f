// All state of the page is in the query of its URL, so that every view can be linked and reloaded.
import { useEffect, useState } from "preact/hooks";

export type Params = Record<string, string | undefined>;

export function params(): Params {
  return Object.fromEntries(new URLSearchParams(location.search));
}

// link returns the URL of a view. Only the tenant is kept.
export function link(to: Params): string {
  const kept = params()["tenant"];
  return written(kept ? { tenant: kept, ...to } : to);
}

function written(p: Params): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(p)) if (value) query.set(name, value);
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

const changed = "mneme-navigated";

export function go(url: string, replace = false) {
  const focused = document.activeElement;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  dispatchEvent(new Event(changed));
  if (focused && focused !== document.body) requestAnimationFrame(() => { // what had the focus may be gone with the view that it was in
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  });
}

// change sets parameters of the view that is open. Small steps, like those of a slider, replace the
// entry in the history.
export function change(to: Params, replace = false) {
  go(written({ ...params(), ...to }), replace);
}

export function useParams(): Params {
  const [now, set] = useState(params);
  useEffect(() => {
    const read = () => set(params());
    const follow = (e: MouseEvent) => {
      const a = (e.target as Element).closest?.("a");
      if (!a || a.origin !== location.origin || a.pathname !== "/" || a.hash || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
      e.preventDefault();
      go(a.pathname + a.search);
      scrollTo(0, 0);
    };
    addEventListener("popstate", read);
    addEventListener(changed, read);
    document.addEventListener("click", follow);
    return () => {
      removeEventListener("popstate", read);
      removeEventListener(changed, read);
      document.removeEventListener("click", follow);
    };
  }, []);
  return now;
}
