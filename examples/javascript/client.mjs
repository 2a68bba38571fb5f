// Publishes a small conversation in four ways and reads the context back: node client.mjs [CONVERSATION]
import { jetstream } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import { CloudEvent, HTTP } from "cloudevents";

const url = process.env.MNEME_URL ?? "http://127.0.0.1:8420";
const natsURL = process.env.MNEME_NATS_URL ?? "nats://127.0.0.1:4222";
const conversation = process.argv[2] ?? "from-javascript";

const event = (kind, id, data) =>
  new CloudEvent({ type: `dev.mneme.${kind}.v1`, source: "examples/javascript", id: `${conversation}/${id}`, subject: conversation, data });

// Each unsafe byte becomes % and two upper-case hex digits. The package does not do that for attributes in headers.
const escape = (text, unsafe) => text.replace(unsafe, (c) => Buffer.from(c).toString("hex").toUpperCase().replace(/../g, "%$&"));
const escaped = ([name, value]) => [name, name.startsWith("ce-") ? escape(value, /[^!-~]|["%]/gu) : value];

async function overNATS(stream, kind, message) { // the same headers and body as over HTTP
  const h = headers();
  for (const [name, value] of Object.entries(message.headers).map(escaped)) h.set(name, value);
  return (await stream.publish(`mneme.default.${escape(conversation, /[^\w\-:/@=+~]/gu)}.${kind}`, message.body, { headers: h })).seq;
}

async function overHTTP({ headers, body }) {
  const response = await fetch(`${url}/v1/events`, { method: "POST", headers: Object.entries(headers).map(escaped), body });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()).seq;
}

const question = event("message.created", "m1", { message_id: "m1", role: "user", content: "Où est le café ? ☕" });
const call = event("tool.called", "t1", { tool_call_id: "t1", tool_name: "grep", arguments: { pattern: "café" } });
const result = event("tool.returned", "r1", { tool_call_id: "t1", success: true, result: "menu.txt:3: café crème" });
const answer = event("message.created", "m2", { message_id: "m2", role: "assistant", content: "À la ligne 3 du menu." });
const connection = await connect({ servers: natsURL }); // once a sequence is returned, the event is on disk
await overNATS(jetstream(connection), "message_created", HTTP.binary(question));
await overNATS(jetstream(connection), "tool_called", HTTP.structured(call));
await connection.close();
await overHTTP(HTTP.binary(result));
const seq = await overHTTP(HTTP.structured(answer));
console.log(await (await fetch(`${url}/v1/conversations/${encodeURIComponent(conversation)}/context?format=markdown&at_least=${seq}`)).text());
