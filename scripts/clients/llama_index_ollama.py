"""Ollama: complete, chat, stream, a function agent"""
import asyncio
from trying import *
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.ollama import Ollama

llm = Ollama(model=MODEL, base_url=URL, request_timeout=60)
check("complete", lambda: has(llm.complete("hi").text, "Hello!"))
check("stream", lambda: has("".join(c.delta or "" for c in llm.stream_chat([ChatMessage(role="user", content="hi")])), "Hello!"))


async def agent():
    return await FunctionAgent(tools=[get_weather], llm=llm).run("WEATHER")


check("tools", lambda: has(asyncio.run(agent()), SAID))
done()
