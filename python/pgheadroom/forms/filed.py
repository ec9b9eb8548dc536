"""
Values that are a file of their own: before their fields stands what file it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pgheadroom.forms.writing import write

FRAME = ("schema_version", "kind")


class Filed:
    """
    Base of such a form.

    Attributes:
        KIND: What the file says that it is.
        VERSION: Of its schema.
        ADDED: Whether it has fields that earlier versions do not have, as for `write`.
    """

    __slots__ = ()
    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1
    ADDED: ClassVar[bool] = True

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {"schema_version": self.VERSION, "kind": self.KIND, **write(self, added=self.ADDED)}


def unframed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a file's value."""
    return {name: value for name, value in data.items() if name not in FRAME}
