"""the command aider: one message that edits a file, over chat completions and over messages"""
import pathlib
import subprocess
import tempfile
from trying import *

command = os.path.join(os.path.dirname(sys.executable), "aider")


def edit(model):
    home = tempfile.mkdtemp()
    file = pathlib.Path(home, "a.py")
    file.write_text("x = 1\n")
    message = "SAY<<a.py\n```\nx = 2\n```\n>>"
    r = subprocess.run(
        [command, "--model", model, "--edit-format", "whole", "--yes-always", "--no-git", "--no-check-update", "--no-show-model-warnings", "--no-analytics", "--no-pretty", "--message", message, "a.py"],
        capture_output=True, text=True, timeout=120, cwd=home, env=os.environ | {"HOME": home}, stdin=subprocess.DEVNULL)
    assert file.read_text() == "x = 2\n", r.stdout[-300:] + r.stderr[-300:]


check("openai", lambda: edit("openai/" + MODEL))
check("anthropic", lambda: edit("anthropic/" + MODEL))
check("ollama_chat", lambda: edit("ollama_chat/" + MODEL))
done()
