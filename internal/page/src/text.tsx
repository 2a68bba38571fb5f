// How recorded text and figures are shown. Recorded text is hostile: it only ever becomes text nodes,
// and characters that could disguise it are shown as marks.
import type { ComponentChildren } from "preact";

import { useEffect, useState } from "preact/hooks";

import type { Highlight } from "./api";

// Control characters except tab and line feed, invisible characters, and those that change the direction of text. With the
// tags and variation selectors above U+E0000 a whole text can be hidden, which a model reads nevertheless.
const disguising = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

export function Text({ of, max = 200_000 }: { of: string; max?: number }) {
  const text = of.length > max ? of.slice(0, max) : of;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(disguising)) {
    if (found.index > end) parts.push(text.slice(end, found.index));
    const code = found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    parts.push(<span class="mark" title={`the character U+${code}, which is not shown`}>{code}</span>);
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  return <bdi>{parts}{of.length > max && <span class="mark">… {count(of.length - max)} more characters</span>}</bdi>;
}

// plain is a text for places that hold no elements, without the characters that could disguise it.
export const plain = (text: string) => text.replace(disguising, "");

// useTitle names a view, from its smallest part to its largest, for the browser's tabs and history, and for people who hear
// the page.
export function useTitle(...parts: (string | undefined)[]) {
  const title = plain([...parts.filter(Boolean), "mneme"].join(" · "));
  useEffect(() => { document.title = title; }, [title]);
}

// useTextScale returns how much larger text is than usual, as people can choose in their browser.
export function useTextScale(): number {
  return useState(() => parseFloat(getComputedStyle(document.documentElement).fontSize) / 15)[0];
}

// Lit shows a text with the words of a query highlighted.
export function Lit({ of, highlights = [] }: { of: string; highlights?: Highlight[] }) {
  const characters = [...of], parts: ComponentChildren[] = [];
  let end = 0;
  for (const h of highlights) {
    parts.push(<Text of={characters.slice(end, h.start).join("")} />, <mark><Text of={characters.slice(h.start, h.end).join("")} /></mark>);
    end = h.end;
  }
  return <>{parts}<Text of={characters.slice(end).join("")} /></>;
}

export const count = (n: number) => n.toLocaleString("en-US");

export function share(n: number): string {
  return n.toFixed(3).replace(/^(-?)0\./, "$1.");
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// Times are shown as the clock of whoever looks shows them. Beside them are their zone and what was recorded.
const zoned = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

function local(date: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function Time({ of }: { of?: string }) {
  if (!of) return null;
  const date = new Date(of);
  if (isNaN(date.getTime())) return <Text of={of} />;
  return <time dateTime={of} title={`${zoned.format(date)}\n${of}`}>{local(date)}</time>;
}

// firstLine is the beginning of a text on one line.
export function firstLine(text: string, max = 240): string {
  const line = text.slice(0, max * 2).replace(/\s+/g, " ").trim();
  return line.length > max ? line.slice(0, max) + "…" : line;
}

// typed is what a user typed, or the lead of a team told an agent: Claude Code records it in tags.
export function typed(text: string): string {
  const command = /^\s*<command-message>[^<]*<\/command-message>\s*<command-name>(\/[^<]*)<\/command-name>\s*(?:<command-args>([^]*)<\/command-args>\s*)?$/.exec(text);
  const task = /^\s*<teammate-message teammate_id="team-lead"[^>]*>\s*([^{\s][^]*?)\s*(?:<\/teammate-message>\s*)?$/.exec(text);
  return command ? `${command[1]} ${command[2] ?? ""}`.trim() : task ? task[1]! : text;
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2);
}

export function Notice({ error, children }: { error?: Error & { again?: boolean }; children?: ComponentChildren }) {
  if (error) return <p class="notice error" role="alert"><Text of={error.message} />{error.again && " Trying again…"}</p>;
  return <p class="notice">{children}</p>;
}

// shortPath is the end of a path, by which people know it.
export function shortPath(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts.length > 2 ? "…/" + parts.slice(-2).join("/") : path;
}

// ProjectOptions are the choices of a project. Of those whose paths end alike the whole path is shown.
export function ProjectOptions({ of, chosen }: { of: string[]; chosen?: string }) {
  const list = !chosen || of.includes(chosen) ? of : [chosen, ...of], ends = list.map(shortPath);
  return <>{list.map((name, i) => <option key={name} value={name}>{plain(firstLine(ends.indexOf(ends[i]!) === ends.lastIndexOf(ends[i]!) ? ends[i]! : name, 80))}</option>)}</>;
}
