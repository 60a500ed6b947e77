"""Writes cases for TestDifferential: python diff_cases.py tokenizer.json out.jsonl [count] [seed]

Needs only the package `tokenizers`. Texts are made from the tokenizer's own
vocabulary, from many scripts, code, emoji, control tokens, white space and
random code points.
"""

import glob
import gzip
import io
import json
import random
import sys
import sysconfig

from tokenizers import Tokenizer

SCRIPTS = [(0x41, 0x7B), (0xC0, 0x180), (0x370, 0x400), (0x400, 0x530), (0x531, 0x58A), (0x591, 0x5F5), (0x600, 0x700),
           (0x700, 0x750), (0x780, 0x7B2), (0x900, 0x980), (0x980, 0xA00), (0xA00, 0xA80), (0xA80, 0xB00), (0xB00, 0xB80),
           (0xB80, 0xC00), (0xC00, 0xC80), (0xC80, 0xD00), (0xD00, 0xD80), (0xD80, 0xE00), (0xE00, 0xE5C), (0xE80, 0xEE0),
           (0xF00, 0xFD0), (0x1000, 0x10A0), (0x10A0, 0x1100), (0x1100, 0x1200), (0x1200, 0x1380), (0x13A0, 0x1400),
           (0x1780, 0x17FA), (0x1E00, 0x2000), (0x3040, 0x3100), (0x3100, 0x3130), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4),
           (0xF900, 0xFB00), (0xFB00, 0xFE00), (0xFE70, 0xFF00), (0xFF01, 0xFFEF), (0x10000, 0x10100), (0x1D400, 0x1D800),
           (0x20000, 0x20100), (0x30000, 0x30100)]
SPECIAL_CHARS = list("\u0300\u0301\u0308\u0327\u0345\u200b\u200c\u200d\u200e\u2028\u2029\u202f\u3000\u00a0\u0085\ufeff\ufffd\u00ad\u2060"
                     "\u1680\u180e\u0000\u0001\u001f\u007f\u009f\ue000\U000F0000\U0010FFFF\u017f\u212a\u0130\u0131\ufb01\u2581\u0e33\u1e9e\u03c2\uff9e\u0c4d")
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\t\t", "    ", "\u3000", "\u00a0", "\u2003 ", "        ", "\r", "\v", "\f", " \r\n\r\n  "]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "❤️", "☕", "🏳️‍🌈", "1️⃣", "🤷🏻‍♀️", "✨", "🫠", "🪿"]
WORDS = ("I'm you're he'LL they'VE we'd it's IT'S don't 'tis o'clock camelCaseWord HTTPServer snake_case_name kebab-case x1y2 3.14159 1,000,000 "
         "12345678 0xDEADBEEF C++ C# a+b==c && || != -> => :: // /* */ #include <stdio.h> foo(bar) [0] {} \\n \\u00e9 $100 50% #tag @user "
         "https://example.com/a?b=c&d=e user@example.org naïve façade Straße ÉCOLE Größe œuvre İstanbul ǅungla ﬁne ½ ² Ⅷ ① ٣٤٥ १२३ 一二三 東京 "
         "안녕하세요 สวัสดี नमस्ते שלום مرحبا Привет Γειά Xin_chào việt ... --- ___ *** ``` \"quoted\" ‘curly’ “double” « » „ – — … • → ∑ √ € £ ¥ ©").split()


def words(rnd, n):
    return "".join(rnd.choice(WORDS) + rnd.choice(SPACES[:1] * 6 + SPACES + [""]) for _ in range(n))


def script(rnd, n):
    out = ""
    for _ in range(n):
        lo, hi = rnd.choice(SCRIPTS)
        for _ in range(rnd.randint(1, 8)):
            out += chr(rnd.randrange(lo, hi))
        out += rnd.choice(["", " ", " ", "\n", ".", ", ", rnd.choice(SPECIAL_CHARS)])
    return out


def noise(rnd, n):
    out = ""
    for _ in range(n):
        k = rnd.random()
        if k < 0.3:
            c = rnd.randrange(0x110000)
            out += "?" if 0xD800 <= c < 0xE000 else chr(c)
        elif k < 0.5:
            out += chr(rnd.randrange(0x3000))
        elif k < 0.7:
            out += chr(rnd.randrange(128))
        elif k < 0.85:
            out += rnd.choice(SPECIAL_CHARS)
        else:
            out += rnd.choice(SPACES)
    return out


def texts(tok, count, seed):
    rnd = random.Random(seed)
    size = tok.get_vocab_size()
    added = [t.content for t in tok.get_added_tokens_decoder().values()]
    # Few cases are made of the programs in this folder, many of Python's own.
    files = sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py"))[:120] if count > 1000 else sorted(glob.glob("*.py"))
    code = [open(f, encoding="utf-8", errors="replace").read() for f in files]
    yield from ["", " ", "\n", "a", "  a", "a  ", "\n\n", "Hello world", "a" * 3000, " " * 300, "\n" * 300, "ab" * 100, "é" * 50, "😀" * 30, "!" * 70, "1" * 70]
    for t in added[:count // 50]:
        yield from (t, " " + t + " ", "x" + t + "y", t + t, t[:-1], t[1:])
    yield from code[:count // 500]
    for i in range(count):
        k = i % 10
        if k < 2:
            yield words(rnd, rnd.randint(1, 25))
        elif k < 4:
            yield script(rnd, rnd.randint(1, 12))
        elif k == 4:
            yield noise(rnd, rnd.randint(1, 40))
        elif k < 7:
            yield tok.decode([rnd.randrange(size) for _ in range(rnd.randint(1, 30))], skip_special_tokens=k == 5)
        elif k == 7:
            c = rnd.choice(code)
            a = rnd.randrange(max(1, len(c) - 400))
            yield c[a:a + rnd.randint(1, 400)]
        elif k == 8:
            parts = []
            for _ in range(rnd.randint(1, 8)):
                parts.append(rnd.choice([lambda: rnd.choice(added) if added else "", lambda: words(rnd, 2), lambda: rnd.choice(SPACES), lambda: script(rnd, 1), lambda: rnd.choice(EMOJI)])())
            yield "".join(parts)
        else:
            yield "".join(rnd.choice([words(rnd, 2), script(rnd, 2), rnd.choice(EMOJI), rnd.choice(SPACES), noise(rnd, 2), rnd.choice(code[rnd.randrange(len(code))].split("\n"))]) for _ in range(rnd.randint(2, 8)))


def create(path):
    """Opens a file for writing text, compressed without a date if its name says so."""
    if not path.endswith(".gz"):
        return open(path, "w", encoding="utf-8")
    return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8")


def main():
    path, out = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    tok = Tokenizer.from_file(path)
    tok.no_truncation()
    tok.no_padding()
    plain = Tokenizer.from_file(path)
    plain.no_truncation()
    plain.no_padding()
    plain.encode_special_tokens = True
    decoder = tok.get_added_tokens_decoder().values()
    # Tokens that look like control tokens but are not marked as special are
    # never found in plain text by design; such texts are compared parsed only.
    loose = [t.content for t in decoder if not t.special and (t.content.startswith("<|") and t.content.endswith("|>") or t.content.startswith("<｜") and t.content.endswith("｜>"))]
    seen = set()
    with create(out) as f:
        for text in texts(tok, count, seed):
            if text in seen:
                continue
            seen.add(text)
            ids = tok.encode(text, add_special_tokens=False).ids
            special = tok.encode(text).ids
            p = None
            if not any(t in text for t in loose):
                p = plain.encode(text, add_special_tokens=False).ids
            f.write(json.dumps({"text": text, "ids": ids, "special": special, "plain": p,
                                "decoded": tok.decode(special, skip_special_tokens=False), "skipped": tok.decode(special, skip_special_tokens=True)}) + "\n")


if __name__ == "__main__":
    main()
