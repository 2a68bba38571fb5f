// Uses every tool through the TypeScript SDK, and waits for a change: node client.mjs http URL | stdio PROGRAM ARGUMENT...
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [road, to, ...args] = process.argv.slice(2);
const transport = road === "http" ? new StreamableHTTPClientTransport(new URL(to)) : new StdioClientTransport({ command: to, args, env: process.env });
const client = new Client({ name: "typescript", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
const { tools } = await client.listTools();
const seen = {};
async function call(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  seen[name] = { failed: Boolean(result.isError), text: result.content[0].text };
  return result.content[0].text;
}
const noted = JSON.parse(await call("memory_remember", { text: `Releases are cut on Mondays, says TypeScript over ${road}` }));
await call("memory_context");
await call("memory_search", { query: "voucher", conversation: "cart" });
await call("memory_read", { ref: "cart#turn=1" });
await call("memory_file_history", { path: "cart.go" });
const changed = new Promise((resolve) => client.setNotificationHandler("notifications/resources/updated", (n) => resolve(n.params.uri)));
const subscription = await client.listen({ resourceSubscriptions: ["mneme://conversations/cart/context"] });
console.log(JSON.stringify({ tools: tools.map((t) => t.name), protocol: client.getNegotiatedProtocolVersion(), seen, noted }));
console.log(JSON.stringify({ changed: await changed }));
await subscription.close();
await client.close();
