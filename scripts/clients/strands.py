"""Agent with OpenAIModel, AnthropicModel, OllamaModel and LlamaCppModel: text, tools; overflow shortens the conversation"""
from trying import *
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.llamacpp import LlamaCppModel
from strands.models.ollama import OllamaModel
from strands.models.openai import OpenAIModel
from strands.types.exceptions import ContextWindowOverflowException

models = {
    "chat": lambda: OpenAIModel(client_args={"base_url": V1, "api_key": KEY}, model_id=MODEL),
    "messages": lambda: AnthropicModel(client_args={"base_url": URL, "api_key": KEY}, model_id=MODEL, max_tokens=900),
    "ollama": lambda: OllamaModel(URL, model_id=MODEL),
    "llama.cpp": lambda: LlamaCppModel(base_url=URL, model_id=MODEL),
}
weather = tool(get_weather)


def overflow(model):
    try:
        Agent(model=model, callback_handler=None, conversation_manager=None)("x" * 3_000_000)
    except ContextWindowOverflowException:
        return
    raise AssertionError("no ContextWindowOverflowException")


for name, model in models.items():
    check(name, lambda: has(Agent(model=model(), callback_handler=None)("hi"), "Hello!"))
    check(name + " tools", lambda: has(Agent(model=model(), tools=[weather], callback_handler=None)("WEATHER"), SAID))
    check(name + " overflow", lambda: overflow(model()))
done()
