"""Plain data → YAML that ``parse_yaml`` reads as the same data."""

from __future__ import annotations

from typing import Any, cast

import yaml

from axil_files.yaml_loader import FLOAT


class YamlWriter(yaml.SafeDumper):
    """Writes as workflow files are written: items indented, each value written out, texts of
    several lines as blocks.
    """

    def text_style(self, text: str) -> str | None:
        """Return the style of a text: one of ``"``, ``'``, ``|``, ``>``; None: whatever fits."""
        return "|" if "\n" in text else None

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: each value is written out."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists inside mappings."""
        super().increase_indent(flow, False)  # pyright: ignore[reportUnknownMemberType]


def dump_yaml(data: Any) -> str:
    """Return plain data as YAML."""
    return yaml.dump(data, Dumper=YamlWriter, sort_keys=False, allow_unicode=True, width=100)


def _write_text(writer: YamlWriter, text: str) -> yaml.ScalarNode:
    style = writer.text_style(text)
    if style is None and FLOAT.fullmatch(text):
        style = '"'  # YAML 1.1 takes fewer texts for numbers than workflow files do
    return cast("Any", writer).represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


YamlWriter.add_representer(str, _write_text)
YamlWriter.add_multi_representer(str, _write_text)
