"""Agent and Runner over chat completions and over responses: text, strict function tools, stream, a second turn"""
import asyncio
from trying import *
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
weather = function_tool(get_weather)


async def turns(make):
    model = make(MODEL, AsyncOpenAI(base_url=V1, api_key=KEY))
    agent = Agent(name="a", model=model, tools=[weather])
    first = await Runner.run(agent, "WEATHER")
    has(first.final_output, SAID)
    second = await Runner.run(agent, first.to_input_list() + [{"role": "user", "content": "hi"}])
    has(second.final_output, "Hello!")


async def stream(make):
    model = make(MODEL, AsyncOpenAI(base_url=V1, api_key=KEY))
    run = Runner.run_streamed(Agent(name="a", model=model, tools=[weather]), "WEATHER")
    async for _ in run.stream_events():
        pass
    has(run.final_output, SAID)


for name, model in {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}.items():
    check(name, lambda: asyncio.run(turns(model)))
    check(name + " stream", lambda: asyncio.run(stream(model)))
done()
