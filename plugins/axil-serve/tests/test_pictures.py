"""Pictures of the page at three widths in both themes, compared with those that are kept.

A picture is kept 64 columns wide, so that fonts and versions of a browser differ little: what is
compared is where things are, and how light they are. ``AXIL_KEEP_PICTURES=1`` writes them
anew: look at the differences.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import ADA, greeting
from .hostile import apart
from .site import evaluated, served_site, shop, site, thorough
from .test_editor import FLOW

__all__ = ["served_site", "site"]

KEPT = Path(__file__).parent / "pictures"
SIZES = {1440: 900, 1024: 768, 390: 844}
SHRUNK = """async ({ data, kept, columns }) => {
  const imageOf = async (data) => {
    const image = new Image()
    image.src = `data:image/png;base64,${data}`
    await image.decode()
    return image
  }
  const image = await imageOf(data)
  const rows = Math.round((columns * image.height) / image.width)
  const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: rows })
  const context = canvas.getContext("2d")
  context.imageSmoothingQuality = "high"
  let from = image
  for (let width = image.width; width > 2 * columns; width = Math.ceil(width / 2)) {
    const half = Object.assign(document.createElement("canvas"), {
      width: Math.ceil(width / 2), height: Math.ceil(((width / 2) * image.height) / image.width) })
    half.getContext("2d").drawImage(from, 0, 0, half.width, half.height)
    from = half
  }
  context.drawImage(from, 0, 0, columns, rows)
  const pixels = context.getImageData(0, 0, columns, rows).data
  const small = canvas.toDataURL("image/png").split(",")[1]
  if (!kept) return { small, distance: 1 }
  const before = await imageOf(kept)
  if (before.width !== columns || before.height !== rows) return { small, distance: 1 }
  context.drawImage(before, 0, 0)
  const others = context.getImageData(0, 0, columns, rows).data
  let sum = 0
  for (let at = 0; at < pixels.length; at += 1) sum += Math.abs(pixels[at] - others[at])
  return { small, distance: sum / (255 * 3 * columns * rows) }
}"""
COLUMNS = 64
MOST = 0.04
"""The mean distance of two pictures, from 0 to 1, that counts as none."""
VIEWS = {
    "runs": ("", ".runs .row"),
    "run": ("run=asks", "svg .node"),
    "start": ("start=count", ".fields"),
    "workflows": ("workflows", ".cards"),
    "chats": ("chat=talk&workflow=desk", ".bubble.is-assistant"),
    "evaluation": ("evaluation=eval-old,eval-new", "table"),
    "editor": ("edit=flow.yaml", "svg .node"),
    "empty": ("inbox=none", ".empty, .card"),
}
"""By name: the address, and what is there when it can be looked at."""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
STILL = """() => {
  const still = { ".facts": "a run, long ago", "[title*=':']": "1 min. ago", ".runs .number": "1",
    ".timeline .number": "1" }
  for (const [each, text] of Object.entries(still)) {
    for (const found of document.querySelectorAll(each)) found.textContent = text
  }
}"""
"""Times are replaced: they differ from run to run."""


@pytest.fixture
def filled(site: Any) -> Any:
    """The site with one run of each kind, under ids that stay."""
    own = {"journal": site.journal, "run_id": "asks", "channel": None}
    apart(lambda: asyncio.run(shop().run({"complaint": "The kettle leaks."}, **own)))
    for name in ("ada", "ben"):
        own = {"journal": site.journal, "run_id": name}
        apart(lambda name=name, own=own: greeting().invoke({"name": name}, **own))
    evaluated(site.journal)
    (site.folder / "flow.yaml").write_text(FLOW, "utf-8")
    said = {"session": "talk", "workflow": "desk", "text": "What do kettles cost?"}
    headers = {"authorization": f"Bearer {ADA}", "content-type": "application/json"}
    options = {"method": "POST", "body": json.dumps(said), "headers": headers}
    site.page.evaluate(f"fetch('/v1/sessions/messages', {json.dumps(options)})")
    return site


@thorough
def test_in_a_browser_the_page_looks_as_it_did(filled: Any) -> None:
    keeps = bool(os.environ.get("AXIL_KEEP_PICTURES"))
    faults: list[str] = []
    seen: set[str] = set()
    KEPT.mkdir(exist_ok=True)
    shrink = filled.browser.new_page()
    for width, height in SIZES.items():
        for scheme in ("light", "dark"):
            size = {"width": width, "height": height}
            given = {"color_scheme": scheme, "viewport": size, "reduced_motion": "reduce"}
            context = filled.browser.new_context(**given)
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.goto(f"{filled.address}/#token={ADA}")
            page.get_by_role("link", name="New run").wait_for()
            for view, (place, shown) in VIEWS.items():
                name = f"{view}-{width}-{scheme}"
                seen.add(f"{name}.png")
                page.goto(f"{filled.address}/#{place}")
                page.locator(shown).first.wait_for()
                page.wait_for_timeout(300)
                if page.evaluate(WIDER) > 0:
                    faults.append(f"{name}: wider than the window")
                page.evaluate(STILL)
                file, full = KEPT / f"{name}.png", page.screenshot(caret="hide")
                kept = "" if keeps or not file.is_file() else text_of(file.read_bytes())
                given = {"data": text_of(full), "kept": kept, "columns": COLUMNS}
                found = shrink.evaluate(SHRUNK, given)
                if keeps:
                    file.write_bytes(base64.b64decode(found["small"]))
                elif found["distance"] > MOST:
                    faults.append(f"{name}: {found['distance']:.3f} apart from the kept one")
            context.close()
    shrink.close()
    assert {file.name for file in KEPT.iterdir()} == seen
    assert faults == []


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()
