"""completion by the providers openai, hosted_vllm, lm_studio, anthropic, ollama_chat, ollama and responses; streams; tools; ContextWindowExceededError"""
import json
from trying import *
import litellm as sdk

sdk.telemetry = False
sdk.suppress_debug_info = True
PROVIDERS = {
    "openai": {"model": "openai/" + MODEL, "api_base": V1, "api_key": KEY}, "hosted_vllm": {"model": "hosted_vllm/" + MODEL, "api_base": V1, "api_key": KEY},
    "lm_studio": {"model": "lm_studio/" + MODEL, "api_base": V1, "api_key": KEY}, "anthropic": {"model": "anthropic/" + MODEL, "api_base": URL, "api_key": KEY},
    "ollama_chat": {"model": "ollama_chat/" + MODEL, "api_base": URL},
}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}


def user(text):
    return [{"role": "user", "content": text}]


def chat(p):
    has(sdk.completion(messages=user("hi"), **p).choices[0].message.content, "Hello!")


def stream(p):
    has("".join(c.choices[0].delta.content or "" for c in sdk.completion(messages=user("hi"), stream=True, **p)), "Hello!")


def tools(p):
    messages = user("WEATHER")
    m = sdk.completion(messages=messages, tools=[TOOL], **p).choices[0].message
    call = m.tool_calls[0]
    messages += [m.model_dump(), {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": get_weather(**json.loads(call.function.arguments))}]
    has(sdk.completion(messages=messages, tools=[TOOL], **p).choices[0].message.content, SAID)


def overflow(p):
    try:
        sdk.completion(messages=user("x" * 3_000_000), num_retries=0, **p)
    except sdk.ContextWindowExceededError:
        return
    raise AssertionError("no ContextWindowExceededError")


for name, p in PROVIDERS.items():
    check(name, lambda: chat(p))
    check(name + " stream", lambda: stream(p))
    check(name + " tools", lambda: tools(p))
    if name != "ollama_chat":  # it words no error of Ollama's as this one
        check(name + " overflow", lambda: overflow(p))
check("ollama", lambda: chat({"model": "ollama/" + MODEL, "api_base": URL}))
check("responses", lambda: has(sdk.responses(model="openai/" + MODEL, input="hi", api_base=V1, api_key=KEY).output[-1].content[0].text, "Hello!"))
done()
