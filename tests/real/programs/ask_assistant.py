# SPDX-License-Identifier: MIT
"""ask_assistant.py FOLDER: asks the tools of stormlog_native by the SDK's own client.  Reads questions from standard input, each a JSON
list [tool, arguments], and prints for each the JSON list [failed, text]."""
import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "stormlog_native", "mcp", sys.argv[1]], env=dict(os.environ))
    async with Client(server) as client:
        print(json.dumps([tool.name for tool in (await client.list_tools()).tools]))
        for line in sys.stdin:
            tool, arguments = json.loads(line)
            result = await client.call_tool(tool, arguments)
            print(json.dumps([bool(result.is_error), result.content[0].text]))


asyncio.run(main())
