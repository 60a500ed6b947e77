"""chat, stream, tools, thinking, generate, list, show, ps; a seed of 64 bits, a fraction"""
from trying import *
import ollama as sdk

client = sdk.Client(host=URL)


def ask(content, **more):
    return client.chat(MODEL, [{"role": "user", "content": content}], **more)


def tools():
    messages = [{"role": "user", "content": "WEATHER"}]
    m = client.chat(MODEL, messages, tools=[get_weather]).message
    call = m.tool_calls[0].function
    messages += [m, {"role": "tool", "tool_name": call.name, "content": get_weather(**call.arguments)}]
    has(client.chat(MODEL, messages, tools=[get_weather]).message.content, SAID)


check("chat", lambda: has(ask("hi", options={"seed": 2**63 - 1, "num_predict": 50.5}, keep_alive="5m").message.content, "Hello!"))
check("stream", lambda: has("".join(c.message.content for c in ask("hi", stream=True)), "Hello!"))
check("tools", tools)
check("thinking", lambda: has(ask("THINK", think=True).message.thinking, "Four words"))
check("generate", lambda: has(client.generate(MODEL, "hi").response, "Hello!"))
check("list", lambda: client.list().models[0].model.startswith(MODEL))
check("show", lambda: "tools" in client.show(MODEL).capabilities)
check("ps", lambda: len(client.ps().models) == 1)
done()
