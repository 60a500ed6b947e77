"""What the programs beside this share: the server's address and model, and a way to say what works.

A program's docstring says what it runs. It calls check(NAME, FUNCTION) for each thing it tries and done() at the end,
which makes the exit status 1 where something failed. The model is the scripted one: words of the last message say what
it writes (internal/server/servertest/rules.go)."""

import os
import sys
import traceback

URL = os.environ.get("BALEEN_URL", "http://127.0.0.1:18181")
MODEL = os.environ.get("BALEEN_MODEL", "scripted")
V1 = URL + "/v1"
KEY = "none"
SAID = "It is sunny in Oslo."  # what the model says of a result
for name, value in {
    "OPENAI_BASE_URL": V1, "OPENAI_API_BASE": V1, "OPENAI_API_KEY": KEY, "ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": KEY,
    "OLLAMA_HOST": URL, "OLLAMA_API_BASE": URL, "DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "false", "OTEL_SDK_DISABLED": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1",
}.items():
    os.environ.setdefault(name, value)

failed = []


def check(name, run):
    """Runs one thing; what it returns must be true or None."""
    try:
        got = run()
        assert got is None or got, f"got {got!r}"
        print("ok", name, flush=True)
    except BaseException as e:
        failed.append(name)
        if os.environ.get("BALEEN_TRACE"):
            traceback.print_exc()
        text = " ".join(f"{type(e).__name__}: {e}".split())
        print("FAIL", name + ":", text[:400], flush=True)


def has(text, part):
    """Wants a part in a text, and says both where it is not there."""
    assert part in str(text), f"{part!r} is not in {str(text)[:300]!r}"


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
        city: name of the city
    """
    return f"sunny in {city}"


def done():
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # threads that a client leaves keep nobody waiting
