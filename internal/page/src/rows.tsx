// A list of any length, of which only the rows in sight exist.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useTextScale } from "./text";

interface Props {
  label: string;
  count: number;
  height: number; // of a row, in pixels, with text of the usual size
  selected: number; // index, or -1
  onSelect: (index: number) => void;
  onRange?: (first: number, last: number) => void; // which rows are in sight
  row: (index: number) => ComponentChildren;
}

const spare = 8; // rows above and below those in sight

export function Rows({ label, count, height: usual, selected, onSelect, onRange, row }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const height = Math.round(usual * useTextScale());
  const [view, setView] = useState({ top: 0, height: 600 });
  const first = Math.max(0, Math.floor(view.top / height) - spare);
  const last = Math.min(count - 1, Math.ceil((view.top + view.height) / height) + spare);

  useLayoutEffect(() => {
    const e = box.current!;
    const read = () => setView((before) => before.top === e.scrollTop && before.height === e.clientHeight ? before : { top: e.scrollTop, height: e.clientHeight });
    const observer = new ResizeObserver(read);
    observer.observe(e);
    e.addEventListener("scroll", read, { passive: true });
    return () => { observer.disconnect(); e.removeEventListener("scroll", read); };
  }, []);
  useLayoutEffect(() => {
    const e = box.current!;
    if (selected < 0 || selected >= count) return;
    const y = selected * height;
    if (Math.abs(y - e.scrollTop) > 2 * e.clientHeight) e.scrollTop = y - e.clientHeight / 2; // a jump, so show what is around it
    else if (y < e.scrollTop) e.scrollTop = y;
    else if (y + height > e.scrollTop + e.clientHeight) e.scrollTop = y + height - e.clientHeight;
  }, [selected, count]);
  const least = useRef(view.height);
  useLayoutEffect(() => { // what is below may come later and leave less room, also for the selected row
    const e = box.current!, y = selected * height, cut = y + height - e.scrollTop - view.height;
    if (selected >= 0 && cut > 0 && y + height <= e.scrollTop + least.current) e.scrollTop += cut;
    least.current = view.height;
  }, [view.height]);
  useEffect(() => { if (count > 0) onRange?.(first, last); }, [first, last, count]);

  const keys = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / height) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -count, End: count,
    };
    const step = steps[e.key];
    if (step === undefined || e.ctrlKey || e.metaKey || e.altKey || count === 0) return;
    e.preventDefault();
    e.stopPropagation();
    onSelect(Math.min(count - 1, Math.max(0, selected + step)));
  };
  const shown = [];
  for (let i = first; i <= last; i++) {
    shown.push(
      <div key={i} id={`row-${i}`} class="row" role="option" aria-selected={i === selected} aria-posinset={i + 1} aria-setsize={count}
        style={{ transform: `translateY(${i * height}px)`, height: `${height}px` }} onClick={() => onSelect(i)}>
        {row(i)}
      </div>,
    );
  }
  return (
    <div class="rows" role="listbox" tabIndex={0} aria-label={label} ref={box} onKeyDown={keys}
      aria-activedescendant={selected >= first && selected <= last ? `row-${selected}` : undefined}>
      <div role="presentation" style={{ height: `${count * height}px` }}>{shown}</div>
    </div>
  );
}
