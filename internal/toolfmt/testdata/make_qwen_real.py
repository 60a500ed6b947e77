#!/usr/bin/env python3
"""make_qwen_real.py URL BALEEN [NAME=MODEL...] > qwen-real.jsonl

Writes what small models really answer to everyday requests with tools: their raw text, at temperature 0, behind a prompt
of their own chat template. URL is a running server's, BALEEN the binary; each MODEL is a name that both know, and NAME
what the rows call it (default: Qwen2.5-Coder-0.5B-Instruct=qwen2.5-coder-0.5b and Qwen2.5-Coder-1.5B-Instruct=qwen2.5-coder-1.5b).
The call that a row means is read here, by Python's own JSON reader, and never by the parser that the rows test: the first
object of an offered tool's name with arguments that its schema declares. The tools are those of the file's first line.

    make_qwen_real.py --check    reads the calls of the file again and compares

"""
import json
import os
import subprocess
import sys
import urllib.request

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "qwen-real.jsonl")
MAX_TOKENS = 200
ASKS = [  # the request, and the tools that are offered
    ("What is the weather in Paris?", "get_weather"),
    ("Is it warm in Tokyo right now? Use celsius.", "get_weather"),
    ("Read the file config.yaml.", "read_file write_file"),
    ("Show me the first 20 lines of /etc/hosts.", "read_file"),
    ("Create a file hello.txt with the text Hello World.", "write_file run_shell"),
    ("List all running processes.", "run_shell"),
    ("How much disk space is free? Run df -h.", "run_shell get_weather"),
    ("Find all lines containing TODO in the src folder.", "grep read_file"),
    ("Search for the function name parse_args in main.py.", "grep"),
    ("In app.py replace foo with bar.", "edit_file read_file"),
    ("Change the port from 8080 to 9090 in server.conf.", "edit_file"),
    ("Send an email to anna@example.com with subject Lunch and say that I will be late.", "send_email"),
    ("Mail bob@example.com: the meeting moved to 3 pm.", "send_email set_timer"),
    ("Set a timer for 10 minutes.", "set_timer"),
    ("Start a 25 minute timer for pomodoro.", "set_timer add_todo"),
    ("Add buy milk to my todo list.", "add_todo"),
    ("Remind me to call the dentist, high priority.", "add_todo send_email"),
    ("What is 37 * 89?", "calculate"),
    ("Compute (15 + 27) / 6.", "calculate get_weather"),
    ("What files are in the folder docs?", "list_dir read_file"),
    ("Translate 'good morning' to French.", "translate"),
    ("How do you say thank you in Japanese? Use the translate tool.", "translate get_weather calculate"),
    ("What's the weather like in Berlin today?", "get_weather set_timer add_todo send_email"),
    ("Search for 'error' in /var/log.", "read_file write_file run_shell grep"),
    ("Open README.md.", "read_file write_file edit_file list_dir"),
    ("What is the weather in Rome and in Madrid?", "get_weather"),
    ("Set a timer for 5 minutes and add 'check oven' to my todo list.", "set_timer add_todo"),
    ("Run the tests with go test ./...", "run_shell"),
    ("Write a Python script fib.py that prints the first 10 Fibonacci numbers.", "write_file"),
    ("Show the git status.", "get_weather calculate run_shell read_file"),
]


def call_in(text, tools):
    """Returns the call that a text means as NAME{ARGUMENTS}, or nothing."""
    schemas = {t["name"]: t["parameters"] for t in tools}
    decode, at = json.JSONDecoder().raw_decode, text.find("{")
    while at >= 0:
        try:
            v, _ = decode(text, at)
        except ValueError:
            v = None
        if isinstance(v, dict) and isinstance(v.get("arguments"), dict) and v.get("name") in schemas:
            s, args = schemas[v["name"]], v["arguments"]
            if set(args) <= set(s["properties"]) and set(s.get("required", [])) <= set(args):
                return v["name"] + json.dumps(args, ensure_ascii=False)
        at = text.find("{", at + 1)
    return ""


def check(rows, tools):
    wrong = [r for r in rows if call_in(r["out"], [tools[n] for n in r["tools"]]) != r["call"]]
    for r in wrong:
        print(r["model"], r["ask"], r["out"], r["call"], sep="\n", file=sys.stderr)
    sys.exit(f"{len(wrong)} of {len(rows)} rows have another call" if wrong else 0)


def main():
    head, *rows = map(json.loads, open(FILE, encoding="utf-8"))
    tools = {t["name"]: t for t in head["tools"]}
    if sys.argv[1:] == ["--check"]:
        check(rows, tools)
    url, baleen, *models = sys.argv[1:]
    print(json.dumps(head, ensure_ascii=False))
    for named in models or [f"Qwen2.5-Coder-{s.upper()}-Instruct=qwen2.5-coder-{s}" for s in ("0.5b", "1.5b")]:
        name, model = named.split("=")
        for ask, names in ASKS:
            offered = [{"type": "function", "function": tools[n]} for n in names.split()]
            talk = json.dumps({"messages": [{"role": "user", "content": ask}], "tools": offered, "add_generation_prompt": True})
            shown = subprocess.run([baleen, "template", "--jsonl", model], input=talk, capture_output=True, text=True, check=True)
            prompt = json.loads(shown.stdout)["text"]
            body = {"model": model, "prompt": prompt, "temperature": 0, "max_tokens": MAX_TOKENS, "token_healing": False}
            req = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            out = json.load(urllib.request.urlopen(req, timeout=600))["choices"][0]["text"]
            row = {"model": name, "ask": ask, "tools": names.split(), "out": out, "call": call_in(out, [tools[n] for n in names.split()])}
            print(json.dumps(row, ensure_ascii=False), flush=True)


main()
