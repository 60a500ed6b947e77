"""the command gptme, one turn without a terminal: long system prompt, stream"""
import subprocess
import tempfile
from trying import *

home = tempfile.mkdtemp()
command = os.path.join(os.path.dirname(sys.executable), "gptme")


def turn():
    env = os.environ | {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "GPTME_CHECK": "false"}
    r = subprocess.run([command, "-n", "--no-confirm", "--model", "local/" + MODEL, "hi there"], capture_output=True, text=True, timeout=100, cwd=home, env=env, stdin=subprocess.DEVNULL)
    has(r.stdout + r.stderr, "Hello!")


check("turn", turn)
done()
