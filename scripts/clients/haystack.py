"""OpenAIChatGenerator: text, stream, tools"""
from trying import *
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

generator = OpenAIChatGenerator(model=MODEL, api_base_url=V1, api_key=Secret.from_token(KEY), max_retries=0)
weather = create_tool_from_function(get_weather)
pieces = []
check("chat", lambda: has(generator.run([ChatMessage.from_user("hi")])["replies"][0].text, "Hello!"))
check("stream", lambda: has(generator.run([ChatMessage.from_user("hi")], streaming_callback=lambda c: pieces.append(c.content))["replies"][0].text, "Hello!") or len(pieces) > 2)
check("tools", lambda: has(Agent(chat_generator=generator, tools=[weather]).run(messages=[ChatMessage.from_user("WEATHER")])["messages"][-1].text, SAID))
done()
