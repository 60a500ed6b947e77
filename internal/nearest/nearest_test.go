package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"kitten", "sitting", 3},
		{"BALEEN_HOEM", "BALEEN_HOME", 1}, // neighbours in the wrong order
		{"ca", "abc", 3},
		{strings.Repeat("a", 65), "a", 64},
		{"a", strings.Repeat("a", 65), 64},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	known := []string{"smollm2-135m", "qwen3-4b", "qwen3-8b", "qwen3-14b", "gemma3-1b", "mine"}
	for _, c := range []struct {
		word string
		want []string
		text string
	}{
		{"smolm2-135m", []string{"smollm2-135m"}, `"smollm2-135m"`},
		{"SmolLM2-135M", []string{"smollm2-135m"}, `"smollm2-135m"`},
		{"qwen3-5b", []string{"qwen3-4b", "qwen3-8b"}, `"qwen3-4b" or "qwen3-8b"`},
		{"gema3-1b", []string{"gemma3-1b"}, `"gemma3-1b"`},
		{"wine", nil, ""},
		{"hello", nil, ""},
		{"internationalisation", nil, ""},
		{strings.Repeat("q", 1000), nil, ""},
		{"", nil, ""},
	} {
		got := Names(c.word, known)
		if !slices.Equal(got, c.want) || Quoted(got) != c.text {
			t.Errorf("%q: %q (%s), want %q", c.word, got, Quoted(got), c.want)
		}
	}
	if got := Names("abcde", []string{"abcd1", "abcd2", "abcd1", "abcd3", "abcd4"}); Quoted(
		got,
	) != `"abcd1", "abcd2" or "abcd3"` {
		t.Errorf("many: %q", got)
	}
}
