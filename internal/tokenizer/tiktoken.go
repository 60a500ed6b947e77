package tokenizer

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// tiktokenKind is one of the encodings whose rank files are known. The files
// hold no pattern and no control tokens, so they are told by their size.
type tiktokenKind struct {
	name    string
	ranks   int
	pattern string
	special func(add func(id int32, text string)) // used when the folder names none
}

var tiktokenKinds = []tiktokenKind{
	{"Llama 3", 128000, patternLlama3, llama3Special},
	{"Qwen", 151643, patternQwen2, qwenSpecial},
	{"Kimi", 163584, patternKimi, nil},
	{"cl100k_base", 100256, patternLlama3, func(add func(int32, string)) {
		add(100257, "<|endoftext|>")
		add(100258, "<|fim_prefix|>")
		add(100259, "<|fim_middle|>")
		add(100260, "<|fim_suffix|>")
		add(100276, "<|endofprompt|>")
	}},
	{"o200k_base", 199998, patternO200k, func(add func(int32, string)) {
		add(199999, "<|endoftext|>")
		add(200018, "<|endofprompt|>")
	}},
}

func llama3Special(add func(int32, string)) {
	names := []string{
		"<|begin_of_text|>",
		"<|end_of_text|>",
		"",
		"",
		"",
		"",
		"<|start_header_id|>",
		"<|end_header_id|>",
		"",
		"<|eot_id|>",
	}
	reserved := 0
	for i := range 256 {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		if name == "" {
			name = fmt.Sprintf("<|reserved_special_token_%d|>", reserved)
			reserved++
		}
		add(int32(128000+i), name)
	}
}

func qwenSpecial(add func(int32, string)) {
	add(151643, "<|endoftext|>")
	add(151644, "<|im_start|>")
	add(151645, "<|im_end|>")
	for i := range 205 {
		add(int32(151646+i), fmt.Sprintf("<|extra_%d|>", i))
	}
}

// looksTiktoken reports whether a file is a list of base64 strings and ranks.
func looksTiktoken(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	token, rank, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	if !ok {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(string(token))
	_, err2 := strconv.Atoi(string(rank))
	return err == nil && err2 == nil
}

// fromTiktoken builds a tokenizer from a tiktoken rank file: a byte-level BPE
// in which the pair that makes the token of the lowest rank is merged first.
// added are the control tokens that the folder names.
func fromTiktoken(data []byte, added []addedToken) (*Tokenizer, error) {
	table, err := readRanks(data)
	if err != nil {
		return nil, err
	}
	kind := slices.IndexFunc(tiktokenKinds, func(k tiktokenKind) bool { return k.ranks == table.len() })
	if kind < 0 {
		return nil, fmt.Errorf(
			"a rank file of %d tokens is none of those whose split pattern is known: use a tokenizer.json of the "+
				"same model",
			table.len(),
		)
	}
	k := tiktokenKinds[kind]
	if len(added) == 0 && k.special != nil {
		k.special(func(id int32, text string) {
			added = append(added, addedToken{id: id, text: text, control: true})
		})
	}
	return newTiktoken(table, k.pattern, added)
}

func newTiktoken(table *stringTable, pattern string, added []addedToken) (*Tokenizer, error) {
	t := &Tokenizer{bos: -1, vocab: newVocab(table, true)}
	m, scan, err := compilePattern(pattern)
	if err != nil {
		return nil, err
	}
	t.setPre([]preTokenizer{&splitter{pattern: m, scan: scan}, &byteLevel{raw: true}})
	b := &bpe{tokens: table, ranks: idRanks(table.len()), bytes: true, unk: -1, ignoreMerges: true}
	b.prepare(table.find)
	if slices.Contains(b.byteIDs[:], idUnknown) {
		return nil, errors.New("the rank file lacks some single bytes")
	}
	t.model = b
	t.steps = []decodeStep{{kind: decodeByteLevel}}
	for _, a := range added {
		t.vocab.addExtra(a.id, a.text)
		if a.control {
			t.setControl(a.id)
		}
	}
	if t.added, err = newAddedTokens(added, nil); err != nil {
		return nil, err
	}
	return t, nil
}

// readRanks reads lines of a base64 string and its rank.
func readRanks(data []byte) (*stringTable, error) {
	var tokens [][]byte
	for n := 1; len(data) > 0; n++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		text, number, ok := bytes.Cut(line, []byte(" "))
		token := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		size, err := base64.StdEncoding.Decode(token, text)
		rank, err2 := strconv.Atoi(string(number))
		if !ok || err != nil || err2 != nil || size == 0 {
			return nil, fmt.Errorf("line %d is not a base64 string and a rank", n)
		}
		if rank < 0 || rank > len(tokens)+1<<16 || rank >= maxVocab {
			return nil, fmt.Errorf("line %d has rank %d", n, rank)
		}
		for rank >= len(tokens) {
			tokens = append(tokens, nil)
		}
		tokens[rank] = token[:size]
	}
	table := newStringTable(len(tokens), 8*len(tokens))
	for _, token := range tokens {
		table.add(token, len(token) > 0)
	}
	return table, nil
}
