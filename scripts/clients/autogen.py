"""AssistantAgent with OpenAIChatCompletionClient and OllamaChatCompletionClient: text, tools"""
import asyncio
from trying import *
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.ollama import OllamaChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient

INFO = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}
clients = {
    "chat": lambda: OpenAIChatCompletionClient(model=MODEL, base_url=V1, api_key=KEY, model_info=INFO),
    "ollama": lambda: OllamaChatCompletionClient(model=MODEL, host=URL, model_info=INFO),
}


async def run(client, text, tools):
    agent = AssistantAgent("a", model_client=client(), tools=tools, reflect_on_tool_use=bool(tools))
    return (await agent.run(task=text)).messages[-1].content


for name, client in clients.items():
    check(name, lambda: has(asyncio.run(run(client, "hi", [])), "Hello!"))
    check(name + " tools", lambda: has(asyncio.run(run(client, "WEATHER", [get_weather])), SAID))
done()
