package chat_test

import (
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestOffsetsCountCharacters: a character that several tokens spell counts once, and all of them begin at its place.
func TestOffsetsCountCharacters(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  []int
	}{
		{[]string{"a", "bc", "d"}, []int{0, 1, 3}},
		{[]string{"a", "\xf0\x9f", "\x91", "\x8b", "b"}, []int{0, 1, 1, 1, 2}},
		{[]string{"a\xc3", "\xa9", "b"}, []int{0, 1, 2}},
		{[]string{"é", "\xe6\xbc", "\xa2é", "b"}, []int{0, 1, 1, 3}},
		{[]string{"\xff", "b"}, []int{0, 1}},
	} {
		var logs []chat.TokenLog
		for _, s := range c.texts {
			logs = append(logs, chat.TokenLog{Text: s})
		}
		chat.SetOffsets(logs, 0, nil)
		var got []int
		for _, l := range logs {
			got = append(got, l.Offset)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q begin at %v, want %v", c.texts, got, c.want)
		}
	}
	// In a stream, where text comes when a character is complete: each byte is a token of this model.
	w := servertest.New(t, servertest.Options{Script: func(string) string { return "a👋é.b" }})
	s, err := w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: user("x"), LogProbs: true, TopLogs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for d := range s.All() {
		for _, l := range d.Tokens {
			got = append(got, l.Offset)
		}
	}
	if want := []int{0, 1, 1, 1, 1, 2, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
}
