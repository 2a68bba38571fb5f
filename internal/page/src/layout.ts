// Which nodes a graph of some turns has, and where they are. Equal answers of the API give an equal drawing.
import { type Conversation, hasFailed, type Step, type Turn } from "./api";
import { firstLine, plural, shortPath } from "./text";
import { type Params } from "./url";

const mostNodes = 240; // without files
const mostFiles = 60;
const rowHeight = 34;
export const columns = [{ x: 8, width: 130 }, { x: 176, width: 110 }, { x: 324, width: 290 }, { x: 652, width: 130 }, { x: 820, width: 220 }];
export const width = 1050;

export interface File { path: string; kind: string; tool: string; turn: number; seq: number }
export interface Node { id: string; column: number; y: number; label: string; title: string; failed?: boolean; kind: string; open: Params; children: Node[] }
export interface Drawn { root: Node; nodes: Node[]; edges: [Node, Node][]; height: number; first: number; whole: boolean }

function node(column: number, kind: string, id: string, label: string, title: string, open: Params): Node {
  return { id, column, y: 0, kind, label, title, open, children: [] };
}

// callsOf returns a node for each tool that a step called.
function callsOf(s: Step): Node[] {
  const byTool = Map.groupBy(s.tool_calls ?? [], (call) => call.tool_name);
  return [...byTool].map(([tool, calls]) => {
    const failed = calls.filter(hasFailed).length;
    const n = node(3, "call", `call ${calls[0]!.seq}`, calls.length > 1 ? `${tool} × ${calls.length}` : tool,
      `${plural(calls.length, "call")} of ${tool}${failed ? `, ${failed} failed` : ""}`, { event: String(calls[0]!.seq) });
    n.failed = failed > 0;
    return n;
  });
}

function turnOf(t: Turn, steps: Step[]): Node {
  const turn = node(1, "turn", `turn ${t.number}`, `turn ${t.number}`, "open it in the timeline", { view: undefined, turn: String(t.number), event: undefined });
  if (t.user_message) {
    const { seq, content } = t.user_message;
    turn.children.push(node(2, "user", `message ${seq}`, firstLine(content ?? "", 80), "message of the user", { event: String(seq) }));
  }
  for (const s of steps) {
    const calls = callsOf(s);
    const open = s.message ? { event: String(s.message.seq) } : calls[0]?.open;
    if (!open) continue;
    const text = firstLine(s.message?.content || s.message?.reasoning || "", 80) || (calls.length > 0 ? "(calls only)" : "(no text)");
    const message = node(2, "assistant", `message ${open["event"]}`, text, "message of the assistant", open);
    message.children = calls;
    turn.children.push(message);
  }
  return turn;
}

const size = (n: Node): number => n.children.reduce((sum, child) => sum + size(child), 1);

// draw makes the graph of turns, which come newest first, until there are enough nodes. whole is false if the
// newest turn alone has more: then its first messages are missing.
export function draw(c: Conversation, turns: Turn[], steps: Step[], files: File[]): Drawn {
  const root = node(0, "conversation", "conversation", c.title || c.id, "the conversation", { view: undefined, event: undefined });
  let free = mostNodes - 1, first = 0, whole = true;
  for (const t of turns) {
    const turn = turnOf(t, steps.filter((s) => s.turn === t.number));
    if (root.children.length === 0) {
      while (size(turn) > free) { turn.children.splice(1, 1); whole = false; }
    } else if (size(turn) > free) break;
    free -= size(turn);
    first = t.number;
    root.children.unshift(turn);
  }
  const drawn: Drawn = { root, nodes: [root], edges: [], height: 0, first, whole };
  let y = rowHeight / 2;
  const place = (n: Node) => {
    for (const child of n.children) {
      drawn.edges.push([n, child]);
      drawn.nodes.push(child);
      place(child);
    }
    n.y = n.children[0]?.y ?? y;
    if (n.children.length === 0) y += rowHeight;
  };
  place(root);
  drawn.height = Math.max(y, addFiles(drawn, files));
  return drawn;
}

// addFiles hangs each file on the last call of the tool that touched it, and returns where the column of files ends.
function addFiles(drawn: Drawn, files: File[]): number {
  const found: [Node, Node][] = [];
  for (const f of files) {
    const turn = drawn.root.children.find((t) => t.id === `turn ${f.turn}`);
    const call = turn?.children.flatMap((m) => m.children).filter((k) => k.label === f.tool || k.label.startsWith(f.tool + " × ")).at(-1);
    if (call && found.length < mostFiles) found.push([call, node(4, "file", `file ${f.turn} ${f.path}`, shortPath(f.path), `${f.path}, ${f.kind}`, { event: String(f.seq) })]);
  }
  let next = rowHeight / 2;
  for (const [call, file] of found.sort(([a, f], [b, g]) => a.y - b.y || (f.id < g.id ? -1 : 1))) {
    file.y = Math.max(next, call.y);
    next = file.y + rowHeight;
    call.children.push(file);
    drawn.nodes.push(file);
    drawn.edges.push([call, file]);
  }
  return next;
}
