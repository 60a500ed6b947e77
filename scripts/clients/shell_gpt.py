"""the command sgpt: a prompt, a chat kept"""
import pathlib
import subprocess
import tempfile
from trying import *

home = tempfile.mkdtemp()
config = pathlib.Path(home, ".config", "shell_gpt")
config.mkdir(parents=True)
config.joinpath(".sgptrc").write_text(f"API_BASE_URL={V1}\nOPENAI_API_KEY={KEY}\nDEFAULT_MODEL={MODEL}\nUSE_LITELLM=false\nDISABLE_STREAMING=false\nOPENAI_USE_FUNCTIONS=false\nPRETTIFY_MARKDOWN=false\n")
command = os.path.join(os.path.dirname(sys.executable), "sgpt")


def sgpt(*args):
    r = subprocess.run([command, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env=os.environ | {"HOME": home})
    assert r.returncode == 0, r.stderr[-400:]
    return r.stdout


check("prompt", lambda: has(sgpt("hi"), "Hello!"))
check("chat", lambda: has(sgpt("--chat", "a", "hi") and sgpt("--chat", "a", "UNICODE"), "世界"))
done()
