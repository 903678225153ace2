"""Calls tools of an MCP server with the official Python package.

Reads a JSON object from standard input: `command`, `args`, `cwd`, and `calls`, a list of [tool, arguments] or [tool, arguments, seconds].
After these seconds, the client cancels the call. Prints a JSON object with the server, its tools, and a result for each call.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    given = json.load(sys.stdin)
    server = StdioServerParameters(command=given["command"], args=given["args"], cwd=given["cwd"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        welcome = await session.initialize()
        tools = await session.list_tools()
        results = []
        for tool, arguments, *seconds in given["calls"]:
            try:
                result = await session.call_tool(tool, arguments, read_timeout_seconds=seconds[0] if seconds else None)
            except Exception as error:  # an error of the protocol
                results.append({"protocolError": str(error)})
                continue
            dumped = result.model_dump(mode="json", by_alias=True)
            texts = [content["text"] for content in dumped["content"]]
            results.append({"isError": dumped["isError"], "texts": texts})
        dump = lambda value: value.model_dump(mode="json", by_alias=True, exclude_none=True)
        print(json.dumps({"server": dump(welcome), "tools": dump(tools)["tools"], "results": results}))


asyncio.run(main())
