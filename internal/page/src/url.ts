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
  else {
    history.replaceState({ y: scrollY }, "");
    history.pushState(null, "", url);
  }
  dispatchEvent(new Event(changed));
  if (focused && focused !== document.body) requestAnimationFrame(() => { // what had the focus may be gone with the view that it was in
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  });
}

// scrollBack scrolls a view to where it was when it was left. The view becomes long enough for that only while it loads and is
// drawn; people who move it themselves meanwhile are left alone.
function scrollBack() {
  const y = (history.state as { y?: number } | null)?.y ?? 0, until = performance.now() + 3000;
  let moved = false;
  for (const what of ["wheel", "keydown", "pointerdown"]) addEventListener(what, () => { moved = true; }, { once: true, passive: true });
  const look = () => {
    if (moved || scrollY >= y || performance.now() > until) return;
    scrollTo(0, y);
    requestAnimationFrame(look);
  };
  look();
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
    const back = () => { read(); scrollBack(); };
    const follow = (e: MouseEvent) => {
      const a = (e.target as Element).closest?.("a");
      if (!a || a.origin !== location.origin || a.pathname !== "/" || a.hash || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
      e.preventDefault();
      go(a.pathname + a.search);
      scrollTo(0, 0);
    };
    addEventListener("popstate", back);
    addEventListener(changed, read);
    document.addEventListener("click", follow);
    return () => {
      removeEventListener("popstate", back);
      removeEventListener(changed, read);
      document.removeEventListener("click", follow);
    };
  }, []);
  return now;
}
