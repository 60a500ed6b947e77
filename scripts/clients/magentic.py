"""prompt functions with OpenaiChatModel: text, an object"""
from trying import *
from magentic import OpenaiChatModel, prompt
from pydantic import BaseModel

model = OpenaiChatModel(MODEL, base_url=V1, api_key=KEY)


class Person(BaseModel):
    name: str
    age: int


@prompt("hi", model=model)
def greet() -> str: ...


@prompt("{text}", model=model)
def person(text: str) -> Person: ...


check("text", lambda: has(greet(), "Hello!"))
check("object", lambda: person('CALL<<return_person {"name": "Ada", "age": 36}>>').age == 36)
done()
