"""OpenAI's Python SDK, unmodified, against a server with the scripted model of package servertest.

usage: sdk.py BASE_URL   (such as http://127.0.0.1:57455)
"""

import asyncio
import base64
import sys

import openai
from openai import AsyncOpenAI, OpenAI

base = sys.argv[1]
client = OpenAI(base_url=base + "/v1", api_key="test-key-1", max_retries=0)
aclient = AsyncOpenAI(base_url=base + "/v1", api_key="test-key-1", max_retries=0)
M = "scripted"
TOOLS = [{
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}]
RTOOLS = [{"type": "function", **TOOLS[0]["function"], "strict": False}]
cases = []


def case(f):
    cases.append(f)
    return f


def user(text):
    return [{"role": "user", "content": text}]


def refused(kind, call, param=None, code=None):
    try:
        call()
    except kind as e:
        assert param is None or e.param == param, (e.param, param)
        assert code is None or e.code == code, (e.code, code)
        return e
    raise AssertionError(f"nothing was refused; want {kind.__name__}")


@case
def models():
    assert M in [m.id for m in client.models.list()]
    assert client.models.retrieve(M).owned_by == "baleen"
    refused(openai.NotFoundError, lambda: client.models.retrieve("nope"), code="model_not_found")


@case
def chat_plain():
    r = client.chat.completions.create(model=M, messages=user("hi"), temperature=0, user="u", seed=7)
    c = r.choices[0]
    assert c.message.content == "Hello!" and c.message.role == "assistant" and c.finish_reason == "stop", c
    assert r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens and r.usage.completion_tokens == 7
    assert r.object == "chat.completion" and r.model == M and r.id.startswith("chatcmpl-")


@case
def chat_cached_tokens():
    text = "a long prompt that fills more than one page of the cache " * 4
    client.chat.completions.create(model=M, messages=user(text))
    r = client.chat.completions.create(model=M, messages=user(text))
    assert r.usage.prompt_tokens_details.cached_tokens > 100, r.usage


@case
def chat_unicode_stream():
    s = client.chat.completions.create(model=M, messages=user("UNICODE"), stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in s if c.choices) == "Grüße, 世界 🐋!"


@case
def chat_stream_usage():
    chunks = list(client.chat.completions.create(model=M, messages=user("hi"), stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 7
    assert chunks[-2].choices[0].finish_reason == "stop" and all(c.usage is None for c in chunks[:-1])
    assert len({c.id for c in chunks}) == 1


@case
def chat_max_tokens():
    for k in ("max_tokens", "max_completion_tokens"):
        r = client.chat.completions.create(model=M, messages=user("COUNT"), **{k: 5})
        assert r.choices[0].finish_reason == "length" and r.choices[0].message.content == "1 2 3", r


@case
def chat_stop():
    r = client.chat.completions.create(model=M, messages=user("COUNT"), stop=["7 8", "x"])
    assert r.choices[0].message.content == "1 2 3 4 5 6 " and r.choices[0].finish_reason == "stop"
    r = client.chat.completions.create(model=M, messages=user("COUNT"), stop="4")
    assert r.choices[0].message.content == "1 2 3 "


@case
def chat_n():
    r = client.chat.completions.create(model=M, messages=user("hi"), n=3)
    assert [c.index for c in r.choices] == [0, 1, 2] and all(c.message.content == "Hello!" for c in r.choices)
    texts = ["", "", ""]
    for c in client.chat.completions.create(model=M, messages=user("hi"), n=3, stream=True):
        for x in c.choices:
            texts[x.index] += x.delta.content or ""
    assert texts == ["Hello!"] * 3


@case
def chat_logprobs():
    r = client.chat.completions.create(model=M, messages=user("hi"), logprobs=True, top_logprobs=2)
    t = r.choices[0].logprobs.content
    assert "".join(x.token for x in t) == "Hello!" and len(t[0].top_logprobs) == 2 and t[0].top_logprobs[0].token == "H"
    assert bytes(t[0].bytes) == b"H" and -0.1 < t[0].logprob <= 0
    n = 0
    for c in client.chat.completions.create(model=M, messages=user("hi"), logprobs=True, stream=True):
        for x in c.choices:
            n += len(x.logprobs.content) if x.logprobs else 0
    assert n == 6, n


@case
def chat_logit_bias():
    r = client.chat.completions.create(model=M, messages=user("hi"), logit_bias={"72": -100}, max_tokens=3, temperature=0)
    assert not r.choices[0].message.content.startswith("H")


@case
def chat_content_parts():
    r = client.chat.completions.create(model=M, messages=[
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "UNI"}, {"type": "text", "text": "UNICODE"}]},
    ])
    assert r.choices[0].message.content.startswith("Grüße")


@case
def chat_tools():
    messages = user("WEATHER")
    r = client.chat.completions.create(model=M, messages=messages, tools=TOOLS, tool_choice="auto", parallel_tool_calls=True)
    c = r.choices[0]
    assert c.finish_reason == "tool_calls" and c.message.content.strip() == "Let me look.", c
    call = c.message.tool_calls[0]
    assert call.function.name == "get_weather" and call.function.arguments == '{"city": "Oslo"}' and call.id
    messages += [c.message, {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": "sunny"}]}]
    r = client.chat.completions.create(model=M, messages=messages, tools=TOOLS)
    assert r.choices[0].message.content == "It is sunny in Oslo." and r.choices[0].finish_reason == "stop"
    assert r.usage.prompt_tokens_details.cached_tokens > 0.8 * r.usage.prompt_tokens - 120, r.usage


@case
def chat_tools_stream():
    calls, text = {}, ""
    for c in client.chat.completions.create(model=M, messages=user("TWO CALLS"), tools=TOOLS, stream=True):
        d = c.choices[0].delta
        text += d.content or ""
        for t in d.tool_calls or []:
            x = calls.setdefault(t.index, {"id": "", "name": "", "args": ""})
            x["id"] += t.id or ""
            x["name"] += t.function.name or ""
            x["args"] += t.function.arguments or ""
    assert [(x["name"], x["args"]) for x in calls.values()] == [("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Bergen"}')], calls
    assert text.strip() == "" and c.choices[0].finish_reason == "tool_calls" and len({x["id"] for x in calls.values()}) == 2


@case
def chat_single_call():
    r = client.chat.completions.create(model=M, messages=user("TWO CALLS"), tools=TOOLS, parallel_tool_calls=False)
    assert len(r.choices[0].message.tool_calls) == 1


@case
def chat_tool_choice():
    r = client.chat.completions.create(model=M, messages=user("WEATHER"), tools=TOOLS, tool_choice="none")
    assert r.choices[0].message.tool_calls is None
    named = {"type": "function", "function": {"name": "get_weather"}}
    refused(openai.BadRequestError, lambda: client.chat.completions.create(model=M, messages=user("x"), tool_choice=named), "tool_choice")
    refused(openai.BadRequestError, lambda: client.chat.completions.create(model=M, messages=user("x"), tools=TOOLS, tool_choice={"type": "function", "function": {"name": "z"}}), "tool_choice")
    r = client.chat.completions.create(model=M, messages=user("WEATHER"), tools=TOOLS, tool_choice={
        "type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}})
    assert r.choices[0].message.tool_calls


@case
def chat_reasoning():
    r = client.chat.completions.create(model=M, messages=user("THINK"), reasoning_effort="high")
    assert r.choices[0].message.content.strip() == "The answer is 42."
    assert r.choices[0].message.reasoning_content.strip() == "Four words of thought."
    assert r.usage.completion_tokens_details.reasoning_tokens > 10
    seen = ""
    for c in client.chat.completions.create(model=M, messages=user("THINK"), stream=True):
        seen += getattr(c.choices[0].delta, "reasoning_content", None) or ""
    assert seen.strip() == "Four words of thought."


@case
def chat_stream_helper():
    with client.chat.completions.stream(model=M, messages=user("WEATHER"), tools=TOOLS) as s:
        for _ in s:
            pass
        final = s.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "get_weather"


@case
def chat_refusals():
    c = client.chat.completions.create
    R = openai.BadRequestError
    x = {"model": M, "messages": user("hi")}
    for field, value in {
        "audio": {"voice": "a", "format": "wav"}, "modalities": ["audio"],
        "functions": [{"name": "f"}], "function_call": "auto", "web_search_options": {}, "store": True, "verbosity": "low",
        "moderation": {"model": "m"},
    }.items():
        refused(R, lambda: c(**x, **{field: value}), field, "unsupported_parameter")
    refused(R, lambda: c(**x, temperature=3), "temperature", "invalid_value")
    refused(R, lambda: c(**x, top_logprobs=3), "top_logprobs")
    refused(R, lambda: c(**x, stream_options={"include_usage": True}), "stream_options")
    refused(R, lambda: c(**x, extra_body={"nonsense": 1}), "nonsense", "unknown_parameter")
    refused(R, lambda: c(model=M, messages=[]), "messages")
    refused(R, lambda: c(model=M, messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(b"x").decode()}}]}]), "messages[0].content[0]")
    refused(openai.NotFoundError, lambda: c(model="gpt-0", messages=user("hi")), "model", "model_not_found")
    refused(R, lambda: c(model=M, messages=user("long " * 20000)), code="context_length_exceeded")


@case
def chat_raw_and_async():
    raw = client.chat.completions.with_raw_response.create(model=M, messages=user("hi"))
    assert raw.headers["x-request-id"] and raw.parse().choices[0].message.content == "Hello!"

    async def go():
        rs = await asyncio.gather(*[aclient.chat.completions.create(model=M, messages=user("COUNT"), max_tokens=200) for _ in range(8)])
        assert len({r.choices[0].message.content for r in rs}) == 1
        s = await aclient.chat.completions.create(model=M, messages=user("hi"), stream=True)
        assert "".join([c.choices[0].delta.content or "" async for c in s]) == "Hello!"

    asyncio.run(go())


@case
def completions():
    r = client.completions.create(model=M, prompt="Once", max_tokens=50)
    assert r.choices[0].text == "Hello!" and r.choices[0].finish_reason == "stop" and r.object == "text_completion"
    r = client.completions.create(model=M, prompt="COUNT")
    assert r.usage.completion_tokens == 16 and r.choices[0].finish_reason == "length"
    r = client.completions.create(model=M, prompt=["a", "b COUNT"], n=2, max_tokens=5)
    assert [c.index for c in r.choices] == [0, 1, 2, 3] and [c.text for c in r.choices] == ["Hello", "Hello", "1 2 3", "1 2 3"]
    assert client.completions.create(model=M, prompt=[72, 105], max_tokens=9).usage.prompt_tokens == 2
    assert len(client.completions.create(model=M, prompt=[[72], [105, 106]], max_tokens=9).choices) == 2


@case
def completions_echo_logprobs():
    r = client.completions.create(model=M, prompt="Once", echo=True, logprobs=2, max_tokens=8)
    l = r.choices[0].logprobs
    assert r.choices[0].text == "OnceHello!" and "".join(l.tokens) == "OnceHello!", r
    assert l.token_logprobs[0] is None and l.text_offset == list(range(10)) and len(l.top_logprobs[5]) == 2
    r = client.completions.create(model=M, prompt="Once", echo=True, logprobs=0, max_tokens=0)
    assert r.choices[0].text == "Once" and len(r.choices[0].logprobs.tokens) == 4 and r.usage.completion_tokens == 0


@case
def completions_stream_suffix():
    s = list(client.completions.create(model=M, prompt="COUNT", stream=True, echo=True, stream_options={"include_usage": True}, max_tokens=3))
    assert "".join(c.choices[0].text for c in s if c.choices) == "COUNT1 2" and s[-1].usage.completion_tokens == 3
    r = client.completions.create(model=M, prompt="def f():", suffix="return x", max_tokens=20)
    assert r.choices[0].text == "Hello!"
    refused(openai.BadRequestError, lambda: client.completions.create(model=M, prompt="x", best_of=3), "best_of")
    refused(openai.BadRequestError, lambda: client.completions.create(model=M, prompt="x", logprobs=9), "logprobs")


@case
def responses_plain():
    r = client.responses.create(model=M, input="hi", instructions="be brief", metadata={"a": "b"})
    assert r.output_text == "Hello!" and r.status == "completed" and r.usage.output_tokens == 7 and r.metadata == {"a": "b"}
    assert client.responses.retrieve(r.id).output_text == "Hello!"
    items = client.responses.input_items.list(r.id)
    assert items.data[0].content[0].text == "hi"
    r2 = client.responses.create(model=M, input="UNICODE", previous_response_id=r.id)
    assert r2.output_text.startswith("Grüße") and r2.previous_response_id == r.id and r2.usage.input_tokens_details.cached_tokens > 16
    client.responses.delete(r.id)
    refused(openai.NotFoundError, lambda: client.responses.retrieve(r.id))
    refused(openai.BadRequestError, lambda: client.responses.create(model=M, input="x", previous_response_id=r.id), "previous_response_id")
    r = client.responses.create(model=M, input="hi", store=False)
    refused(openai.NotFoundError, lambda: client.responses.retrieve(r.id))
    assert client.responses.input_tokens.count(model=M, input="hi").input_tokens == r.usage.input_tokens


@case
def responses_stream():
    ev = list(client.responses.create(model=M, input="THINK", stream=True))
    kinds = [e.type for e in ev]
    assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed", kinds
    assert [e.sequence_number for e in ev] == list(range(len(ev)))
    assert "".join(e.delta for e in ev if e.type == "response.output_text.delta").strip() == "The answer is 42."
    assert "".join(e.delta for e in ev if e.type == "response.reasoning_text.delta").strip() == "Four words of thought."
    final = ev[-1].response
    assert [o.type for o in final.output] == ["reasoning", "message"] and final.usage.output_tokens_details.reasoning_tokens > 10
    with client.responses.stream(model=M, input="hi") as s:
        for _ in s:
            pass
        assert s.get_final_response().output_text == "Hello!"
    ev = list(client.responses.create(model=M, input="COUNT", stream=True, max_output_tokens=5))
    assert ev[-1].type == "response.incomplete" and ev[-1].response.incomplete_details.reason == "max_output_tokens"


@case
def responses_tools():
    for store in (True, False):
        r = client.responses.create(model=M, input="WEATHER", tools=RTOOLS, store=store, include=["reasoning.encrypted_content"])
        call = [o for o in r.output if o.type == "function_call"][0]
        assert call.name == "get_weather" and call.arguments == '{"city": "Oslo"}'
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        if store:
            r = client.responses.create(model=M, input=[result], previous_response_id=r.id, tools=RTOOLS)
        else:
            r = client.responses.create(model=M, input=[{"role": "user", "content": "WEATHER"}, *r.output, result], tools=RTOOLS)
        assert r.output_text == "It is sunny in Oslo.", r
    ev = list(client.responses.create(model=M, input="TWO CALLS", tools=RTOOLS, stream=True))
    done = [e for e in ev if e.type == "response.function_call_arguments.done"]
    assert [e.arguments for e in done] == ['{"city": "Oslo"}', '{"city": "Bergen"}']
    assert "".join(e.delta for e in ev if e.type == "response.function_call_arguments.delta") == "".join(e.arguments for e in done)


@case
def responses_custom_tool():
    # The scripted model calls a function of another shape: nothing is dropped.
    tool = {"type": "custom", "name": "get_weather", "description": "free text"}
    r = client.responses.create(model=M, input="WEATHER", tools=[tool])
    call = [o for o in r.output if o.type == "custom_tool_call"][0]
    assert call.name == "get_weather" and "Oslo" in call.input
    r = client.responses.create(model=M, previous_response_id=r.id, tools=[tool], input=[{"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}])
    assert r.output_text == "It is sunny in Oslo."


@case
def responses_namespace():
    inner = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}, "strict": False}
    space = {"type": "namespace", "name": "get", "description": "gets things", "tools": [inner]}
    r = client.responses.create(model=M, input="NAMESPACE", tools=[space])
    call = r.output[-1]
    assert call.type == "function_call" and call.name == "weather" and call.namespace == "get", r
    r = client.responses.create(model=M, tools=[space], input=[{"role": "user", "content": "NAMESPACE"}, call, {"type": "function_call_output", "call_id": call.call_id, "output": "ok"}])
    assert r.output_text == "It is sunny in Oslo."


@case
def responses_refusals():
    R = openai.BadRequestError
    c = client.responses.create
    for field, value in {
        "background": True, "truncation": "auto", "conversation": "conv_1", "prompt": {"id": "p"}, "moderation": {"model": "m"},
        "context_management": [{"type": "compaction"}],
    }.items():
        refused(R, lambda: c(model=M, input="x", **{field: value}), field, "unsupported_parameter")
    refused(R, lambda: c(model=M, input="x", tools=[{"type": "web_serch"}]), "tools[0].type")
    refused(R, lambda: c(model=M, input=[{"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}]), "input[0]")
    refused(R, lambda: c(model=M, input=[{"role": "user", "content": [{"type": "input_image", "image_url": "data:,x"}]}]), "input[0].content[0]")
    refused(openai.NotFoundError, lambda: c(model="nope", input="x"), "model")
    refused(R, lambda: c(model=M, input="long " * 20000), code="context_length_exceeded")


@case
def wrong_key():
    bad = OpenAI(base_url=base + "/v1", api_key="wrong", max_retries=0)
    refused(openai.AuthenticationError, lambda: bad.models.list(), code="invalid_api_key")


@case
def failure_in_the_stream():
    s = client.chat.completions.create(model=M, messages=user("BREAK COUNT"), stream=True)
    text = ""
    try:
        for c in s:
            text += c.choices[0].delta.content or ""
        raise AssertionError("the stream ended well")
    except openai.APIError as e:
        assert text.startswith("1 2 3"), text
    ev = list(client.responses.create(model=M, input="BREAK COUNT", stream=True))
    assert ev[-1].type == "response.failed" and ev[-1].response.error.message
    refused(openai.InternalServerError, lambda: client.chat.completions.create(model=M, messages=user("BREAK COUNT")))


failed = 0
for f in cases:
    try:
        f()
    except Exception as e:  # noqa: BLE001
        failed += 1
        print(f"FAIL {f.__name__}: {type(e).__name__}: {e}")
print(f"{len(cases) - failed} of {len(cases)} passed")
sys.exit(1 if failed else 0)
