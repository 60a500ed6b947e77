"""Agent over chat completions, responses and messages: text, tools, structured output, stream"""
from trying import *
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    name: str
    age: int


openai = OpenAIProvider(base_url=V1, api_key=KEY)
models = {
    "chat": OpenAIChatModel(MODEL, provider=openai), "responses": OpenAIResponsesModel(MODEL, provider=openai),
    "messages": AnthropicModel(MODEL, provider=AnthropicProvider(base_url=URL, api_key=KEY)),
}


def stream(model):
    with Agent(model).run_stream_sync("hi") as s:
        has("".join(s.stream_text(delta=True)), "Hello!")


for name, model in models.items():
    check(name, lambda: has(Agent(model).run_sync("hi").output, "Hello!"))
    check(name + " tools", lambda: has(Agent(model, tools=[get_weather]).run_sync("WEATHER").output, SAID))
    check(name + " structured", lambda: Agent(model, output_type=Person).run_sync('CALL<<final_result {"name": "Ada", "age": 36}>>').output == Person(name="Ada", age=36))
done()
