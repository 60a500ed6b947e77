"""OllamaChatGenerator: text, tools"""
from trying import *
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack_integrations.components.generators.ollama import OllamaChatGenerator

generator = OllamaChatGenerator(model=MODEL, url=URL, keep_alive="-1")
weather = create_tool_from_function(get_weather)
check("chat", lambda: has(generator.run([ChatMessage.from_user("hi")])["replies"][0].text, "Hello!"))
check("tools", lambda: has(Agent(chat_generator=generator, tools=[weather]).run(messages=[ChatMessage.from_user("WEATHER")])["messages"][-1].text, SAID))
done()
