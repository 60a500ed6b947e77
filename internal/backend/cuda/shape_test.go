package cuda

import (
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/quant"
)

// TestShapes holds which way of multiplying is chosen for numbers of columns and rows.
func TestShapes(t *testing.T) {
	const cores, large, small = 132, 195 << 10, 67 << 10
	for _, c := range []struct {
		columns, groups, k, shared int
		want                       shape
	}{
		{1, 256, 4096, large, one1},
		{2, 256, 4096, large, few1},
		{8, 256, 4096, large, few1},
		{9, 256, 4096, large, few2},
		{32, 256, 4096, large, few4},
		{32, 256, 14336, small, few1}, // sums of 28 segments of 4 tiles do not fit
		{64, 256, 4096, large, split1},
		{64, 1792, 4096, large, many2},
		{512, 256, 4096, large, many2},
		{512, 384, 4096, large, many1},
		{512, 1792, 4096, large, many2},
	} {
		if got := shapeFor(quant.Q4_K, c.columns, c.groups, c.k/512, cores, c.shared); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestFewWarps: warps divide segments evenly and fit into what devices have.
func TestFewWarps(t *testing.T) {
	for _, c := range []struct {
		t                     quant.Type
		segments, tiles, want int
		limit                 int
	}{
		{quant.Q4_K, 1, 1, 1, 195 << 10},
		{quant.Q4_K, 8, 1, 8, 195 << 10},
		{quant.Q4_K, 28, 1, 7, 195 << 10},
		{quant.Q4_K, 28, 1, 4, 67 << 10},
		{quant.Q8_0, 8, 1, 4, 67 << 10}, // 6 would fit, and need as many rounds
		{quant.Q4_K, 200, 4, 0, 67 << 10},
	} {
		if got := fewWarps(c.t, c.segments, c.tiles, c.limit); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	for _, c := range [][3]int{{1792, 1, 256}, {256, 1, 256}, {384, 1, 192}, {7, 1, 7}, {48, 8, 24}} {
		if got := fewBlocks(c[0], c[1], 8, 90<<10, 132); got != c[2] {
			t.Errorf("%d groups beside %d others: %d blocks of threads, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestBuckets: a bucket holds every batch that it is chosen for, and few of them serve all.
func TestBuckets(t *testing.T) {
	o := backend.Options{MaxRows: 100, MaxSeqs: 10, MaxOut: 10}
	for _, c := range []struct {
		rows, outs, pos int
		want            bucket
	}{
		{1, 1, 0, bucket{1, 1, 1, 1}},
		{3, 3, 511, bucket{4, 4, 4, 1}},
		{3, 0, 512, bucket{4, 0, 4, 2}},
		{100, 10, 5000, bucket{100, 10, 10, 16}},
	} {
		b := &backend.Batch{Tokens: make([]int32, c.rows), Out: make([]int32, c.outs)}
		for i := range min(c.rows, 10) {
			n := 1
			if i == 0 {
				n = c.rows - min(c.rows, 10) + 1
			}
			b.Seqs = append(b.Seqs, backend.Seq{Rows: n, Pos: c.pos})
		}
		if got := bucketOf(b, o); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestTiles: rows of one sequence only share a tile, and every row knows where its tile begins.
func TestTiles(t *testing.T) {
	b := &backend.Batch{Seqs: []backend.Seq{{Rows: 5}, {Rows: 1}, {Rows: 4}}}
	tiles, of := make([]int32, 20), make([]int32, 10)
	if n := fillTiles(b, 4, tiles, of); n != 4 {
		t.Fatalf("%d tiles", n)
	}
	for i, want := range []int32{0, 4, 4, 1, 5, 1, 6, 4} {
		if tiles[i] != want {
			t.Fatalf("tiles %v", tiles)
		}
	}
	for r, want := range []int32{0, 0, 0, 0, 4, 5, 6, 6, 6, 6} {
		if of[r] != want {
			t.Fatalf("rows' tiles begin at %v", of)
		}
	}
}
