"""chat, stream with usage, tools, reasoning, responses with a conversation kept, completions, models"""
import json
from trying import *
import openai as sdk

client = sdk.OpenAI()
TOOL = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}}


def tools():
    messages = [{"role": "user", "content": "WEATHER"}]
    m = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0].message
    call = m.tool_calls[0]
    messages += [m, {"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))}]
    has(client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0].message.content, SAID)


def stream():
    chunks = list(client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "COUNT"}], max_tokens=20, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens == 20, chunks[-1]


def responses():
    r = client.responses.create(model=MODEL, input="hi")
    has(client.responses.create(model=MODEL, input="UNICODE", previous_response_id=r.id).output_text, "世界")


def overflow():
    try:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x" * 3_000_000}])
    except sdk.BadRequestError as e:
        assert e.code == "context_length_exceeded", e
    else:
        raise AssertionError("a prompt that is too long was taken")


check("chat", lambda: has(client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}]).choices[0].message.content, "Hello!"))
check("stream", stream)
check("tools", tools)
check("responses", responses)
check("completions", lambda: has(client.completions.create(model=MODEL, prompt="<|im_start|>user\nhi").choices[0].text, "Hello!"))
check("models", lambda: [m.id for m in client.models.list()] [0] == MODEL)
check("overflow", overflow)
done()
