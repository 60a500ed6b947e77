package cpu

import (
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
)

func tiled(threads, tileRows int, seqs ...backend.Seq) *exec {
	e := &exec{pool: &pool{n: threads}}
	e.sizes.tileRows = tileRows
	row := 0
	for i := range seqs {
		e.spans = append(e.spans, span{&seqs[i], row})
		row += seqs[i].Rows
	}
	e.makeTiles()
	return e
}

func TestTilesAreEvenAndLaterRowsFirst(t *testing.T) {
	for _, c := range []struct {
		rows int
		want []tile
	}{
		{1, []tile{{0, 0, 1}}},
		{9, []tile{{0, 0, 9}}},
		{10, []tile{{0, 5, 5}, {0, 0, 5}}},
		{29, []tile{{0, 22, 7}, {0, 15, 7}, {0, 8, 7}, {0, 0, 8}}},
	} {
		if got := tiled(2, 9, backend.Seq{Rows: c.rows}).tiles; !slices.Equal(got, c.want) {
			t.Errorf("%d rows: tiles %v, want %v", c.rows, got, c.want)
		}
	}
}

// Whole work items are enough where every thread gets as much; else they are divided by chunks of keys.
func TestBalancedWork(t *testing.T) {
	stream, newcomer := backend.Seq{Rows: 1, Pos: 500}, backend.Seq{Rows: 6, Pos: 3000}
	for _, c := range []struct {
		name                   string
		threads, heads, window int
		seqs                   []backend.Seq
		want                   bool
	}{
		{"one thread", 1, 1, 0, []backend.Seq{stream}, true},
		{"a row, a head for each of two threads", 2, 2, 0, []backend.Seq{stream}, true},
		{"a row, one head", 2, 1, 0, []backend.Seq{stream}, false},
		{"a row, three heads", 2, 3, 0, []backend.Seq{stream}, false},
		{"a row and a run of six, one head", 2, 1, 0, []backend.Seq{stream, newcomer}, false},
		{"two rows that differ, but not within the window", 2, 1, 100, []backend.Seq{stream, {Rows: 1, Pos: 3000}}, true},
		{"a row and a run of six, two heads", 2, 2, 0, []backend.Seq{stream, newcomer}, true},
		{"a row and a run of six, two heads, four threads", 4, 2, 0, []backend.Seq{stream, newcomer}, false},
		{"nine equal rows, two heads, eight threads", 8, 2, 0, slices.Repeat([]backend.Seq{stream}, 9), false},
		{"eight equal rows, two heads, eight threads", 8, 2, 0, slices.Repeat([]backend.Seq{stream}, 8), true},
		{"three rows and a short one, one head", 2, 1, 0, []backend.Seq{stream, stream, stream, {Rows: 1, Pos: 9}}, false},
		{"many rows that differ", 2, 1, 0, []backend.Seq{stream, stream, {Rows: 1, Pos: 300}, stream, stream, stream, stream, stream, stream}, true},
		{"a prompt", 4, 1, 0, []backend.Seq{{Rows: 512}}, true},
	} {
		e := tiled(c.threads, 9, c.seqs...)
		p := &attentionPass{e: e, window: c.window}
		p.layer.Heads = c.heads
		if got := p.balanced(len(e.tiles) * c.heads); got != c.want {
			t.Errorf("%s: balanced is %v", c.name, got)
		}
	}
}
