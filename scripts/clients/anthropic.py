"""messages, stream, tools by the tool runner, thinking, count_tokens, models"""
from trying import *
import anthropic as sdk

client = sdk.Anthropic()


def ask(content, **more):
    return client.messages.create(model=MODEL, max_tokens=900, messages=[{"role": "user", "content": content}], **more)


def stream():
    with client.messages.stream(model=MODEL, max_tokens=900, messages=[{"role": "user", "content": "hi"}]) as s:
        has("".join(s.text_stream), "Hello!")
        u = s.get_final_message().usage
        assert u.input_tokens > 0 and u.output_tokens > 0, u


def runner():
    tool = sdk.beta_tool(get_weather)
    last = client.beta.messages.tool_runner(model=MODEL, max_tokens=900, tools=[tool], messages=[{"role": "user", "content": "WEATHER"}]).until_done()
    has(last.content[0].text, SAID)


check("messages", lambda: has(ask("hi").content[0].text, "Hello!"))
check("stream", stream)
check("tools", runner)
check("thinking", lambda: has(ask("THINK", thinking={"type": "adaptive"}).content[0].thinking, "Four words"))
check("count_tokens", lambda: client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "hi"}]).input_tokens > 0)
check("models", lambda: [m.id for m in client.models.list()] [0] == MODEL)
done()
