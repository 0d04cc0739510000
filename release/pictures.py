"""Makes the pictures of docs/pictures from a run of examples/newsroom.yaml: a terminal as SVG, the
page of ``axil serve`` as PNG: a run, two evaluations in the dark, and the editor.

``make pictures`` runs it; it needs playwright and a Chromium.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs/pictures"
AXIL = Path(sys.executable).parent / "axil"
FILE = "examples/newsroom.yaml"
SCRIPT = ["--model-script", "examples/replies/newsroom.yaml"]
QUESTION = "Why do plants branch where the leaf meets the stem?"
TOKEN = "a-token-of-a-picture"
SENTENCE = "Say which desk a letter is for, billing or technical."
PAGES = {
    "page": ("run=newsroom-1", "svg .node", "light", "svg [data-key$='\"critic\"]']"),
    "evaluations": ("evaluation=sentence,one-word", ".cases td", "dark", ""),
    "editor": ("edit=human.yaml", "svg .node", "light", "svg [aria-label^='edge approve to sent']"),
}
"""By name of a picture: the address, what is waited for, the theme, and what is pressed."""
STYLES = {
    **{"1": "font-weight:bold", "2": "fill:#8b98a5", "32": "fill:#7ec88b", "33": "fill:#d9b45b"},
    **{"34": "fill:#76a9ea", "35": "fill:#c58fd8", "36": "fill:#63c5c5", "93": "fill:#f0d27a"},
    **{"95": "fill:#e0a8ef", "96": "fill:#8fe0e0"},
}
"""The styles of a terminal that the command uses, by their numbers."""


def terminal(command: list[str], lines: int) -> str:
    """Run a command in a terminal and return the first lines of what it shows as SVG."""
    process, end = pty.fork()
    if process == 0:
        os.environ.update(COLUMNS="80", TERM="xterm-256color")
        os.execv(command[0], command)
    shown = b""
    while True:
        try:
            if not (part := os.read(end, 65536)):
                break
        except OSError:  # the other end of a terminal is closed so
            break
        shown += part
    os.waitpid(process, 0)
    rows = shown.decode().replace("\r", "").splitlines()[:lines]
    height = 20 + 18 * (len(rows) + 1)
    texts = [f'<text y="{36 + 18 * n}">{row_of(row)}</text>' for n, row in enumerate(rows)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="700" height="{height}" role="img">'
        "<title>axil run in a terminal</title><style>text{font:14px ui-monospace,Menlo,Consolas,"
        "monospace;fill:#e6edf3;white-space:pre}</style>"
        '<rect width="100%" height="100%" rx="8" fill="#15202b"/>\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


def row_of(row: str) -> str:
    """Return a row of a terminal as spans of text, each at its column."""
    spans, column, style = [], 0, ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", row):
        if found := re.fullmatch(r"\x1b\[([0-9;]*)m", part):
            style = ";".join(STYLES.get(each, "") for each in found[1].split(";")).strip(";")
        elif part:
            shown = f' style="{style}"' if style else ""
            width = f' textLength="{len(part) * 8.2:.1f}"' if len(part) > 1 else ""
            spans.append(f'<tspan x="{20 + column * 8.2:.1f}"{width}{shown}>{escape(part)}</tspan>')
            column += len(part)
    return "".join(spans)


def pages(journal: str, folder: str) -> None:
    """Write pictures of the page: of a recorded run, of two evaluations, of the editor."""
    from playwright.sync_api import sync_playwright

    settings = {**os.environ, "AXIL_SERVE_TOKEN": TOKEN}
    command = [str(AXIL), "serve", FILE, "--journal", journal, "--port", "8799", *SCRIPT]
    command += ["--edit", folder, "--files", f"{folder}/runs"]
    server = subprocess.Popen(command, cwd=ROOT, env=settings, stderr=subprocess.DEVNULL)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            for name, (place, shown, scheme, act) in PAGES.items():
                size = {"width": 1280, "height": 800}
                given: dict[str, Any] = {"viewport": size, "color_scheme": scheme}
                given["reduced_motion"] = "reduce"
                window = browser.new_context(**given).new_page()
                for _ in range(300):
                    try:
                        window.goto(f"http://127.0.0.1:8799/#token={TOKEN}")
                        break
                    except Exception:  # noqa: BLE001 - the server is not ready yet
                        window.wait_for_timeout(200)
                window.get_by_role("heading", name="Runs", exact=True).wait_for()
                window.goto(f"http://127.0.0.1:8799/#{place}")
                window.locator("#app:not([aria-busy])").wait_for()
                window.locator(shown).first.wait_for()
                if act:
                    window.locator(act).first.press("Enter")
                window.mouse.move(0, 0)
                window.wait_for_timeout(1000)
                window.evaluate("scrollTo(0, 0)")
                window.screenshot(path=PICTURES / f"{name}.png")
            browser.close()
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Write all pictures."""
    PICTURES.mkdir(exist_ok=True)
    run = [str(AXIL), "run", FILE, "--input", QUESTION, *SCRIPT]
    os.chdir(ROOT)
    (PICTURES / "terminal.svg").write_text(
        terminal([*run, "--progress", "--journal", "off"], 36), "utf-8"
    )
    with tempfile.TemporaryDirectory() as folder:
        kept = ["--journal", folder, "--run-id", "newsroom-1", "--prompts", "whole"]
        subprocess.run([*run, *kept], check=True, capture_output=True)
        desk = (ROOT / "examples/evals/desk.yaml").read_text("utf-8")
        changed = desk.replace(SENTENCE, "Answer with one word, billing or technical.")
        for run_id, text in (("sentence", desk), ("one-word", changed)):
            flow = Path(folder, f"{run_id}.yaml")
            flow.write_text(text, "utf-8")
            own = ["examples/evals/cases.yaml", "--journal", folder, "--run-id", run_id]
            # cases that fail are no fault of the command
            subprocess.run([AXIL, "eval", "run", flow, *own], check=False, capture_output=True)
        shutil.copy("examples/human.yaml", folder)
        pages(folder, folder)


if __name__ == "__main__":
    main()
