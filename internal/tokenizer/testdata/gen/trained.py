"""Trains small tokenizers, one for each kind of pipeline, and writes what
Hugging Face's tokenizers makes of test texts: ../NAME.json and ../NAME.jsonl.gz;
and the same for SentencePiece and tiktoken.

    pip install tokenizers==0.23.3 sentencepiece protobuf tiktoken
    python trained.py [folder] [count]

Everything is made from a fixed seed and the texts in this folder.
"""

import base64
import json
import os
import random
import subprocess
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as P

import diff_cases

OUT = sys.argv[1] if len(sys.argv) > 1 else ".."
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 300
SUFFIX = ".jsonl.gz" if COUNT <= 1000 else ".jsonl"
RND = random.Random(7)
CORPUS = [open(f, encoding="utf-8").read() for f in ("trained.py", "diff_cases.py", "unicode_tables.py")] * 3
CORPUS += [diff_cases.words(RND, 40) for _ in range(400)] + [diff_cases.script(RND, 6) for _ in range(150)]
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def charsmap(full):
    """nmt_nfkc, or a small map with keys and replacements of several lengths."""
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/text", "w") as f:
            f.write("hello world this is a text of words\n" * 50)
        more = {"normalization_rule_name": "nmt_nfkc"}
        if not full:
            rules = [(chr(c), chr(c - 0xFEE0)) for c in range(0xFF01, 0xFF5F)] + [("ﬁ", "fi"), ("½", "1/2"), ("\u00a0", " "), ("\t", " "), ("\n", " "), ("e\u0301", "é"), ("が", "が"), ("a\u0308", "ä"), ("㍿", "株式会社"), ("\u00ad", "")]
            with open(d + "/rules", "w") as f:
                f.write("".join(" ".join(f"{ord(c):04X}" for c in a) + "\t" + " ".join(f"{ord(c):04X}" for c in b) + "\n" for a, b in rules if a != b))
            more = {"normalization_rule_tsv": d + "/rules"}
        sentencepiece.SentencePieceTrainer.train(input=d + "/text", model_prefix=d + "/m", vocab_size=30, model_type="unigram", hard_vocab_limit=False, minloglevel=2, **more)
        m = sentencepiece_model_pb2.ModelProto()
        m.ParseFromString(open(d + "/m.model", "rb").read())
        return m.normalizer_spec.precompiled_charsmap


def write(name, tok):
    path = os.path.join(OUT, name + ".json")
    tok.save(path, pretty=False)
    subprocess.run([sys.executable, "diff_cases.py", path, os.path.join(OUT, name + SUFFIX), str(COUNT)], check=True)


def train(tok, trainer, end=0x110000):
    """Trains on the characters below end; the others stay unknown."""
    tok.train_from_iterator(("".join(c for c in text if ord(c) < end) for text in CORPUS), trainer)
    return tok


def byte_level():
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = P.Sequence([P.Split(Regex(QWEN2), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    train(tok, trainers.BpeTrainer(vocab_size=700, initial_alphabet=P.ByteLevel.alphabet(), special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
    tok.add_tokens([AddedToken("<think>", normalized=False), AddedToken("naïve", single_word=True), AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True, normalized=False), AddedToken("<|im", normalized=False)])
    tok.add_special_tokens([AddedToken("<both>", lstrip=True, rstrip=True, normalized=True)])
    return tok


def byte_gaps():
    """A byte-level vocabulary that lacks some bytes, as SmolLM2's does."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=True, use_regex=True)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel()
    return train(tok, trainers.BpeTrainer(vocab_size=500, special_tokens=["<|endoftext|>"]))


def llama2():
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.pre_tokenizer = None
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.pre_tokenizer = P.Split("▁", "merged_with_next")
    train(tok, trainers.BpeTrainer(vocab_size=900, limit_alphabet=150, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]))
    spec = json.loads(tok.to_str())
    spec["pre_tokenizer"] = None
    spec["added_tokens"] = spec["added_tokens"][:3]
    tok = Tokenizer.from_str(json.dumps(spec))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tok


def metaspace_bpe():
    tok = Tokenizer(models.BPE(unk_token="<unk>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tok.pre_tokenizer = P.Metaspace(prepend_scheme="first", split=True)
    tok.decoder = decoders.Metaspace(prepend_scheme="first")
    train(tok, trainers.BpeTrainer(vocab_size=600, limit_alphabet=120, special_tokens=["<unk>", "<s>", "</s>"]))
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    return tok


def unigram(fallback, full=False):
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(full)), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    tok.pre_tokenizer = P.Metaspace(prepend_scheme="always")
    tok.decoder = decoders.Metaspace(prepend_scheme="always")
    train(tok, trainers.UnigramTrainer(vocab_size=700, special_tokens=["<pad>", "</s>", "<unk>"] + ([f"<0x{b:02X}>" for b in range(256)] if fallback else []), unk_token="<unk>"), 0x180)
    spec = json.loads(tok.to_str())
    spec["model"]["byte_fallback"] = fallback
    spec["added_tokens"] = spec["added_tokens"][:3]
    if fallback:
        spec["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, spec["decoder"]]}
    tok = Tokenizer.from_str(json.dumps(spec))
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return tok


def wordpiece():
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = P.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    train(tok, trainers.WordPieceTrainer(vocab_size=800, limit_alphabet=200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tok


def wordlevel():
    tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tok.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()])
    tok.pre_tokenizer = P.Sequence([P.Whitespace(), P.Punctuation("contiguous")])
    return train(tok, trainers.WordLevelTrainer(vocab_size=500, special_tokens=["<unk>"]))


def clip():
    tok = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="@", fuse_unk=True))
    tok.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tok.pre_tokenizer = P.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True)
    tok.decoder = decoders.BPEDecoder(suffix="</w>")
    return train(tok, trainers.BpeTrainer(vocab_size=600, limit_alphabet=200, end_of_word_suffix="</w>", continuing_subword_prefix="@", special_tokens=["<unk>", "<|startoftext|>", "<|endoftext|>"]))


def splits(i):
    """Characters as tokens, so that what the pre-tokenizers do is all that counts."""
    pre = [
        [P.WhitespaceSplit(), P.Digits(individual_digits=False), P.Punctuation("merged_with_previous")],
        [P.Split("e", "merged_with_next"), P.Split(Regex(r"[aou]\w?"), "merged_with_previous"), P.CharDelimiterSplit("_"), P.FixedLength(3)],
        [P.Split(Regex(r"\d{1,3}(?=(?:\d{3})*\b)"), "isolated"), P.Split(Regex(r"\p{Lu}+(?=\p{Ll})|\P{L}+|[^\p{Ll}\s]"), "contiguous"), P.Punctuation("removed"), P.Metaspace(prepend_scheme="never", split=False)],
    ][i]
    norm = [normalizers.NFKD(), normalizers.BertNormalizer(strip_accents=False, lowercase=False), normalizers.Sequence([normalizers.Strip(), normalizers.Replace("ing", "ING")])][i]
    tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tok.normalizer = norm
    tok.pre_tokenizer = P.Sequence(pre)
    tok.decoder = decoders.Fuse()
    return train(tok, trainers.WordLevelTrainer(vocab_size=700, special_tokens=["<unk>"]))


def sentencepiece_model(kind):
    """A folder with tokenizer.model; ids are those of text without control tokens."""
    path = os.path.join(OUT, "sentencepiece_" + kind)
    os.makedirs(path, exist_ok=True)
    with open(path + "/text", "w") as f:
        f.write("\n".join("".join(c for c in text if ord(c) < 0x180) for text in CORPUS))
    more = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    if kind == "unigram":
        rules = "".join(f"{c:04X}\t{c - 0xFEE0:04X}\n" for c in range(0xFF01, 0xFF5F)) + "FB01\t0066 0069\n00A0\t0020\n0009\t0020\n000A\t0020\n0061 0308\t00E4\n00AD\t\n0061 0308 0301\t01DF\n"
        with open(path + "/rules", "w") as f:
            f.write(rules)
        more = {"normalization_rule_tsv": path + "/rules"}
    sentencepiece.SentencePieceTrainer.train(input=path + "/text", model_prefix=path + "/tokenizer", vocab_size=900, model_type=kind, character_coverage=0.99,
                                             byte_fallback=kind == "bpe", minloglevel=2, num_threads=1, **more)
    for name in ("text", "rules", "tokenizer.vocab"):
        if os.path.exists(path + "/" + name):
            os.remove(path + "/" + name)
    with open(path + "/tokenizer_config.json", "w") as f:
        json.dump({"tokenizer_class": "LlamaTokenizer" if kind == "bpe" else "T5Tokenizer"}, f)
    sp = sentencepiece.SentencePieceProcessor(model_file=path + "/tokenizer.model")
    with diff_cases.create(path + SUFFIX) as f:
        for text in diff_cases.texts(byte_level(), COUNT, 1):
            ids = sp.encode(text)
            special = [sp.bos_id()] + ids if kind == "bpe" else ids + [sp.eos_id()]
            f.write(json.dumps({"text": text, "plain": ids, "special": special, "decoded": None if sp.unk_id() in ids else sp.decode(ids)}) + "\n")


def tiktoken_ranks():
    import tiktoken
    tok = byte_level()
    raw = {c: b for b, c in bytes_to_unicode().items()}
    vocab = [t for t, _ in sorted(tok.get_vocab(with_added_tokens=False).items(), key=lambda x: x[1]) if not t.startswith("<|")]
    ranks = {bytes(raw[c] for c in t): i for i, t in enumerate(vocab)}
    with open(os.path.join(OUT, "kimi.tiktoken"), "w") as f:
        f.write("".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items()))
    cased = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
    lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
    short = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    pattern = "|".join([r"[\p{Han}]+", cased + "*" + lower + "+" + short, cased + "+" + lower + "*" + short, r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
    enc = tiktoken.Encoding("kimi", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    with diff_cases.create(os.path.join(OUT, "kimi_tiktoken" + SUFFIX)) as f:
        for text in diff_cases.texts(tok, COUNT, 1):
            ids = enc.encode_ordinary(text)
            f.write(json.dumps({"text": text, "ids": ids, "special": ids, "plain": ids, "decoded": enc.decode(ids), "skipped": enc.decode(ids)}) + "\n")


def bytes_to_unicode():
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    out = {b: chr(b) for b in keep}
    for b in range(256):
        out.setdefault(b, chr(256 + len([x for x in range(b) if x not in keep])))
    return out


if len(sys.argv) > 3:  # only some
    for name in sys.argv[3:]:
        if name == "other":
            sentencepiece_model("bpe")
            sentencepiece_model("unigram")
            tiktoken_ranks()
            continue
        write(name, eval({"unigram": "unigram(False)", "unigram_bytes": "unigram(True)", "unigram_nfkc": "unigram(False, True)"}.get(name, name[:-1] + f"({name[-1]})" if name[-1].isdigit() else name + "()")))
    sys.exit()
sentencepiece_model("bpe")
sentencepiece_model("unigram")
tiktoken_ranks()
write("byte_level", byte_level())
write("byte_gaps", byte_gaps())
write("llama2", llama2())
write("metaspace_bpe", metaspace_bpe())
write("unigram", unigram(False))
write("unigram_bytes", unigram(True))
write("wordpiece", wordpiece())
write("wordlevel", wordlevel())
write("clip", clip())
for i in range(3):
    write(f"splits{i}", splits(i))
if COUNT > 1000:
    write("unigram_nfkc", unigram(False, full=True))
