"""ChatCompletionAgent with OpenAI's client: text, tools by a plugin"""
import asyncio
from trying import *
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


class Weather:
    @kernel_function(name="get_weather", description="Weather of a city")
    def get_weather(self, city: str) -> str:
        return f"sunny in {city}"


async def run(text, plugins):
    service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=AsyncOpenAI(base_url=V1, api_key=KEY))
    return str(await ChatCompletionAgent(service=service, name="a", plugins=plugins).get_response(messages=text))


check("chat", lambda: has(asyncio.run(run("hi", [])), "Hello!"))
check("tools", lambda: has(asyncio.run(run('CALL<<Weather-get_weather {"city": "Oslo"}>>', [Weather()])), SAID))
done()
