# The official libraries' own helpers that turn a pydantic model into a schema and the answer into a value, against the
# server at argv[1] with the API key argv[2]. What the model (argv[3]) says does not matter: each value must be one of the
# type. Numbers and texts are bounded, since a model that goes on for ever only meets its limit of tokens.
import datetime
import enum
import sys
import uuid
from typing import Annotated, Literal, Optional, Union

from pydantic import BaseModel, ConfigDict, Field
import anthropic, ollama, openai

base, key, model = sys.argv[1:4]
Word = Annotated[str, Field(max_length=6, pattern="^[a-z]+$")]


class Colour(str, enum.Enum):
    red = "red"
    green = "green"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Point(Closed):
    x: int = Field(ge=-5, le=5)
    y: Annotated[int, Field(gt=0, lt=9, multiple_of=2)]


class Circle(Closed):
    kind: Literal["circle"]
    r: Annotated[float, Field(ge=0, le=10, multiple_of=0.5)]


class Square(Closed):
    kind: Literal["square"]
    side: Literal[1, 2, 3]


class All(Closed):
    name: Word
    colour: Colour
    place: Point
    maybe: Optional[Word]
    either: Union[Annotated[int, Field(ge=0, le=9)], bool]
    shape: Annotated[Union[Circle, Square], Field(discriminator="kind")]
    many: list[Point] = Field(min_length=1, max_length=2)
    pair: tuple[Annotated[int, Field(ge=0, le=9)], bool]
    day: datetime.date
    id: uuid.UUID
    marks: dict[Colour, bool] = Field(max_length=2)
    only: set[Colour] = Field(min_length=1, max_length=2)
    default: Annotated[int, Field(ge=0, le=9)] = 3


class Plain(Closed):
    colour: Colour
    place: Optional[Square]
    shape: Union[Literal["circle"], bool]
    day: datetime.date


class Times(Closed):
    at: datetime.datetime
    span: datetime.timedelta
    time: datetime.time
    any: dict[str, list[float]]


class Tree(Closed):
    leaf: bool
    left: Optional["Tree"] = None


failed = 0


def check(name, f):
    global failed
    try:
        v = f()
        print("ok  ", name, repr(v)[:300])
    except Exception as e:
        failed += 1
        print("FAIL", name, type(e).__name__, str(e)[:600])


o = openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0)
a = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
l = ollama.Client(host=base, headers={"Authorization": "Bearer " + key})
ask = [{"role": "user", "content": "Describe something."}]


def chat_parse(t):
    r = o.chat.completions.parse(model=model, messages=ask, response_format=t, max_tokens=600, seed=1)
    assert isinstance(r.choices[0].message.parsed, t), r
    return r.choices[0].message.parsed


def chat_stream(t):
    with o.chat.completions.stream(model=model, messages=ask, response_format=t, max_tokens=600, seed=2) as s:
        for _ in s:
            pass
        r = s.get_final_completion()
    assert isinstance(r.choices[0].message.parsed, t), r
    return r.choices[0].message.parsed


def responses_parse(t):
    r = o.responses.parse(model=model, input="Describe something.", text_format=t, max_output_tokens=600)
    assert isinstance(r.output_parsed, t), r
    return r.output_parsed


def messages_parse(t):
    r = a.messages.parse(model=model, messages=ask, output_format=t, max_tokens=600)
    assert isinstance(r.parsed_output, t), r
    return r.parsed_output


def tool_parse(t):
    r = o.chat.completions.parse(
        model=model, messages=ask, max_tokens=600, seed=1, tools=[openai.pydantic_function_tool(t)],
        tool_choice={"type": "function", "function": {"name": t.__name__}})
    got = r.choices[0].message.tool_calls[0].function.parsed_arguments
    assert isinstance(got, t), r
    return got


def ollama_chat(t):
    r = l.chat(model=model, messages=ask, format=t.model_json_schema(), options={"num_predict": 600, "seed": 1})
    return t.model_validate_json(r.message.content)


def ollama_generate(t):
    r = l.generate(model=model, prompt="Describe something.", format=t.model_json_schema(), options={"num_predict": 600, "seed": 1})
    return t.model_validate_json(r.response)


for f in (chat_parse, chat_stream, responses_parse, messages_parse, tool_parse, ollama_chat, ollama_generate):
    # Anthropic's library takes bounds out of the schema and checks them afterwards: they are for the model to guess.
    for t in (Plain,) if f is messages_parse else (All, Point, Plain):
        check(f.__name__ + " " + t.__name__, lambda: f(t))
check("ollama_chat Tree", lambda: ollama_chat(Tree))
# Schemas without bounds are enforced too: nothing is refused.
l.chat(model=model, messages=ask, format=Times.model_json_schema(), options={"num_predict": 3})
sys.exit(1 if failed else 0)
