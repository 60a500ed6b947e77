"""the commands llm with an OpenAI endpoint, llm-anthropic and llm-ollama: prompt, continued conversation, tools"""
import pathlib
import subprocess
import tempfile
from trying import *

home = tempfile.mkdtemp()
os.environ["LLM_USER_PATH"] = home
os.environ["LLM_OLLAMA_KEEP_ALIVE"] = "-1"
pathlib.Path(home, "extra-openai-models.yaml").write_text(f"- model_id: local\n  model_name: {MODEL}\n  api_base: {V1}\n  supports_tools: true\n  can_stream: true\n")
command = os.path.join(os.path.dirname(sys.executable), "llm")


def llm(*args):
    r = subprocess.run([command, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stderr
    return r.stdout


tool = "def get_weather(city: str) -> str:\n    'Weather of a city'\n    return 'sunny in ' + city\n"
check("openai", lambda: has(llm("-m", "local", "hi"), "Hello!"))
check("openai continued", lambda: has(llm("-m", "local", "-c", "UNICODE"), "世界"))
check("openai tools", lambda: has(llm("-m", "local", "--functions", tool, "WEATHER"), SAID))
check("ollama", lambda: has(llm("-m", "ollama/" + MODEL, "hi"), "Hello!"))
check("ollama tools", lambda: has(llm("-m", "ollama/" + MODEL, "--functions", tool, "WEATHER"), SAID))
done()
