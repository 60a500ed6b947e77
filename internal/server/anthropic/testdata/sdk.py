"""Anthropic's Python SDK, unmodified, against a server with the scripted model of package servertest.

usage: sdk.py BASE_URL   (such as http://127.0.0.1:57455)
"""

import asyncio
import sys
import time

import anthropic
from anthropic import Anthropic, AsyncAnthropic

base = sys.argv[1]
client = Anthropic(base_url=base, api_key="test-key-1", max_retries=0)
bearer = Anthropic(base_url=base, auth_token="test-key-1", api_key=None, max_retries=0)
aclient = AsyncAnthropic(base_url=base, api_key="test-key-1", max_retries=0)
M = "scripted"
TOOLS = [{
    "name": "get_weather",
    "description": "Weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}]
LEGACY = {"temperature": 0, "top_p": 0.9, "top_k": 5}
cases = []


def case(f):
    cases.append(f)
    return f


def user(text):
    return [{"role": "user", "content": text}]


def ask(text, **more):
    return client.messages.create(**{"model": M, "max_tokens": 2000, "messages": user(text), **more})


def refused(kind, call, words="", error="invalid_request_error"):
    try:
        call()
    except kind as e:
        assert words in str(e), (words, str(e))
        assert e.body["type"] == "error" and e.body["error"]["type"] == error, e.body
        assert e.request_id == e.body["request_id"] and e.request_id, (e.request_id, e.body)
        return e
    raise AssertionError(f"nothing was refused; want {kind.__name__}")


@case
def models():
    m = [m for m in client.models.list(limit=5)]
    assert [x.id for x in m] == [M] and m[0].type == "model" and m[0].lifecycle == "active" and m[0].created_at.year >= 1970
    assert client.models.retrieve(M).id == M
    refused(anthropic.NotFoundError, lambda: client.models.retrieve("nope"), "nope", "not_found_error")


@case
def plain():
    m = ask("hi", system="Be brief.", metadata={"user_id": "u"}, service_tier="auto", extra_body=LEGACY)
    assert m.content[0].text == "Hello!" and m.role == "assistant" and m.type == "message" and m.stop_reason == "end_turn", m
    assert m.stop_sequence is None and m.id.startswith("msg_") and m.model == M and m._request_id.startswith("req_")
    assert m.usage.input_tokens > 0 and m.usage.output_tokens == 7, m.usage


@case
def with_bearer():
    assert bearer.messages.create(model=M, max_tokens=9, messages=user("hi")).content[0].text == "Hello!"


@case
def streaming():
    text, kinds = "", []
    with client.messages.stream(model=M, max_tokens=4000, messages=user("COUNT")) as s:
        for e in s:
            kinds.append(e.type)
        final = s.get_final_message()
    with client.messages.stream(model=M, max_tokens=4000, messages=user("COUNT")) as s:
        for t in s.text_stream:
            text += t
    assert text.split() == [str(i) for i in range(1, 401)] and final.content[0].text == text
    assert kinds.count("content_block_delta") > 100 and kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds[:3]
    assert final.stop_reason == "end_turn" and final.usage.output_tokens == len(text) + 1
    raw = client.messages.create(model=M, max_tokens=50, messages=user("hi"), stream=True)
    assert [e.type for e in raw if e.type != "content_block_delta"] == [
        "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]


@case
def unicode():
    with client.messages.stream(model=M, max_tokens=90, messages=user("UNICODE")) as s:
        assert s.get_final_text() == "Grüße, 世界 🐋!"


@case
def lengths_and_stops():
    m = ask("COUNT", max_tokens=5)
    assert m.stop_reason == "max_tokens" and m.usage.output_tokens == 5 and m.content[0].text == "1 2 3"
    m = ask("COUNT", stop_sequences=[" 7", "zzz"])
    assert m.stop_reason == "stop_sequence" and m.stop_sequence == " 7" and m.content[0].text == "1 2 3 4 5 6"
    with client.messages.stream(model=M, max_tokens=99, messages=user("COUNT"), stop_sequences=[" 7"]) as s:
        f = s.get_final_message()
    assert f.stop_reason == "stop_sequence" and f.stop_sequence == " 7" and f.content[0].text == "1 2 3 4 5 6"
    assert ask("hi", max_tokens=0).content == []


@case
def system_everywhere():
    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "Be kind."}]
    assert ask("hi", system=blocks).content[0].text == "Hello!"
    m = client.messages.create(model=M, max_tokens=9, messages=[*user("x"), {"role": "system", "content": "y"}, *user("z")])
    assert m.content[0].text == "Hello!"


@case
def tools():
    msgs = user("TWO CALLS")
    m = client.messages.create(model=M, max_tokens=400, messages=msgs, tools=TOOLS, tool_choice={"type": "auto"})
    calls = [b for b in m.content if b.type == "tool_use"]
    assert m.stop_reason == "tool_use" and [c.input for c in calls] == [{"city": "Oslo"}, {"city": "Bergen"}], m
    assert all(c.id.startswith("toolu_") and c.name == "get_weather" for c in calls)
    one = client.messages.create(model=M, max_tokens=400, messages=msgs, tools=TOOLS,
                                 tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert len([b for b in one.content if b.type == "tool_use"]) == 1
    msgs += [{"role": "assistant", "content": m.content}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": calls[0].id, "content": "sun"},
        {"type": "tool_result", "tool_use_id": calls[1].id, "content": [{"type": "text", "text": "no"}], "is_error": True}]}]
    end = client.messages.create(model=M, max_tokens=400, messages=msgs, tools=TOOLS)
    assert end.content[0].text == "It is sunny in Oslo." and end.stop_reason == "end_turn"
    assert end.usage.cache_read_input_tokens > 0, end.usage
    none = client.messages.create(model=M, max_tokens=400, messages=user("hi"), tools=TOOLS, tool_choice={"type": "none"})
    assert none.content[0].text == "Hello!"


@case
def tools_streamed():
    parts, start = [], None
    with client.messages.stream(model=M, max_tokens=400, messages=user("WEATHER"), tools=TOOLS) as s:
        for e in s:
            if e.type == "input_json":
                parts.append(e.partial_json)
            if e.type == "content_block_start":
                start = e.content_block
        m = s.get_final_message()
    assert start.type == "tool_use" and start.name == "get_weather" and len(parts) > 1, parts
    assert [b.type for b in m.content] == ["text", "tool_use"] and m.content[1].input == {"city": "Oslo"} and m.stop_reason == "tool_use"


@case
def thinking():
    for more in ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}):
        m = ask("THINK", **more)
        assert [b.type for b in m.content] == ["thinking", "text"] and "thought" in m.content[0].thinking and m.content[0].signature
        assert m.content[1].text == "The answer is 42." and m.usage.output_tokens_details.thinking_tokens > 0
    seen = ""
    with client.messages.stream(model=M, max_tokens=2000, messages=user("THINK"), thinking={"type": "adaptive"}) as s:
        for e in s:
            if e.type == "thinking":
                seen += e.thinking
        f = s.get_final_message()
    assert f.content[0].thinking == seen and f.content[0].signature and f.content[1].text == "The answer is 42."
    again = client.messages.create(model=M, max_tokens=50, messages=user("THINK") + [{"role": "assistant", "content": f.content}] + user("hi"))
    assert again.content[0].text == "Hello!"
    hidden = ask("THINK", thinking={"type": "adaptive", "display": "omitted"})
    assert hidden.content[0].thinking == "" and hidden.content[0].signature


@case
def counting():
    args = {"messages": user("hi"), "system": "Be brief.", "tools": TOOLS}
    n = client.messages.count_tokens(model=M, **args).input_tokens
    u = client.messages.create(model=M, max_tokens=9, **args).usage
    assert n == u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens, (n, u)


@case
def betas():
    m = client.beta.messages.create(
        model=M, max_tokens=2000, messages=user("THINK"), betas=["context-management-2025-06-27", "interleaved-thinking-2025-05-14"],
        thinking={"type": "adaptive"}, context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})
    assert m.content[1].text == "The answer is 42." and m.context_management.applied_edits == []
    with client.beta.messages.stream(model=M, max_tokens=2000, messages=user("THINK"), thinking={"type": "adaptive"}) as s:
        assert s.get_final_message().content[0].type == "thinking"
    n = client.beta.messages.count_tokens(model=M, messages=user("hi"), betas=["token-counting-2024-11-01"])
    assert n.input_tokens > 0


@case
def tool_runner():
    asked = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Weather of a city

        Args:
            city: name of the city
        """
        asked.append(city)
        return "sun"

    end = client.beta.messages.tool_runner(model=M, max_tokens=400, messages=user("TWO CALLS"), tools=[get_weather]).until_done()
    assert asked == ["Oslo", "Bergen"] and end.content[0].text == "It is sunny in Oslo.", (asked, end)


@case
def cache_figures():
    long = [{"type": "text", "text": "Know this. " * 80, "cache_control": {"type": "ephemeral"}}]
    a = ask("hi", system=long).usage
    b = ask("hi again", system=long).usage
    assert a.cache_creation_input_tokens > 800 and a.cache_read_input_tokens < 100, a
    assert b.cache_read_input_tokens > 800 and b.cache_creation_input_tokens < 100, b


@case
def errors():
    bad = Anthropic(base_url=base, api_key="wrong", max_retries=0)
    refused(anthropic.AuthenticationError, lambda: bad.messages.create(model=M, max_tokens=9, messages=user("hi")), error="authentication_error")
    refused(anthropic.NotFoundError, lambda: ask("hi", model="nope"), "nope", "not_found_error")
    refused(anthropic.BadRequestError, lambda: ask("hi", extra_body={"nonsense": 1}), "nonsense")
    refused(anthropic.BadRequestError, lambda: ask("hi", max_tokens=-1), "max_tokens")
    refused(anthropic.BadRequestError, lambda: ask("hi", tools=[{"type": "web_search_20250305", "name": "web_search"}]), "web_search_20250305")
    refused(anthropic.BadRequestError, lambda: ask("hi", extra_body={"mcp_servers": [{"type": "url", "url": "http://x", "name": "x"}]}), "mcp_servers")
    refused(anthropic.BadRequestError, lambda: ask("x" * 40000), "prompt is too long: 4")
    refused(anthropic.RequestTooLargeError, lambda: ask("x" * 2000000), error="request_too_large")
    image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]
    refused(anthropic.BadRequestError, lambda: ask(image), "messages.0.content.0")
    refused(anthropic.BadRequestError, lambda: client.messages.create(model=M, max_tokens=9, messages=[]), "messages")


@case
def failure_midway():
    got = ""
    try:
        with client.messages.stream(model=M, max_tokens=900, messages=user("COUNT, BREAK")) as s:
            for t in s.text_stream:
                got += t
    except anthropic.APIStatusError as e:
        assert e.body["error"]["type"] == "api_error" and got.startswith("1 2 3"), (e, got)
    else:
        raise AssertionError("the stream ended as if nothing had happened")
    try:
        ask("COUNT, BREAK")
    except anthropic.InternalServerError as e:
        assert e.status_code == 500
    else:
        raise AssertionError("the answer came as if nothing had happened")


@case
def asynchronous():
    async def run():
        m = await aclient.messages.create(model=M, max_tokens=90, messages=user("hi"))
        assert m.content[0].text == "Hello!"

        async def one():
            async with aclient.messages.stream(model=M, max_tokens=4000, messages=user("COUNT")) as s:
                return (await s.get_final_message()).usage.output_tokens
        assert len(set(await asyncio.gather(*[one() for _ in range(4)]))) == 1
        raw = await aclient.messages.create(model=M, max_tokens=90, messages=user("hi"), stream=True)
        assert [e.type async for e in raw][-1] == "message_stop"
        try:
            await aclient.messages.create(model="nope", max_tokens=9, messages=user("hi"))
        except anthropic.NotFoundError:
            return
        raise AssertionError("nothing was refused")
    asyncio.run(run())


@case
def leaving_early():
    with client.messages.stream(model=M, max_tokens=4000, messages=user("COUNT")) as s:
        for _ in s.text_stream:
            break
    assert ask("hi").content[0].text == "Hello!"


failed = 0
for f in cases:
    began = time.monotonic()
    try:
        f()
        print(f"ok   {f.__name__} {time.monotonic() - began:.1f} s")
    except BaseException as e:  # a case may fail in any way
        failed += 1
        print("FAIL", f.__name__, type(e).__name__, e)
print(f"anthropic {anthropic.__version__}: {len(cases) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
