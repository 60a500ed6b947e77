package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// keyMap is a GGUF file's metadata.
type keyMap map[string]any

func (k keyMap) String(key string) (string, bool)    { v, ok := k[key].(string); return v, ok }
func (k keyMap) Strings(key string) ([]string, bool) { v, ok := k[key].([]string); return v, ok }
func (k keyMap) Floats(key string) ([]float32, bool) { v, ok := k[key].([]float32); return v, ok }
func (k keyMap) Ints(key string) ([]int64, bool)     { v, ok := k[key].([]int64); return v, ok }
func (k keyMap) Uint(key string) (uint64, bool) {
	v, ok := k[key].(int)
	return uint64(v), ok && v >= 0
}
func (k keyMap) Int(key string) (int64, bool)     { v, ok := k[key].(int); return int64(v), ok }
func (k keyMap) Float(key string) (float64, bool) { v, ok := k[key].(float64); return v, ok }
func (k keyMap) Bool(key string) (bool, bool)     { v, ok := k[key].(bool); return v, ok }

// ggufKeys makes the keys of a GGUF file out of a trained tokenizer, as
// converters do.
func ggufKeys(t testing.TB, name, kind, pre string) keyMap {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges [][2]string
		}
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	size := len(f.Model.Vocab)
	for _, a := range f.Added {
		size = max(size, a.ID+1)
	}
	tokens, types := make([]string, size), make([]int64, size)
	for s, id := range f.Model.Vocab {
		if kind == "bert" {
			if rest, ok := strings.CutPrefix(s, "##"); ok {
				s = rest
			} else {
				s = spaceMark + s
			}
		}
		tokens[id], types[id] = s, typeNormal
	}
	for _, a := range f.Added {
		tokens[a.ID], types[a.ID] = a.Content, typeUserDefined
		if a.Special {
			types[a.ID] = typeControl
		}
	}
	merges := []string{}
	for _, m := range f.Model.Merges {
		merges = append(merges, m[0]+" "+m[1])
	}
	return keyMap{
		"tokenizer.ggml.model": kind, "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.merges": merges,
	}
}

// readCases returns the recorded cases that keep accepts.
func readCases(t testing.TB, name string, keep func(c diffCase) bool) []diffCase {
	t.Helper()
	var out []diffCase
	for d := json.NewDecoder(openCases(t, "testdata/"+name+".jsonl.gz")); d.More(); {
		var c diffCase
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if keep(c) {
			out = append(out, c)
		}
	}
	if len(out) < 100 {
		t.Fatalf("only %d cases", len(out))
	}
	return out
}

func TestGGUFMatchesJSON(t *testing.T) {
	compare := func(t *testing.T, k keyMap, cases []diffCase) {
		tok, err := FromGGUF(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			compareCase(tok, c, t.Errorf)
		}
	}
	t.Run("gpt2", func(t *testing.T) {
		// GGUF does not say that a token strips spaces or stands apart.
		cases := readCases(t, "byte_level", func(c diffCase) bool {
			return !slices.ContainsFunc(
				[]string{"<l>", "<r>", "<both>", "naïve", "<|im"},
				func(s string) bool { return strings.Contains(c.Text, s) },
			)
		})
		compare(t, ggufKeys(t, "byte_level", "gpt2", "qwen2"), cases)
	})
	t.Run("bert", func(t *testing.T) {
		k := ggufKeys(t, "wordpiece", "bert", "")
		k["tokenizer.ggml.bos_token_id"], k["tokenizer.ggml.seperator_token_id"], k["tokenizer.ggml.unknown_token_id"] = 2, 3, 1
		cases := readCases(t, "wordpiece", func(c diffCase) bool {
			if strings.Contains(c.Text, spaceMark) { // means the start of a word there
				return false
			}
			for _, w := range strings.FieldsFunc(c.Text, isSpace) { // GGUF does not say max_input_chars_per_word
				if utf8.RuneCountInString(w) > 20 {
					return false
				}
			}
			return true
		})
		for i := range cases {
			cases[i].Decoded, cases[i].Skipped = nil, nil // GGUF does not tell [SEP] from a part of a word
		}
		compare(t, k, cases)
	})
	for kind, model := range map[string]string{"bpe": "llama", "unigram": "t5"} {
		t.Run(model, func(t *testing.T) {
			data, err := os.ReadFile("testdata/sentencepiece_" + kind + "/tokenizer.model")
			if err != nil {
				t.Fatal(err)
			}
			m, err := parseSPM(data)
			if err != nil {
				t.Fatal(err)
			}
			k := keyMap{
				"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": m.tokens, "tokenizer.ggml.scores": m.scores,
				"tokenizer.ggml.token_type": m.types, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
				"tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.remove_extra_whitespaces": !m.extraSpaces,
			}
			if len(m.charsmap) > 0 {
				chars := make([]int64, len(m.charsmap))
				for i, c := range m.charsmap {
					chars[i] = int64(int8(c))
				}
				k["tokenizer.ggml.precompiled_charsmap"] = chars
			}
			compare(t, k, readCases(t, "sentencepiece_"+kind, func(diffCase) bool { return true }))
		})
	}
}

func TestGGUFErrors(t *testing.T) {
	for name, change := range map[string]func(k keyMap){
		"unknown pre-tokenizer \"new\"": func(k keyMap) { k["tokenizer.ggml.pre"] = "new" },
		"tokens is missing":             func(k keyMap) { delete(k, "tokenizer.ggml.tokens") },
		"merges is missing":             func(k keyMap) { delete(k, "tokenizer.ggml.merges") },
		"model is missing":              func(k keyMap) { delete(k, "tokenizer.ggml.model") },
		"not supported":                 func(k keyMap) { k["tokenizer.ggml.model"] = "rwkv" },
		"entries for":                   func(k keyMap) { k["tokenizer.ggml.token_type"] = []int64{1} },
		"scores is missing":             func(k keyMap) { k["tokenizer.ggml.model"] = "llama"; delete(k, "tokenizer.ggml.pre") },
		// What has another type is not missing.
		"token_type is a list of strings":         func(k keyMap) { k["tokenizer.ggml.token_type"] = []string{"3"} },
		"tokens is a list of whole numbers":       func(k keyMap) { k["tokenizer.ggml.tokens"] = []int64{1} },
		"merges is a string":                      func(k keyMap) { k["tokenizer.ggml.merges"] = "a b" },
		"add_bos_token is a string":               func(k keyMap) { k["tokenizer.ggml.bos_token_id"] = 1; k["tokenizer.ggml.add_bos_token"] = "true" },
		"eos_token_id is a list of whole numbers": func(k keyMap) { k["tokenizer.ggml.eos_token_id"] = []int64{1} },
		"pre is a number":                         func(k keyMap) { k["tokenizer.ggml.pre"] = 5 },
		"pre is a negative number":                func(k keyMap) { k["tokenizer.ggml.pre"] = -5 },
		"token_type is a floating-point number":   func(k keyMap) { k["tokenizer.ggml.token_type"] = 1.5 },
		"eos_token_id is a floating-point number": func(k keyMap) { k["tokenizer.ggml.eos_token_id"] = 2.0 },
	} {
		k := ggufKeys(t, "byte_level", "gpt2", "qwen2")
		change(k)
		if _, err := FromGGUF(k); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}

func TestEveryPreTokenizerNameLoads(t *testing.T) {
	for name := range ggufPres {
		k := ggufKeys(t, "byte_level", "gpt2", name)
		tok, err := FromGGUF(k)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		const text = "Don't STOP: 1234567 naïve 東京 x=y;\r\n\t  end  "
		if got := tok.Decode(must(tok.Encode(nil, text, Options{})), false); got != text && !ggufPres[name].characters {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

func TestPartsEqualTheirConcatenation(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"byte_level", "llama2", "metaspace_bpe", "unigram", "wordpiece"} {
		tok := loadTokenizer(t, "testdata/"+name+".json")
		for _, c := range readCases(t, name, func(c diffCase) bool { return len(c.Text) < 500 }) {
			for _, special := range []bool{false, true} {
				var parts []Part
				for rest := c.Text; rest != ""; {
					n := 1 + rnd.IntN(len(rest))
					parts = append(parts, Part{rest[:n], special})
					rest = rest[n:]
				}
				want := c.Plain
				if special {
					want = c.IDs
				}
				if got := must(tok.EncodeParts(nil, parts, Options{})); !slices.Equal(got, want) {
					t.Fatalf(
						"%s: %q in %d parts, special %v\n got %v\nwant %v",
						name,
						c.Text,
						len(parts),
						special,
						got,
						want,
					)
				}
			}
		}
	}
}

func TestControlTokensOnlyInSpecialParts(t *testing.T) {
	tok := loadTokenizer(t, "testdata/byte_level.json")
	end, ok := tok.ID("<|im_end|>")
	if !ok || !tok.IsSpecial(end) {
		t.Fatal("no <|im_end|>")
	}
	count := func(parts ...Part) int {
		n := 0
		for _, id := range must(tok.EncodeParts(nil, parts, Options{})) {
			if id == end {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		want  int
		parts []Part
	}{
		{1, []Part{{"<|im_end|>", true}}},
		{0, []Part{{"<|im_end|>", false}}},
		{1, []Part{{"hi <|im_", true}, {"end|> ho", true}}},
		{0, []Part{{"<|im_", true}, {"end|>", false}}},
		{0, []Part{{"<|im_end|", false}, {">", true}}},
		{1, []Part{{"<|im_end|>", false}, {"<|im_end|>", true}, {"<|im_end|>", false}}},
		{2, []Part{{"<|im_end|>", true}, {"", false}, {"<|im_end|>", true}}},
	} {
		if got := count(c.parts...); got != c.want {
			t.Errorf("%v: %d control tokens, want %d", c.parts, got, c.want)
		}
	}
	// A control token that is found in the normalized text.
	both, _ := tok.ID("<both>")
	ids := must(
		tok.EncodeParts(nil, []Part{{"e\u0301 <both> ", false}, {"<both>", true}, {"\u0301<both>", false}}, Options{}),
	)
	if n := len(slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return id != both })); n != 1 {
		t.Errorf("%d tokens <both> in %v, want 1", n, ids)
	}
}

// TestLooksControl: DeepSeek's <｜User｜> is not marked as special, but text must
// not become it either.
func TestLooksControl(t *testing.T) {
	data, err := os.ReadFile("testdata/byte_level.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(
		string(data),
		`"added_tokens":[`,
		`"added_tokens":[{"id":5000,"content":"<｜User｜>","special":false,"normalized":true},`,
		1,
	)
	tok, err := FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := must(tok.Encode(nil, "<｜User｜>", Options{ParseSpecial: true})); !slices.Equal(got, []int32{5000}) {
		t.Errorf("parsed as %v", got)
	}
	if got := must(tok.Encode(nil, "<｜User｜>", Options{})); slices.Contains(got, 5000) {
		t.Errorf("text became a control token: %v", got)
	}
}

func TestStreamedTextEqualsDecoded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"byte_level", "llama2", "unigram_bytes", "wordpiece", "clip", "metaspace_bpe"} {
		tok := loadTokenizer(t, "testdata/"+name+".json")
		for range 300 {
			ids := make([]int32, rnd.IntN(20))
			for i := range ids {
				ids[i] = int32(rnd.IntN(tok.Size()+2)) - 1
			}
			d := tok.NewDecoder(false)
			var b strings.Builder
			for _, id := range ids {
				s := d.Next(id)
				if !utf8.ValidString(s) {
					t.Fatalf("%s: %v gave %q, not UTF-8", name, ids, s)
				}
				b.WriteString(s)
			}
			b.WriteString(d.Flush())
			if want := tok.Decode(ids, false); b.String() != want {
				t.Fatalf("%s: %v streamed %q, decoded %q", name, ids, b.String(), want)
			}
		}
	}
}

func TestDecoderHoldsBackIncompleteCharacters(t *testing.T) {
	tok := loadRanks(t, "testdata/kimi.tiktoken")
	byteID := func(b byte) int32 {
		for id := range int32(tok.Size()) {
			if string(tok.Bytes(id)) == string([]byte{b}) {
				return id
			}
		}
		t.Fatalf("no token for byte %x", b)
		return 0
	}
	for _, c := range []struct {
		in   string
		want []string // per byte, then what Flush returns
	}{
		{"a€b", []string{"a", "", "", "€", "b", ""}},
		{"\xf0\x9f\x98\x80", []string{"", "", "", "😀", ""}},
		{"\xe2\x82", []string{"", "", "\uFFFD"}},
		{"\xe2a", []string{"", "\uFFFDa", ""}},
		{"\xff\xc0\x80", []string{"\uFFFD", "\uFFFD", "\uFFFD", ""}},
		{"\xed\xa0\x80", []string{"", "\uFFFD\uFFFD", "\uFFFD", ""}},
		{"\xf0\x9f\xf0\x9f\x98\x80", []string{"", "", "\uFFFD", "", "", "😀", ""}},
	} {
		d := tok.NewDecoder(true)
		var got []string
		for i := range len(c.in) {
			got = append(got, d.Next(byteID(c.in[i])))
		}
		if got = append(got, d.Flush()); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestBytesSpellTheText(t *testing.T) {
	for _, name := range []string{"byte_level", "llama2", "metaspace_bpe"} {
		tok := loadTokenizer(t, "testdata/"+name+".json")
		for id := range int32(tok.Size()) {
			text, ok := tok.Token(id)
			if !ok {
				continue
			}
			if back, ok := tok.ID(text); !ok || back != id {
				t.Errorf("%s: token %d %q has id %d, %v", name, id, text, back, ok)
			}
			if !tok.IsSpecial(id) && len(tok.Bytes(id)) == 0 {
				t.Errorf("%s: no bytes for %d %q", name, id, text)
			}
		}
	}
	tok := loadTokenizer(t, "testdata/llama2.json")
	for token, want := range map[string]string{"<0x0A>": "\n", "▁": " ", "<s>": "<s>"} {
		id, ok := tok.ID(token)
		if got := string(tok.Bytes(id)); !ok || got != want {
			t.Errorf("bytes of %q are %q, want %q", token, got, want)
		}
	}
}

func TestEndsOfGeneration(t *testing.T) {
	tok := loadTokenizer(t, "testdata/byte_level.json")
	var names []string
	for _, id := range tok.EOS() {
		s, _ := tok.Token(id)
		names = append(names, s)
	}
	if fmt.Sprint(names) != "[<|im_end|> <|endoftext|>]" {
		t.Errorf("ends: %v", names)
	}
	k := ggufKeys(t, "byte_level", "gpt2", "qwen2")
	k["tokenizer.ggml.eos_token_id"], k["tokenizer.ggml.bos_token_id"], k["tokenizer.ggml.add_bos_token"] = 0, 1, true
	tok, err := FromGGUF(k)
	if err != nil {
		t.Fatal(err)
	}
	if bos, ok := tok.BOS(); tok.EOS()[0] != 0 || bos != 1 || !ok {
		t.Errorf("ends %v, begin %d", tok.EOS(), bos)
	}
	if got := must(tok.Encode(nil, "", Options{AddSpecial: true})); !slices.Equal(got, []int32{1}) {
		t.Errorf("empty text with specials: %v", got)
	}
}

func TestTokenizerIsSafeForConcurrentUse(t *testing.T) {
	tok := loadTokenizer(t, "testdata/llama2.json")
	cases := readCases(t, "llama2", func(c diffCase) bool { return len(c.Text) < 500 })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, c := range cases {
				if got := must(tok.Encode(nil, c.Text, Options{ParseSpecial: true})); !slices.Equal(got, c.IDs) {
					t.Errorf("%q: %v, want %v", c.Text, got, c.IDs)
				}
				tok.ID("no such token")
			}
		})
	}
	wg.Wait()
}

func TestFromJSONErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/byte_level.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"type":"NFC"`, `"type":"NFX"`, `normalizer: unknown type "NFX"`},
		{`"type":"ByteLevel"`, `"type":"Bytes"`, `unknown type "Bytes"`},
		{`"dropout":null`, `"dropout":0.1`, "dropout"},
		{`"merges":[[`, `"merges":[["zz","qqq"],[`, "not in the vocabulary"},
		{`"<|im_end|>":2`, `"<|im_end|>":99999999`, "too large"},
		{`"<|im_end|>":2`, `"<|im_end|>":-2`, "want an integer"},
		{`{"type":"NFC"}`, `{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 60) + `{"type":"NFC"}]}`, "times longer"},
		{`(?i:'s`, `[[:alpha:]](?i:'s`, "POSIX"},
		{`(?i:'s`, `(?i:ß)(?i:'s`, "several characters"},
		{`(?i:'s`, `((((?i:'s`, "regular expression"},
		{`"model":{`, `"model":7,"x":{`, "want an object"},
	} {
		text := strings.Replace(string(data), c.old, c.new, 1)
		if text == string(data) {
			t.Fatalf("%s does not occur", c.old)
		}
		if _, err := FromJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.new, err, c.want)
		}
	}
	for n := range 200 {
		if _, err := FromJSON(data[:n*len(data)/200]); err == nil {
			t.Errorf("the first %d bytes of %d load", n*len(data)/200, len(data))
		}
	}
}

// TestWrongKindsInPlainWords: an error names what the file holds, not the types that hold it here.
func TestWrongKindsInPlainWords(t *testing.T) {
	good := `{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`
	for _, tc := range []struct{ name, text, want string }{
		{"tokenizer_config.json", `{"bos_token":7}`, "number is not what belongs there"},
		{"tokenizer_config.json", `{"add_bos_token":"yes"}`, "add_bos_token: string is not what belongs there"},
		{"tokenizer_config.json", `[]`, "array is not what belongs there"},
		{"generation_config.json", `{"eos_token_id":"x"}`, "eos_token_id: string is not what belongs there"},
		{"tokenizer.json", `{"model":{"type":7}}`, "type: number is not what belongs there"},
		{"tokenizer.json", strings.Replace(good, `"merges"`, `"byte_fallback":1,"merges"`, 1), "byte_fallback: number is not what belongs there"},
		{"tokenizer.json", strings.Replace(good, `{"model"`, `{"pre_tokenizer":[],"model"`, 1), "array is not what belongs there"},
	} {
		dir := t.TempDir()
		for _, f := range []struct{ name, text string }{{"tokenizer.json", good}, {tc.name, tc.text}} {
			if err := os.WriteFile(dir+"/"+f.name, []byte(f.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := FromDir(dir); err == nil || strings.Contains(err.Error(), "Go ") ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s: error %v, want %q", tc.name, tc.text, err, tc.want)
		}
	}
}
