"""Makes cases.jsonl, small templates with what Jinja2 makes of them, and
vars.json, the variables that most of them share.

Usage: make_cases.py   (in this folder; needs the package jinja2)
"""
import json
import sys

from hfenv import run

VARS = {
    "s": "Hello, Wörld 東京", "t": "  padded\n", "e": "", "n": 7, "m": -3, "f": 2.5, "z": 0, "big": 123456789012345678901234567890,
    "yes": True, "no": False, "nil": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "d": {"b": 1, "a": 2, "items": 3, "_x": 4},
    "u": [{"name": "Bob", "age": 30, "tags": ["x", "y"], "addr": {"city": "Rome"}}, {"name": "ann", "age": 25, "addr": {"city": "oslo"}},
          {"name": "Cid", "age": 30, "tags": [], "ok": True, "addr": {"city": "Rome"}}],
    "html": "<b>\"A\" & 'B'</b>", "lines": "one\ntwo\r\n\n  three", "nest": {"a": [1, 2.0, None, True, "q'q", 'd"d', {"k": []}]},
}

# Each line is one expression.
EXPRESSIONS = r"""
1 + 2 * 3 - 4
7 / 2
6 / 3
7 // 2
-7 // 2
7 // -2
7.5 // 2
-7.5 // 2
7 % 3
-7 % 3
7 % -3
-7.5 % 2
7.5 % -2
2 ** 10
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
(-8) ** 2
2 ** 100
10 ** 20 - 10 ** 20 + 1
9223372036854775807 + 1
-9223372036854775808 - 1
9223372036854775807 * 2
-9223372036854775808 * -1
3037000500 * 3037000500
big * big
big // 7
big % 7
big / 3
-big // 7
big == big + 0
big > 1.5
big < 1e300
1 / 0
1 // 0
1 % 0
1.0 / 0
1.5 % 0
0.1 + 0.2
1e16
1e15
123456789.0
1e-5
0.0001
1e22
1.5e300 * 1e10
1e308 * 10
-1e308 * 10
1_000 + 0x1F + 0b101 + 0o17
1_0.5
00
1.0
-0.0
0.0 == -0.0
100000000000000000000.0
3.14159265358979
5e-324
true + true
true * 3
-true
+no
yes + 1.5
true == 1
true is sameas 1
1 == 1.0
"1" == 1
none == none
none == false
[1, 2] == [1, 2.0]
(1, 2) == [1, 2]
{"a": 1, "b": 2} == {"b": 2, "a": 1}
{"a": 1} == {"a": 2}
undefinedvar == undefinedvar2
undefinedvar == none
undefinedvar != none
1 < 2 < 3
1 < 3 < 2
1 == 1 == 1
"a" < "b"
"a" < "B"
"Z" < "a"
"é" > "z"
"a" < 1
none < 1
[1, 2] < [1, 3]
[1, 2] < [1]
(1, "a") < (1, "b")
[1, "a"] < [1, 2]
{"a": 1} < {"b": 1}
1 < 1.5
true < 2
undefinedvar < 1
1 < undefinedvar
"ell" in s
"" in ""
"x" not in s
1 in l
1.0 in l
"a" in d
"items" in d
1 in d
[1] in d
1 in s
none in l
1 in 5
1 in none
"a" in undefinedvar
undefinedvar in l
undefinedvar in s
1 in (1, 2)
1 in range(3)
(1, 2) in [(1, 2)]
"b" in d.keys()
1 in d.values()
("b", 1) in d.items()
"a" ~ 1 ~ none ~ true ~ 1.5 ~ undefinedvar ~ [1, "x"] ~ {"a": none}
"a" + 1
1 + "a"
"a" + none
[1] + [2]
[1] + (2,)
(1,) + (2,)
"ab" * 3
3 * "ab"
"ab" * 0
"ab" * -1
"ab" * 1.5
[1, 2] * 2
2 * (1,)
[] * 5
"a" - "b"
none + 1
{"a": 1} + {"b": 2}
undefinedvar + 1
1 + undefinedvar
"a" + undefinedvar
-undefinedvar
-"a"
+"a"
-none
not undefinedvar
not 0
not ""
not not 1
1 and 2
0 and 2
0 or 2
"" or none
none or undefinedvar
1 if true
1 if false
(1 if false) is defined
1 if no else 2
1 if no else 2 if yes else 3
(1 if yes) + 1
[]
[1,]
[1, "a", none, true, 1.5, [2]]
()
(1)
(1,)
1, 2
{}
{"a": 1,}
{"a": 1, 1: 2, 1.5: none, true: 3, none: "n"}
{"a": 1, "a": 2}
{1: "a", 1.0: "b", true: "c"}
{(1, 2): 3}
{[1]: 2}
"it's"
'say "hi"'
["it's"]
['say "hi"']
['both \' and "']
["back\\slash", "new\nline", "tab\t", "cr\r", "bell\a", "nul\0", "del\x7f", "nbsp\xa0", "é", "東", "🐋", "\u2028", "\ud7ff"]
"esc: \x41 \u00e9 \U0001F40B \101 \q \' \""
"a" "b" 'c'
"multi
line"
nest
nest.a
nest["a"][4]
nest.a.5
nest.a[-1].k
nest.a[10]
nest.a[10].x
nest.missing
nest.missing.more
nest["missing"]
nest["missing"]["more"]
nest[none]
nest[[1]]
l["x"]
l[1.0]
l[true]
l.0
l.append(4)
l.append
l.append is defined
l.pop()
l.sort()
l.index(1)
l.index(9)
l.count(1)
l.copy()
l.nothing
l.nothing()
d.items
d.items()
d.keys()
d.values()
d["items"]
d.get("a")
d.get("q")
d.get("q", 5)
d.get("q", default=5)
d.get([1])
d.get()
d.pop("a")
d.update({"c": 1})
d.update
d.setdefault("a", 1)
d.copy()
d._x
d["_x"]
d.__class__
d.__class__.__name__
d["__class__"]
d.__foo__
d.a
d.q
s.__class__.__mro__
s._private
d|length
d|list
d.items()|list
d.keys()|list|first
d.items() == d.items()
d.keys() == d.keys()
d.values() == d.values()
s[0]
s[-1]
s[100]
s[7:]
s[:5]
s[-2:]
s[::-1]
s[::2]
s[1:10:3]
s[10:1:-2]
s[100:]
s[:-100]
s[::0]
s["a":]
s[none:none]
s[1.0:]
l[:2]
l[::-1]
l[5:]
l[-2:]
l[:-1]
l[0:100:1000000000000]
l[big:]
l[-big:big]
(1, 2, 3)[1:]
d[1:]
n[1:]
undefinedvar[1:]
undefinedvar[0]
undefinedvar.a
undefinedvar()
s()
5()
none()
none.x
none["x"]
none.x.y
5.x
n.x
n.real
n.denominator
n.bit_length()
f.is_integer()
f.real
true.real
s.upper()
s.lower()
"straße ﬁ ŉ".upper()
"ΑΣ ΑΣΑ Σ İ".lower()
"ǆ ß ﬁ hello".title()
"hello wORLD it's".title()
"hELLO".capitalize()
"éa ßb".capitalize()
"Hello".swapcase()
"Straße".casefold()
t.strip()
t.lstrip()
t.rstrip()
"xxabcxx".strip("x")
"xyabcyx".strip("xy")
"abc".strip("")
"abc".strip(none)
"\u00a0\u2003x\x1c\x85".strip()
"abc".strip(1)
"a,b,,c".split(",")
"a,b,,c".split(",", 1)
"a,b,,c".split(sep=",", maxsplit=2)
"a,b,,c".rsplit(",", 1)
"a,b,,c".rsplit(",")
"  a  b c ".split()
"  a  b c ".split(none, 1)
"  a  b c ".rsplit(none, 1)
"  a  b c ".split(" ")
"".split()
"".split(",")
"abc".split("")
"abc".split(1)
"a</think>b".split("</think>")[-1].lstrip("\n")
lines.splitlines()
lines.splitlines(true)
"a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\r\rj".splitlines()
"".splitlines()
"a\n".splitlines()
"a=b=c".partition("=")
"a=b=c".rpartition("=")
"abc".partition("=")
"abc".rpartition("=")
"abc".partition("")
",".join(["a", "b"])
",".join("abc")
",".join([1, 2])
",".join(d)
",".join([])
",".join(none)
"aXbXc".replace("X", "-")
"aXbXc".replace("X", "-", 1)
"aXbXc".replace("X", "-", -1)
"abc".replace("", "-")
"abc".replace("", "-", 2)
"aéb".replace("", ".")
"abc".replace("b")
"abc".replace(1, 2)
"abc".startswith("ab")
"abc".startswith(("x", "ab"))
"abc".startswith("b", 1)
"abc".startswith("b", 1, 1)
"abc".startswith("", 4)
"abc".startswith(1)
"abc".startswith(["a"])
"abc".endswith("bc")
"abc".endswith(("x", "c"))
"abc".endswith("b", 0, 2)
"abcabc".find("c")
"abcabc".find("c", 3)
"abcabc".find("z")
"abcabc".rfind("a")
"éabc".index("b")
"abc".index("z")
"abc".rindex("a")
"aaaa".count("aa")
"aaa".count("")
"abc".find("b", -2)
"abc".find("", 3)
"abc".find("", 4)
"abc".center(8) ~ "|"
"abc".center(9, "*")
"abcd".center(7, "-")
"abc".ljust(6, ".") ~ "abc".rjust(6)
"abc".ljust(6, "ab")
"42".zfill(5)
"-42".zfill(5)
"+4".zfill(1)
"a\tb\tcc\td".expandtabs()
"a\tb".expandtabs(4)
"a\tb".expandtabs(0)
"prefix-x".removeprefix("prefix-")
"x.py".removesuffix(".py")
"x".removesuffix("")
"abc123".isalnum()
"abc".isalpha()
"12".isdigit()
"²".isdigit()
"²".isdecimal()
"½".isnumeric()
"½".isdigit()
"٣".isdecimal()
"".isdigit()
" \n".isspace()
"".isspace()
"ABC 1".isupper()
"abc 1".islower()
"1".islower()
"Hello World".istitle()
"Hello world".istitle()
"abc_1".isidentifier()
"1abc".isidentifier()
"é".isascii()
"".isascii()
"a\n".isprintable()
"".isprintable()
"abc".nothing
"abc".nothing()
"abc".format
"{} {}".format(1, "a")
"{0} {1} {0}".format(1, "a")
"{a} {b.city} {c[k]} {c[0]}".format(a=1, b={"city": "Rome"}, c={"k": 2, 0: 3})
"{} {0}".format(1)
"{0} {}".format(1)
"{2}".format(1)
"{x}".format(1)
"{{}} {}".format(1)
"{".format(1)
"}".format(1)
"{!r} {!s} {!a}".format("é", "é", "é")
"{!x}".format(1)
"{:>5}|{:<5}|{:^5}|{:*^7}".format("a", "b", "c", "d")
"{:5}|{:5}".format("a", 1)
"{:05d} {:+d} {: d} {:,} {:_}".format(42, 42, 42, 1234567, 1234567)
"{:x} {:X} {:#x} {:b} {:#b} {:o} {:c}".format(255, 255, 255, 5, 5, 8, 65)
"{:.2f} {:8.3f}| {:e} {:g} {:%} {:.0f}".format(3.14159, 2.5, 12345.678, 0.00001234, 0.256, 2.5)
"{:.3} {:10.4}|".format("abcdef", 3.14159)
"{:.3}".format(1234.5)
"{:g} {:g} {:G}".format(1e20, 123456789.0, 1e-10)
"{:n}".format(5)
"{:05.1f} {:+.1f} {:-09,.2f}".format(3.14159, 2.0, 12345.678)
"{:,}".format(1234.5)
"{:d}".format("a")
"{:d}".format(1.5)
"{:s}".format(1)
"{:{}}|".format("a", 5)
"{:{w}.{p}f}|".format(2.5, w=8, p=2)
"{:5}".format(none)
"{}".format(none)
"{:5}|{:d}".format(true, true)
"{:<6}|{:>6}|{:=6}".format(-42, -42, -42)
"{:,d}".format(-1234567)
"{:010,}".format(1234)
"{:.0}".format(3.7)
"{:#.3g}".format(3.0)
"{:inf}".format(1)
"{a.__class__}".format(a=1)
"{a[__class__]}".format(a=1)
"{x}".format_map({"x": 1})
"{x}".format_map({})
"%s %s" % (1, "a")
"%s" % 1
"%s" % "a"
"%s" % none
"%s" % [1, 2]
"%s" % (1, 2)
"%s %s" % 1
"%d %5d %-5d| %05d %+d % d" % (1, 2, 3, 4, 5, 6)
"%d" % 1.9
"%d" % "a"
"%i %u" % (1, 2)
"%x %X %#x %o %#o" % (255, 255, 255, 8, 8)
"%x" % 1.5
"%e %E %f %F %g %G" % (1.5, 1.5, 1.5, 1.5, 1.5, 1e20)
"%.2f %8.3f| %-8.1f| %08.2f %+.1f" % (3.14159, 2.5, 1.25, 3.5, 2.0)
"%.3s|%5s|%-5s|" % ("abcdef", "a", "b")
"%r %a" % ("é'", "é")
"%c %c" % (65, "b")
"%c" % "ab"
"%%" % ()
"100%%"
"%(a)s %(b)d" % {"a": 1, "b": 2}
"%(a)s" % {"b": 1}
"%(a)s" % 1
"%s" % {"a": 1}
"abc" % 1
"abc" % []
"abc" % {}
"abc" % ()
"%y" % 1
"%" % 1
"%*d|%-*d|" % (5, 1, 5, 2)
"%.*f" % (2, 3.14159)
"%5%|" % ()
"%s" % undefinedvar
"%d" % undefinedvar
"%s %s"|format(1, 2)
"%(a)s"|format(a=1)
"%s"|format(1, a=2)
"%s"|format
s|upper
s|lower
s|capitalize
s|title
"hello-world foo(bar) [baz] it's"|title
s|length
s|count
s|list
s|reverse
l|reverse
l|reverse|list
d|reverse|list
s|first
s|last
e|first
[]|last
l|first
l|last
d|first
d|last
range(5)|last
5|first
l|sort
l|sort(reverse=true)
ls|sort
ls|sort(case_sensitive=true)
ls|sort(true, true)
u|sort(attribute="age")|map(attribute="name")|list
u|sort(attribute="age,name")|map(attribute="name")|list
u|sort(attribute="addr.city", reverse=true)|map(attribute="name")|list
[1, "a"]|sort
[none, 1]|sort
[[2, 1], [1, 2]]|sort
"cab"|sort
d|sort
ls|unique|list
["a", "A", "b"]|unique|list
["a", "A", "b"]|unique(true)|list
u|unique(attribute="age")|map(attribute="name")|list
[1, 1.0, true, "1"]|unique|list
[[1], [1]]|unique|list
l|min
l|max
ls|min
ls|max
ls|max(case_sensitive=true)
u|max(attribute="age")
[]|min
[1, "a"]|max
l|sum
[1.5, 2]|sum
[[1], [2]]|sum(start=[])
["a"]|sum
["a"]|sum(start="")
u|sum(attribute="age")
u|sum("age", 100)
[]|sum
l|join
l|join("-")
l|join(none)
u|join(", ", attribute="name")
u|join(attribute="nope")
s|join("|")
d|join(",")
none|join
5|join
undefinedvar|join
[undefinedvar, 1]|join(",")
[none, true, 1.0, "x", ["y"]]|join(" ")
u|map(attribute="name")|list
u|map(attribute="tags")|list
u|map(attribute="tags", default="none")|list
u|map(attribute="tags.0")|list
u|map(attribute="addr.city")|join(",")
u|map(attribute="nope")|list
u|map(attribute="nope.more")|list
u|map("length")|list
ls|map("upper")|list
ls|map("replace", "a", "z")|list
[1.234, 5.678]|map("round", 1)|list
ls|map|list
ls|map("nofilter")|list
ls|map("nofilter")
none|map("upper")|list
5|map("upper")|list
l|select|list
[0, 1, "", "a", none]|select|list
[0, 1, "", "a", none]|reject|list
l|select("odd")|list
l|reject("odd")|list
l|select("gt", 1)|list
l|select(">", 1)|list
l|select("divisibleby", 2)|list
l|select("in", [1, 2])|list
l|select("nosuch")|list
u|selectattr("ok")|map(attribute="name")|list
u|selectattr("ok", "defined")|map(attribute="name")|list
u|rejectattr("ok", "defined")|map(attribute="name")|list
u|selectattr("age", "equalto", 30)|map(attribute="name")|list
u|selectattr("age", "==", 30)|map(attribute="name")|list
u|selectattr("addr.city", "eq", "Rome")|map(attribute="name")|list
u|selectattr("name", "in", ["Bob"])|list|length
u|selectattr("tags.0", "defined")|list|length
u|rejectattr("age", "lt", 30)|map(attribute="name")|list
u|selectattr|list
u|selectattr("nope.more")|list
u|selectattr("nope")|first
u|selectattr("nope")|first is defined
(u|selectattr("nope")) is iterable
(u|selectattr("nope")) is sequence
u|selectattr("nope")|length
not (u|selectattr("nope"))
u|groupby("age")|list
u|groupby("addr.city")|map("first")|list
u|groupby("addr.city")|map(attribute="list")|map("length")|list
u|groupby("addr.city", case_sensitive=true)|map(attribute="grouper")|list
u|groupby("ok", default=false)|map(attribute="0")|list
u|groupby("ok")|list
l|batch(2)|list
l|batch(2, 0)|list
l|batch(2, none)|list
[]|batch(2)|list
l|batch(0)|list
l|slice(2)|list
l|slice(2, "x")|list
l|slice(5)|list
l|slice(0)|list
[1,2,3,4,5,6,7]|slice(3, 0)|list
d|dictsort
d|dictsort(reverse=true)
d|dictsort(by="value")
d|dictsort(false, "value")
d|dictsort(by="nope")
{"b": 1, "A": 2, "a": 3}|dictsort
{"b": 1, "A": 2, "a": 3}|dictsort(true)
{1: 2, "a": 3}|dictsort
l|dictsort
undefinedvar|dictsort
d|items|list
undefinedvar|items|list
l|items|list
none|items
none|items|list
s|tojson
nest|tojson
nest|tojson(indent=2)
nest|tojson(indent=0)
nest|tojson(indent="--")
d|tojson(sort_keys=true)
d|tojson(separators=(",", ":"))
d|tojson(separators=[";", "="])
d|tojson(separators=(",", ":"), indent=1)
d|tojson(indent=none)
s|tojson(ensure_ascii=true)
"🐋\u2028<>&'\"\\/\b\f\n\r\t\x01\x7f"|tojson
"🐋\u2028<>&'\"\\/\b\f\n\r\t\x01\x7f"|tojson(true)
{1: 2, 1.5: 3, true: 4, none: 5}|tojson
{(1, 2): 3}|tojson
(1, 2)|tojson
[]|tojson(indent=2)
{}|tojson(indent=2)
[[], {}, [1], {"a": {}}]|tojson(indent=4)
undefinedvar|tojson
range(3)|tojson
d.items()|tojson
[undefinedvar]|tojson
1e100|tojson
[1.0, 1e16, 1e-7, 5, true, none]|tojson
big|tojson
d|tojson(nope=1)
{"b": 1, "a": {"d": 1, "c": 2}}|tojson(sort_keys=true, indent=2)
{"b": 1, 1: 2}|tojson(sort_keys=true)
[(1,2),[3]]|tojson
s|e
html|e
html|escape
html|e|e
html|e ~ "<"
(html|e) + "<i>"
"<i>" + (html|e)
(html|safe) + "<i>"
"<i>" + (html|safe)
"<i>" ~ (html|safe)
html|safe
html|forceescape
(html|safe)|forceescape
(html|safe)|e
5|e
none|e
(html|e)|length
(html|e) == "x"
(html|e).upper()
(html|safe).replace("A", "<x>")
(html|safe)|replace("A", "<x>")
(html|safe).split(" ")
(html|safe)[:3] + "<"
(html|safe) * 2
("%s"|safe) % "<"
("%s %s"|safe)|format("<", "<"|safe)
("{}"|safe).format("<")
(","|safe).join(["<", "<"|safe])
("<"|safe)|trim + "<"
("<"|safe)|upper + "<"
("<a>"|safe)|indent + "<"
["<"|safe]
("<"|safe)|tojson
("<"|safe)|string + "<"
["<", "<"|e]|join("<")
("<"|e) in "&lt;"
html|striptags
"<p>a  b</p>\n<!-- c -->d &amp; &lt;e&gt; &#233; &nope;"|striptags
{"class": "a<b", "id": 5, "x": none, "y": undefinedvar}|xmlattr
{"a b": 1}|xmlattr
{"a": 1}|xmlattr(false)
s|urlencode
"a/b c?d=e&f"|urlencode
{"a b": "c/d", "e": 1}|urlencode
[("a", 1), ("b", "ü")]|urlencode
5|urlencode
t|trim
"xxaxx"|trim("x")
5|trim
none|trim
undefinedvar|trim
s|replace("o", "0")
s|replace("o", "0", 1)
s|replace("", "-")
123|replace(2, "x")
none|replace("N", "n")
undefinedvar|replace("a", "b")
s|default("x")
undefinedvar|default("x")
undefinedvar|default
e|default("x")
e|default("x", true)
nil|d("x")
nil|d("x", true)
undefinedvar|d(default_value=5)
nest.q|default("x")
nest.q.r|default("x")
l|abs
-5|abs
(-5)|abs
(-2.5)|abs
true|abs
"a"|abs
2.5|round
3.5|round
2.567|round(2)
2.565|round(2)
2.4|round(method="ceil")
2.6|round(0, "floor")
-2.5|round
1234|round(-2)
1250|round(-2)
1350|round(-2)
1234.5|round(-2)
2.5|round(method="up")
"a"|round
7|round
7|round(2)
7|round(1, "ceil")
3.7|int
-3.7|int
"42"|int
" 42 "|int
"4_2"|int
"42.9"|int
"abc"|int
"abc"|int(7)
"ff"|int(0, 16)
"0xff"|int(0, 16)
"0b101"|int(0, 2)
"0b101"|int(0, 0)
"z"|int(base=36)
"9"|int(base=8)
"9"|int(base=1)
none|int
[]|int
true|int
1e400|int
"1e400"|int
"nan"|int
"inf"|int
"1e3"|int
"-5"|int
"- 5"|int
"+5"|int
"٣"|int
undefinedvar|int
"99999999999999999999"|int
"3.5"|float
"abc"|float
"abc"|float(1.5)
" 1e5 "|float
"inf"|float
"-nan"|float
"infinity"|float
"1_0.5"|float
"0x10"|float
none|float
5|float
true|float
undefinedvar|float
1|string
none|string
[1]|string
undefinedvar|string
5|list
none|list
undefinedvar|list
undefinedvar|length
none|length
5|length
l|wordcount
"a b,c d-e f_g é"|wordcount
s|center(30) ~ "|"
"abc"|center(2)
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, true, true)
lines|indent(width="> ", first=true)
""|indent
"\n"|indent(2, true)
"a\n"|indent
5|indent
undefinedvar|indent
none|indent
"foo bar baz qux"|truncate(9)
"foo bar baz qux"|truncate(9, true)
"foo bar baz qux"|truncate(11)
"foo bar baz qux"|truncate(11, false, "...", 0)
"foo bar baz qux"|truncate(5, end="")
"foo bar baz qux"|truncate(2)
"foobarbazqux quux"|truncate(6, leeway=0)
"short"|truncate
undefinedvar|truncate
5|truncate
"The quick brown fox jumps over the lazy dog"|wordwrap(10)
"The quick brown\nfox jumps"|wordwrap(6)
"abcdefghijklmnop qrs"|wordwrap(5)
"abcdefghijklmnop qrs"|wordwrap(5, false)
"a bb ccc dddd"|wordwrap(4, true, "|")
"well-known co-operation"|wordwrap(6)
"well-known co-operation"|wordwrap(6, break_on_hyphens=false)
1|filesizeformat
0|filesizeformat
999|filesizeformat
1000|filesizeformat
1234567|filesizeformat
1234567|filesizeformat(true)
"12345"|filesizeformat
1e30|filesizeformat
"x"|filesizeformat
l|pprint
"a"|pprint
d|attr("items") is callable
d|attr("a")
d|attr("nope")
d|attr("a") is defined
s|attr("upper")()
s|attr("__class__")
s|nosuchfilter
(s|nosuchfilter) if no else 1
(s|nosuchfilter) if yes else 1
s is nosuchtest
1 if no and (s is nosuchtest) else 2
n is odd
n is even
m is odd
f is odd
s is odd
n is divisibleby 7
n is divisibleby(3)
n is divisibleby 0
n is not odd
not n is odd
undefinedvar is defined
undefinedvar is undefined
undefinedvar is not defined
nest.q is defined
nest.q.r is defined
nil is none
nil is not none
yes is true
1 is true
no is false
0 is false
yes is boolean
1 is boolean
n is integer
yes is integer
f is integer
f is float
n is float
n is number
f is number
yes is number
s is number
big is integer
s is string
(s|safe) is string
nil is string
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
5 is sequence
nil is sequence
undefinedvar is sequence
d.items() is sequence
d.keys() is mapping
range(3) is sequence
l is iterable
s is iterable
5 is iterable
nil is iterable
undefinedvar is iterable
(l|map("string")) is iterable
range is callable
s is callable
s.upper is callable
undefinedvar is callable
s is lower
"abc" is lower
"ABC" is upper
5 is upper
s is escaped
(s|e) is escaped
1 is in [1, 2]
1 is in 5
1 is eq 1
1 is equalto(1.0)
1 is ne 2
2 is gt 1
2 is ge 2
1 is lt 2
1 is le 1
1 is greaterthan 0
1 is lessthan 0
1 is sameas 1
nil is sameas none
l is sameas l
[] is sameas []
"upper" is filter
"nope" is filter
"odd" is test
"nope" is test
1 is odd is odd
1 is none or 2
1 is divisibleby 2 or true
range(3)
range(3)|list
range(1, 10, 3)|list
range(10, 0, -3)|list
range(0)|list
range(5, 1)|list
range(3)[1]
range(3)[-1]
range(3)[5]
range(10)[2:5]
range(10)[::-2]|list
range(10)|length
range(100001)
range(100000)|length
range(0, 1000000000000, 1)
range(1, 2, 0)
range("a")
range(1.5)
range()
range(true)
range(1, 2, 3, 4)
range(3) == range(3)
range(0) == range(5, 5)
range(3).start
dict(a=1, b=2)
dict({"a": 1}, b=2)
dict([("a", 1), ["b", 2]])
dict([1])
dict([(1, 2, 3)])
dict("ab")
dict(["ab", "cd"])
dict()
dict(1)
dict(a=1, a=2)
dict(**{"a": 1, "b": 2})
dict(**{"a": 1}, a=2)
dict(*[[("x", 1)]])
dict(**[1])
dict(**{1: 2})
dict.fromkeys("ab")
dict.fromkeys([1, 2], "x")
namespace(a=1)
namespace(a=1).a
namespace(a=1).b
namespace(a=1)["a"]
namespace({"a": 1}).a
namespace(_a=1)
namespace() is mapping
cycler(1, 2).next()
cycler()
cycler(1, 2).current
joiner("-")() ~ joiner("-")()
strftime_now("%Y-%m-%d %H:%M:%S")
strftime_now("%d %b %Y, %A %B %j %p %I %y %U %W %w %u %%")
strftime_now("%-d %-m %e %k %-H %-I")
strftime_now("%a %c %x %X %D %F %T %R %r")
strftime_now("%f %z|%Z|%G-%V %C %h %n%t|")
strftime_now("plain é")
strftime_now(5)
strftime_now()
raise_exception("no")
raise_exception("no") if no else "fine"
raise_exception()
raise_exception(5)
lipsum is defined
loop is defined
caller is defined
messages|length
tools
documents
add_generation_prompt
[1, 2, 3][0] + [4][0]
{"a": {"b": [1, {"c": 5}]}}["a"].b[1]["c"]
"a.b".split(".")[1].upper()[0]
(1, 2) + (3,)
1 ~ 2 + 3
"a" ~ "b" * 2
2 * 3 ~ 4
not 1 == 2
1 + 1 == 2 and 2 > 1
-1 ** 2
- 5 | abs
-5|abs
2 + 3|abs
(2 + 3)|string + "x"
"a" if 1 else "b" ~ "c"
[1, 2][0:1][0]
l[0] if l else none
l | length > 2
l|length + 1
x.y.z is defined
1 .real
1..real
"abc"[1]
'abc'.upper()|lower
[["a", 1], ["b", 2]]|map("first")|join
l|map("string")|map("length")|sum
"{}".format([1, "a", none])
[1, 2, 3]|map("float")|list
(l|join(",")).split(",")|map("int")|sum
["a", "b"]|map("tojson")|join(", ")
u|map(attribute="name")|map("lower")|sort|join(" ")
u|map("tojson")|join("\n")
foo.bar
d.a.b.c
s.foo.bar
s["foo"]
s["upper"]()
d["get"]("a")
l["count"](1)
{"x": undefinedvar}
[undefinedvar]
[undefinedvar]|first is defined
true and undefinedvar
(undefinedvar or {}).x
undefinedvar|default({})|length
1 if undefinedvar else 2
undefinedvar ~ "x"
undefinedvar is none
undefinedvar|upper
undefinedvar|first
undefinedvar|join(",")
undefinedvar|sort
undefinedvar|map("upper")|list
undefinedvar|sum
undefinedvar|abs
undefinedvar|round
undefinedvar|last
undefinedvar|reverse|list
undefinedvar|tojson
undefinedvar|e
undefinedvar * 2
not undefinedvar.x
undefinedvar in [undefinedvar]
{undefinedvar: 1}[other_undefined]
hash
1 2
a b
1 +
(1
[1
{"a" 1}
{"a": }
"abc
1 ! 2
@
a..b
a.
a[
a|
a is
|a
*a
a(b=1, 2)
a(*b, 2)
a(**b, c=1)
a(*[1, 2], k=1)
f(a=1, a=2)
1 = 2
true = 1
1 == = 2
1 <> 2
x if
x else y
{1, 2}
[1 for x in y]
lambda: 1
01
1__0
0x
1e
1.e5
$x
"a" % 
((1, 2), [3, (4,)])
"ß".upper().lower()
"a" in ["a"] in [true]
1 < 2 == true
3 not in l
not 3 in l
[1, [2, [3, [4]]]]
{"a": [1, {"b": (1, 2)}]}|string
nest.a|map("string")|list
nest|string|length
[true, false, none]|map("string")|join("/")
[1.0, 10.0, 1e20, 1.5e-10]|join(" ")
"caf\u00e9"|length
"e\u0301"|length
"👨‍👩‍👧"|length
"👨‍👩‍👧"[0]
"👨‍👩‍👧"|reverse|length
"%s" % "東京"
"{:>4}|".format("東京")
"東京"|center(6) ~ "|"
"日本語".find("語")
"Ünï".upper()
"ÅB".lower()
l|map("multiply", 2)|list
[3, 1, 2]|sort|first
{"a": 1}.items()|first
{"a": 1, "b": 2}.values()|sum
{"a": 1, "b": 2}.keys()|join
{"a": 1}|items|first|last
l == l|sort
(l, 1)
s|list|unique|length
"a\\nb"
'a\
b'
"tab\there"
""
'' ~ ''
none ~ none
[none]
(none,)
"x" * 3 ~ "y"
1 // 1.0
1 % 1.0
2 ** 3.0
0 ** 0
0.0 ** 0
0 ** -1
10 ** 400
10.0 ** 400
4301 * "1" | int
("1" * 4400)|int
(n ** 20000)|string|length
7 | string | int + 1
"5" | int * 2
5 / 2 | int
(5 / 2) | int
1 if nope|reverse else 2
""".strip("\n").split("\n")

# Statements: whole templates, each with its name.
STATEMENTS = {
    "if": "{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}",
    "if-elif": "{% if n > 50 %}big{% elif n > 3 %}mid{% else %}small{% endif %}",
    "if-else": "{% if n > 50 %}big{% elif n > 30 %}mid{% else %}small{% endif %}",
    "for": "{% for x in l %}{{ x }},{% endfor %}",
    "for-else": "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "for-else-nonempty": "{% for x in l %}{{ x }}{% else %}none{% endfor %}",
    "for-continue-else": "{% for x in l %}{% continue %}{% else %}none{% endfor %}",
    "for-break-else": "{% for x in l %}{% break %}{% else %}none{% endfor %}",
    "for-late-break-else": "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}none{% endfor %}",
    "for-if": "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}",
    "for-if-outer": "{% set k = 2 %}{% for x in l if x >= k %}{{ x }}{% endfor %}",
    "for-if-none": "{% for x in l if x > 10 %}{{ x }}{% else %}empty{% endfor %}",
    "for-if-loop": "{% for x in l if loop.index > 1 %}{{ x }}{% endfor %}",
    "for-unpack": "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "for-unpack-nested": "{% for (a, b), c in [((1, 2), 3), ((4, 5), 6)] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
    "for-unpack-few": "{% for a, b in [(1,)] %}{{ a }}{% endfor %}",
    "for-unpack-many": "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "for-unpack-int": "{% for a, b in [1] %}{{ a }}{% endfor %}",
    "for-unpack-str": "{% for a, b in ['xy', 'zw'] %}{{ b }}{{ a }}{% endfor %}",
    "for-dict": "{% for k in d %}{{ k }} {% endfor %}",
    "for-str": "{% for c in 'aé東' %}[{{ c }}]{% endfor %}",
    "for-undefined": "{% for c in nope %}x{% else %}none{% endfor %}",
    "for-none": "{% for c in none %}x{% endfor %}",
    "for-int": "{% for c in 5 %}x{% endfor %}",
    "for-tuple": "{% for c in 1, 2, 3 %}{{ c }}{% endfor %}",
    "for-loop-vars": "{% for x in l %}{{ loop.index }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.length }} {{ loop.depth }} {{ loop.depth0 }}\n{% endfor %}",
    "for-prev-next": "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.previtem is defined }} {{ loop.nextitem is defined }};{% endfor %}",
    "for-prev-attr": "{% for x in u %}{{ loop.previtem.name }}{% endfor %}",
    "for-nextitem-attr": "{% for x in u %}{% if not loop.last %}{{ loop.nextitem.name }}{% endif %}{% endfor %}",
    "for-cycle": "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "for-cycle-none": "{% for x in l %}{{ loop.cycle() }}{% endfor %}",
    "for-changed": "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}",
    "for-generator": "{% for x in l|map('string') %}{{ loop.index }}/{{ loop.length }}:{{ x }} {{ loop.revindex }} {{ loop.last }} {% endfor %}",
    "for-generator-last": "{% for x in l|select('odd') %}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
    "for-loop-print": "{% for x in l %}{{ loop }} {% endfor %}",
    "for-loop-outer": "{% for x in [1, 2] %}{% set outer = loop %}{% for y in [3, 4] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "for-loop-nested-only-inner": "{% for x in [1, 2] %}{% for y in [3, 4] %}{{ loop.index }}{% endfor %}{% endfor %}",
    "for-loop-after": "{% for x in l %}{% endfor %}{{ loop is defined }} {{ x is defined }}",
    "for-loop-attr": "{% for x in l %}{{ loop.nope }}{{ loop['index'] }}{% endfor %}",
    "for-recursive": "{% for x in [{'v': 1, 'c': [{'v': 2, 'c': []}, {'v': 3, 'c': [{'v': 4, 'c': []}]}]}] recursive %}{{ x.v }}@{{ loop.depth }}({{ loop(x.c) }}){% endfor %}",
    "for-recursive-else": "{% for x in [[[]]] recursive %}[{{ loop(x) }}]{% else %}-{% endfor %}",
    "for-not-recursive": "{% for x in l %}{{ loop(x) }}{% endfor %}",
    "for-break": "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!",
    "for-continue": "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}!",
    "for-break-inner": "{% for x in [1, 2] %}{% for y in [1, 2, 3] %}{% if y == 2 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "for-break-set": "{% for x in l %}{% set y %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% endset %}{{ y }}{% endfor %}",
    "for-break-else-outer": "{% for x in l %}{% for y in [] %}{% else %}{% break %}{% endfor %}{{ x }}{% endfor %}!",
    "break-outside": "{% break %}",
    "continue-outside": "{% if yes %}{% continue %}{% endif %}",
    "break-in-macro": "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "for-set-loop": "{% for loop in l %}{% endfor %}",
    "for-assign-loop": "{% for x in l %}{% set loop = 1 %}{{ loop }}{% endfor %}",
    "for-scope": "{% set x = 0 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
    "for-scope-ns": "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{{ ns.x }} {% endfor %}{{ ns.x }}",
    "for-var-shadow": "{% set x = 'o' %}{% for x in l %}{{ x }}{% endfor %}{{ x }}",
    "for-late-outer": "{% for i in [1] %}{{ s2 }}|{% endfor %}{% set s2 = 1 %}{{ s2 }}",
    "for-late-outer-given": "{% for i in [1] %}{{ n }}|{% endfor %}{% set n = 1 %}{{ n }}",
    "for-iter-self": "{% for l in l %}{{ l }}{% endfor %}{{ l }}",
    "for-cond-set": "{% for i in l %}{% if i == 1 %}{% set q = i %}{% endif %}{{ q }},{% endfor %}",
    "set": "{% set x = 5 %}{{ x }}",
    "set-tuple": "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "set-tuple-parens": "{% set (a, b) = [1, 2] %}{{ a }}{{ b }}",
    "set-swap": "{% set a, b = 1, 2 %}{% set a, b = b, a %}{{ a }}{{ b }}",
    "set-one-tuple": "{% set x = 1, %}{{ x }}",
    "set-if": "{% if yes %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}",
    "set-if-given": "{% if no %}{% set n = 1 %}{% endif %}{{ n }}",
    "set-if-missing": "{% if no %}{% set q = 1 %}{% endif %}{{ q }}|{{ q is defined }}",
    "set-elif": "{% if no %}{% set q = 1 %}{% elif yes %}{% set q = 2 %}{% endif %}{{ q }}",
    "set-nested-if": "{% if yes %}{% if yes %}{% set q = 1 %}{% endif %}{{ q }}{% endif %}{{ q }}",
    "set-before-use": "{{ q }}{% set q = 1 %}{{ q }}",
    "set-given": "{{ n }}{% set n = 1 %}{{ n }}",
    "set-block": "{% set x %}a{{ n }}b{% endset %}[{{ x }}]",
    "set-block-filter": "{% set x | upper | replace('A', '-') %}a{{ n }}b{% endset %}[{{ x }}]",
    "set-block-scope": "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "set-block-tuple": "{% set a, b %}xy{% endset %}{{ a }}-{{ b }}",
    "set-block-ns": "{% set ns = namespace() %}{% set ns.x %}hi{% endset %}{{ ns.x }}",
    "set-block-filter-unknown": "{% set x | replace(foo, 'b') %}a{% endset %}{{ x }}",
    "set-ns-missing": "{% set nope.x = 1 %}",
    "set-ns-dict": "{% set d.x = 1 %}{{ d }}",
    "set-ns-under": "{% set ns = namespace() %}{% set ns._x = 1 %}{{ ns }}",
    "set-ns-tuple": "{% set ns = namespace(a=1, b=2) %}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}",
    "set-ns-loop": "{% set ns = namespace(found=false, items=[]) %}{% for x in l %}{% if x == 1 %}{% set ns.found = true %}{% endif %}{% set ns.items = ns.items + [x] %}{% endfor %}{{ ns.found }}{{ ns.items }}",
    "set-ns-deep": "{% set ns.a.b = 1 %}",
    "set-const": "{% set true = 1 %}",
    "set-none": "{% set none = 1 %}",
    "set-number": "{% set 5 = 1 %}",
    "set-string": "{% set 'a' = 1 %}",
    "set-call": "{% set f() = 1 %}",
    "set-empty": "{% set x = %}",
    "set-item": "{% set d['x'] = 1 %}",
    "macro": "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }}",
    "macro-missing": "{% macro m(a) %}[{{ a }}]{{ a is defined }}{% endmacro %}{{ m() }}",
    "macro-missing-attr": "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
    "macro-extra": "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "macro-unknown-kw": "{% macro m(a) %}{% endmacro %}{{ m(z=1) }}",
    "macro-double": "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "macro-varargs": "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "macro-kwargs-only": "{% macro m() %}{% for k, v in kwargs.items() %}{{ k }}={{ v }} {% endfor %}{% endmacro %}{{ m(b=1, a=2) }}",
    "macro-default-expr": "{% macro m(a, b=a + 1, c=b * 2) %}{{ a }} {{ b }} {{ c }}{% endmacro %}{{ m(1) }}",
    "macro-default-outer": "{% set q = 9 %}{% macro m(a=q) %}{{ a }}{% endmacro %}{% set q = 8 %}{{ m() }}",
    "macro-closure": "{% macro m() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}{% set q = 2 %}{{ m() }}",
    "macro-closure-given": "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}",
    "macro-closure-loop": "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "macro-set-inside": "{% set q = 1 %}{% macro m() %}{% set q = 2 %}{{ q }}{% endmacro %}{{ m() }}{{ q }}",
    "macro-set-inside-if": "{% set q = 1 %}{% macro m(c) %}{% if c %}{% set q = 2 %}{% endif %}{{ q }}{% endmacro %}{{ m(true) }}{{ m(false) }}",
    "macro-ns": "{% set ns = namespace(x=1) %}{% macro m() %}{% set ns.x = ns.x + 1 %}{% endmacro %}{{ m() }}{{ m() }}{{ ns.x }}",
    "macro-recursive": "{% macro m(n) %}{{ n }}{% if n > 0 %} {{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "macro-mutual": "{% macro a(n) %}a{{ b(n - 1) if n > 0 }}{% endmacro %}{% macro b(n) %}b{{ a(n - 1) if n > 0 }}{% endmacro %}{{ a(4) }}",
    "macro-before-def": "{{ m() }}{% macro m() %}x{% endmacro %}",
    "macro-result": "{% macro m() %} x {% endmacro %}{{ m()|trim|upper }}{{ m() is string }}{{ m()|length }}",
    "macro-attrs": "{% macro m(a, b=1) %}{{ varargs }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}{{ m }}",
    "macro-default-before": "{% macro m(a=1, b) %}{% endmacro %}",
    "macro-dup-arg": "{% macro m(a, a) %}{% endmacro %}",
    "macro-star": "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}",
    "macro-html": "{% macro m() %}<b>{% endmacro %}{{ m()|e }}{{ m() }}",
    "macro-nested": "{% macro a() %}{% macro b() %}in{% endmacro %}{{ b() }}{% endmacro %}{{ a() }}{{ b is defined }}",
    "macro-in-if": "{% if yes %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}",
    "macro-caller-undefined": "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "macro-caller-call-undefined": "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "macro-caller-arg": "{% macro m(caller) %}{{ caller }}{% endmacro %}",
    "macro-caller-default": "{% macro m(caller=none) %}{{ caller is none }}{% endmacro %}{{ m() }}",
    "call": "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{% endcall %}",
    "call-args": "{% macro m(l) %}{% for x in l %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(a, b) m(l) %}{{ a }}:{{ b }} {% endcall %}",
    "call-default": "{% macro m() %}{{ caller() }}{% endmacro %}{% call(a=5) m() %}{{ a }}{% endcall %}",
    "call-outer": "{% set q = 1 %}{% macro m() %}{% set q = 2 %}{{ caller() }}{% endmacro %}{% call m() %}{{ q }}{% endcall %}",
    "call-no-caller": "{% macro m() %}x{% endmacro %}{% call m() %}in{% endcall %}",
    "call-nested": "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}a{% call m() %}b{% endcall %}{% endcall %}",
    "call-not-call": "{% call m %}x{% endcall %}",
    "call-function": "{% call range(3) %}x{% endcall %}",
    "filter-block": "{% filter upper %}abc {{ n }}{% endfilter %}",
    "filter-block-chain": "{% filter trim|replace('a', 'b')|upper %} abc {% endfilter %}",
    "filter-block-scope": "{% filter upper %}{% set q = 'x' %}{{ q }}{% endfilter %}{{ q }}",
    "filter-block-unknown": "{% filter nope %}x{% endfilter %}",
    "with": "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "with-outer": "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "with-empty": "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}",
    "with-tuple": "{% with a, b = 1, 2 %}{{ a }}{% endwith %}",
    "with-parens": "{% with (a, b) = (1, 2) %}{{ b }}{% endwith %}",
    "generation": "{% generation %}a{{ n }}b{% endgeneration %}c",
    "generation-scope": "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}",
    "generation-loop": "{% for x in l %}{%- generation -%} {{ x }} {%- endgeneration -%} ; {% endfor %}",
    "generation-break": "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "block": "a{% block b %}x{{ n }}{% endblock %}c",
    "block-named-end": "{% block b %}x{% endblock b %}",
    "block-twice": "{% block b %}{% endblock %}{% block b %}{% endblock %}",
    "block-sees-set": "{% set q = 1 %}{% block b %}{{ q }}{% endblock %}",
    "block-sees-given-reset": "{% set n = 1 %}{% block b %}{{ n }}{% set n = 2 %}{{ n }}{% endblock %}{{ n }}",
    "block-loop": "{% for x in l %}{% block b %}[{{ x }}]{% endblock %}{% endfor %}",
    "block-loop-scoped": "{% for x in l %}{% block b scoped %}[{{ x }}{{ loop.index }}]{% endblock %}{% endfor %}",
    "block-macro": "{% macro m() %}mm{% endmacro %}{% block b %}{{ m() }}{% endblock %}",
    "autoescape-false": "{% autoescape false %}{{ html }}{% endautoescape %}",
    "print": "{% print 1, 2 %}",
    "print-none": "{% print %}x",
    "do": "{% do l.append(1) %}",
    "include": "{% if no %}{% include 'x' %}{% endif %}a",
    "unknown-tag": "{% nope %}",
    "unknown-end": "{% endif %}",
    "wrong-end": "{% if 1 %}{% endfor %}",
    "unclosed": "{% if 1 %}x",
    "unclosed-for": "{% for x in l %}",
    "unclosed-tag": "{% if 1",
    "unclosed-var": "{{ 1",
    "unclosed-comment": "{# abc",
    "unclosed-raw": "{% raw %}{{ x }}",
    "bad-close": "{{ 1 %}",
    "bad-close-2": "{% if 1 }}x{% endif %}",
    "extra-brace": "{{ {'a': 1} }}{{ {'a': {'b': 2}}['a']['b'] }}",
    "dict-close": "{{ {'a': {'b': 2}} }}",
    "brace-text": "{ {a} }} %} #} {",
    "comment": "a{# x {{ y }} {% z %} #}b",
    "comment-trim": "a {#- x -#} b\n{# c #}\nd\n   {# e #}\n  f",
    "comment-plus": "a\n  {#+ x +#}\nb",
    "raw": "{% raw %}{{ x }}{% if %}{# #}{% endraw %}",
    "raw-trim": "a {%- raw -%} \n {{ x }} \n {%- endraw -%} b",
    "raw-lines": "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb",
    "raw-plus": "a\n  {%+ raw %}x{%+ endraw +%}\nb",
    "trim-blocks": "{% if 1 %}\na\n{% endif %}\nb\n",
    "trim-blocks-crlf": "{% if 1 %}\r\na\r\n{% endif %}\r\nb\r\n",
    "trim-var": "{{ 1 }}\n{{ 2 }}\n",
    "lstrip": "a\n   {% if 1 %}\n   b\n   {% endif %}\n   c",
    "lstrip-first": "   {% if 1 %}x{% endif %}",
    "lstrip-text": "a   {% if 1 %}x{% endif %}",
    "lstrip-after-block": "{% if 1 %}   {% if 1 %}x{% endif %}{% endif %}",
    "lstrip-after-block-nl": "{% if 1 %}\n   {% if 1 %}x{% endif %}{% endif %}",
    "lstrip-after-var": "{{ 1 }}   {% if 1 %}x{% endif %}",
    "lstrip-after-var-trim": "{{ 1 -}}\n   {% if 1 %}x{% endif %}",
    "lstrip-var": "a\n   {{ 1 }}",
    "lstrip-plus": "a\n   {%+ if 1 %}x{% endif %}",
    "lstrip-unicode": "a\n\u00a0\u3000{% if 1 %}x{% endif %}",
    "minus": "a \n {%- if 1 -%} \n b \n {%- endif -%} \n c",
    "minus-var": "a {{- 1 -}} b {{ -1 }}{{-1}}{{ 1 -1 }}",
    "minus-only-left": "a\n\n{%- if 1 %}\nb{% endif %}",
    "plus-end": "{% if 1 +%}\na{% endif +%}\nb",
    "plus-var": "{{+ 1 }}",
    "trailing-newlines": "a\n\n\n",
    "trailing-one": "a\n",
    "only-newline": "\n",
    "empty": "",
    "tabs": "\t{% if 1 %}\tx\t{% endif %}\t\n\ty",
    "line-statement-off": "# for x in l\n## c\n{{ n }}",
    "colon": "{% if 1: %}x{% endif %}{% for x in l: %}{{ x }}{% endfor %}",
    "nested-quotes": "{{ \"a'b\" ~ 'c\"d' }}",
    "percent-text": "100% {{ n }}% {%if 1%}x{%endif%}",
    "unicode-name": "{% set é = 5 %}{{ é }}",
    "keyword-names": "{% set class = 1 %}{{ class }}{% set lambda = 2 %}{{ lambda }}{% set is_x = 3 %}{{ is_x }}",
    "kwarg-keyword": "{{ dict(class=1, for=2) }}",
    "if-filter-soft": "{% if no %}{{ s|nope }}{% endif %}ok",
    "if-test-soft": "{% if no %}{{ s is nope }}{% endif %}ok",
    "if-filter-hard": "{% if yes %}{{ s|nope }}{% endif %}ok",
    "for-filter-not-soft": "{% if no %}{% for x in l %}{{ x|nope }}{% endfor %}{% endif %}ok",
    "deep-if": "{% if 1 %}" * 15 + "x" + "{% endif %}" * 15,
    "loop-in-macro": "{% for x in l %}{% macro m() %}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}",
    "list-build": "{% set a = [] %}{% for x in l %}{% set a = a + [x] %}{% endfor %}{{ a }}",
    "dict-iter-sorted": "{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}",
    "generator-once": "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}",
    "generator-truth": "{{ 'y' if l|select('gt', 10) else 'n' }}",
    "generator-late-error": "{% set g = l|map(attribute='a.b') %}ok",
    "reverse-once": "{% set g = l|reverse %}{{ g|list }}{{ g|list }}",
    "cycler": "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "joiner": "{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
    "undefined-attr-error": "{{ messages[0].nope.more }}",
    "raise": "{% if messages|length == 0 %}{{ raise_exception('No messages: ' ~ n) }}{% endif %}",
    "import": "{% import 'x' as y %}",
    "from": "{% from 'x' import y %}",
    "extends": "{% extends 'x' %}",
    "self-block": "{% block a %}1{% endblock %}",
    "tojson-loop": "{% for x in u %}{{ x|tojson(indent=1) }}\n{% endfor %}",
    "nested-for-if": "{% for x in u if x.tags is defined and x.tags %}{% for t in x.tags if t != 'x' %}{{ t }}{% endfor %}{% endfor %}",
    "scope-if-for": "{% for x in l %}{% if loop.first %}{% set a = x %}{% endif %}{{ a is defined }} {% endfor %}",
    "scope-with-for": "{% set a = 1 %}{% with %}{% set a = 2 %}{% for x in [1] %}{{ a }}{% endfor %}{% endwith %}{{ a }}",
    "set-tuple-attr-mix": "{% set ns = namespace() %}{% set a, ns.b = 1, 2 %}{{ a }}{{ ns.b }}",
    "for-ns-target": "{% set ns = namespace() %}{% for ns.x in l %}{{ ns.x }}{% endfor %}",
    "if-tuple": "{% if 1, 2 %}x{% endif %}",
    "elif-after-else": "{% if 0 %}a{% else %}b{% elif 1 %}c{% endif %}",
    "block-hyphen": "{% block a-b %}{% endblock %}",
    "ternary-chain": "{{ 'a' if no else 'b' if no else 'c' }}",
    "ternary-nested-undefined": "{{ ('a' if no) is defined }}{{ ('a' if no) ~ 'x' }}",
    "string-concat-loop": "{% set out = '' %}{% for x in l %}{% set out = out ~ x %}{% endfor %}[{{ out }}]",
    "macro-whitespace": "{%- macro m(x) -%}\n  {{- x -}}\n{%- endmacro -%}\n\n{{ m(1) }}",
    "exotic-spaces": "{%\u00a0if 1\u2003%}x{% endif %}",
}

CHATS = {
    "chatml": "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content | trim + '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}",
    "inst": "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% else %}{{ m['content'] + eos_token }}{% endif %}{% endfor %}",
    "turns": "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}\n    {%- set first = messages[0]['content'] + '\\n\\n' -%}\n    {%- set rest = messages[1:] -%}\n{%- else -%}\n    {%- set first = '' -%}\n    {%- set rest = messages -%}\n{%- endif -%}\n{%- for m in rest -%}\n    {%- set role = 'model' if m['role'] == 'assistant' else m['role'] -%}\n    {{ '<start_of_turn>' + role + '\\n' + (first if loop.first else '') }}\n    {%- if m['content'] is string -%}\n        {{ m['content'] | trim }}\n    {%- elif m['content'] is iterable -%}\n        {%- for p in m['content'] -%}\n            {%- if p['type'] == 'image' -%}{{ '<image>' }}{%- elif p['type'] == 'text' -%}{{ p['text'] | trim }}{%- endif -%}\n        {%- endfor -%}\n    {%- else -%}{{ raise_exception('Invalid content type') }}{%- endif -%}\n    {{ '<end_of_turn>\\n' }}\n{%- endfor -%}\n{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}",
    "tools": "{%- if tools %}\n    {{- '<tools>' }}\n    {%- for t in tools %}\n        {{- '\\n' }}\n        {{- t | tojson }}\n    {%- endfor %}\n    {{- '\\n</tools>\\n' }}\n{%- endif %}\n{%- for m in messages %}\n    {%- if m.role == 'assistant' and m.tool_calls %}\n        {%- for c in m.tool_calls %}\n            {%- if c.function %}{%- set c = c.function %}{%- endif %}\n            {{- '<call>{\"name\": \"' ~ c.name ~ '\", \"arguments\": ' }}\n            {{- c.arguments if c.arguments is string else c.arguments | tojson }}\n            {{- '}</call>\\n' }}\n        {%- endfor %}\n    {%- elif m.role == 'tool' %}\n        {%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}{{- '<results>' }}{%- endif %}\n        {{- '\\n' ~ m.content }}\n        {%- if loop.last or loop.nextitem.role != 'tool' %}{{- '\\n</results>\\n' }}{%- endif %}\n    {%- else %}{{- m.role ~ ': ' ~ m.content ~ '\\n' }}\n    {%- endif %}\n{%- endfor %}",
    "reasoning": "{%- set ns = namespace(last=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}\n{%- for m in messages %}\n    {%- set text = m.content %}\n    {%- set think = '' %}\n    {%- if m.reasoning_content is defined and m.reasoning_content is not none %}{%- set think = m.reasoning_content %}\n    {%- elif '</think>' in text %}\n        {%- set think = text.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n        {%- set text = text.split('</think>')[-1].lstrip('\\n') %}\n    {%- endif %}\n    {{- '<' ~ m.role ~ '>' }}{%- if think and loop.index0 > ns.last %}{{- '<think>' ~ think.strip('\\n') ~ '</think>' }}{%- endif %}{{- text }}\n{%- endfor %}\n{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}",
    "macro": "{%- macro render(v, depth=0) -%}{%- if v is mapping -%}{{ '{' }}{%- for k, x in v | dictsort -%}{{ k }}:{{ render(x, depth + 1) }}{{ ',' if not loop.last }}{%- endfor -%}{{ '}' }}{%- elif v is string -%}<s>{{ v }}</s>{%- elif v is iterable -%}[{%- for x in v -%}{{ render(x, depth + 1) }}{%- endfor -%}]{%- else -%}{{ v }}{%- endif -%}{%- endmacro -%}\n{{ render(messages) }}{{ render(tools) }}",
    "dates": "Today is {{ strftime_now('%d %B %Y') }}.{% if date_string is not defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %} {{ date_string }}",
}

CHAT_INPUTS = {
    "user": dict(messages=[{"role": "user", "content": " Hi <|im_end|> 東 "}], add_generation_prompt=True),
    "system": dict(messages=[{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "<think>\nr\n</think>\n\nA"}]),
    "two-users": dict(messages=[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], add_generation_prompt=True, extra={"enable_thinking": False}),
    "parts": dict(messages=[{"role": "user", "content": [{"type": "text", "text": " t "}, {"type": "image"}]}]),
    "tools": dict(messages=[{"role": "user", "content": "w"}, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.0, "b": [None, True, "é"]}}}, {"name": "g", "arguments": "{\"x\": 1}"}]},
                            {"role": "tool", "content": "r1"}, {"role": "tool", "content": {"k": 1}}, {"role": "assistant", "reasoning_content": "\nhm\n", "content": "ok"}],
                  tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "number", "default": 1.5}}}}}]),
    "empty": dict(messages=[], add_generation_prompt=True),
}


def emit(name, source, messages=(), tools=None, add_generation_prompt=False, extra=None):
    given = {"messages": list(messages), "tools": tools, "add_generation_prompt": add_generation_prompt, "extra": extra or {}}
    result = run(source, **json.loads(json.dumps(given)))
    if " at 0x" in result.get("want", ""):
        return  # the address of an object
    given = {k: v for k, v in given.items() if v}
    if extra is VARS:
        given["extra"] = "vars"
    print(json.dumps({"name": name, "source": source, **given, **result}))


def main():
    json.dump(VARS, open("vars.json", "w"), indent=1)
    sys.stdout = open("cases.jsonl", "w")
    expressions = "\n".join(EXPRESSIONS).replace("\\\n", "\\\x00").split("\n")
    joined = []
    for e in expressions:  # a string may hold a line break: glue until the quotes close
        if joined and open_quote(joined[-1]) and joined[-1] != '"abc':
            joined[-1] += "\n" + e
        else:
            joined.append(e)
    for i, e in enumerate(joined):
        emit("expr/%d" % i, "{{ " + e.replace("\x00", "\n") + " }}", extra=VARS)
    for name, source in STATEMENTS.items():
        emit("stmt/" + name, source, extra=VARS)
    for name, source in CHATS.items():
        for which, given in CHAT_INPUTS.items():
            given = dict(given)
            given["extra"] = {"bos_token": "<s>", "eos_token": "</s>", **given.get("extra", {})}
            emit("chat/" + name + "/" + which, source, **given)


def open_quote(s):
    quote, i = "", 0
    while i < len(s):
        c = s[i]
        if quote and c == "\\":
            i += 1
        elif quote and c == quote:
            quote = ""
        elif not quote and c in "'\"":
            quote = c
        i += 1
    return bool(quote)


if __name__ == "__main__":
    main()
