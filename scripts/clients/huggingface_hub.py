"""InferenceClient: chat_completion, stream, tools"""
from trying import *
from huggingface_hub import InferenceClient

client = InferenceClient(base_url=V1, api_key=KEY)
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "w", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
ask = lambda text, **more: client.chat_completion([{"role": "user", "content": text}], model=MODEL, max_tokens=200, **more)
check("chat", lambda: has(ask("hi").choices[0].message.content, "Hello!"))
check("stream", lambda: has("".join(c.choices[0].delta.content or "" for c in ask("hi", stream=True) if c.choices), "Hello!"))
check("tools", lambda: ask("WEATHER", tools=[TOOL], tool_choice="auto").choices[0].message.tool_calls[0].function.name == "get_weather")
done()
