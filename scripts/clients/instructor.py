"""structured output by tools, by a stream of partial objects, and by Anthropic's tools"""
from trying import *
import anthropic
import instructor as sdk
import openai
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def ask(name):
    return [{"role": "user", "content": f'CALL<<{name} {{"name": "Ada", "age": 36}}>>'}]


client = sdk.from_openai(openai.OpenAI(base_url=V1, api_key=KEY), mode=sdk.Mode.TOOLS)
check("tools", lambda: client.chat.completions.create(model=MODEL, messages=ask("Person"), response_model=Person, max_retries=0).age == 36)
check("partial", lambda: list(client.chat.completions.create_partial(model=MODEL, messages=ask("PartialPerson"), response_model=Person, max_retries=0))[-1].age == 36)
claude = sdk.from_anthropic(anthropic.Anthropic(base_url=URL, api_key=KEY))
check("anthropic", lambda: claude.messages.create(model=MODEL, max_tokens=900, messages=ask("Person"), response_model=Person, max_retries=0).age == 36)
done()
