// Server-sent events by fetch, because EventSource doesn't tell why a server refused.
export interface Sent { id: string; name: string; data: string }

const longest = 4 << 20; // of a message

// sent yields the messages of a stream until it ends.
export async function* sent(answer: Response): AsyncGenerator<Sent> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const message = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (message.data) yield message;
      }
      if (rest.length > longest) throw new Error("The server sent a message that is too long.");
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

function parse(text: string): Sent {
  const message: Sent = { id: "", name: "message", data: "" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("id:")) message.id = value;
    else if (line.startsWith("event:")) message.name = value;
    else if (line.startsWith("data:")) message.data += (message.data ? "\n" : "") + value;
  }
  return message;
}
