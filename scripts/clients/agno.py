"""Agent with OpenAILike, Claude and Ollama: text, tools"""
from trying import *
from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.ollama import Ollama
from agno.models.openai.like import OpenAILike

models = {
    "chat": lambda: OpenAILike(id=MODEL, base_url=V1, api_key=KEY),
    "messages": lambda: Claude(id=MODEL, api_key=KEY, client_params={"base_url": URL}),
    "ollama": lambda: Ollama(id=MODEL, host=URL),
}
for name, model in models.items():
    check(name, lambda: has(Agent(model=model(), telemetry=False).run("hi").content, "Hello!"))
    check(name + " tools", lambda: has(Agent(model=model(), tools=[get_weather], telemetry=False).run("WEATHER").content, SAID))
done()
