//go:build unix

package tokenizer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLongRunsAreFast: merging must not take quadratic time. One long run may
// not take much more than the same text in sixteen parts, where quadratic code
// takes sixteen times as long. The whole is short enough for memory that the
// runtime has at hand: above some megabytes it measures the kernel's pages.
func TestLongRunsAreFast(t *testing.T) {
	const size, parts = 1_250, 16
	for _, name := range []string{"byte_level", "byte_gaps", "llama2", "metaspace_bpe", "unigram", "wordpiece", "clip"} {
		tok := loadTokenizer(t, "testdata/"+name+".json")
		for _, s := range []string{"a", " ", "\n", "1", "!", "é", "漢", "ab", "'s", "<|im", "\u0301", "a\u0301", "▁", "A"} {
			var ids []int32
			part := strings.Repeat(s, size/len(s))
			whole := strings.Repeat(part, parts)
			inParts := func() {
				for range parts {
					ids = must(tok.Encode(ids[:0], part, Options{}))
				}
			}
			if r := slowdown(t, parts/2, inParts, func() { ids = must(tok.Encode(ids[:0], whole, Options{})) }); r > parts/2 {
				t.Errorf("%s: a run of %q takes %.1f times as long as in %d parts", name, s, r, parts)
			}
		}
	}
}

// slowdown returns how many times the processor time of parts whole takes, each
// at its best. How fast the machine is and what else it does falls out: both
// run in turns, until the ratio is at most enough or many turns have not
// brought it there.
func slowdown(t *testing.T, enough float64, parts, whole func()) float64 {
	t.Helper()
	best := [2]time.Duration{1 << 62, 1 << 62}
	for turn := 0; ; turn++ {
		for i, f := range []func(){parts, whole} {
			start := spent(t)
			f()
			best[i] = min(best[i], max(spent(t)-start, time.Microsecond))
		}
		ratio := float64(best[1]) / float64(best[0])
		if turn >= 1 && ratio <= enough || turn >= 7 {
			return ratio
		}
	}
}

// TestSpeed prints how fast a tokenizer reads the texts of BALEEN_TEST_CORPUS,
// and how long each text of BALEEN_TEST_RUNS takes, in processor time: files of JSON strings, one
// a line. scripts/compare-tokenizers sets them.
func TestSpeed(t *testing.T) {
	path, corpus, runs := os.Getenv(
		"BALEEN_TEST_TOKENIZER",
	), os.Getenv(
		"BALEEN_TEST_CORPUS",
	), os.Getenv(
		"BALEEN_TEST_RUNS",
	)
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
		start := spent(t)
		for _, s := range texts {
			ids = must(tok.Encode(ids[:0], s, Options{ParseSpecial: true}))
		}
		best = min(best, spent(t)-start)
	}
	var millis []float64
	for _, s := range readStrings(t, runs) {
		least := time.Duration(1 << 62)
		for range 3 {
			fresh := loadFresh(tok)
			start := spent(t)
			ids = must(fresh.Encode(ids[:0], s, Options{ParseSpecial: true}))
			least = min(least, spent(t)-start)
		}
		millis = append(millis, float64(least)/1e6)
	}
	out, err := json.Marshal(map[string]any{"mbps": float64(size) / best.Seconds() / 1e6, "runs_ms": millis})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(out))
}

// spent is the processor time of this process, collection of garbage included:
// what other programs take does not count.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
