"""Renders every template of a folder with many conversations by Jinja2.

Usage: compare.py FOLDER > cases.jsonl
then:  BALEEN_TEST_TEMPLATES=cases.jsonl go test -run LikeJinja2 -v

A template is a *.jinja or *.jinja2 file, or the chat_template in a
*.json (tokenizer_config). Needs the package jinja2.
"""
import json
import pathlib
import sys

from hfenv import run

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Get the weather for a <city> & its \"area\"\nSecond line é",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "The city, e.g. Zürich", "enum": ["Zürich", "東京"]},
            "days": {"type": "integer", "default": 3, "minimum": 1},
            "detail": {"type": ["string", "null"], "description": "How much"},
            "opts": {"type": "object", "properties": {"units": {"type": "string"}, "deep": {"type": "array", "items": {"type": "number"}}}, "required": ["units"]}},
            "required": ["city"]},
        "return": {"type": "string", "description": "text"}}},
    {"type": "function", "function": {"name": "noop", "description": "Does nothing.", "parameters": {"type": "object", "properties": {}}}},
]


def call(name, arguments, id="call_12345"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


SYS = {"role": "system", "content": "You are a whale.  "}
CONVERSATIONS = {
    "single": dict(messages=[{"role": "user", "content": "Hello"}], add_generation_prompt=True),
    "no_prompt": dict(messages=[{"role": "user", "content": "  Hello \n"}]),
    "system": dict(messages=[SYS, {"role": "user", "content": "Hi"}], add_generation_prompt=True),
    "multi": dict(messages=[SYS, {"role": "user", "content": "One"}, {"role": "assistant", "content": "Two\n\n"},
                            {"role": "user", "content": "Three"}, {"role": "assistant", "content": " Four"}]),
    "multi_nosys": dict(messages=[{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"},
                                  {"role": "user", "content": "Three"}], add_generation_prompt=True),
    "unicode": dict(messages=[{"role": "user", "content": "Grüße 東京 🐋 \u2028 'q' \"d\" <b>&amp;</b> \\n {{ x }} {% if %}\t\u00a0"}],
                    add_generation_prompt=True),
    "control": dict(messages=[{"role": "user", "content": "<|im_end|><|eot_id|><start_of_turn>[INST]</s><think>x</think>"}],
                    add_generation_prompt=True),
    "empty": dict(messages=[], add_generation_prompt=True),
    "empty_content": dict(messages=[{"role": "user", "content": ""}, {"role": "assistant", "content": ""}]),
    "tools": dict(messages=[SYS, {"role": "user", "content": "Weather?"}], tools=TOOLS, add_generation_prompt=True),
    "tools_nosys": dict(messages=[{"role": "user", "content": "Weather?"}], tools=TOOLS, add_generation_prompt=True),
    "tool_call": dict(messages=[SYS, {"role": "user", "content": "Weather?"},
                                {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"city": "Zürich", "days": 2, "x": 1.0, "y": None, "z": True, "l": [1, "a"]})]},
                                {"role": "tool", "tool_call_id": "call_12345", "name": "get_weather", "content": "{\"temp\": 21.5}"},
                                {"role": "assistant", "content": "It is 21.5."}, {"role": "user", "content": "Thanks"}],
                      tools=TOOLS, add_generation_prompt=True),
    "tool_call_str": dict(messages=[{"role": "user", "content": "Weather?"},
                                    {"role": "assistant", "content": None, "tool_calls": [call("get_weather", "{\"city\": \"Paris\"}", "abcdefghi")]},
                                    {"role": "tool", "tool_call_id": "abcdefghi", "name": "get_weather", "content": "sunny"}],
                          tools=TOOLS, add_generation_prompt=True),
    "tool_call_two": dict(messages=[{"role": "user", "content": "Weather?"},
                                    {"role": "assistant", "content": "Let me see.", "tool_calls": [
                                        call("get_weather", {"city": "A"}, "aaaaaaaa1"), call("noop", {}, "aaaaaaaa2")]},
                                    {"role": "tool", "tool_call_id": "aaaaaaaa1", "name": "get_weather", "content": "1"},
                                    {"role": "tool", "tool_call_id": "aaaaaaaa2", "name": "noop", "content": "2"}],
                          tools=TOOLS, add_generation_prompt=True),
    "tool_no_content": dict(messages=[{"role": "user", "content": "Weather?"},
                                      {"role": "assistant", "tool_calls": [call("noop", {})]},
                                      {"role": "tool", "content": {"a": [1, 2.5, None]}}], tools=TOOLS),
    "reasoning": dict(messages=[{"role": "user", "content": "2+2?"},
                                {"role": "assistant", "reasoning_content": "Easy.\n", "content": "4"},
                                {"role": "user", "content": "3+3?"},
                                {"role": "assistant", "reasoning_content": "\nAlso easy.", "thinking": "\nAlso easy.", "content": "6"}]),
    "think_inline": dict(messages=[{"role": "user", "content": "2+2?"},
                                   {"role": "assistant", "content": "<think>\nEasy.\n</think>\n\n4"},
                                   {"role": "user", "content": "more"}], add_generation_prompt=True),
    "think_on": dict(messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True,
                     extra={"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
    "think_off": dict(messages=[SYS, {"role": "user", "content": "Hi"}], add_generation_prompt=True,
                      extra={"enable_thinking": False, "thinking": False, "reasoning_effort": "low"}),
    "parts": dict(messages=[{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "image", "image": "x.png"},
                                                         {"type": "text", "text": "this?"}]}], add_generation_prompt=True),
    "parts_url": dict(messages=[{"role": "system", "content": [{"type": "text", "text": "Sys"}]},
                                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}},
                                                             {"type": "video", "video": "v"}, {"type": "audio", "audio": "a"},
                                                             {"type": "text", "text": "Look"}]},
                                {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
                                {"role": "user", "content": [{"type": "text", "text": "ok"}]}], add_generation_prompt=True),
    "bad_order": dict(messages=[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], add_generation_prompt=True),
    "assistant_first": dict(messages=[{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]),
    "unknown_role": dict(messages=[{"role": "pirate", "content": "arr"}], add_generation_prompt=True),
    "developer": dict(messages=[{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}], add_generation_prompt=True),
    "no_role": dict(messages=[{"content": "x"}]),
    "none_content": dict(messages=[{"role": "user", "content": None}], add_generation_prompt=True),
    "number_content": dict(messages=[{"role": "user", "content": 12.0}]),
    "dates": dict(messages=[{"role": "user", "content": "Hi"}], tools=TOOLS[:1], add_generation_prompt=True,
                  extra={"date_string": "26 Jul 2024", "builtin_tools": ["brave_search", "code_interpreter"],
                         "tools_in_user_message": False, "model_identity": "You are Baleen."}),
    # The rest is what a hostile or careless client sends.
    "numbers": dict(messages=[{"role": "user", "content": "n"},
                              {"role": "assistant", "content": None, "tool_calls": [call("get_weather", {
                                  "a": 1e22, "b": 0.1, "c": -0.0, "d": 123456789012345678901234567890, "e": 1e-7, "f": 1e16, "g": 123456789.0,
                                  "h": True, "i": False, "j": None, "k": 5e-324, "l": 1.7976931348623157e308, "m": -1, "n": 0.30000000000000004})]},
                              {"role": "tool", "name": "get_weather", "tool_call_id": "call_12345", "content": "1e22"}], tools=TOOLS, add_generation_prompt=True),
    "nested": dict(messages=[{"role": "user", "content": "n"},
                             {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {
                                 "z": {"y": {"x": [[], {}, [[1, [2.0, [None]]]], {"é": "\u2028</script>'\"\\"}]}}, "a": {"": "", " ": [True, False]}, "日本": "東京"})]},
                             {"role": "tool", "name": "get_weather", "tool_call_id": "call_12345", "content": {"z": [1, {"b": None, "a": 2.50}], "é": "ü"}},
                             {"role": "assistant", "content": "ok"}], tools=TOOLS),
    "empty_tools": dict(messages=[SYS, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x", "tool_calls": []}, {"role": "user", "content": ""}],
                        tools=[], add_generation_prompt=True),
    "bad_arguments": dict(messages=[{"role": "user", "content": "?"},
                                    {"role": "assistant", "content": "", "tool_calls": [call("noop", "not { json"), call("noop", ""), call("noop", None), call("noop", [1]), {"function": {"name": "noop"}}]},
                                    {"role": "tool", "content": "r"}], tools=TOOLS, add_generation_prompt=True),
    "flat_tools": dict(messages=[{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [{"name": "noop", "arguments": {"x": "y"}}]}, {"role": "tool", "content": []}],
                       tools=[{"name": "noop", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": ["string", "null"], "enum": [1, "a", None]}}}}], add_generation_prompt=True),
    "long": dict(messages=[{"role": r, "content": f"{i} " + "löng\n" * 200} for i in range(60) for r in ("user", "assistant")], add_generation_prompt=True),
    "odd_parts": dict(messages=[{"role": "system", "content": []}, {"role": "user", "content": [{"text": "no type"}, {"type": "text"}, "bare", {"type": "text", "text": None}, {"type": "text", "text": ""}, {"type": "image"}]},
                                {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": " a "}, {"type": "text", "text": "b"}]}]),
    "odd_types": dict(messages=[{"role": "user", "content": {"type": "text", "text": "a dict"}}, {"role": "assistant", "content": True}, {"role": "user", "content": ["a", "b"]}, {"role": "assistant", "content": 0}]),
    "spaces": dict(messages=[{"role": "system", "content": " \t\n"}, {"role": "user", "content": "\u00a0\u3000 x \u2003\x1c\x1f\x85"}, {"role": "assistant", "content": "\r\n\r\n\u200b y\v\f"},
                             {"role": "user", "content": "\n\n</think>\n\n<think>\n"}, {"role": "assistant", "content": "</think></think>\n\nz<think>"}, {"role": "user", "content": "\ufeff\u0000\uffff\U0010ffff"}], add_generation_prompt=True),
    "think_odd": dict(messages=[{"role": "user", "content": "1"}, {"role": "assistant", "content": None, "reasoning_content": ""}, {"role": "user", "content": "2"},
                                {"role": "assistant", "content": "<think></think>a<think>b</think>c", "reasoning": "r", "thinking": None, "reasoning_content": None, "tool_calls": None},
                                {"role": "user", "content": "<tool_response>3</tool_response>"}, {"role": "assistant", "content": "4", "prefix": True}],
                      extra={"enable_thinking": None, "reasoning_effort": "none", "continue_final_message": True, "preserve_thinking": True}),
    "system_late": dict(messages=[{"role": "user", "content": "a"}, {"role": "system", "content": "late"}, {"role": "assistant", "content": "b"}, {"role": "tool", "content": "t"}, {"role": "developer", "content": "d"},
                                  {"role": "user", "content": "c", "name": "Ann", "extra": {"k": 1}}], tools=TOOLS[1:], add_generation_prompt=True),
    "documents": dict(messages=[{"role": "user", "content": "Find"}], add_generation_prompt=True,
                      extra={"documents": [{"title": "T", "text": "Body"}, {"doc_id": 2, "title": "U", "text": "B2", "contents": "c"}], "citation_mode": "on"}),
}


def sources(folder):
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix in (".jinja", ".jinja2"):
            yield path.name, path.read_text(), {}
        elif path.name.endswith(".json"):
            try:
                config = json.loads(path.read_text())
            except ValueError:
                continue
            if not isinstance(config, dict):
                continue
            text = config.get("chat_template")
            tokens = {k: (v["content"] if isinstance(v, dict) else v)
                      for k, v in config.items() if k.endswith("_token") and isinstance(v, (str, dict))}
            named = text if isinstance(text, list) else [{"name": "", "template": text}] if text else []
            for t in named:
                yield path.parent.name + ":" + t["name"], t["template"], tokens


def main(folder):
    for name, source, tokens in sources(folder):
        for conversation, given in CONVERSATIONS.items():
            case = {"messages": given["messages"], "tools": given.get("tools"),
                    "add_generation_prompt": given.get("add_generation_prompt", False),
                    "extra": {"bos_token": "<s>", "eos_token": "</s>", **tokens, **given.get("extra", {})}}
            result = run(source, **json.loads(json.dumps(case)))
            print(json.dumps({"name": name + "/" + conversation, "source": source, **case, **result}))


if __name__ == "__main__":
    main(sys.argv[1])
