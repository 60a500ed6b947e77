"""Writes ../patterns.json.gz: how Oniguruma, through Hugging Face's tokenizers,
cuts texts by regular expressions.

    pip install tokenizers==0.21.1
    python patterns.py

Everything is made from a fixed seed.
"""

import gzip
import json
import random
import re

from tokenizers import Regex, pre_tokenizers

RND = random.Random(7)
PATTERNS = [
    # repetition: Ruby's {2}+ and {2}? repeat a{2}
    r"a{2}+", r"a{2}?", r"a{1,3}+", r"a{1,3}?", r"a{,2}", r"a{,}", r"a{x}", r"a++b|a", r"(?:a*)*b|.", r"(?:a?){3}b?",
    r"(?:|a)+", r"(?:a|)+b", r"(a*)+$", r"x*", r"(?:ab?){2,3}", r"(?:ab??){2,3}c?", r"a.{0,2}?c", r"\w+?\b", r"é+",
    r"(?:[ab]+?c|a)+", r"(?:(?=a)a|b)*c", r"(a|ab)(c|bcd)", r"(?>a+)b|a", r"\n+|.", r"(?m:a.b)|.",
    # places
    r"(?<=a|ab)c", r"(?<!ab)c", r"\bw\b|\B.", r"^.", r".$", r"^", r"$", r"\Aa|a\z|a\Z", r"(?<=^|,)[^,]*", r"(?<=\n)x|\nx",
    r"(?=a)", r"(?!a)(?:a|b)", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?=(\d{3})+(?!\d))", r"\s+(?!\S)|\s+",
    # classes
    r"[a-z&&[^aeiou]]+", r"[[a-c]x]+", r"[^\W\d_]+", r"[\w]+", r"[\W]+", r"\w+", r"\W+", r"[]a]", r"[^]a]", r"[a\-z]+", r"[\]\[]",
    r"\h+", r"\p{^L}+", r"\P{L}+", r"\p{Hiragana}+", r"\u00e9|\x41|\x{6F22}", r"\t|\f|\v|\e|\a",
    # case, groups
    r"(?i)K", r"(?i:[^a-c])", r"a(?i)b|c", r"(?i)ſ|s", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"(?#c)a", r"(?<n>a)b",
]
for name in ("ggufpre.go", "patterns.go"):
    PATTERNS += re.findall(r"^\t(?:pattern)\w+\s*= `([^`]*)`$", open("../../" + name, encoding="utf-8").read(), re.M)
ALPHABET = list("aabbcc  \n\nxyzw1234567'ABCKſsstt,,._-éß漢ひK\u0301½²ⅷ\t[]$^\u200c")
ALPHABET += ["ab", "abc", "'s", "'LL", "12345678", "  \n ", "straSSe"]
texts = ["".join(RND.choice(ALPHABET) for _ in range(RND.randint(0, 24))) for _ in range(120)]
cases = []
for p in PATTERNS:
    if "AFMoE" in p:
        continue
    split = pre_tokenizers.Split(Regex(p), "isolated")
    cases.append({"pattern": p, "words": [[w for w, _ in split.pre_tokenize_str(t)] for t in texts]})
with open("../patterns.json.gz", "wb") as f:
    f.write(gzip.compress(json.dumps({"texts": texts, "cases": cases}, ensure_ascii=False).encode(), mtime=0))
print(len(cases), "patterns")
