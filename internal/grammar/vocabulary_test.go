package grammar_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// realVocabulary reads a tokenizer.json. Control tokens stand for no text.
func realVocabulary(t testing.TB, dir string) (*grammar.Vocabulary, [][]byte) {
	tok, err := tokenizer.FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([][]byte, tok.Size())
	for id := range tokens {
		if !tok.IsSpecial(int32(id)) {
			tokens[id] = tok.Bytes(int32(id))
		}
	}
	v, err := grammar.NewVocabulary(tokens, tok.EOS())
	if err != nil {
		t.Fatal(err)
	}
	return v, tokens
}

// TestRealVocabularies compares masks with trying every token, on the vocabularies below BALEEN_TEST_TOKENIZERS, along
// documents sampled from random schemas.
func TestRealVocabularies(t *testing.T) {
	dirs, _ := filepath.Glob(filepath.Join(os.Getenv("BALEEN_TEST_TOKENIZERS"), "*", "tokenizer.json"))
	if os.Getenv("BALEEN_TEST_TOKENIZERS") == "" || len(dirs) == 0 {
		t.Skip("BALEEN_TEST_TOKENIZERS names no folder with tokenizers")
	}
	for _, file := range dirs {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			v, tokens := realVocabulary(t, filepath.Dir(file))
			r := rand.New(rand.NewPCG(7, 7))
			mask := make([]uint64, v.Words())
			masks := 0
			for range 12 {
				doc := grammar.RandomSchema(r, 3)
				g, err := grammar.JSONSchema([]byte(doc), grammar.Options{AnyOrder: r.IntN(2) == 0})
				if err != nil {
					continue
				}
				k := grammar.NewMasker(g, v)
				m := g.Matcher()
				for range 12 {
					if err := k.Mask(m, mask); err != nil {
						t.Fatal(doc, err)
					}
					masks++
					var allowed []int32
					for id := range tokens {
						got := mask[id>>6]>>(id&63)&1 == 1
						_, want, err := k.AcceptToken(m, int32(id))
						if err != nil || got != want {
							t.Fatalf("%s: token %d %q: mask %v, tried %v %v", doc, id, tokens[id], got, want, err)
						}
						if want && len(tokens[id]) > 0 {
							allowed = append(allowed, int32(id))
						}
					}
					if len(allowed) == 0 {
						break
					}
					m, _, _ = k.AcceptToken(m, allowed[r.IntN(len(allowed))])
				}
			}
			t.Logf("%d masks of %d tokens", masks, v.Size())
		})
	}
}
