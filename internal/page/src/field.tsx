// A field whose value takes effect when it is done, which the browser says with one change at Enter or when the field is
// left. What is typed stays when the page is drawn again meanwhile, for example because an answer or a new event has come.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface Props {
  label?: ComponentChildren; // stands before the field; else name says what it is
  name?: string;
  type: "text" | "number";
  value: string | number;
  placeholder?: string;
  size?: number;
  min?: string;
  max?: string;
  step?: string;
  onDone: (value: string) => void;
}

export function Field({ label, name, type, value, onDone, placeholder, size, min, max, step }: Props) {
  const [typed, set] = useState<string>();
  const shared = {
    "aria-label": name, placeholder, value: typed ?? value, onBlur: () => set(undefined),
    onInput: (e: Event) => set((e.currentTarget as HTMLInputElement).value), onChange: (e: Event) => { set(undefined); onDone((e.currentTarget as HTMLInputElement).value); },
  };
  const field = type === "number" ? <input type="number" min={min} max={max} step={step} {...shared} /> : <input type="text" size={size} {...shared} />;
  return label ? <label>{label} {field}</label> : field;
}
