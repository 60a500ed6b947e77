"""Holds answers of Ollama's routes against the models of Ollama's own Python client: [{"type", "from", "body"}] comes
from standard input; problems are printed, and any makes the exit status 1."""

import json
import sys
import types
import typing

import ollama
import pydantic

# What Ollama's own server answers and its Python client has no field for (api/types.go of Ollama).
SERVER_ONLY = {
    "ListResponse.Model": {"name", "capabilities"},
    "ShowResponse": {"system", "messages", "tensors"},
    "Message.ToolCall": {"id"},
    "Message.ToolCall.Function": {"index"},
    "ModelDetails": {"context_length", "embedding_length"},
    "Logprob": {"bytes"},
    "TokenLogprob": {"bytes"},
}


def check(model, value, at, problems):
    """Adds what is wrong with an object to problems: keys that the model does not have, and null."""
    known = set(SERVER_ONLY.get(model.__qualname__, ()))
    for name, field in model.model_fields.items():
        key = field.alias or name
        known.add(key)
        if key in value and value[key] is not None:
            inside(field.annotation, value[key], f"{at}.{key}", problems)
        elif field.is_required():
            problems.append(f"{at}.{key} is missing")
    for key in value:
        if key not in known:
            problems.append(f"{at}.{key} is no field of {model.__qualname__}")
        elif value[key] is None:
            problems.append(f"{at}.{key} is null: Ollama leaves such keys out")


def inside(annotation, value, at, problems):
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        check(annotation, value, at, problems)
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
        for option in typing.get_args(annotation):
            if option is not type(None):
                inside(option, value, at, problems)
    elif typing.get_origin(annotation) in (list, typing.Sequence, __import__("collections").abc.Sequence) and isinstance(value, list):
        for i, item in enumerate(value):
            inside(typing.get_args(annotation)[0], item, f"{at}[{i}]", problems)


def main():
    bad = 0
    for answer in json.load(sys.stdin):
        model = getattr(ollama, answer["type"])
        problems = []
        try:
            model.model_validate(answer["body"])
        except pydantic.ValidationError as e:
            problems.append(str(e))
        check(model, answer["body"], answer["type"], problems)
        for p in problems:
            print(f"{answer['from']}: {p}")
        bad += bool(problems)
    return 1 if bad else 0


sys.exit(main())
