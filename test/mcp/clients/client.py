"""Uses every tool through the Python SDK, and waits for a change: python client.py http URL | stdio PROGRAM ARGUMENT..."""
import asyncio, json, os, sys

from mcp import Client, StdioServerParameters

async def main(road, *to):
    server = to[0] if road == "http" else StdioServerParameters(command=to[0], args=list(to[1:]), env=dict(os.environ))
    async with Client(server) as client:
        tools = await client.list_tools()
        seen = {}

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            seen[tool] = {"failed": bool(result.is_error), "text": result.content[0].text}
            return result.content[0].text

        noted = json.loads(await call("memory_remember", text=f"Releases are cut on Mondays, says Python over {road}"))
        await call("memory_context")
        await call("memory_search", query="voucher", conversation="cart")
        await call("memory_read", ref="cart#turn=1")
        await call("memory_file_history", path="cart.go")
        resource = "mneme://conversations/cart/context"
        async with client.listen(resource_subscriptions=[resource]) as subscription:
            print(json.dumps({"tools": [t.name for t in tools.tools], "protocol": client.protocol_version, "seen": seen, "noted": noted}), flush=True)
            async for event in subscription:
                print(json.dumps({"changed": str(event.uri)}), flush=True)
                break

asyncio.run(main(*sys.argv[1:]))
