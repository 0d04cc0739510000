"""The command `llm`, in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

LLM = Path(sys.executable).parent / "llm"
BASE = f"api_base: {os.environ['ADDRESS']}/v1, api_key_name: axil"
MODELS = "\n".join(
    f"- {{model_id: {name}, model_name: {name}, {BASE}}}" for name in ("brief", "human", "broken")
)


def llm(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [LLM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == code, done.stderr
    return (done.stdout + done.stderr).strip()


folder = Path(os.environ["LLM_USER_PATH"])
folder.mkdir(exist_ok=True)
(folder / "extra-openai-models.yaml").write_text(MODELS, "utf-8")
llm("keys", "set", "axil", "--value", os.environ["TOKEN"])
assert llm("-m", "brief", "Ada") == "a text"
assert llm("-m", "brief", "--no-stream", "Ada") == "a text"
assert llm("-m", "human", "Send it.").startswith("May this be sent?")
assert llm("-c", "yes") == "Sent."
assert "AX" in llm("-m", "broken", "x", code=1)
