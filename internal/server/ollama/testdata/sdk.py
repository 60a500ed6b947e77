"""Ollama's Python client, unmodified, against a server with the scripted model of package servertest.

usage: sdk.py BASE_URL   (such as http://127.0.0.1:57455)
"""

import asyncio
import hashlib
import sys
import tempfile
import traceback

import httpx

from ollama import AsyncClient, Client, Options, ResponseError

base = sys.argv[1]
KEY = {"Authorization": "Bearer test-key-1"}
client = Client(host=base, headers=KEY)
aclient = AsyncClient(host=base, headers=KEY)
M = "scripted"
cases = []


def case(f):
    cases.append(f)
    return f


def user(text):
    return [{"role": "user", "content": text}]


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
      city: name of the city
    """
    return f"11 degrees in {city}"


def refused(status, call, *words):
    try:
        r = call()
        if hasattr(r, "__next__"):
            list(r)
    except ResponseError as e:
        assert e.status_code == status, (e.status_code, e.error)
        for w in words:
            assert w in e.error, (w, e.error)
        return
    raise AssertionError("not refused")


@case
def lists():
    names = [m.model for m in client.list().models]
    assert "scripted:latest" in names and "whale:small" in names, names
    m = client.list().models[0]
    assert len(m.digest) == 64 and m.details.family == "llama" and m.modified_at.year == 2026


@case
def shows():
    s = client.show("whale:small")
    assert s.modelinfo["general.architecture"] == "llama"
    assert s.modelinfo["llama.context_length"] == 131072
    assert set(s.capabilities) >= {"completion", "tools", "thinking", "insert"}
    assert "You are a whale." in s.modelfile and "stop" in s.parameters and s.license == "MIT"
    assert s.details.quantization_level == "F32"
    refused(404, lambda: client.show("nobody"), "not found")


@case
def generates():
    r = client.generate(M, "hi", options={"temperature": 0})
    assert r.response == "Hello!" and r.done and r.done_reason == "stop"
    assert r.eval_count == 7 and r.prompt_eval_count > 0 and r.total_duration > 0 and r.eval_duration > 0
    assert len(r.context) == r.prompt_eval_count + 7
    again = client.generate(M, "again", context=r.context)
    assert again.prompt_eval_count > len(r.context)
    assert client.generate(M, "hi", system="Be short.", options=Options(temperature=0.0, seed=1)).response == "Hello!"


@case
def generates_streaming():
    parts = list(client.generate(M, "UNICODE", stream=True))
    assert "".join(p.response for p in parts) == "Grüße, 世界 🐋!"
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count > 0


@case
def generates_raw_and_suffix():
    r = client.generate(M, "<|im_start|>user\nUNICODE<|im_end|>\n", raw=True)
    assert r.response == "Grüße, 世界 🐋!" and r.context is None
    assert client.generate(M, "def f(", suffix="return x").response == "Hello!"


@case
def loads_and_unloads():
    assert client.generate(M).done_reason == "load"
    assert client.chat(M).done_reason == "load"
    assert client.generate(M, keep_alive="10m").done_reason == "load"
    p = client.ps().models[0]
    assert p.model == "scripted:latest" and p.context_length > 0 and p.size > 0 and p.expires_at.year >= 2026
    assert client.chat(M, keep_alive=0).done_reason == "unload"


@case
def chats():
    r = client.chat(M, user("hi"), options={"temperature": 0, "num_ctx": 4096})
    assert r.message.role == "assistant" and r.message.content == "Hello!" and r["message"]["content"] == "Hello!"
    assert r.message.tool_calls is None and r.message.thinking is None and r.done_reason == "stop"


@case
def chats_streaming():
    parts = list(client.chat(M, user("COUNT"), stream=True, options={"num_predict": 40}))
    assert "".join(p.message.content for p in parts).startswith("1 2 3 4 5 ")
    assert parts[-1].done_reason == "length" and parts[-1].eval_count == 40


@case
def stops():
    r = client.chat(M, user("COUNT"), options={"stop": ["5 "]})
    assert r.message.content == "1 2 3 4 " and r.done_reason == "stop"


@case
def seeds():
    o = {"seed": 42, "temperature": 60.0, "top_k": 0, "top_p": 1.0, "num_predict": 20}
    a, b = (client.chat(M, user("hi"), options=o).message.content for _ in range(2))
    c = client.chat(M, user("hi"), options={**o, "seed": 43}).message.content
    assert a == b != c


@case
def thinks():
    r = client.chat(M, user("THINK"), think=True)
    assert r.message.thinking == "Four words of thought." and r.message.content == "The answer is 42."
    parts = list(client.chat(M, user("THINK"), think="high", stream=True))
    assert "".join(p.message.thinking or "" for p in parts) == "Four words of thought."
    assert "".join(p.message.content for p in parts) == "The answer is 42."
    g = client.generate(M, "THINK", think=True)
    assert g.thinking == "Four words of thought." and g.response == "The answer is 42."
    refused(400, lambda: client.chat(M, user("x"), think="deep"), "think")


@case
def calls_tools():
    messages = user("WEATHER")
    r = client.chat(M, messages, tools=[get_weather])
    assert r.message.content.startswith("Let me look.")
    call = r.message.tool_calls[0].function
    assert call.name == "get_weather" and call.arguments == {"city": "Oslo"}, call
    messages += [r.message, {"role": "tool", "content": get_weather(**call.arguments), "tool_name": call.name}]
    r = client.chat(M, messages, tools=[get_weather])
    assert r.message.content == "It is sunny in Oslo." and not r.message.tool_calls


@case
def calls_tools_streaming():
    parts = list(client.chat(M, user("TWO CALLS"), tools=[get_weather], stream=True))
    calls = [c.function.arguments["city"] for p in parts for c in p.message.tool_calls or []]
    assert calls == ["Oslo", "Bergen"], calls
    assert parts[-1].done and parts[-1].done_reason == "stop"


@case
def log_probabilities():
    r = client.chat(M, user("hi"), logprobs=True, top_logprobs=2)
    assert "".join(l.token for l in r.logprobs) == "Hello!"
    assert all(len(l.top_logprobs) == 2 and l.logprob <= 0 for l in r.logprobs)


@case
def images_are_refused():
    refused(400, lambda: client.chat(M, [{"role": "user", "content": "x", "images": ["aGVsbG8="]}]), "images[0]")
    refused(400, lambda: client.generate(M, "x", images=[b"hello"]), "images[0]")


@case
def formats_that_cannot_be_held():
    refused(400, lambda: client.chat(M, user("x"), format={"type": "object", "$ref": "http://x/"}), "format")


@case
def options_are_checked():
    refused(400, lambda: client.chat(M, user("x"), options={"temperature": "hot"}), "options.temperature")
    refused(400, lambda: client.chat(M, user("x"), options={"mirostat": 2}), "options.mirostat")
    refused(400, lambda: client.chat(M, user("x"), options={"num_ctx": 16}), "16 tokens")
    refused(400, lambda: client.generate(M, "x", template="{{ .Prompt }}"), "template")
    refused(400, lambda: client.generate(M, "x", width=512), "width")
    assert client.chat(M, user("hi"), options={"num_gpu": 1, "num_thread": 2, "made_up": 1}).message.content == "Hello!"


@case
def too_long():
    refused(400, lambda: client.chat(M, user("word " * 20000)), "100019", "32768")


@case
def unknown_model():
    refused(404, lambda: client.chat("nobody", user("x")), "'nobody' not found")
    refused(404, lambda: client.generate("nobody", "x", stream=True), "'nobody' not found")
    refused(404, lambda: client.delete("nobody"), "not found")


@case
def wrong_key():
    refused(401, lambda: Client(host=base).list(), "API key")
    refused(401, lambda: Client(host=base, headers={"Authorization": "Bearer nope"}).chat(M, user("x")), "API key")
    try:
        Client(host="http://127.0.0.1:9").list()
        raise AssertionError("not refused")
    except ConnectionError:
        pass


@case
def breaks_midstream():
    got = []
    try:
        for p in client.chat(M, user("BREAK"), stream=True):
            got.append(p.message.content)
        raise AssertionError("no error")
    except ResponseError as e:
        assert got == ["H", "e", "l"] and e.error, (got, e)
    refused(500, lambda: client.chat(M, user("BREAK")))


@case
def abandons():
    for i, _ in enumerate(client.chat(M, user("COUNT"), stream=True)):
        if i == 5:
            break
    assert client.chat(M, user("hi")).message.content == "Hello!"


@case
def embeds_not():
    refused(400, lambda: client.embed(M, "x"), "not an embedding model")
    refused(400, lambda: client.embed(M, ["x", "y"], truncate=True, dimensions=3), "not an embedding model")
    refused(400, lambda: client.embeddings(M, "x"), "not an embedding model")
    refused(404, lambda: client.embed("nobody", "x"), "not found")


@case
def pulls():
    assert client.pull("some").status == "success"
    steps = list(client.pull("some", stream=True))
    assert steps[0].status == "pulling manifest" and steps[-1].status == "success"
    assert any(s.completed == s.total == 100 and s.digest == "sha256:abc" for s in steps)
    refused(404, lambda: client.pull("nowhere"), "not found")
    refused(404, lambda: client.pull("nowhere", stream=True), "not found")
    refused(-1, lambda: client.pull("torn", stream=True), "checksum")
    refused(403, lambda: client.push("scripted"), "nothing leaves")


@case
def creates_and_copies():
    with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
        f.write(b"a file of weights")
        f.flush()
        digest = client.create_blob(f.name)
        assert digest == "sha256:" + hashlib.sha256(b"a file of weights").hexdigest()
    assert client.create("new", files={"a.gguf": digest}).status == "success"
    r = client.create("new", from_=M, system="Sing.", parameters={"temperature": 0.5}, messages=user("u"), license="MIT", stream=True)
    assert [s.status for s in r][-1] == "success"
    refused(404, lambda: client.create("new", from_="nobody"), "not found")
    refused(400, lambda: client.create("new", from_=M, quantize="q4_K_M"), "quantize")
    refused(400, lambda: client.create("new", from_=M, adapters={"a": digest}), "adapters")
    assert client.copy(M, "mine").status == "success"
    refused(404, lambda: client.copy("nobody", "mine"), "not found")
    assert client.delete(M).status == "success"


@case
def asynchronously():
    async def run():
        r = await aclient.chat(M, user("hi"))
        assert r.message.content == "Hello!"
        text = ""
        async for p in await aclient.generate(M, "UNICODE", stream=True):
            text += p.response
        assert text == "Grüße, 世界 🐋!"
        many = await asyncio.gather(*[aclient.chat(M, user("THINK %d" % i), think=True) for i in range(8)])
        assert all(r.message.content == "The answer is 42." for r in many)
        calls = []
        async for p in await aclient.chat(M, user("WEATHER"), tools=[get_weather], stream=True):
            calls += p.message.tool_calls or []
        assert [c.function.name for c in calls] == ["get_weather"]
        try:
            await aclient.chat("nobody", user("x"))
            raise AssertionError("not refused")
        except ResponseError as e:
            assert e.status_code == 404
        names = [m.model for m in (await aclient.list()).models]
        assert "scripted:latest" in names

    asyncio.run(run())


@case
def roots():
    assert httpx.get(base + "/").text == "Ollama is running"
    assert httpx.head(base + "/").status_code == 200
    assert httpx.get(base + "/api/version").json()["version"].count(".") == 2


failed = 0
for f in cases:
    try:
        f()
        print("ok  ", f.__name__)
    except Exception:
        failed += 1
        print("FAIL", f.__name__)
        traceback.print_exc()
print(f"{len(cases) - failed} of {len(cases)} pass")
sys.exit(failed > 0)
