"""Writes random templates, and what Jinja2 makes of them.

Usage: random_cases.py SEED COUNT > cases.jsonl
then:  BALEEN_TEST_TEMPLATES=cases.jsonl go test -run TemplatesLikeJinja2 -v

Half of them are one expression, half have statements. Cases whose result holds an address are left out.
Needs the package jinja2.
"""
import json
import random
import sys
import warnings

import make_cases
from hfenv import run

warnings.simplefilter("ignore")
sys.set_int_max_str_digits(0)

VARS = json.loads(json.dumps(make_cases.VARS))
NAMES = [*VARS, "nope", "messages", "tools"]
LITERALS = ["1", "0", "-2", "3.5", "10", "2", "1e22", "0.1", "-0.0", "1e-7", "1_000", "123456789012345678901234567890", "true", "none", "False", "None",
            '"a,b c"', "'é<x>'", '""', '"  x\\n"', '"%s-%d"', '"{} {0}"', '"{:>6}|"', '"A"', '"\\u00e9\\t"', "'it''s'", '"ab" "cd"', '"\U0001F40B"', '"12"', '"3.5e2"',
            "[1,2,3]", '["b","a"]', '{"k":1,"z":[2]}', '(1,"t")', "range(4)", "range(5,0,-2)", "[[1,2],[3,4]]", '[{"n":1,"v":"x"},{"n":0}]', "[]", "{}", "()", "(1,)",
            "dict(a=1, b=[])", "namespace(a=1)", 'strftime_now("%Y-%m-%d")', "{1: 2, none: 3, true: 4}", '{"é": {"z": 1, "a": [1.0, true]}}', "[true, 1, 1.0]", "lipsum", "cycler(1,2)", "joiner()"]
FILTERS = ["upper", "lower", "trim", 'trim("a")', 'trim(chars="x ")', "title", "capitalize", "length", "list", "first", "last", "reverse", "sort", "unique", 'join(",")', "join",
           "string", "int", "int(7)", "int(base=16)", "float", "float(1.5)", "abs", "round", "round(1)", 'round(1, "floor")', 'round(method="ceil")', "tojson", "tojson(indent=2)", "tojson(indent=0)", "tojson(ensure_ascii=true)",
           'tojson(separators=(",", ":"))', 'tojson(sort_keys=true)', 'map("upper")', 'map("string")', 'map(attribute="n")', 'map(attribute="name")', 'map(attribute="addr.city")', 'map(attribute="tags", default="-")',
           "map(attribute=0)", 'map("int", default=3)', 'map("replace", "a", "b")', "select", "reject", 'select("defined")', 'select("string")', 'select("odd")', 'select("equalto", 1)', 'select("in", [1, 2])', 'reject("none")',
           'selectattr("n")', 'selectattr("n", "defined")', 'selectattr("n", "eq", 1)', 'selectattr("name", "in", ["Bob"])', 'rejectattr("name")', 'rejectattr("ok", "undefined")', 'default("D")', 'default("D", true)', 'default(value="v", boolean=true)',
           'replace("a", "Z")', 'replace("a", "Z", 1)', "replace(1, 2)", "indent", "indent(2, true)", 'indent(width=3, first=true, blank=true)', 'indent("> ")', "dictsort", "dictsort(true)", 'dictsort(by="value")', "dictsort(reverse=true)",
           "items", "batch(2)", "slice(2)", 'batch(2, "f")', "slice(3, 0)", "sum", "min", "max", 'max(attribute="age")', 'min(case_sensitive=true)', "e", "safe", "striptags", "wordcount", "truncate(5)", 'truncate(8, true, "~")', "truncate(6, leeway=0)",
           "center(9)", "urlencode", 'groupby("n")', 'groupby("age")', 'groupby("ok", default="?")', 'sort(attribute="age")', 'sort(attribute="age,name")', "sort(reverse=true)", "sort(case_sensitive=true)", "format(1, 2)", 'format("q")', "format(a=1)", 'attr("upper")',
           "xmlattr", "wordwrap(4)", 'wordwrap(6, false, "/")', "filesizeformat", "filesizeformat(true)", "forceescape", "count", "d", "unique|list", 'map("first")|list', "sum(start=1)", 'sum(attribute="age")', "list|length", "random|string|length", "nofilter", "upper|lower|trim",
           "map(attribute='x')|join(',')", "string|tojson", "items|list", "list|tojson", "safe ~ 'x'", "escape|upper"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable", "boolean", "true", "false", "odd", "even", "divisibleby 2", "divisibleby(0)", "eq 1", "equalto(2)",
         "in [1,2]", "in 'abc'", "lower", "upper", "callable", "sameas none", "sameas(true)", "escaped", "gt 1", 'lt "b"', "ne none", "ge 2", "filter", "test", "notatest", "greaterthan(1)", "lessthan 3"]
METHODS = ["upper()", "lower()", "split()", 'split(",")', 'split(",", 1)', "split(none, 1)", "strip()", 'strip("a ")', "items()", "keys()", "values()", 'get("k")', 'get("k", 5)', 'get("a", {}).get("b")', 'replace("a", "b")', 'replace("", "-")', 'replace("a", "b", 1)',
           'startswith("a")', 'startswith(("a", "H"))', 'endswith("\\n")', "format(1)", 'format("a", b=2)', 'join(["a", "b"])', "title()", "capitalize()", 'count("a")', 'index("a")', 'find("b")', 'rfind("l")', "splitlines()", "splitlines(true)", "lstrip()", 'rstrip("\\n")', "zfill(6)", "a", "k", "name", "n", "0", "items",
           "append(1)", "pop()", "copy()", "update(x=1)", "isdigit()", "isalpha()", "isupper()", "isspace()", 'partition(",")', 'rpartition(" ")', 'rsplit(",", 1)', "center(7)", 'ljust(8, ".")', "rjust(4)", "swapcase()", "casefold()", "expandtabs(4)", 'removeprefix("a")', 'removesuffix("n")', "__class__", "real", "x.y", "bit_length()", "is_integer()",
           "format_map({})", "isidentifier()", "nothing()"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "and", "or", "==", "!=", "<", "<=", ">", ">=", "in", "not in"]
INDEXES = ["0", "-1", "1:", "::-1", ":2", '"k"', "::2", "-2:", "5", '"name"', "1:-1", "none", "true", "-1:0:-1", ":-1", "10:", '"a":', "1.0", "0:0", "nope", "n", "(0, 1)"]
LOOP = ["loop.index", "loop.index0", "loop.revindex", "loop.revindex0", "loop.first", "loop.last", "loop.length", "loop.previtem", "loop.nextitem", 'loop.cycle("a", "b")', "loop.changed(x)", "loop.depth", "loop.nope", "loop"]


class Maker:
    def __init__(self, rnd):
        self.rnd, self.one = rnd, rnd.choice

    def expression(self, d):
        if d <= 0:
            return self.one([self.one(NAMES), self.one(LITERALS)])
        e, k = self.expression, self.rnd.random()
        if k < .30:
            return f"{self.primary(d - 1)}|{self.one(FILTERS)}"
        if k < .40:
            return f"({e(d - 1)} {self.one(OPERATORS)} {e(d - 1)})"
        if k < .42:
            return f"({e(d - 1)} {self.one(OPERATORS[10:16])} {e(d - 1)} {self.one(OPERATORS[10:16])} {e(d - 1)})"
        if k < .54:
            return f"{self.primary(d - 1)}.{self.one(METHODS)}"
        if k < .63:
            # Jinja2 folds a slice of a constant into Undefined where it would raise TypeError when rendering.
            source = self.one([self.one(NAMES), self.primary(d - 1)])
            return f"{source}[{self.one(INDEXES if source in NAMES else [i for i in INDEXES if ':' not in i])}]"
        if k < .70:
            return f"({self.primary(d - 1)} is {self.one(['', 'not '])}{self.one(TESTS)})"
        if k < .75:
            return f"({e(d - 1)} if {e(d - 1)}{self.one(['', ' else ' + e(d - 1)])})"
        if k < .80:
            return f"[{e(d - 1)}, {e(d - 1)}]"
        if k < .84:
            return f'{{"k": {e(d - 1)}, {self.one(["n", repr("q"), "nil", "f", "1", "(n,2)", "nope"])}: 2}}'
        if k < .88:
            return f"(not {e(d - 1)})"
        if k < .91:
            return f"({self.one('-+')}{self.primary(d - 1)})"
        if k < .95:
            return f"({e(d - 1)} ~ {e(d - 1)})"
        if k < .97:
            return f'({self.one(["%s", "%d", "%5.1f|", "%r", "%(k)s", "%-4s|", "%05d", "%x", "%%", "%s %s", "%c", "%e", "%g"])!r} % {e(d - 1)})'
        return f"({e(d - 1)}, {e(d - 1)})"

    def primary(self, d):
        e = self.expression(d)
        return e if e[0] in "([{\"'" or e.isalnum() else f"({e})"

    def tag(self, text):
        return "{%" + self.one(["", "-", "+", "", ""]) + f" {text} " + self.one(["", "-", "", "+"]) + "%}"

    def body(self, d):
        return "".join(self.statement(d - 1) for _ in range(self.rnd.randint(1, 3)))

    def statement(self, d):
        one, tag, e, k = self.one, self.tag, self.expression, self.rnd.random()
        v = one(["x", "y", "n", "s", "l"])
        if d <= 0 or k < .3:
            return one([f"{{{{ {e(2)} }}}}", f"{{{{ {v} }}}}", "{{ x }}{{ y }}", " t ", "\n  ", f"{{{{- {v} -}}}} ", "{# c #}\n", "{#- c -#}", "{{ '{{' }}", "\t\n\n", f"{{{{ {v} }}}}\n"])
        if k < .43:
            return tag(f"set {v} = {e(1)}") + one(["", "\n"])
        if k < .46:
            return tag(f"set x, y = {e(1)}, {e(0)}")
        if k < .57:
            return tag("if " + e(1)) + self.body(d) + one(["", tag("else") + self.body(d), tag("elif " + e(1)) + self.body(d) + tag("else") + self.body(d)]) + tag("endif") + one(["", "\n"])
        if k < .74:
            target, source = one([(v, one(["l", "[1,2]", '"ab"', "range(3)", "u", "messages", e(1)])), ("x, y", one(["d.items()", "d|dictsort", "d|items", "[(1,2),(3,4)]", e(1)]))])
            inner = one(["", f"{{{{ {one(LOOP)} }}}}", f"{{{{ {one(LOOP)} }}}}{{{{ {one(LOOP)} }}}}", tag("if " + e(1)) + tag(one(["break", "continue"])) + tag("endif")])
            return tag(f"for {target} in {source}{one(['', '', ' if ' + e(1)])}") + self.body(d) + inner + one(["", tag("else") + self.body(d)]) + tag("endfor") + one(["", "\n"])
        if k < .76:
            return '{% for x in [{"n": 1, "c": [{"n": 2}, {"n": 3, "c": []}]}] recursive %}{{ x.n }}' + self.body(d - 1) + "{{ loop.depth }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %}"
        if k < .83:
            call = one([f"{{{{ m({e(1)}) }}}}", "{{ m() }}", "{{ m(1,2) }}", "{{ m(1,2,3) }}", "{{ m(q=1) }}", "{{ m(z=1) }}", "{% call m(1) %}c{% endcall %}", "{% call(a) m(1) %}{{ a }}{% endcall %}", "{{ m.name }}{{ m.arguments }}", ""])
            return tag(f"macro m({v}{one(['', ', q=' + e(1), ', q'])})") + self.body(d) + one(["", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}", "{{ caller(2) }}"]) + tag("endmacro") + call
        if k < .87:
            return tag(f"set {v}{one(['', ' | upper', ' | trim | length'])}") + self.body(d) + tag("endset")
        if k < .90:
            return tag(f"with {v} = {e(1)}") + self.body(d) + tag("endwith")
        if k < .93:
            return tag("filter " + one(["upper", "trim", 'replace("a", "b")|e', "indent(2)"])) + self.body(d) + tag("endfilter")
        if k < .96:
            return tag("set ns = namespace(a=1)") + tag("for i in l") + tag("set ns.a = " + one(["ns.a ~ i", "i", e(1)])) + tag("endfor") + "{{ ns.a }}"
        if k < .98:
            return tag("raw") + self.body(d - 1) + tag("endraw")
        return tag("generation") + self.body(d) + tag("endgeneration")


def main(seed, count):
    rnd = random.Random(seed)
    make = Maker(rnd)
    for i in range(count):
        source = f"{{{{ {make.expression(rnd.randint(1, 4))} }}}}" if i % 2 else "".join(make.statement(3) for _ in range(rnd.randint(1, 4)))
        if "random" in source or "lipsum" in source and rnd.random() < .9:
            continue
        result = run(source, [], None, False, json.loads(json.dumps(VARS)))
        shown = result.get("want", "") + result.get("error", "")
        if "at 0x" in shown.lower() or "0x7f" in shown.lower() or len(shown) > 100_000 or "MemoryError" in shown or "OverflowError" in shown:
            continue
        print(json.dumps({"name": f"random/{seed}/{i}", "source": source, "extra": "vars", **result}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
