"""A tiny MCP server: notes that can be looked up, and a tool that no client has to offer.

Needs the package ``mcp``.
"""

from mcp.server import MCPServer

server = MCPServer("notes", log_level="ERROR")
NOTES = {"axil": "the angle between a stem and a leaf", "node": "where a leaf grows from a stem"}


@server.tool()
def look_up(word: str) -> str:
    """Look up a word in the notes."""
    return NOTES.get(word, "nothing is noted")


@server.tool()
def forget(word: str) -> str:
    """Forget a word."""
    return NOTES.pop(word, "")


@server.resource("notes://words", title="Words", description="all words that are noted")
def words() -> str:
    return "Noted are: " + ", ".join(sorted(NOTES))


if __name__ == "__main__":
    server.run(transport="stdio")
