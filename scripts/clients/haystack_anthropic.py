"""AnthropicChatGenerator: text, tools"""
from trying import *
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator

generator = AnthropicChatGenerator(model=MODEL, api_key=Secret.from_token(KEY), generation_kwargs={"max_tokens": 900})
weather = create_tool_from_function(get_weather)
check("chat", lambda: has(generator.run([ChatMessage.from_user("hi")])["replies"][0].text, "Hello!"))
check("tools", lambda: has(Agent(chat_generator=generator, tools=[weather]).run(messages=[ChatMessage.from_user("WEATHER")])["messages"][-1].text, SAID))
done()
