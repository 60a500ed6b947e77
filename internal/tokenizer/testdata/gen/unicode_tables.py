"""Writes ../../unicode.tab: the character classes and mappings that Hugging Face's
`tokenizers` uses, found by asking it, so that they are pinned to its Unicode
version and not to that of the Go toolchain.

    pip install tokenizers==0.23.3 sentencepiece protobuf && python unicode_tables.py

Layout (little endian): four two-stage tables (4,352 block numbers as uint16,
the number of blocks as uint16, blocks of 256 bytes), then four maps (count as
uint32, sorted code points as uint32, ends of strings as uint32, UTF-8 text):
canonical decompositions, compatibility decompositions, lower case, and
compositions (first code point << 32 | second would not fit, so the key map is
a list of 12-byte triples first, second, composed).
"""

import struct
import sys
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

CPS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATS = ["Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"]


def matched(split):
    """Code points that a pre-tokenizer with behaviour "removed" takes out."""
    out = []
    for i in range(0, len(CPS), 4096):
        block = CPS[i:i + 4096]
        keep = bytearray(len(block))
        for _, (a, b) in split.pre_tokenize_str("".join(map(chr, block))):
            for j in range(a, b):
                keep[j] = 1
        out += [c for c, k in zip(block, keep) if not k]
    return set(out)


def regex(pattern):
    return matched(P.Split(Regex(pattern), "removed"))


def mapping(normalizer):
    out = {}
    for c in CPS:
        s = normalizer.normalize_str(chr(c))
        if s != chr(c):
            out[c] = s
    return out


def word_chars():
    """Rust's \\w, seen through an added token that only stands between non-word characters."""
    t = Tokenizer(models.WordLevel({"u": 0}, unk_token="u"))
    t.add_tokens([AddedToken("\U000F0000", single_word=True, normalized=False)])
    word = set()
    for i in range(0, len(CPS), 1024):
        block = [c for c in CPS[i:i + 1024] if c != 0xF0000]
        ids = t.encode(" ".join(chr(c) + "\U000F0000" for c in block), add_special_tokens=False)
        found = {a for a, b in (o for o, i in zip(ids.offsets, ids.ids) if i == 1)}
        for k, c in enumerate(block):
            if 3 * k + 1 not in found:
                word.add(c)
    return word


def combining_classes(nfd):
    ccc = {}
    for c in CPS:
        s = nfd.normalize_str("a\u0334" + chr(c) + "\u0301")  # classes 1 and 230
        k = unicodedata.combining(chr(c))
        moved = chr(c) + "\u0334" in nfd.normalize_str("a\u0301\u0334" + chr(c)) or \
            nfd.normalize_str("a\u0345" + chr(c)) == "a" + chr(c) + "\u0345"  # class 240
        if k and (moved or c == 0x345):
            ccc[c] = k
        elif moved and c != 0x61:
            # Newer than Python's tables: find the class by where it sorts.
            lo = [u for u, x in ((0x334, 1), (0x3099, 8), (0x94D, 9), (0x5B0, 10), (0x327, 202), (0x316, 220), (0x301, 230), (0x35C, 233))
                  if nfd.normalize_str("a" + chr(u) + chr(c)).index(chr(c)) == 2]
            ccc[c] = unicodedata.combining(chr(lo[-1])) if lo else 1
            print("class guessed", hex(c), ccc[c], file=sys.stderr)
    return ccc


def charsmap(rules):
    """A normalizer with SentencePiece's character map that replaces single characters."""
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/rules", "w") as f:
            f.write("".join(f"{ord(a):04X}\t{ord(b):04X}\n" for a, b in rules))
        with open(d + "/text", "w") as f:
            f.write("hello world this is a text of words\n" * 50)
        sentencepiece.SentencePieceTrainer.train(input=d + "/text", model_prefix=d + "/m", vocab_size=30, model_type="unigram",
                                                 normalization_rule_tsv=d + "/rules", hard_vocab_limit=False, minloglevel=2)
        m = sentencepiece_model_pb2.ModelProto()
        m.ParseFromString(open(d + "/m.model", "rb").read())
        return N.Precompiled(m.normalizer_spec.precompiled_charsmap)


def grapheme_sets():
    """Characters that join the one before, that join the one behind, and that join none.

    Precompiled replaces a grapheme cluster below 6 bytes as a whole by what its
    first character maps to, which shows where clusters end.
    """
    a = charsmap([("a", "X")])
    extend = {c for c in CPS if a.normalize_str("a" + chr(c)) == "X"}
    small = [c for c in CPS if 0 < c < 0x10000 and c != 0x51 and unicodedata.category(chr(c)) not in ("Cn", "Co")
             and not 0x3400 <= c <= 0x9FFF and not 0xAC00 <= c <= 0xD7A3]
    small += range(0x11000, 0x12000)
    q = charsmap([(chr(c), "Q") for c in small])
    prepend = {c for c in small if q.normalize_str(chr(c) + "a") == "Q"}
    control = {c for c in small if c < 0x10000 and q.normalize_str(chr(c) + "\u0301") != "Q"}
    return extend, prepend, control


def two_stage(values):
    blocks, index = {}, []
    for i in range(0, 0x110000, 256):
        b = bytes(values[i:i + 256])
        index.append(blocks.setdefault(b, len(blocks)))
    return struct.pack("<4352H", *index) + struct.pack("<H", len(blocks)) + b"".join(blocks)


def string_map(m):
    keys = sorted(m)
    text, ends = b"", []
    for k in keys:
        text += m[k].encode()
        ends.append(len(text))
    return struct.pack("<I", len(keys)) + struct.pack(f"<{len(keys)}I", *keys) + struct.pack(f"<{len(keys)}I", *ends) + text


def main():
    a, b, c, d = bytearray(0x110000), bytearray(0x110000), bytearray(0x110000), bytearray(0x110000)

    for k, cat in enumerate(CATS):
        if cat == "Cn":
            continue
        for cp in regex(r"\p{%s}" % cat):
            a[cp] = k
    nfd, nfkd, nfc = mapping(N.NFD()), mapping(N.NFKD()), mapping(N.NFC())
    lower = mapping(N.Lowercase())
    hangul = set(range(0xAC00, 0xAC00 + 11172))

    def flag(table, bit, cps):
        for cp in cps:
            table[cp] |= 1 << bit

    flag(a, 5, regex(r"\s"))
    flag(a, 6, regex(r"\p{Han}"))
    flag(a, 7, nfd)
    flag(b, 0, matched(P.Punctuation("removed")))
    clean = N.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    flag(b, 1, [cp for cp in CPS if clean.normalize_str(chr(cp)) == ""])
    strip = N.StripAccents()
    flag(b, 2, [cp for cp in CPS if strip.normalize_str(chr(cp)) == ""])
    digits = P.Digits(individual_digits=True)
    flag(b, 3, [cp for cp in CPS if len(digits.pre_tokenize_str("a" + chr(cp))) == 2])
    flag(b, 4, word_chars())
    marks = N.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    flag(b, 5, [cp for cp in CPS if marks.normalize_str(chr(cp)) == ""])
    flag(b, 6, nfkd)
    ccc = combining_classes(N.NFD())
    for cp, k in ccc.items():
        c[cp] = k

    for bit, cps in enumerate(grapheme_sets()):
        flag(d, bit, cps)

    compose = []
    comp = N.NFC()
    for cp, s in nfd.items():
        if cp in hangul or cp in nfc:
            continue
        first = unicodedata.normalize("NFD", chr(cp)) and s
        # The last character of the decomposition joins the composition of the rest.
        head, last = comp.normalize_str(first[:-1]), first[-1]
        if len(head) == 1 and comp.normalize_str(head + last) == chr(cp):
            compose.append((ord(head), ord(last), cp))
    compose.sort()
    # May change under NFC: changes alone, or can join what stands before it.
    flag(b, 7, set(nfc) | {x[1] for x in compose} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3)))

    out = two_stage(a) + two_stage(b) + two_stage(c) + two_stage(d)
    plain = {k: v for k, v in nfd.items() if k not in hangul}
    compat = {k: v for k, v in nfkd.items() if k not in hangul and v != nfd.get(k)}
    out += string_map(plain) + string_map(compat) + string_map(lower)
    out += struct.pack("<I", len(compose)) + b"".join(struct.pack("<III", *x) for x in compose)
    with open("../../unicode.tab", "wb") as f:
        f.write(out)
    print(len(out), "bytes;", len(plain), "decompositions,", len(compat), "compatibility,", len(lower), "lower,", len(compose), "compositions,", len(ccc), "classes")


main()
