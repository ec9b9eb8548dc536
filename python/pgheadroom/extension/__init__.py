"""
The server extension `clustered_heap`: its C sources, and building them for a server.

The sources are a folder of the package, so that a wheel has them. What is in them is told by
their README; nothing else of pgheadroom depends on the extension.
"""

from pgheadroom.extension.building import SOURCES, Built, File, build, lacking, objects_sql

__all__ = ["SOURCES", "Built", "File", "build", "lacking", "objects_sql"]
