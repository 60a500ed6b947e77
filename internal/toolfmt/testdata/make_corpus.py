#!/usr/bin/env python3
"""Writes corpus/<family>.jsonl: outputs as models of each family write them, good and damaged, with the text,
reasoning and calls that they mean. What is expected comes from the scenarios here, never from the parser."""
import json
import os

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")

CODE = 'def greet(name):\n    if name != "":\n        print(f"Hello, {name}!\\n")\n'
SCENARIOS = [
    ("one string", [("get_weather", {"location": "Paris"})]),
    ("enum", [("get_weather", {"location": "Oslo, Norway", "unit": "celsius"})]),
    ("integer", [("get_weather", {"location": "Rome", "days": 3})]),
    ("shell", [("bash", {"command": "ls -la | grep '.go' && echo \"done\""})]),
    ("fraction", [("bash", {"command": "sleep 1", "timeout": 2.5})]),
    ("code", [("write_file", {"path": "src/greet.py", "content": CODE})]),
    ("json in a string", [("write_file", {"path": "a.json", "content": '{"a": [1, 2], "b": "}"}'})]),
    ("backslashes", [("bash", {"command": "grep -E '\\d+\\.txt' C:\\temp"})]),
    ("unicode", [("get_weather", {"location": "Zürich – 東京 🐋"})]),
    ("boolean", [("set_timer", {"minutes": 25, "label": "tea", "loud": True})]),
    ("list", [("add_todo", {"items": ["buy milk", "call Ann, then Bob", "x = [1]"]})]),
    ("no arguments", [("list_files", {})]),
    ("two", [("get_weather", {"location": "Paris"}), ("get_weather", {"location": "Madrid"})]),
    ("three", [("read_file", {"path": "a.go"}), ("bash", {"command": "go test ./..."}), ("set_timer", {"minutes": 1})]),
    ("empty string", [("write_file", {"path": "empty.txt", "content": ""})]),
    ("markup", [("write_file", {"path": "i.html", "content": "<p class='x'>1 < 2</p>\n<br/>"})]),
]
TEXT = "Let me look at that for you."


def J(v):
    return json.dumps(v, ensure_ascii=False)


def py(v):
    if isinstance(v, str):
        return J(v)
    return repr(v) if not isinstance(v, list) else "[" + ", ".join(map(py, v)) + "]"


def pycall(n, a):
    return n + "(" + ", ".join(k + "=" + py(v) for k, v in a.items()) + ")"


def plain(v):
    return v if isinstance(v, str) else J(v)


def gem(v, q):
    if isinstance(v, str):
        return q + v + q
    if isinstance(v, list):
        return "[" + ",".join(gem(x, q) for x in v) + "]"
    return J(v)


def gemcall(n, a, q='<|"|>'):
    return "call:" + n + "{" + ",".join(k + ":" + gem(v, q) for k, v in a.items()) + "}"


def xml(n, a):
    return "<function=" + n + ">\n" + "".join(f"<parameter={k}>\n{plain(v)}\n</parameter>\n" for k, v in a.items()) + "</function>"


def argtags(n, a, nl="\n"):
    return n + nl + "".join(f"<arg_key>{k}</arg_key>{nl}<arg_value>{plain(v)}</arg_value>{nl}" for k, v in a.items())


def hermes(calls):
    return "\n".join("<tool_call>\n" + J({"name": n, "arguments": a}) + "\n</tool_call>" for n, a in calls)


def harmony(calls):
    return "<|start|>assistant".join(f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{J(a)}<|call|>" for n, a in calls)


def deepseek(calls):
    return ("<｜tool▁calls▁begin｜>" + "\n".join(f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{J(a)}\n```<｜tool▁call▁end｜>" for n, a in calls)
            + "<｜tool▁calls▁end｜>")


FAMILIES = {
    "hermes": hermes,
    "smollm": hermes,
    "json": lambda cs: "\n".join(J({"name": n, "arguments": a}) for n, a in cs),
    "qwen3-coder": lambda cs: "\n".join("<tool_call>\n" + xml(n, a) + "\n</tool_call>" for n, a in cs),
    "llama3": lambda cs: "; ".join(J({"name": n, "parameters": a}) for n, a in cs),
    "mistral": lambda cs: "[TOOL_CALLS] " + J([{"name": n, "arguments": a} for n, a in cs]),
    "gemma3": lambda cs: "```tool_code\n" + "\n".join(pycall(n, a) for n, a in cs) + "\n```",
    "gemma4": lambda cs: "".join("<|tool_call>" + gemcall(n, a) + "<tool_call|>" for n, a in cs),
    "harmony": harmony,
    "deepseek": deepseek,
    "glm": lambda cs: "\n".join("<tool_call>" + argtags(n, a) + "</tool_call>" for n, a in cs),
    "phi": lambda cs: "<|tool_call|>" + J([{"name": n, "arguments": a} for n, a in cs]) + "<|/tool_call|>",
    "lfm2": lambda cs: "<|tool_call_start|>[" + ", ".join(pycall(n, a) for n, a in cs) + "]<|tool_call_end|>",
    "pythonic": lambda cs: "[" + ", ".join(pycall(n, a) for n, a in cs) + "]",
}
THINK = {
    "deepseek": ("<think>\n", "\n</think>\n\n"), "glm": ("<think>", "</think>\n"), "gemma4": ("<|channel>thought\n", "<channel|>"),
    "harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
}
PARIS = [("get_weather", {"location": "Paris"})]
LS = [("bash", {"command": "ls"})]


class Corpus:
    def __init__(self):
        self.rows = []

    def add(self, note, text_in, calls=(), text="", **more):
        row = {"note": note, "in": text_in}
        if text:
            row["text"] = text
        if calls:
            row["calls"] = [n + J(a) for n, a in calls]
            if more.get("cut"):  # inside a string: nothing closes it
                row["calls"][-1] = row["calls"][-1].removesuffix('"}')
        row.update(more)
        self.rows.append(row)

    def same(self, note, text_in):
        self.add(note, text_in, text=text_in)


def common(c, write, fam):
    for note, calls in SCENARIOS:
        c.add(note, write(calls), calls)
    glue = "<|channel|>commentary<|message|>" + TEXT + "<|end|><|start|>assistant" if fam == "harmony" else TEXT + "\n\n"
    c.add("text before", glue + write(PARIS), PARIS, TEXT)
    c.add("text before two", glue + write(PARIS + LS), PARIS + LS, TEXT)
    c.add("white space after", write(PARIS) + "\n\n", PARIS)
    if fam in THINK:
        o, e = THINK[fam]
        c.add("reasoning", o + "The user wants weather." + e + write(PARIS), PARIS, reasoning="The user wants weather.")
        c.add("reasoning and two", o + "Two things.\nFirst one." + e + write(PARIS + LS), PARIS + LS, reasoning="Two things.\nFirst one.")
    # names
    for note, name in [("name in another case", "Get_Weather"), ("name with a prefix", "functions.get_weather"), ("name without separators", "getWeather"),
                       ("name with dashes", "get-weather"), ("name behind a namespace", "mcp.get_weather")]:
        if fam in ("gemma3", "pythonic"):
            continue  # without marks only exact names are calls
        if fam == "harmony" and "functions." in name:
            continue
        c.add(note, write([(name, {"location": "Paris"})]), PARIS)
    if fam not in ("gemma3", "pythonic"):
        c.add("name by alias", write([("shell", {"command": "ls"})]), LS)
    # arguments
    c.add("integer as a string", write([("get_weather", {"location": "Paris", "days": "3"})]), [("get_weather", {"location": "Paris", "days": 3})])
    c.add("boolean as a string", write([("set_timer", {"minutes": 5, "loud": "true"})]), [("set_timer", {"minutes": 5, "loud": True})])
    c.add("enum in another case", write([("get_weather", {"location": "Paris", "unit": "Celsius"})]), [("get_weather", {"location": "Paris", "unit": "celsius"})])
    c.add("key in another case", write([("get_weather", {"Location": "Paris"})]), PARIS)
    # not calls
    for note, s in [("text", "It is sunny in Paris today."), ("a list", "1. one\n2. two\n\n- three\n- four\n"), ("a bracket", "See [1] and {x}, a < b, f(x) and `code`."),
                    ("code", "```python\nget_weather(location=\"Paris\")\nprint({'name': 'x'})\n```\nThat prints it."),
                    ("json answer", "{\"city\": \"Paris\", \"temperature\": 21}"), ("json answer in a fence", "```json\n{\"name\": \"Ann\", \"age\": 7}\n```"),
                    ("half a fence", "```json\n{\"a\": 1"), ("unicode text", "東京は晴れです。🐋 <3"), ("looks like a call", "You can call get_weather with a location."),
                    ("array", "[1, 2, 3]"), ("blank", "\n\n  \n")]:
        c.same(note, s)
    if fam != "harmony":
        unknown = write([("launch_rocket", {"target": "moon"})])
        c.same("tool that is not offered", unknown)
        c.same("text and a tool that is not offered", TEXT + "\n\n" + unknown + "\n")


def damaged_json(c, wrap, key="arguments", marked=True):
    """wrap puts one JSON text between the family's marks."""
    q = '"' + key + '": '
    w = '{"name": "get_weather", ' + q
    c.add("trailing comma", wrap(w + '{"location": "Paris",}}'), PARIS)
    c.add("two trailing commas", wrap(w + '{"location": "Paris",},}'), PARIS)
    c.add("single quotes", wrap("{'name': 'get_weather', '" + key + "': {'location': 'Paris'}}"), PARIS)
    c.add("apostrophe in single quotes", wrap("{'name': 'get_weather', '" + key + "': {'location': 'L'Aquila'}}"), [("get_weather", {"location": "L'Aquila"})])
    c.add("True and None", wrap('{"name": "set_timer", ' + q + '{"minutes": 5, "loud": True, "label": None}}'), [("set_timer", {"minutes": 5, "loud": True, "label": None})])
    c.add("arguments as a string", wrap(w + J('{"location": "Paris"}') + "}"), PARIS)
    other = "parameters" if key == "arguments" else "arguments"
    c.add("the other key", wrap('{"name": "get_weather", "' + other + '": {"location": "Paris"}}'), PARIS)
    c.add("openai's shape", wrap('{"type": "function", "function": {"name": "get_weather", "arguments": {"location": "Paris"}}}'), PARIS)
    c.add("arguments first", wrap('{' + q + '{"location": "Paris"}, "name": "get_weather"}'), PARIS)
    c.add("line breaks", wrap('{\n  "name": "get_weather",\n  ' + q + '{\n    "location": "Paris"\n  }\n}'), PARIS)
    c.add("no quotes around keys", wrap('{name: "get_weather", ' + key + ': {location: "Paris"}}'), PARIS)
    c.add("raw line break in a string", wrap('{"name": "write_file", ' + q + '{"path": "a", "content": "one\ntwo\tx"}}'), [("write_file", {"path": "a", "content": "one\ntwo\tx"})])
    c.add("unknown escape", wrap('{"name": "bash", ' + q + '{"command": "grep \\d+ \\$x"}}'), [("bash", {"command": "grep \\d+ \\$x"})])
    c.add("quotes not escaped", wrap('{"name": "bash", ' + q + '{"command": "echo "hi" now"}}'), [("bash", {"command": 'echo "hi" now'})])
    c.add("three quotes", wrap('{"name": "write_file", ' + q + '{"path": "a.py", "content": """x = "1"\ny\n"""}}'), [("write_file", {"path": "a.py", "content": 'x = "1"\ny\n'})])
    c.add("missing comma", wrap('{"name": "get_weather",\n ' + q + '{"location": "Paris"\n "days": 2}}'), [("get_weather", {"location": "Paris", "days": 2})])
    c.add("comment", wrap('{"name": "get_weather", // the tool\n ' + q + '{"location": "Paris"}}'), PARIS)
    c.add("null arguments", wrap('{"name": "list_files", ' + q + 'null}'), [("list_files", {})])
    c.add("no arguments key", wrap('{"name": "list_files"}'), [("list_files", {})])
    c.same("schema repeated", wrap(w + '{"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}'))
    c.same("name missing", wrap('{' + q + '{"location": "Paris"}}'))
    c.same("arguments are a number", wrap(w + '7}'))


def missing_ends(c, head, body, close):
    c.add("closing brace missing", head + body[:-1] + close, PARIS)
    c.add("all braces missing", head + body[:-2], PARIS)
    c.add("one brace too many", head + body + "}" + close, PARIS)
    if close:
        c.add("closing mark missing", head + body, PARIS)


def extra(fam, c):
    body = '{"name": "get_weather", "arguments": {"location": "Paris"}}'
    if fam in ("hermes", "smollm"):
        wrap = lambda s: "<tool_call>\n" + s + "\n</tool_call>"
        damaged_json(c, wrap)
        missing_ends(c, "<tool_call>\n", body, "\n</tool_call>")
        c.add("bare", body, PARIS)
        c.add("json fence", "```json\n" + body + "\n```", PARIS)
        c.add("fence without a word", "```\n" + body + "\n```", PARIS)
        c.add("fence, text around", "Here is the call:\n```json\n" + body + "\n```\nDone.", PARIS, "Here is the call:\nDone.")
        c.add("fence inside marks", wrap("```json\n" + body + "\n```"), PARIS)
        c.add("marks inside a fence", "```xml\n" + wrap(body) + "\n```", PARIS)
        c.add("list inside marks", wrap("[" + body + "]"), PARIS)
        c.add("two objects inside one pair of marks", wrap(body + "\n" + '{"name": "bash", "arguments": {"command": "ls"}}'), PARIS + LS)
        c.add("tools marks", "<tools>\n" + body + "\n</tools>", PARIS)
        c.add("opening mark twice", "<tool_call>\n<tool_call>\n" + body + "\n</tool_call>", PARIS)
        c.add("cut in a string", '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "content": "one two', [("write_file", {"path": "a", "content": "one two"})], cut=True)
        c.same("cut before the arguments", '<tool_call>\n{"name": "write_file", "argum')
        c.same("only the mark", "<tool_call>")
        c.same("mark in text", "Models write <tool_call> around calls and </tool_call> behind.")
        c.same("bare, key that is not declared", '{"name": "get_weather", "arguments": {"town": "Paris"}}')
        c.same("bare, required key missing", '{"name": "get_weather", "arguments": {"days": 2}}')
        c.same("bare, wrong type", '{"name": "get_weather", "arguments": {"location": ["Paris"]}}')
        c.add("at most one", wrap(body) + "\n" + wrap('{"name": "bash", "arguments": {"command": "ls"}}'), PARIS, "\n" + wrap('{"name": "bash", "arguments": {"command": "ls"}}'), single=True)
        c.add("forced, arguments alone", '{"location": "Paris"}', PARIS, forced="get_weather")
    if fam == "json":
        damaged_json(c, lambda s: s)
        c.add("fence", "```json\n" + body + "\n```", PARIS)
        c.add("list", "[" + body + "]", PARIS)
        c.add("tool and input", '{"tool": "get_weather", "input": {"location": "Paris"}}', PARIS)
        c.add("arguments beside the name", '{"name": "get_weather", "location": "Paris"}', PARIS)
        c.add("name as the key", '{"get_weather": {"location": "Paris"}}', PARIS)
        c.add("tool_calls", '{"tool_calls": [' + body + ']}', PARIS)
        c.add("behind text on a line", "Calling " + body, PARIS, "Calling")
        c.add("text behind", body + "\nI called it.", PARIS, "\nI called it.")
        c.same("in code quotes", "Write `" + body + "` to call it.")
    if fam == "llama3":
        damaged_json(c, lambda s: s, "parameters")
        lb = body.replace("arguments", "parameters")
        c.add("python tag", "<|python_tag|>" + lb, PARIS)
        c.add("python tag, two", "<|python_tag|>" + lb + "; " + '{"name": "bash", "parameters": {"command": "ls"}}', PARIS + LS)
        c.add("python tag, call", '<|python_tag|>get_weather.call(location="Paris")', PARIS)
        c.add("function tag", '<function=get_weather>{"location": "Paris"}</function>', PARIS)
        c.add("pythonic", '[get_weather(location="Paris"), bash(command="ls")]', PARIS + LS)
        c.add("type function", '{"type": "function", "name": "get_weather", "parameters": {"location": "Paris"}}', PARIS)
    if fam == "mistral":
        damaged_json(c, lambda s: "[TOOL_CALLS] [" + s + "]")
        c.add("with ids", '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"location": "Paris"}, "id": "abcdefghi"}]', PARIS)
        c.add("object instead of a list", "[TOOL_CALLS]" + body, PARIS)
        c.add("name and ARGS", '[TOOL_CALLS]get_weather[ARGS]{"location": "Paris"}', PARIS)
        c.add("name and ARGS, two", '[TOOL_CALLS]get_weather[ARGS]{"location": "Paris"}[TOOL_CALLS]bash[ARGS]{"command": "ls"}', PARIS + LS)
        c.add("name, CALL_ID and ARGS", '[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{"location": "Paris"}', PARIS)
        c.add("name and object", '[TOOL_CALLS]get_weather{"location": "Paris"}', PARIS)
        c.add("bracket missing", "[TOOL_CALLS] [" + body, PARIS)
        c.add("bare", body, PARIS)
    if fam == "phi":
        damaged_json(c, lambda s: "<|tool_call|>[" + s + "]<|/tool_call|>")
        c.add("closing mark missing", "<|tool_call|>[" + body + "]", PARIS)
        c.add("object instead of a list", "<|tool_call|>" + body + "<|/tool_call|>", PARIS)
        c.add("functools", "functools[" + body + "]", PARIS)
        c.add("bare", body, PARIS)
        c.same("functools in text", "import functools\nfunctools.reduce(f, xs)")
    if fam == "qwen3-coder":
        p = "<function=get_weather>\n<parameter=location>\nParis\n</parameter>\n</function>"
        t = "<tool_call>\n"
        c.add("opening mark missing", p + "\n</tool_call>", PARIS)
        c.add("both marks missing", p, PARIS)
        c.add("closing marks missing", t + "<function=get_weather>\n<parameter=location>\nParis\n</parameter>\n", PARIS)
        c.add("function's end missing", t + p.replace("</function>", "") + "</tool_call>", PARIS)
        c.add("parameter's end missing", t + "<function=get_weather>\n<parameter=location>\nParis\n</function>\n</tool_call>", PARIS)
        c.add("no line breaks", "<tool_call><function=get_weather><parameter=location>Paris</parameter></function></tool_call>", PARIS)
        c.add("closing tag in a value", t + "<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nx </parameter> y\n</parameter>\n</function>\n</tool_call>",
              [("write_file", {"path": "a", "content": "x </parameter> y"})])
        c.add("hermes' form", "<tool_call>\n" + body + "\n</tool_call>", PARIS)
        c.add("attributes", '<tool_call>\n<function name="get_weather">\n<parameter name="location">Paris</parameter>\n</function>\n</tool_call>', PARIS)
        c.add("number that is a string", t + "<function=read_file>\n<parameter=path>\n123\n</parameter>\n</function>\n</tool_call>", [("read_file", {"path": "123"})])
        c.add("python's list", t + "<function=add_todo>\n<parameter=items>\n['a', 'b']\n</parameter>\n</function>\n</tool_call>", [("add_todo", {"items": ["a", "b"]})])
        c.add("python's word", t + "<function=set_timer>\n<parameter=minutes>\n5\n</parameter>\n<parameter=loud>\nFalse\n</parameter>\n</function>\n</tool_call>", [("set_timer", {"minutes": 5, "loud": False})])
        c.add("blank lines kept", t + "<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n\nx\n\n</parameter>\n</function>\n</tool_call>", [("write_file", {"path": "a", "content": "\nx\n"})])
        c.add("cut in a value", t + "<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nhalf", [("write_file", {"path": "a", "content": "half"})], cut=True)
        c.same("cut in a name", t + "<function=write_fi")
        c.add("short names of tags", "<function name=\"get_weather\"><param name=\"location\">Paris</param></function>", PARIS)
        c.same("tag in text", "Use <function=name> for calls.")
        c.add("bare json", body, PARIS)
    if fam == "gemma3":
        c.add("printed", "```tool_code\nprint(get_weather(location=\"Paris\"))\n```", PARIS)
        c.add("default api", "```tool_code\nprint(default_api.get_weather(location='Paris'))\n```", PARIS)
        c.add("single value", "```tool_code\nget_weather(\"Paris\")\n```", PARIS)
        c.add("python fence", "```python\nget_weather(location=\"Paris\")\n```" if False else "```tool_code\nget_weather(\n    location=\"Paris\",\n)\n```", PARIS)
        c.add("fence missing", "get_weather(location=\"Paris\")", PARIS)
        c.add("fence's end missing", "```tool_code\nget_weather(location=\"Paris\")", PARIS)
        c.add("list in a fence", "```tool_code\n[get_weather(location=\"Paris\"), bash(command=\"ls\")]\n```", PARIS + LS)
        c.add("text after", "```tool_code\nget_weather(location=\"Paris\")\n```\nWait.", PARIS, "\nWait.")
        c.add("json fence", "```json\n" + body + "\n```", PARIS)
        c.add("json", body, PARIS)
        c.add("three quotes", "```tool_code\nwrite_file(path='a', content='''one\n\"two\"''')\n```", [("write_file", {"path": "a", "content": "one\n\"two\""})])
        c.same("variable", "```tool_code\nget_weather(location=city)\n```")
        c.same("more on the line", "get_weather(location=\"Paris\") returns the weather.")
    if fam == "pythonic":
        c.add("one alone", "get_weather(location='Paris')", PARIS)
        c.add("single quotes", "[get_weather(location='Paris')]", PARIS)
        c.add("bracket missing", "[get_weather(location='Paris')", PARIS)
        c.add("trailing comma in arguments", "[get_weather(location='Paris',)]", PARIS)
        c.add("json's words", "[set_timer(minutes=5, loud=true, label=null)]", [("set_timer", {"minutes": 5, "loud": True, "label": None})])
        c.add("marks", "<function_calls>\nget_weather(location='Paris')\nbash(command='ls')\n</function_calls>", PARIS + LS)
        c.add("python marks", "<|python_start|>[get_weather(location='Paris')]<|python_end|>", PARIS)
        c.add("line breaks", "[\n  get_weather(\n    location='Paris'\n  ),\n  bash(command='ls')\n]", PARIS + LS)
        c.add("escapes", "[bash(command='echo \\'a\\' \\\\ \\u00e9')]", [("bash", {"command": "echo 'a' \\ é"})])
        c.add("strings side by side", "[bash(command='ls ' \"-l\")]", [("bash", {"command": "ls -l"})])
        c.add("json", body, PARIS)
        c.same("variable", "[get_weather(location=city)]")
        c.same("expression", "[bash(command='a' + b)]")
        c.same("cut", "[get_weather(location='Par")
        c.same("required missing", "[get_weather(days=2)]")
    if fam == "lfm2":
        m = lambda s: "<|tool_call_start|>" + s + "<|tool_call_end|>"
        c.add("without brackets", m("get_weather(location=\"Paris\")"), PARIS)
        c.add("json", m("[" + body + "]"), PARIS)
        c.add("json object", m(body), PARIS)
        c.add("closing mark missing", "<|tool_call_start|>[get_weather(location=\"Paris\")]", PARIS)
        c.add("bracket missing", "<|tool_call_start|>[get_weather(location=\"Paris\")", PARIS)
        c.add("json's words", m("[set_timer(minutes=5, loud=true)]"), [("set_timer", {"minutes": 5, "loud": True})])
        c.add("dict", m("[add_todo(items=['a', 'b'])]"), [("add_todo", {"items": ["a", "b"]})])
        c.add("text after", m("[get_weather(location=\"Paris\")]") + "Checking the weather.", PARIS, "Checking the weather.")
        c.add("marks missing", "[get_weather(location=\"Paris\")]", PARIS)
        c.add("single quotes", m("[get_weather(location='Paris')]"), PARIS)
        c.add("single value", m("[get_weather('Paris')]"), PARIS)
        c.same("cut", "<|tool_call_start|>[get_weather(location=\"Par")
        c.same("empty list", m("[]"))
    if fam == "gemma4":
        m = lambda s: "<|tool_call>" + s + "<tool_call|>"
        c.add("double quotes", m('call:get_weather{location:"Paris"}'), PARIS)
        c.add("single quotes", m("call:get_weather{location:'Paris'}"), PARIS)
        c.add("bare word", m("call:get_weather{location:Paris}"), PARIS)
        c.add("quoted keys", m('call:get_weather{<|"|>location<|"|>:<|"|>Paris<|"|>}'), PARIS)
        c.add("json keys", m('call:get_weather{"location": "Paris"}'), PARIS)
        c.add("Python's words", m('call:set_timer{minutes:5,loud:True,label:None}'), [("set_timer", {"minutes": 5, "loud": True, "label": None})])
        c.add("closing mark missing", 'call:get_weather'.join(["<|tool_call>", '{location:<|"|>Paris<|"|>}']), PARIS)
        c.add("trailing comma", m('call:get_weather{location:<|"|>Paris<|"|>,}'), PARIS)
        c.add("white space", m('call:get_weather{ location: <|"|>Paris<|"|> }'), PARIS)
        c.add("json form", m(body), PARIS)
        c.add("text after", m('call:get_weather{location:<|"|>Paris<|"|>}') + "ok", PARIS, "ok")
        c.add("hermes' marks", "<tool_call>\n" + body + "\n</tool_call>", PARIS)
        c.same("cut", '<|tool_call>call:get_weather{location:<|"|>Par')
    if fam == "glm":
        c.add("no line breaks", "<tool_call>" + argtags("get_weather", {"location": "Paris"}, "") + "</tool_call>", PARIS)
        c.add("closing mark missing", "<tool_call>" + argtags("get_weather", {"location": "Paris"}), PARIS)
        c.add("hermes' form", "<tool_call>\n" + body + "\n</tool_call>", PARIS)
        c.add("name and json", '<tool_call>get_weather\n{"location": "Paris"}\n</tool_call>', PARIS)
        c.add("number that is a string", "<tool_call>" + argtags("read_file", {"path": "123"}) + "</tool_call>", [("read_file", {"path": "123"})])
        c.add("python's word", "<tool_call>set_timer\n<arg_key>minutes</arg_key>\n<arg_value>5</arg_value>\n<arg_key>loud</arg_key>\n<arg_value>True</arg_value>\n</tool_call>", [("set_timer", {"minutes": 5, "loud": True})])
        c.add("python's list", "<tool_call>add_todo\n<arg_key>items</arg_key>\n<arg_value>['a', 'b']</arg_value>\n</tool_call>", [("add_todo", {"items": ["a", "b"]})])
        c.add("reasoning in the prompt", "It is about weather.</think>\n<tool_call>" + argtags("get_weather", {"location": "Paris"}) + "</tool_call>", PARIS, reasoning="It is about weather.", think=True)
        c.add("reasoning not closed", "It is about weather.\n<tool_call>" + argtags("get_weather", {"location": "Paris"}) + "</tool_call>", PARIS, reasoning="It is about weather.", think=True)
        c.add("reasoning only", "Hm, hm", reasoning="Hm, hm", think=True)
        c.add("answer behind reasoning", "<think>\nEasy.\n</think>\n\nIt is 4.", text="It is 4.", reasoning="Easy.")
        c.same("cut", "<tool_call>get_weather\n<arg_key>location</arg_key>\n<arg_value>Par")
        c.add("bare json", body, PARIS)
    if fam == "deepseek":
        s, e = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
        c.add("V3.1's form", s + '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"location": "Paris"}<｜tool▁call▁end｜>' + e, PARIS)
        c.add("V3.1's form, two", s + '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"location": "Paris"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜>' + e, PARIS + LS)
        c.add("section mark missing", '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"location": "Paris"}\n```<｜tool▁call▁end｜>', PARIS)
        c.add("end marks missing", s + '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"location": "Paris"}\n```', PARIS)
        c.add("fence's end missing", s + '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"location": "Paris"}', PARIS)
        c.add("brace missing", s + '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"location": "Paris"', PARIS)
        c.add("trailing comma", s + '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"location": "Paris",}<｜tool▁call▁end｜>' + e, PARIS)
        c.add("single quotes", s + "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{'location': 'Paris'}<｜tool▁call▁end｜>" + e, PARIS)
        c.add("hermes' form", "<tool_call>\n" + body + "\n</tool_call>", PARIS)
        c.add("json fence", "```json\n" + body + "\n```", PARIS)
        c.add("reasoning in the prompt", "Weather.\n</think>\n\n" + deepseek(PARIS), PARIS, reasoning="Weather.", think=True)
        c.add("answer behind reasoning", "Easy.\n</think>\n\nIt is 4.", text="It is 4.", reasoning="Easy.", think=True)
        c.add("cut", s + '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"location": "Par', [("get_weather", {"location": "Par"})], cut=True)
    if fam == "harmony":
        c.add("answer", "<|channel|>final<|message|>It is 4.<|return|>", text="It is 4.")
        c.add("answer, mark missing", "<|channel|>final<|message|>It is 4.", text="It is 4.")
        c.add("reasoning and answer", "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>", text="It is 4.", reasoning="Easy.")
        c.add("recipient before the channel", ' to=functions.get_weather<|channel|>commentary json<|message|>{"location": "Paris"}<|call|>', PARIS)
        c.add("recipient in the role", '<|start|>assistant to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{"location": "Paris"}<|call|>', PARIS)
        c.add("no constraint", '<|channel|>commentary to=functions.get_weather<|message|>{"location": "Paris"}<|call|>', PARIS)
        c.add("end mark missing", '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"location": "Paris"}', PARIS)
        c.add("brace missing", '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"location": "Paris"', PARIS)
        c.add("in the analysis channel", '<|channel|>analysis to=functions.get_weather <|constrain|>json<|message|>{"location": "Paris"}<|call|>', PARIS)
        c.add("no namespace", '<|channel|>commentary to=get_weather <|constrain|>json<|message|>{"location": "Paris"}<|call|>', PARIS)
        c.add("trailing comma", '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"location": "Paris",}<|call|>', PARIS)
        u = '<|channel|>commentary to=functions.launch <|constrain|>json<|message|>{"x": 1}'
        c.add("tool that is not offered", u + "<|call|>", text=u)
        c.add("preamble", "<|channel|>commentary<|message|>I will look.<|end|>" + "<|start|>assistant" + harmony(PARIS), PARIS, "I will look.")
        c.add("cut", '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls', [("bash", {"command": "ls"})], cut=True)
        c.add("no marks", "Just text.", text="Just text.")


def main():
    os.makedirs(HERE, exist_ok=True)
    for fam, write in FAMILIES.items():
        c = Corpus()
        common(c, write, fam)
        extra(fam, c)
        with open(os.path.join(HERE, fam + ".jsonl"), "w", encoding="utf-8") as f:
            for row in c.rows:
                f.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(fam, len(c.rows))


main()
