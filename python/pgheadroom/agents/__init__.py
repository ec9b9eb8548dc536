"""
The read-only questions as tools for agents, over the Model Context Protocol (stdio only).

    granted.py    what the person who starts it has named: profiles and connections
    questions.py  the tools: layout, predict, check, doctor, advise
    server.py     these as a server of the `mcp` package, which is an extra

An agent asks by the names that were granted. It sees no connection string, opens no file and no
connection of its own choice, and nothing that it can ask for writes.
"""

from pgheadroom.agents.granted import NAME, Granted

__all__ = ["NAME", "Granted"]
