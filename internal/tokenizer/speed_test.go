package tokenizer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestSpeed prints how fast a tokenizer reads the texts of BALEEN_TEST_CORPUS,
// and how long each text of BALEEN_TEST_RUNS takes: files of JSON strings, one
// a line. scripts/compare-tokenizers sets them.
func TestSpeed(t *testing.T) {
	path, corpus, runs := os.Getenv("BALEEN_TEST_TOKENIZER"), os.Getenv("BALEEN_TEST_CORPUS"), os.Getenv("BALEEN_TEST_RUNS")
	if path == "" || corpus == "" || runs == "" {
		t.Skip("scripts/compare-tokenizers --speed runs this")
	}
	tok := loadTokenizer(t, path)
	texts := readStrings(t, corpus)
	size := 0
	for _, s := range texts {
		size += len(s)
	}
	var ids []int32
	best := time.Duration(1 << 62)
	for range 3 {
		start := time.Now()
		for _, s := range texts {
			ids = tok.Encode(ids[:0], s, Options{ParseSpecial: true})
		}
		best = min(best, time.Since(start))
	}
	var millis []float64
	for _, s := range readStrings(t, runs) {
		least := time.Duration(1 << 62)
		for range 3 {
			fresh := loadFresh(tok)
			start := time.Now()
			ids = fresh.Encode(ids[:0], s, Options{ParseSpecial: true})
			least = min(least, time.Since(start))
		}
		millis = append(millis, float64(least)/1e6)
	}
	out, err := json.Marshal(map[string]any{"mbps": float64(size) / best.Seconds() / 1e6, "runs_ms": millis})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(out))
}

// loadFresh returns tok without the words that it remembers.
func loadFresh(tok *Tokenizer) *Tokenizer {
	return &Tokenizer{
		vocab: tok.vocab, added: tok.added, norm: tok.norm, pre: tok.pre, scan: tok.scan, model: tok.model, post: tok.post,
		steps: tok.steps, control: tok.control, bos: tok.bos, eos: tok.eos,
	}
}

func readStrings(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var s string
		if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
