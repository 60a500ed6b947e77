"""Jinja2 set up the way Hugging Face transformers renders chat templates."""
import json
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

CLOCK = datetime(2025, 3, 9, 14, 5, 7, 123456)


class Generation(jinja2.ext.Extension):
    """The generation tag: its body is a call block that renders as itself."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class Dict:
    def __call__(self, *a, **k):
        return dict(*a, **k)

    def fromkeys(self, *a, **k):
        return dict.fromkeys(*a, **k)


class StrictNamespace(Namespace):
    """A namespace that takes no names with a leading underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            StrictNamespace._check(name)
        Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        StrictNamespace._check(name)
        Namespace.__setitem__(self, name, value)

    @staticmethod
    def _check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError("underscore-prefixed attribute " + repr(name))


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: CLOCK.strftime(f)
    env.globals["dict"] = Dict()
    env.globals["namespace"] = StrictNamespace
    return env


def run(source, messages, tools=None, add_generation_prompt=False, extra=None):
    """Render, and return the fields that the expected result has in a case."""
    stage = "parse"
    try:
        template = environment().from_string(source)
        stage = "render"
        variables = {"messages": messages, "tools": tools, "documents": None,
                     "add_generation_prompt": add_generation_prompt}
        variables.update(extra or {})
        return {"want": template.render(**variables)}
    except RecursionError as e:
        return {"error": "RecursionError: " + str(e), "stage": stage}
    except Exception as e:  # every error of a template counts, whatever its kind
        return {"error": type(e).__name__ + ": " + str(e), "stage": stage}
