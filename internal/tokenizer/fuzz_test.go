package tokenizer

import (
	"errors"
	"os"
	"slices"
	"testing"
	"unicode/utf8"
)

var fuzzTexts = []string{"", "Hello, world!", "I'm  naïve\r\n\t1234 東京 <|im_end|>", "\xff\xfe<\xe2\x82", "a\u0301\u0327 ▁▁ <0x41>", "👨‍👩‍👧 ½ ﬁ"}

// FuzzEncode checks that decoding gives the text back, where the tokenizer
// promises that, and that parts encode as their concatenation.
func FuzzEncode(f *testing.F) {
	for i, s := range fuzzTexts {
		f.Add(s, i)
	}
	ranks := loadRanks(f, "testdata/kimi.tiktoken")
	names := []string{"byte_level", "llama2", "unigram_bytes", "wordpiece", "clip", "splits2"}
	toks := []*Tokenizer{ranks}
	for _, n := range names {
		toks = append(toks, loadTokenizer(f, "testdata/"+n+".json"))
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		for i, tok := range toks {
			ids := must(tok.Encode(nil, text, Options{}))
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("%d: id %d of %d", i, id, tok.Size())
				}
			}
			got := tok.Decode(ids, false)
			if want := validText([]byte(text)); i == 0 && got != want {
				t.Fatalf("%q became %q", text, got)
			}
			if !utf8.ValidString(got) {
				t.Fatalf("%d: %q is not UTF-8", i, got)
			}
			k := max(0, min(len(text), cut))
			parts := must(tok.EncodeParts(nil, []Part{{text[:k], false}, {text[k:], false}}, Options{}))
			if !slices.Equal(parts, ids) {
				t.Fatalf("%d: %q cut at %d: %v, whole %v", i, text, k, parts, ids)
			}
		}
	})
}

// FuzzFromJSON checks that no tokenizer.json makes loading or use panic, or
// short texts long.
func FuzzFromJSON(f *testing.F) {
	for _, n := range []string{"byte_level", "llama2", "unigram", "wordpiece", "wordlevel", "clip", "splits0", "splits1", "splits2", "metaspace_bpe"} {
		data, err := os.ReadFile("testdata/" + n + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		tok, err := FromJSON(data)
		if err != nil {
			return
		}
		around := len(tok.post.before) + len(tok.post.after)
		for _, s := range fuzzTexts {
			ids, err := tok.Encode(nil, s, Options{AddSpecial: true, ParseSpecial: true})
			if errors.Is(err, ErrTooManySteps) {
				continue
			}
			if n := len(ids) - around; n > maxGrowth*(len(s)+1) {
				t.Errorf("%d bytes became %d ids", len(s), n)
			}
			tok.Decode(ids, true)
		}
	})
}

// FuzzSentencePiece does the same for tokenizer.model.
func FuzzSentencePiece(f *testing.F) {
	for _, kind := range []string{"bpe", "unigram"} {
		data, err := os.ReadFile("testdata/sentencepiece_" + kind + "/tokenizer.model")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<17 {
			return
		}
		tok, err := (&dirConfig{}).fromSPM(data)
		if err != nil {
			return
		}
		tok.finish(nil)
		for _, s := range fuzzTexts {
			tok.Decode(must(tok.Encode(nil, s, Options{AddSpecial: true, ParseSpecial: true})), true)
		}
	})
}

// FuzzNormalizationForms checks the forms' own laws.
func FuzzNormalizationForms(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, d := nfc.apply(nil, s), nfd.apply(nil, s)
		if nfc.apply(nil, c) != c || nfd.apply(nil, d) != d || nfc.apply(nil, d) != c || nfd.apply(nil, c) != d {
			t.Errorf("%q: NFC %q, NFD %q", s, c, d)
		}
		kc, kd := nfkc.apply(nil, s), nfkd.apply(nil, s)
		if nfkc.apply(nil, kc) != kc || nfkc.apply(nil, kd) != kc || nfkd.apply(nil, kc) != kd {
			t.Errorf("%q: NFKC %q, NFKD %q", s, kc, kd)
		}
	})
}
