// The API's answers, as far as the page reads them, and how to ask for them.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Conversation {
  id: string;
  title: string;
  status: string;
  tags: string[];
  agent?: string;
  cwd?: string;
  message_count: number;
  turn_count: number;
  tool_call_count: number;
  total_chars: number;
  created_at?: string;
  updated_at?: string;
  first_seq: number;
  last_seq: number;
  branched_from?: { conversation_id: string };
  inherited?: { conversation_id: string; seq: number; message_count: number; turn_count: number; tool_call_count: number; total_chars: number }; // of a branch
}

// withInherited counts what a branch has and what it inherited.
export function withInherited(c: Conversation): Pick<Conversation, "turn_count" | "message_count" | "tool_call_count" | "total_chars"> {
  const i = c.inherited;
  if (!i) return c;
  return {
    turn_count: c.turn_count + i.turn_count, message_count: c.message_count + i.message_count, tool_call_count: c.tool_call_count + i.tool_call_count, total_chars: c.total_chars + i.total_chars,
  };
}

export interface Message {
  seq: number;
  turn: number;
  event_id: string;
  message_id: string;
  time?: string;
  role: string;
  speaker?: string;
  origin?: string;
  content?: string;
  text?: string;
  reasoning?: string;
}

export interface Hit extends Message {
  score: number;
  relevance: number;
  bm25?: number;
  cosine?: number;
  parts: Record<string, number>;
  ranks?: { fused?: number; words?: number; meaning?: number };
  highlights?: Highlight[];
}

// Highlight is where a word of the query is in a text, in code points.
export interface Highlight { start: number; end: number }

export interface FoundResult {
  seq: number;
  turn: number;
  time?: string;
  conversation_id?: string; // in a search over a project
  title?: string;
  tool_call_id: string;
  tool_name?: string;
  argument?: string;
  success: boolean | null;
  not_run?: "refused" | "cancelled";
  duplicates?: number;
  text: string;
  highlights?: Highlight[];
}

export interface Turn {
  number: number;
  user_message?: Message;
  first_seq: number;
  last_seq: number;
  time?: string;
  message_count: number;
  tool_call_count: number;
  total_chars: number;
}

export interface ToolCall {
  seq: number;
  turn: number;
  event_id: string;
  tool_call_id: string;
  tool_name: string;
  arguments: unknown;
  result?: { seq: number; success?: boolean | null; not_run?: "refused" | "cancelled"; result?: unknown; error?: string; duration_ms?: number };
}

// hasFailed reports whether a call ran and failed.
export const hasFailed = ({ result }: ToolCall): boolean => result?.success === false && !result.not_run;

export interface Step {
  turn: number;
  number: number;
  message?: Message;
  tool_calls?: ToolCall[];
}

export interface Summary {
  seq: number;
  summary_id: string;
  level: number;
  first_turn: number;
  last_turn: number;
  conversation: string;
  actions: string;
  method: string;
  frontier: boolean;
  superseded: boolean;
}

export interface Match {
  relevance: number;
  confidence: number;
  score: number;
  parts: Record<string, number>;
  bm25?: number;
  cosine?: number;
}

export interface Item {
  kind: string;
  turn: number;
  seq?: number;
  result_seq?: number;
  event_id?: string;
  label?: string;
  session?: string;
  role?: string;
  origin?: string;
  text?: string;
  tool_name?: string;
  arguments?: string;
  path?: string;
  access?: string;
  start_line?: number;
  match?: Match;
  summary?: { summary_id: string; level: number; first_seq: number; last_seq: number; first_turn: number; last_turn: number };
  whole_chars?: number;
  result_whole_chars?: number;
  chars: number;
}

export interface Candidate {
  kind: string;
  turn: number;
  seq: number;
  role?: string;
  tool_name?: string;
  path?: string;
  text: string;
  chars: number;
  match?: Match;
  reason: string;
  fits_at?: number;
}

export interface SectionManifest {
  name: string;
  share: number;
  budget: number;
  used: number;
  items: number;
  dropped: { what: string; count: number; reason: string }[];
  ranges?: { start: number; end: number }[];
  candidates?: Candidate[];
}

export interface Context {
  title?: string;
  as_of: number;
  max_chars: number;
  chars: number;
  markdown?: string;
  sections: { name: string; heading: string; items: Item[] }[];
  manifest?: {
    strategy: string;
    budget: number;
    used: number;
    hash: string;
    frame: number;
    search?: { query: string; embedding_model?: string; embedding_missing?: string };
    settings?: { query: string; condense: string; project_memory: boolean };
    tried_budgets?: number[];
    followed?: { seq: number; section?: string; fits_at?: number };
    sections: SectionManifest[];
  };
}

// Session says how this browser stands with the server, see GET /session. The token is in a cookie that no script can read.
export interface Session { needed: boolean; signed_in: boolean; ended: boolean; tokens: boolean; provider?: string; problem?: string }

let asked = () => {};

export const session = {
  get: () => getJSON<Session>("/session"),
  start: (token: string) => ask("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) }),
  end: () => ask("/session", { method: "DELETE" }),
  // onNeeded is called when the server wants a token, or another one.
  onNeeded: (f: () => void) => { asked = f; },
};

export class Problem extends Error {
  again = false; // the request is made again after a pause
  constructor(readonly status: number, detail: string) { super(detail); }
}

// path fills in an API path and leaves out parameters without a value. Segments are percent-encoded.
export function path(template: string, segments: string[], query: Record<string, string | number | true | string[] | undefined> = {}): string {
  let i = 0;
  const filled = template.replace(/\{\}/g, () => encodeURIComponent(segments[i++] ?? ""));
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ tenant: tenant(), ...query })) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== "") parameters.append(name, String(one));
  }
  const text = parameters.toString();
  return text ? `${filled}?${text}` : filled;
}

export function tenant(): string | undefined {
  return new URLSearchParams(location.search).get("tenant") ?? undefined;
}

export async function ask(url: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, init);
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new Problem(0, "The server does not answer. Is mneme still running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) asked();
  const problem = await answer.json().catch(() => null) as { detail?: string; title?: string } | null;
  throw new Problem(answer.status, problem?.detail ?? problem?.title ?? `The server answered ${answer.status}.`);
}

export async function getJSON<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await ask(url, { signal })).json() as Promise<T>;
}

const pauses = { first: 1000, longest: 30_000 }; // milliseconds before a request that failed is made again

// passes reports whether the same request may succeed later.
function passes(e: Problem): boolean { return !(e.status >= 400 && e.status < 500) || e.status === 429; }

// patient does f, which says when it has an answer. If the server is in trouble, f is done again after a pause. failed is
// told of each error. The result is whether f was done, and did not end with an error that stays.
export async function patient(f: (answered: () => void) => Promise<void>, signal: AbortSignal, failed: (e: Problem) => void): Promise<boolean> {
  let pause = pauses.first;
  for (;;) {
    try {
      await f(() => { pause = pauses.first; });
      return true;
    } catch (e) {
      if (signal.aborted) return false;
      const problem = e as Problem;
      problem.again = passes(problem);
      failed(problem);
      if (!problem.again) return false;
    }
    await new Promise((done) => setTimeout(done, pause));
    if (signal.aborted) return false;
    pause = Math.min(2 * pause, pauses.longest);
  }
}

export async function post<T>(url: string, body?: unknown): Promise<T> {
  const answer = await ask(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });
  return answer.json() as Promise<T>;
}

// Access is what the token in use allows.
export interface Access { role: string; all_tenants: boolean; tenant?: string; project?: string; name?: string }

const roles = ["read", "write", "operate", "admin"];

// lacks says why the token does not allow what needs a role and, with all, the rights for all tenants.
// It is undefined if the token does, and empty while that is not known.
export function lacks(access: Access | undefined, role: string, all = false): string | undefined {
  if (!access) return "";
  if (roles.indexOf(access.role) < roles.indexOf(role)) return `This needs a token with the role ${role}; yours has the role ${access.role}.`;
  if (all && !access.all_tenants) return "This needs a token of all tenants; yours is of one.";
  if (access.project) return "This needs a token of the whole tenant; yours is of one project.";
  return undefined;
}

let known: Promise<Access | undefined> | undefined;
let learnt: Access | undefined; // what known has led to

async function learn(): Promise<Access | undefined> {
  let access: Access | undefined;
  await patient(async () => { access = await getJSON<Access>("/v1/access"); }, new AbortController().signal, () => {});
  if (!access) known = undefined; // asked again by the next view
  learnt = access;
  return access;
}

// useAccess says what the reader may do, once they are signed in.
export function useAccess(signedIn = true): Access | undefined {
  const [access, set] = useState(learnt);
  useEffect(() => {
    if (!signedIn) return;
    let current = true;
    known ??= learn();
    void known.then((a) => { if (current) set(a); });
    return () => { current = false; };
  }, [signedIn]);
  return access;
}

export interface Loaded<T> { data?: T; error?: Problem; loading: boolean; url?: string; again: () => void }

// useGet reads a URL, and again when it changes or while the server is in trouble. The old answer stays until the new one is
// there, so that nothing jumps while a slider moves. wait delays the request by so many milliseconds.
export function useGet<T>(url: string | null, wait = 0): Loaded<T> {
  const [state, set] = useState<{ data?: T; error?: Problem; url?: string }>({});
  const [turn, again] = useState(0);
  useEffect(() => {
    if (url === null) { set({}); return; }
    const control = new AbortController();
    const timer = setTimeout(() => {
      void patient(async () => set({ data: await getJSON<T>(url, control.signal), url }), control.signal,
        (error) => set((before) => ({ error, url, data: before.url === url ? before.data : undefined })));
    }, wait);
    return () => { clearTimeout(timer); control.abort(); };
  }, [url, turn]);
  return { ...state, loading: url !== null && state.url !== url, again: () => again((n) => n + 1) };
}

// useWatch asks again for what was read, so many milliseconds after each answer, while the tab is in sight. Asking earlier
// would give up a request that takes long; after an error useGet itself asks again.
export function useWatch({ data, error, again }: Loaded<unknown>, every: number) {
  useEffect(() => {
    if (!data || error) return;
    const timer = setInterval(() => {
      if (document.hidden) return;
      clearInterval(timer);
      again();
    }, every);
    return () => clearInterval(timer);
  }, [data, error]);
}

// useGetLater is useGet for a URL that must be found out first. It is asked again when the key changes.
export function useGetLater<T>(key: string | null, find: () => Promise<string>): { data?: T; error?: Problem } {
  const [state, set] = useState<{ key: string | null; data?: T; error?: Problem }>({ key });
  useEffect(() => {
    if (key === null) return;
    const control = new AbortController();
    void patient(async () => set({ key, data: await getJSON<T>(await find(), control.signal) }), control.signal, (error) => set({ key, error }));
    return () => control.abort();
  }, [key]);
  return state.key === key ? state : {};
}

// homeOf returns the id of the conversation that an event belongs to: of a branch, this is the one that it was inherited
// from. A branch did not exist yet as of that sequence.
async function homeOf(c: Conversation, seq: number): Promise<string> {
  while (c.inherited && seq < c.first_seq) c = await getJSON<Conversation>(path("/v1/conversations/{}", [c.inherited.conversation_id]));
  return c.id;
}

// asOf returns the URL of what a conversation was as of a sequence, also where it is inherited.
export async function asOf(c: Conversation, seq: number, template: string, query: Record<string, string | number | true | string[] | undefined> = {}): Promise<string> {
  return path(template, [await homeOf(c, seq)], { ...query, as_of: seq });
}

export interface Pages<T> { list: T[]; rest?: Record<string, unknown>; error?: Problem; loading: boolean; more?: () => void }

// usePages reads a list by its cursor, a page at a time. wait delays the first page by so many milliseconds.
export function usePages<T>(url: string | null, member: string, wait = 0): Pages<T> {
  const [state, set] = useState<{ url: string | null; list: T[]; rest?: Record<string, unknown>; next?: string; error?: Problem; loading: boolean }>({ url, list: [], loading: true });
  const control = useRef<AbortController | undefined>(undefined);
  const load = (cursor: string | undefined, before: T[]) => {
    if (url === null) return;
    control.current?.abort();
    const own = control.current = new AbortController();
    set({ url, list: before, loading: true });
    const page = cursor ? `${url}${url.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}` : url;
    const read = async () => {
      const d = await getJSON<Record<string, unknown>>(page, own.signal);
      set({ url, list: [...before, ...(d[member] as T[] ?? [])], rest: d, next: d["next_cursor"] as string | undefined, loading: false });
    };
    const failed = (error: Problem) => { if (!own.signal.aborted) set({ url, list: before, error, next: cursor, loading: false }); };
    if (cursor) read().catch(failed); // it can be asked for again with a button
    else void patient(read, own.signal, failed);
  };
  useEffect(() => {
    const timer = setTimeout(() => load(undefined, []), wait);
    return () => { clearTimeout(timer); control.current?.abort(); };
  }, [url]);
  const { list, rest, error, loading, next } = state;
  if (state.url !== url) return { list: [], loading: url !== null };
  return { list, rest, error, loading, more: next && !loading ? () => load(next, list) : undefined };
}
