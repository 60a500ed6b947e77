package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/quant"
)

// raw builds files by hand, so that they can be wrong in every way. Arguments are what binary.Append takes, and
// strings, which get their length in front.
func raw(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(binary.LittleEndian.AppendUint64(b, uint64(len(p))), p...)
		case []byte:
			b = append(b, p...)
		default:
			var err error
			if b, err = binary.Append(b, binary.LittleEndian, p); err != nil {
				panic(err)
			}
		}
	}
	return b
}

// u and q are short for the two widths of counts.
type (
	u = uint32
	q = uint64
)

// start is a file's first bytes.
func start(tensors, keys q) []byte { return raw([]byte("GGUF"), u(3), tensors, keys) }

// file joins parts and pads to the alignment, then adds size bytes of data.
func file(size int, parts ...any) []byte {
	b := raw(parts...)
	for len(b)%defaultAlignment != 0 {
		b = append(b, 0)
	}
	return append(b, make([]byte, size)...)
}

func entry(name string, typ quant.Type, off q, dims ...q) []byte {
	return raw(name, u(len(dims)), dims, u(typ), off)
}

// nest is an array in an array, depth deep.
func nest(depth int) []byte {
	b := raw("k", u(Array))
	for range depth {
		b = append(b, raw(u(Array), q(1))...)
	}
	return append(b, raw(u(Uint8), q(1), uint8(7))...)
}

// cases are files with what reading them must say; "" is a good file. The fuzzer starts from them.
var cases = []struct {
	name string
	file []byte
	err  string
}{
	{"empty model", start(0, 0), ""},
	{"one tensor", file(18, start(1, 0), entry("t", quant.Q4_0, 0, 32)), ""},
	{"version 2", file(4, []byte("GGUF"), u(2), q(1), q(0), entry("t", quant.F32, 0, 1)), ""},
	{"two tensors out of order", file(36, start(2, 0), entry("b", quant.F32, 32, 1), entry("a", quant.F32, 0, 8)), ""},
	{
		"every scalar",
		raw(
			start(0, 12),
			"a",
			u(Uint8),
			uint8(1),
			"b",
			u(Int8),
			int8(-1),
			"c",
			u(Uint16),
			uint16(2),
			"d",
			u(Int16),
			int16(-2),
			"e",
			u(Uint32),
			u(3),
			"f",
			u(Int32),
			int32(-3),
			"g",
			u(Float32),
			float32(0.5),
			"h",
			u(Bool),
			true,
			"i",
			u(String),
			"text",
			"j",
			u(Uint64),
			q(4),
			"k",
			u(Int64),
			int64(-4),
			"l",
			u(Float64),
			0.25,
		),
		"",
	},
	{
		"arrays",
		raw(
			start(0, 3),
			"s",
			u(Array),
			u(String),
			q(3),
			"a",
			"",
			"ccc",
			"n",
			u(Array),
			u(Int16),
			q(2),
			int16(-1),
			int16(5),
			"b",
			u(Array),
			u(Bool),
			q(2),
			true,
			false,
		),
		"",
	},
	{"array in array", raw(start(0, 1), nest(maxDepth-1)), ""},
	{
		"alignment 64",
		append(raw(start(1, 1), keyAlignment, u(Uint32), u(64), entry("t", quant.I8, 0, 1)), make([]byte, 64)...),
		"",
	},

	{
		"long element",
		raw(start(0, 1), "k", u(Array), u(String), q(2), "a", q(1<<40)),
		`element 1 of key "k" has 1,099,511,627,776 bytes`,
	},
	{
		"short element",
		raw(start(0, 1), "k", u(Array), u(String), q(2), "a", q(1<<10)),
		`element 1 of key "k" ends 1,024 bytes past the file: truncated`,
	},
	{"nothing", nil, "the file has 0 bytes, so it is no model file: truncated, fetch it again"},
	{"two bytes", []byte("GG"), "the file has 2 bytes, so it is no model file"},
	{"html", []byte("<!DOCTYPE html>"), `the file starts with "<!DO", not with "GGUF"`},
	{"old format", []byte("lmgg...."), "from before GGUF"},
	{"version 0", raw([]byte("GGUF"), u(0), q(0), q(0)), "version 0 is not supported"},
	{"version 1", raw([]byte("GGUF"), u(1), q(0), q(0)), "version 1 is not supported"},
	{"big-endian", raw([]byte("GGUF"), u(3<<24), q(0), q(0)), "big-endian (version 3)"},
	{"too many tensors", start(maxTensors+1, 0), "1,048,577 tensors"},
	{"too many keys", start(0, maxKeys+1), "65,537 keys"},
	{"counts wrap", start(1<<63, 1<<63), "at most 1,048,576"},
	{"tensors that are not there", start(maxTensors, 0), "list of 1,048,576 tensors ends past the file"},
	{"keys that are not there", start(0, maxKeys), "the name of key 0 ends 8 bytes past the file"},

	{"key without name", raw(start(0, 1), "", u(Uint8), uint8(1)), "key 0 has no name"},
	{"key twice", raw(start(0, 2), "a", u(Uint8), uint8(1), "a", u(Uint8), uint8(1)), `key "a" is there twice`},
	{
		"key name too long",
		raw(start(0, 1), strings.Repeat("k", maxName+1), u(Uint8), uint8(1)),
		"65,536 bytes, at most 65,535",
	},
	{"key name past the end", raw(start(0, 1), q(100), []byte("abc")), "the name of key 0 ends 97 bytes past the file"},
	{"value type unknown", raw(start(0, 1), "a", u(13), q(0)), `key "a" has value type 13`},
	{"value past the end", raw(start(0, 1), "a", u(Uint64), u(0)), `key "a" ends 4 bytes past the file`},
	{"bool 2", raw(start(0, 1), "a", u(Bool), uint8(2)), "boolean with the value 2"},
	{"string length wraps", raw(start(0, 1), "a", u(String), q(math.MaxUint64)), "at most 16,777,216"},
	{"string past the end", raw(start(0, 1), "a", u(String), q(8), u(0)), "ends 4 bytes past the file"},
	{"array too long", raw(start(0, 1), "a", u(Array), u(Uint8), q(maxArray+1)), "67,108,865 elements"},
	{"array past the end", raw(start(0, 1), "a", u(Array), u(Uint64), q(maxArray)), "past the file"},
	{"array of unknown", raw(start(0, 1), "a", u(Array), u(99), q(0)), "array of value type 99"},
	{
		"array of bools with 3",
		raw(start(0, 1), "a", u(Array), u(Bool), q(2), uint8(1), uint8(3)),
		"element 1 is a boolean with the value 3",
	},
	{"strings past the end", raw(start(0, 1), "a", u(Array), u(String), q(1000)), "past the file"},
	{
		"strings with a bad length",
		raw(start(0, 1), "a", u(Array), u(String), q(2), "abc", q(1<<40)),
		"at most 16,777,216",
	},
	{"nested too deep", raw(start(0, 1), nest(maxDepth)), "more than 4 deep"},
	{"nested very deep", raw(start(0, 1), nest(10_000)), "more than 4 deep"},
	{"too many inner arrays", raw(start(0, 1), "a", u(Array), u(Array), q(maxNested+1)), "65,536 arrays in arrays"},

	{"alignment 0", raw(start(0, 1), keyAlignment, u(Uint32), u(0)), "expected a uint32 that is a power of two"},
	{"alignment 48", raw(start(0, 1), keyAlignment, u(Uint32), u(48)), "the uint32 48"},
	{"alignment huge", raw(start(0, 1), keyAlignment, u(Uint32), u(1<<31)), "power of two up to 65,536"},
	{"alignment of another type", raw(start(0, 1), keyAlignment, u(Int32), int32(-32)), "the int32 -32"},
	{"alignment a string", raw(start(0, 1), keyAlignment, u(String), "32"), "a string"},
	{"alignment a list", raw(start(0, 1), keyAlignment, u(Array), u(Uint32), q(1), u(32)), "an array of 1 uint32"},
	{"alignment a float", raw(start(0, 1), keyAlignment, u(Float32), float32(32)), "the float32 32"},

	{"tensor without name", file(4, start(1, 0), entry("", quant.F32, 0, 1), u(0)), "tensor 0 has no name"},
	{
		"tensor twice",
		file(64, start(2, 0), entry("t", quant.F32, 0, 1), entry("t", quant.F32, 32, 1)),
		`tensor "t" is there twice`,
	},
	{
		"tensor name too long",
		file(4, start(1, 0), entry(strings.Repeat("t", maxTensor+1), quant.F32, 0, 1)),
		"1,025 bytes",
	},
	{"no dimensions", file(4, start(1, 0), entry("tensor", quant.F32, 0), u(0)), "0 dimensions"},
	{"five dimensions", file(4, start(1, 0), entry("t", quant.F32, 0, 1, 1, 1, 1, 1)), "5 dimensions"},
	{"dimension 0", file(4, start(1, 0), entry("t", quant.F32, 0, 4, 0)), "dimension 1 is 0"},
	{"product wraps", file(4, start(1, 0), entry("t", quant.F32, 0, 1<<32, 1<<32)), "their product must fit"},
	{"bytes wrap", file(4, start(1, 0), entry("t", quant.F64, 0, 1, 1<<62)), "more than can be addressed"},
	{"row wraps", file(4, start(1, 0), entry("t", quant.F64, 0, 1<<62)), "more than this machine can address"},
	{
		"part of a block",
		file(18, start(1, 0), entry("t", quant.Q4_0, 0, 33)),
		"not a whole number of Q4_0 blocks of 32",
	},
	{"removed format", file(18, start(1, 0), entry("t", 4, 0, 32)), "Q4_2 (type 4), which GGUF no longer has"},
	{
		"format of a fork",
		file(18, start(1, 0), entry("t", 139, 0, 32)),
		"IQ4_K (type 139), which only the ik_llama.cpp fork reads",
	},
	{
		"interleaved format",
		file(18, start(1, 0), entry("t", 212, 0, 256)),
		"Q4_K with interleaved rows (type 212), which only",
	},
	{
		"interleaved fork format",
		file(18, start(1, 0), entry("t", 339, 0, 256)),
		"IQ4_K with interleaved rows (type 339), which only",
	},
	{"unknown interleaved format", file(18, start(1, 0), entry("t", 204, 0, 256)), "204, which is not known here"},
	{"unknown format", file(18, start(1, 0), entry("t", 9999, 0, 32)), "9999, which is not known here"},
	{"not aligned", file(64, start(1, 0), entry("t", quant.F32, 4, 1)), "not a multiple of the alignment 32"},
	{"offset wraps", file(64, start(1, 0), entry("t", quant.F32, math.MaxUint64-31, 1)), "truncated"},
	{"offset far", file(64, start(1, 0), entry("t", quant.F32, 1<<62, 1)), "truncated"},
	{
		"data missing", file(4092, start(1, 0), entry("blk.3.attn_q.weight", quant.F32, 0, 1024, 2)),
		`tensor "blk.3.attn_q.weight" ends 4,100 bytes past the file: truncated, fetch it again`,
	},
	{"no data at all", raw(start(1, 0), entry("t", quant.F32, 0, 1)), "past the file"},
	{
		"overlap",
		file(64, start(2, 0), entry("a", quant.F32, 0, 9), entry("b", quant.F32, 32, 1)),
		`tensors "a" and "b" overlap`,
	},
	{"same place", file(64, start(2, 0), entry("a", quant.F32, 0, 1), entry("b", quant.F32, 0, 1)), "overlap"},
	{
		"entry past the end",
		raw(start(1, 0), "a name of some length", u(1), q(8), u(0), u(0)),
		"entry of tensor \"a name of some length\" ends 4 bytes past the file",
	},
	{"split without number", raw(start(0, 1), keySplitCount, u(Uint16), uint16(2)), "do not name a shard"},
	{
		"split number too high",
		raw(start(0, 2), keySplitCount, u(Uint16), uint16(2), keySplitNo, u(Uint16), uint16(2)),
		"do not name a shard",
	},
	{"split count a string", raw(start(0, 1), keySplitCount, u(String), "2"), "do not name a shard"},
	{
		"split under another name",
		raw(start(0, 2), keySplitCount, u(Uint16), uint16(2), keySplitNo, u(Uint16), uint16(0)),
		"is shard 1 of 2 but is not named",
	},
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// short matches the errors about files that end too early.
var short = regexp.MustCompile("past the file|no model file")

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, dir, "m.gguf", c.file)
			f, err := Open(path)
			switch {
			case c.err == "" && err != nil:
				t.Fatal(err)
			case c.err == "":
				checkFile(t, f)
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Fatalf("no error, want %q", c.err)
			case !strings.Contains(err.Error(), c.err):
				t.Errorf("error %q, want %q", err, c.err)
			case !strings.Contains(err.Error(), path) || !strings.HasPrefix(err.Error(), "gguf: "):
				t.Errorf("error %q does not name the file", err)
			case short.MatchString(c.err) != errors.Is(err, ErrTruncated) && c.err != "truncated":
				t.Errorf("errors.Is(%q, ErrTruncated) is %v", err, errors.Is(err, ErrTruncated))
			}
		})
	}
}

// checkFile holds an open file to what its type promises.
func checkFile(t testing.TB, f *File) {
	t.Helper()
	for _, k := range f.Keys() {
		v, ok := f.Get(k)
		if !ok {
			t.Fatalf("key %q is listed but not there", k)
		}
		checkValue(t, f, k, v)
	}
	type span struct{ start, end int }
	spans := map[string][]span{}
	for _, x := range f.Tensors() {
		if got, ok := f.Tensor(x.Name); !ok || got != x {
			t.Fatalf("tensor %q is listed but not there", x.Name)
		}
		row, err := x.Type.RowBytes(x.Dims[0])
		if err != nil || len(x.Bytes()) != x.Elements()/x.Dims[0]*row || len(x.Bytes()) != x.Size() {
			t.Fatalf("tensor %q has %d bytes", x.Name, len(x.Bytes()))
		}
		r, off := x.File()
		if off%int64(f.Alignment()) != 0 && len(f.Paths()) == 1 {
			t.Fatalf("tensor %q lies at %d", x.Name, off)
		}
		last := make([]byte, 1)
		if _, err := r.ReadAt(last, off+int64(x.Size())-1); err != nil || last[0] != x.Bytes()[x.Size()-1] {
			t.Fatalf("tensor %q: reading its last byte: %v", x.Name, err)
		}
		spans[x.Path()] = append(spans[x.Path()], span{int(off), int(off) + x.Size()})
	}
	for path, s := range spans {
		slices.SortFunc(s, func(a, b span) int { return a.start - b.start })
		for i := 1; i < len(s); i++ {
			if s[i-1].end > s[i].start {
				t.Fatalf("%s: tensors overlap at %d", path, s[i].start)
			}
		}
	}
}

// checkValue reads a value in every way; at most the ways that fit its type may work.
func checkValue(t testing.TB, f *File, key string, v Value) {
	t.Helper()
	ways := 0
	count := func(ok bool) {
		if ok {
			ways++
		}
	}
	_, isString := f.String(key)
	i, isInt := f.Int(key)
	n, isUint := f.Uint(key)
	_, isFloat := f.Float(key)
	_, isBool := f.Bool(key)
	if isInt && isUint && uint64(i) != n {
		t.Fatalf("key %q is %d and %d", key, i, n)
	}
	count(isString)
	count(isInt || isUint)
	count(isFloat)
	count(isBool)
	strs, ok := f.Strings(key)
	count(ok)
	ints, okInts := f.Ints(key)
	count(okInts)
	floats, okFloats := f.Floats(key)
	count(okFloats)
	bools, okBools := f.Bools(key)
	count(okBools)
	inner, okInner := v.Arrays()
	count(okInner)
	if ways > 1 || ways == 0 && !(v.Type == Array && v.Elem == Uint64) {
		t.Fatalf("key %q, %s, reads in %d ways", key, v.describe(), ways)
	}
	if got := len(strs) + len(ints) + len(floats) + len(bools) + len(inner); ways > 0 && got != v.Len() {
		t.Fatalf("key %q has %d elements, %d were read", key, v.Len(), got)
	}
}

func TestValues(t *testing.T) {
	path := write(t, t.TempDir(), "m.gguf", raw(
		start(0, 15),
		"u8",
		u(Uint8),
		uint8(200),
		"i8",
		u(Int8),
		int8(-1),
		"u64",
		u(Uint64),
		q(math.MaxUint64),
		"f32",
		u(Float32),
		float32(0.1),
		"f64",
		u(Float64),
		0.1,
		"yes",
		u(Bool),
		true,
		"s",
		u(String),
		"text",
		"strs",
		u(Array),
		u(String),
		q(3),
		"a",
		"",
		"ccc",
		"i16s",
		u(Array),
		u(Int16),
		q(2),
		int16(-7),
		int16(5),
		"u64s",
		u(Array),
		u(Uint64),
		q(1),
		q(math.MaxUint64),
		"f64s",
		u(Array),
		u(Float64),
		q(1),
		0.1,
		"bools",
		u(Array),
		u(Bool),
		q(2),
		true,
		false,
		"none",
		u(Array),
		u(Uint32),
		q(0),
		"heads",
		u(Uint32),
		u(8),
		"nested",
		u(Array),
		u(Array),
		q(2),
		u(Uint8),
		q(1),
		uint8(1),
		u(String),
		q(1),
		"x",
	))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil { // values outlive the file
		t.Fatal(err)
	}
	check := func(name string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	pair := func(v any, ok bool) string { return fmt.Sprintf("%v %v", v, ok) }
	n, ok := f.Uint("u8")
	check("Uint(u8)", pair(n, ok), "200 true")
	i, ok := f.Int("i8")
	check("Int(i8)", pair(i, ok), "-1 true")
	n, ok = f.Uint("i8")
	check("Uint(i8)", pair(n, ok), "0 false")
	n, ok = f.Uint("u64")
	check("Uint(u64)", pair(n, ok), "18446744073709551615 true")
	i, ok = f.Int("u64")
	check("Int(u64)", pair(i, ok), "0 false")
	x, ok := f.Float("f32")
	check("Float(f32)", pair(x, ok), pair(float64(float32(0.1)), true))
	x, ok = f.Float("f64")
	check("Float(f64)", pair(x, ok), "0.1 true")
	x, ok = f.Float("u8")
	check("Float(u8)", pair(x, ok), "0 false")
	b, ok := f.Bool("yes")
	check("Bool(yes)", pair(b, ok), "true true")
	s, ok := f.String("s")
	check("String(s)", pair(s, ok), "text true")
	s, ok = f.String("absent")
	check("String(absent)", pair(s, ok), " false")
	n, ok = f.Uint("absent")
	check("Uint(absent)", pair(n, ok), "0 false")
	i, ok = f.Int("absent")
	check("Int(absent)", pair(i, ok), "0 false")
	strs, ok := f.Strings("strs")
	check("Strings(strs)", fmt.Sprintf("%q %v", strs, ok), `["a" "" "ccc"] true`)
	ints, ok := f.Ints("i16s")
	check("Ints(i16s)", pair(ints, ok), "[-7 5] true")
	ints, ok = f.Ints("u64s")
	check("Ints(u64s)", pair(ints, ok), "[] false")
	floats, ok := f.Floats("f64s")
	check("Floats(f64s)", pair(floats, ok), "[0.1] true")
	bools, ok := f.Bools("bools")
	check("Bools(bools)", pair(bools, ok), "[true false] true")
	ints, ok = f.Ints("none")
	check("Ints(none)", pair(ints, ok), "[] true")
	nested, _ := f.Get("nested")
	inner, ok := nested.Arrays()
	check("Arrays(nested)", pair(len(inner), ok), "2 true")
	strs, ok = inner[1].Strings()
	check("second of nested", pair(strs, ok), "[x] true")

	for _, c := range []struct {
		key  string
		n    int
		want string
	}{
		{"heads", 3, "[8 8 8] <nil>"},
		{"i16s", 2, "[-7 5] <nil>"},
		{"i16s", 3, `[] gguf: key "i16s" has 2 numbers, expected 3`},
		{"bools", 2, "[1 0] <nil>"},
		{"yes", 2, "[1 1] <nil>"},
		{"s", 2, `[] gguf: key "s" is a string, expected an integer or 2 of them`},
		{"u64s", 1, `[] gguf: key "u64s" is an array of 1 uint64, expected an integer or 1 of them`},
		{"f32", 1, `[] gguf: key "f32" is the float32 0.10000000149011612, expected an integer or 1 of them`},
		{"absent", 1, `[] gguf: key "absent": not in the file`},
	} {
		got, err := f.IntsOrInt(c.key, c.n)
		check("IntsOrInt("+c.key+")", fmt.Sprint(got, err), c.want)
		if c.key == "absent" && !errors.Is(err, ErrMissing) {
			t.Error("the error about an absent key does not wrap ErrMissing")
		}
	}
}

// splitModel writes a model of count shards with one tensor each and returns the paths.
func splitModel(t *testing.T, dir string, count int, total int32) []string {
	t.Helper()
	var paths []string
	for i := range count {
		var b bytes.Buffer
		w := NewWriter(&b)
		name := fmt.Sprintf("t%d", i)
		err := errors.Join(
			w.Set(keySplitNo, uint16(i)),
			w.Set(keySplitCount, uint16(count)),
			w.Set(keySplitTensors, total),
			w.Set(
				"shard",
				uint32(i),
			),
			w.AddTensor(name, []int{4}, quant.I8),
			w.WriteTensor(name, []byte{byte(i), 1, 2, 3}),
			w.Close(),
		)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, write(t, dir, fmt.Sprintf("model-Q8-%05d-of-%05d.gguf", i+1, count), b.Bytes()))
	}
	return paths
}

func TestSplitOpensFromAnyShard(t *testing.T) {
	paths := splitModel(t, t.TempDir(), 3, 3)
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, f)
		if len(f.Tensors()) != 3 || !slices.Equal(f.Paths(), paths) {
			t.Errorf("%s: %d tensors in %v", path, len(f.Tensors()), f.Paths())
		}
		if x, ok := f.Tensor("t2"); !ok || x.Path() != paths[2] || x.Bytes()[0] != 2 {
			t.Errorf("%s: tensor t2 is not that of the third file", path)
		}
		if n, _ := f.Uint("shard"); n != 0 {
			t.Errorf("%s: keys come from shard %d", path, n)
		}
		f.Close()
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		total int32
		spoil func(t *testing.T, dir string, paths []string)
		err   string
	}{
		{"missing shard", 3, func(t *testing.T, _ string, p []string) { os.Remove(p[1]) }, "no such file"},
		{"shard twice", 3, func(t *testing.T, _ string, p []string) { copyFile(t, p[0], p[1]) }, "says it is shard 1 of 3, expected shard 2 of 3"},
		{"shard of another model", 3, func(t *testing.T, dir string, p []string) {
			sub := filepath.Join(dir, "other")
			os.Mkdir(sub, 0o700)
			copyFile(t, splitModel(t, sub, 2, 2)[1], p[1])
		}, "says it is shard 2 of 2, expected shard 2 of 3"},
		{
			"whole model as shard", 3, func(t *testing.T, dir string, p []string) { write(t, dir, filepath.Base(p[2]), start(0, 0)) },
			"says it is shard 1 of 1, expected shard 3 of 3",
		},
		{"wrong total", 4, func(*testing.T, string, []string) {}, "the shards hold 3 tensors, split.tensors.count " +
			"says 4"},
		{"broken shard", 3, func(t *testing.T, dir string, p []string) { os.Truncate(p[2], 150) }, "truncated, fetch it again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			paths := splitModel(t, dir, 3, c.total)
			c.spoil(t, dir, paths)
			f, err := Open(paths[0])
			if err == nil {
				f.Close()
				t.Fatalf("no error, want %q", c.err)
			}
			if !strings.Contains(err.Error(), c.err) && !(c.err == "no such file" && errors.Is(err, os.ErrNotExist)) {
				t.Errorf("error %q, want %q", err, c.err)
			}
		})
	}
}

func TestShardsUnderOtherNames(t *testing.T) {
	dir := t.TempDir()
	paths := splitModel(t, dir, 2, 2)
	var other []string
	for i, p := range paths {
		to := filepath.Join(dir, fmt.Sprintf("sha256-%d", i))
		if err := os.Rename(p, to); err != nil {
			t.Fatal(err)
		}
		other = append(other, to)
	}
	if _, err := Open(other[1]); err == nil ||
		!strings.Contains(err.Error(), "is not named PREFIX-00002-of-00002.gguf") {
		t.Errorf("opening a shard by another name: %v", err)
	}
	f, err := OpenShards(other)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors()) != 2 {
		t.Errorf("%d tensors, want 2", len(f.Tensors()))
	}
	if _, err := OpenShards(nil); err == nil {
		t.Error("no shards: no error")
	}
}

func TestSameTensorInTwoShards(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range 2 {
		paths = append(
			paths,
			write(
				t,
				dir,
				fmt.Sprintf("m-%05d-of-00002.gguf", i+1),
				file(4, start(1, 2), keySplitCount, u(Uint16), uint16(2),
					keySplitNo, u(Uint16), uint16(i), entry("t", quant.F32, 0, 1)),
			),
		)
	}
	if _, err := Open(paths[0]); err == nil || !strings.Contains(err.Error(), `tensor "t" is in `) {
		t.Errorf("the same tensor in two shards: %v", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenAllocatesInProportion holds opening a file, good or bad, to memory in proportion to its size, whatever counts
// it claims.
func TestOpenAllocatesInProportion(t *testing.T) {
	dir := t.TempDir()
	for _, c := range cases {
		path := write(t, dir, "m.gguf", c.file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if f, err := Open(path); err == nil {
			f.Close()
		}
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+16*len(c.file)); got > limit {
			t.Errorf(
				"%s: a file of %d bytes takes %d bytes of memory, want at most %d",
				c.name,
				len(c.file),
				got,
				limit,
			)
		}
	}
}

// FuzzGGUF opens any bytes: an error, or a file that keeps its promises and survives being written again.
func FuzzGGUF(f *testing.F) {
	for _, c := range cases {
		f.Add(c.file)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := openMemory(data)
		if err != nil {
			return
		}
		checkFile(t, m)
		copied := rewrite(t, m)
		again, err := openMemory(copied)
		if err != nil {
			t.Fatalf("a copy does not open: %v", err)
		}
		checkFile(t, again)
		if !bytes.Equal(rewrite(t, again), copied) {
			t.Fatal("a copy of the copy differs")
		}
	})
}

// openMemory opens one whole file, or one shard alone, without the disk.
func openMemory(data []byte) (*File, error) {
	s, err := parseShard(mmap.FromBytes("memory", data))
	if err != nil {
		return nil, err
	}
	if _, _, err := s.split(); err != nil {
		return nil, err
	}
	return assemble([]*shard{s})
}

func BenchmarkOpen(b *testing.B) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	tokens, scores := make([]string, 150_000), make([]float32, 150_000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token%d", i*7919)
	}
	if err := errors.Join(w.Set("tokens", tokens), w.Set("scores", scores), w.Set("merges", tokens), w.Close()); err != nil {
		b.Fatal(err)
	}
	path := write(b, b.TempDir(), "m.gguf", buf.Bytes())
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
