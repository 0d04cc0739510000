"""An agent that uses an MCP server: its tools, and what it knows as context.

The model is a script, the server a real program.
"""

import sys
from pathlib import Path

from axil import RootGraph
from axil_agent import Agent, Scripted
from axil_mcp import MCPContext, MCPServer, MCPTools

server = MCPServer(
    name="notes", command=[sys.executable, str(Path(__file__).parent / "parts/notes_server.py")]
)
model = Scripted(
    [
        {
            "tool_calls": [
                {"name": "notes__look_up", "arguments": {"word": "axil"}},
                {"name": "notes__forget", "arguments": {"word": "axil"}},
            ]
        },
        '{"answer": "An axil is the angle between a stem and a leaf."}',
    ]
)

graph = RootGraph("notes")
agent = graph.create_node(
    Agent(model=model, tools=[MCPTools(server, deny=["forget"])], retrievers=MCPContext(server)),
    name="writer",
)
graph.edge_from_entry(agent, {"question": "what to answer"})
graph.edge_to_exit(agent, {"answer": "the answer"})
output, _ = graph.build().invoke({"question": "What is an axil?"})

for message in model.requests[-1].messages:
    if message["role"] == "tool":
        print(f"{message['name']}: {message['content']}")
print(output["answer"])
