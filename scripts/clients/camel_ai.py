"""ChatAgent with an OpenAI-compatible model: text, tools"""
from trying import *
from camel.agents import ChatAgent
from camel.models import ModelFactory
from camel.types import ModelPlatformType
from camel.utils import BaseTokenCounter



class Counter(BaseTokenCounter):  # its own fetches a vocabulary of OpenAI's
    def count_tokens_from_messages(self, messages):
        return sum(len(str(m)) for m in messages) // 4

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode()


model = ModelFactory.create(model_platform=ModelPlatformType.OPENAI_COMPATIBLE_MODEL, model_type=MODEL, url=V1, api_key=KEY, token_counter=Counter())
check("chat", lambda: has(ChatAgent(model=model).step("hi").msgs[0].content, "Hello!"))
check("tools", lambda: has(ChatAgent(model=model, tools=[get_weather]).step("WEATHER").msgs[0].content, SAID))
done()
