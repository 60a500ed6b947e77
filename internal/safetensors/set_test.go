package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/mmap"
)

// file is a header and data bytes that count up.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"t":{"dtype":"%s","shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

// cases are files with what reading them must say; "" is a good file. The fuzzer starts from them.
var cases = []struct {
	name string
	file []byte
	err  string
}{
	{"no tensors", file(`{}`, 0), ""},
	{"one tensor", file(one("F32", "[2,3]", "[0,24]"), 24), ""},
	{"scalar", file(one("I64", "[]", "[0,8]"), 8), ""},
	{"F64, whose name starts like F6_E2M3", file(one("F64", "[]", "[0,8]"), 8), ""},
	{"empty tensor", file(one("BF16", "[0,5]", "[0,0]"), 0), ""},
	{"empty with a huge dimension", file(one("F32", "[1000000000000000000,0]", "[0,0]"), 0), ""},
	{
		"empty between others",
		file(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"F32","shape":[0],"data_offsets":[2,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`,
			3,
		),
		"",
	},
	{
		"unaligned",
		file(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}`,
			5,
		),
		"",
	},
	{
		"out of order",
		file(
			`{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"shape":[1],"data_offsets":[0,1],"dtype":"U8"}}`,
			2,
		),
		"",
	},
	{"four-bit floats", file(one("F4", "[3,2]", "[0,3]"), 3), ""},
	{"spaces", file(" {} "[1:]+"   ", 0), ""},
	{
		"spaces inside",
		file("{ \"t\" :\n{ \"dtype\" : \"U8\" , \"shape\" : [ 1 , 1 ] ,\t\"data_offsets\" : [ 0 , 1 ] } }", 1),
		"",
	},
	{
		"metadata",
		file(`{"__metadata__":{"format":"pt","n":""},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
		"",
	},
	{"escapes", file(`{"\u0074\"\\\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), ""},

	{"nothing", nil, "the file has 0 bytes"},
	{"short length", []byte{1, 2, 3}, "the file has 3 bytes"},
	{"header past the end", file(`{}`, 0)[:9], "the header ends 1 bytes past the file"},
	{"header too long", binary.LittleEndian.AppendUint64(nil, maxHeader+1), "at most 100000000 are allowed"},
	{"header length wraps", binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "at most 100000000 are allowed"},
	{"no header", file("", 0), "does not start with {"},
	{"space first", file(" {}", 0), "does not start with {"},
	{"html", []byte("<!DOCTYPE html><html>"), "may not be a safetensors file"},
	{"zip", file("PK\x03\x04", 0), "does not start with {"},

	{"text after the object", file(`{}x`, 0), "text after the end"},
	{"two objects", file(`{}{}`, 0), "text after the end"},
	{"not closed", file(`{`, 0), "the text ends where"},
	{"comma last", file(`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},}`, 1), `'}' where '"' is expected`},
	{"string not closed", file(`{"abc`, 0), "a string does not end"},
	{"string ends in backslash", file(`{"abc\`, 0), "a string does not end"},
	{"escape unknown", file(`{"\x":1}`, 0), "invalid character"},
	{"control character", file("{\"a\nb\":1}", 0), "a control character"},
	{"not UTF-8", file("{\"\xff\":1}", 0), "not UTF-8"},
	{"tensor a number", file(`{"t":1}`, 0), `tensor "t": at byte 5: '1' where '{'`},
	{"null byte", file("{\x00}", 0), `'\x00' where '"' is expected`},
	{"deep", file(`{"t":`+strings.Repeat("{", 100_000), 0), `'{' where '"'`},

	{
		"tensor twice",
		file(
			`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
			2,
		),
		`tensor "t" is there twice`,
	},
	{
		"tensor twice by escape",
		file(
			`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0074":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
			2,
		),
		`tensor "t" is there twice`,
	},
	{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), "__metadata__ is there twice"},
	{"metadata key twice", file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), `"a" is there twice`},
	{"metadata a number", file(`{"__metadata__":{"a":1}}`, 0), `'1' where '"' is expected`},
	{
		"dtype twice",
		file(`{"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
		`the key "dtype" is there twice`,
	},
	{
		"offsets twice",
		file(`{"t":{"dtype":"U8","data_offsets":[0,1],"shape":[1],"data_offsets":[0,1]}}`, 1),
		`the key "data_offsets" is there twice`,
	},
	{"key unknown", file(`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"stride":[1]}}`, 1), `"stride"`},
	{
		"dtype missing",
		file(`{"t":{"shape":[1],"data_offsets":[0,1]}}`, 1),
		"dtype, shape and two data_offsets are needed",
	},
	{"one offset", file(one("U8", "[1]", "[0]"), 1), "two data_offsets are needed"},
	{"three offsets", file(one("U8", "[1]", "[0,1,2]"), 1), "more than 2 numbers"},
	{"dtype unknown", file(one("Q4", "[1]", "[0,1]"), 1), `the dtype "Q4" is not known`},
	{"dtype lower case", file(one("u8", "[1]", "[0,1]"), 1), `the dtype "u8" is not known`},
	{"offsets backwards", file(one("U8", "[1]", "[1,0]"), 1), "run backwards"},
	{"negative size", file(one("U8", "[-1]", "[0,1]"), 1), "is not a size"},
	{"size a fraction", file(one("U8", "[1.5]", "[0,1]"), 1), "where ']' is expected"},
	{"size with exponent", file(one("U8", "[1e2]", "[0,1]"), 1), "where ']' is expected"},
	{"size with zero first", file(one("U8", "[01]", "[0,1]"), 1), `"01" is not a size`},
	{"size too large", file(one("U8", "[18446744073709551616]", "[0,1]"), 1), "is not a size"},
	{"shape too long", file(one("U8", "["+strings.Repeat("1,", 16)+"1]", "[0,1]"), 1), "more than 16 numbers"},
	{"product wraps", file(one("F32", "[4294967296,4294967296]", "[0,0]"), 0), "more than can be addressed"},
	{"bytes wrap", file(one("F32", "[4611686018427387904,1]", "[0,0]"), 0), "is more than can be addressed"},
	{"size mismatch", file(one("F32", "[2]", "[0,4]"), 4), "F32 of shape [2] takes 8 bytes, not 4"},
	{"part of a byte", file(one("F4", "[3]", "[0,2]"), 2), "does not fill whole bytes"},

	{"gap first", file(one("U8", "[1]", "[1,2]"), 2), `1 bytes before tensor "t" belong to no tensor`},
	{
		"gap",
		file(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}`,
			4,
		),
		`2 bytes before tensor "b"`,
	},
	{
		"overlap",
		file(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`,
			3,
		),
		`tensor "b" overlaps`,
	},
	{
		"same range",
		file(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
			1,
		),
		"overlaps",
	},
	{
		"data past the end",
		file(one("F32", "[2]", "[0,8]"), 5),
		`tensor "t" ends 3 bytes past the file: truncated, fetch it again`,
	},
	{"bytes after the last", file(one("U8", "[1]", "[0,1]"), 3), "2 bytes after the last tensor belong to no tensor"},
	{"data without tensors", file(`{}`, 1), "1 bytes after the last tensor"},
	{
		"empty tensor inside another",
		file(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`,
			2,
		),
		`tensor "e" overlaps`,
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

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, dir, "m.safetensors", c.file)
			s, err := Open(path)
			switch {
			case c.err == "" && err != nil:
				t.Fatal(err)
			case c.err == "":
				checkSet(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Fatalf("no error, want %q", c.err)
			case !strings.Contains(err.Error(), c.err):
				t.Errorf("error %q, want %q", err, c.err)
			case !strings.Contains(err.Error(), path) || !strings.HasPrefix(err.Error(), "safetensors: "):
				t.Errorf("error %q does not name the file", err)
			}
		})
	}
}

// checkSet holds an open checkpoint to what its type promises.
func checkSet(t testing.TB, s *Set) {
	t.Helper()
	covered := map[string]int{}
	for _, x := range s.Tensors() {
		if got, ok := s.Tensor(x.Name); !ok || got != x {
			t.Fatalf("tensor %q is listed but not there", x.Name)
		}
		if len(x.Bytes()) != x.Size() || x.Size()*8 != x.Elements()*dtypes[x.DType] {
			t.Fatalf("tensor %q has %d bytes", x.Name, len(x.Bytes()))
		}
		if x.Size() > 0 {
			r, off := x.File()
			last := make([]byte, 1)
			if _, err := r.ReadAt(last, off+int64(x.Size())-1); err != nil || last[0] != x.Bytes()[x.Size()-1] {
				t.Fatalf("tensor %q: reading its last byte: %v", x.Name, err)
			}
		}
		covered[x.Path()] += x.Size()
		if f, err := x.Float32s(); (err == nil) != (!strings.HasPrefix(x.DType, "F8_") && !strings.HasPrefix(x.DType, "F6_") && x.DType != "F4" && x.DType != "C64") {
			t.Fatalf("tensor %q: %v", x.Name, err)
		} else if err == nil && len(f) != x.Elements() {
			t.Fatalf("tensor %q has %d numbers", x.Name, len(f))
		}
	}
	for _, m := range s.files {
		if want := m.Len() - 8 - int(binary.LittleEndian.Uint64(m.Bytes())); covered[m.Name()] != want {
			t.Fatalf("%s: tensors cover %d of %d bytes", m.Name(), covered[m.Name()], want)
		}
	}
}

func TestTensorBytes(t *testing.T) {
	s, err := Open(write(t, t.TempDir(), "m.safetensors", file(`{"__metadata__":{"format":"pt"},`+
		`"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]}}`, 3)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Tensors(); len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Fatalf("tensors are not in the order of their bytes")
	}
	a, _ := s.Tensor("a")
	b, _ := s.Tensor("b")
	if !bytes.Equal(a.Bytes(), []byte{0, 1}) || !bytes.Equal(b.Bytes(), []byte{2}) ||
		!reflect.DeepEqual(a.Shape, []int{2, 1}) {
		t.Errorf("a is %v of shape %v, b is %v", a.Bytes(), a.Shape, b.Bytes())
	}
	if cap(a.Bytes()) != 2 {
		t.Error("appending to a tensor's bytes would reach the next one")
	}
	if v, ok := s.Metadata("format"); !ok || v != "pt" {
		t.Errorf("metadata format is %q, %v", v, ok)
	}
	if _, ok := s.Tensor("c"); ok {
		t.Error("there is a tensor c")
	}
}

func TestFloat32s(t *testing.T) {
	le := func(v any) []byte {
		b, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		dtype string
		data  []byte
		want  []float32
	}{
		{"F32", le([]float32{1.5, -2}), []float32{1.5, -2}},
		{"F16", le([]uint16{0x3c00, 0xc000}), []float32{1, -2}},
		{"BF16", le([]uint16{0x3f80, 0xc000}), []float32{1, -2}},
		{"F64", le([]float64{0.1}), []float32{0.1}},
		{"BOOL", []byte{0, 1}, []float32{0, 1}},
		{"U8", []byte{0, 255}, []float32{0, 255}},
		{"I8", []byte{0, 255}, []float32{0, -1}},
		{"U16", le([]uint16{65535}), []float32{65535}},
		{"I16", le([]int16{-5}), []float32{-5}},
		{"U32", le([]uint32{1 << 31}), []float32{1 << 31}},
		{"I32", le([]int32{-1 << 31}), []float32{-1 << 31}},
		{"U64", le([]uint64{1 << 63}), []float32{1 << 63}},
		{"I64", le([]int64{-3}), []float32{-3}},
		{"F8_E4M3", []byte{1}, nil},
		{"C64", le([]float32{1, 2}), nil},
		{"F4", []byte{1}, nil},
	} {
		n := len(c.data) * 8 / dtypes[c.dtype]
		var b bytes.Buffer
		// A byte in front makes everything after it unaligned.
		err := Write(
			&b,
			[]Entry{
				{Name: "x", DType: "U8", Shape: []int{1}, Data: []byte{9}},
				{Name: "t", DType: c.dtype, Shape: []int{n}, Data: c.data},
			},
			nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(write(t, t.TempDir(), "m.safetensors", b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		x, _ := s.Tensor("t")
		got, err := x.Float32s()
		if (err == nil) != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.dtype, got, err, c.want)
		}
		s.Close()
	}
}

func TestFolders(t *testing.T) {
	tensor := func(name string) []byte {
		return file(fmt.Sprintf(`{"%s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, name), 1)
	}
	index := func(pairs string) []byte {
		return fmt.Appendf(
			nil,
			`{"metadata":{"total_size":2,"deep":[{"a":null,"b":-1.5e3},true,"x"]},"weight_map":{%s}}`,
			pairs,
		)
	}
	const idx = "model.safetensors.index.json"
	for _, c := range []struct {
		name  string
		files map[string][]byte
		open  string
		want  string // names, or the error after "!"
	}{
		{"single", map[string][]byte{"model.safetensors": tensor("a"), "golden.safetensors": tensor("g")}, "", "a"},
		{"all files", map[string][]byte{"m1.safetensors": tensor("a"), "m2.safetensors": tensor("b"), "notes.txt": nil}, "", "a b"},
		{"index first", map[string][]byte{
			idx: index(`"b":"x2.safetensors","a":"x1.safetensors"`), "x1.safetensors": tensor("a"),
			"x2.safetensors": tensor("b"), "model.safetensors": tensor("c"),
		}, "", "a b"},
		{"index by path", map[string][]byte{idx: index(`"a":"x1.safetensors"`), "x1.safetensors": tensor("a")}, idx, "a"},
		{"file by path", map[string][]byte{"q": tensor("a")}, "q", "a"},
		{"empty folder", nil, "", "!holds no .safetensors file"},
		{"same tensor twice", map[string][]byte{"m1.safetensors": tensor("a"), "m2.safetensors": tensor("a")}, "", `!tensor "a" is in `},
		{"shard missing", map[string][]byte{idx: index(`"a":"x1.safetensors"`)}, "", "!x1.safetensors"},
		{"tensor in no shard", map[string][]byte{idx: index(`"b":"x1.safetensors"`), "x1.safetensors": tensor("a")}, "", `!tensor "b" is not in x1.safetensors`},
		{
			"tensor in another shard",
			map[string][]byte{idx: index(`"a":"x2.safetensors","b":"x1.safetensors"`), "x1.safetensors": tensor("a"), "x2.safetensors": tensor("b")},
			"", "!where the index puts it",
		},
		{"escape upwards", map[string][]byte{idx: index(`"a":"../x1.safetensors"`)}, "", "!shards must lie beside the index"},
		{"escape absolute", map[string][]byte{idx: index(`"a":"/etc/passwd"`)}, "", "!shards must lie beside the index"},
		{"escape by folder", map[string][]byte{idx: index(`"a":"sub/x.safetensors"`)}, "", "!shards must lie beside the index"},
		{"escape by backslash", map[string][]byte{idx: index(`"a":"..\\x.safetensors"`)}, "", "!shards must lie beside the index"},
		{"escape by drive", map[string][]byte{idx: index(`"a":"c:x"`)}, "", "!shards must lie beside the index"},
		{"shard is the folder", map[string][]byte{idx: index(`"a":"."`)}, "", "!shards must lie beside the index"},
		{"shard without name", map[string][]byte{idx: index(`"a":""`)}, "", "!shards must lie beside the index"},
		{"index empty", map[string][]byte{idx: index(``)}, "", "!weight_map is missing or empty"},
		{"index without map", map[string][]byte{idx: []byte(`{"metadata":{}}`)}, "", "!weight_map is missing or empty"},
		{"index with map twice", map[string][]byte{idx: []byte(`{"weight_map":{},"weight_map":{}}`)}, "", "!weight_map is there twice"},
		{"index with tensor twice", map[string][]byte{idx: index(`"a":"x","a":"y"`)}, "", `!"a" is there twice`},
		{"index not JSON", map[string][]byte{idx: []byte(`version https://git-lfs`)}, "", "!'v' where '{' is expected"},
		{"index nested deep", map[string][]byte{idx: []byte(`{"x":` + strings.Repeat("[", 100_000))}, "", "!nested more than 32 deep"},
		{"index with a bad value", map[string][]byte{idx: []byte(`{"x":nul}`)}, "", `!"nul" is not a value`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range c.files {
				write(t, dir, name, data)
			}
			s, err := Open(filepath.Join(dir, c.open))
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("error %v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			checkSet(t, s)
			var names []string
			for _, x := range s.Tensors() {
				names = append(names, x.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("tensors %q, want %q", got, c.want)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent path: %v", err)
	}
}

func TestWriteRoundTrip(t *testing.T) {
	entries := []Entry{
		{Name: "scalar", DType: "F32", Data: []byte{0, 0, 128, 63}},
		{Name: `quote " and ü`, DType: "BF16", Shape: []int{2, 2}, Data: []byte("abcdefgh")},
		{Name: "empty", DType: "I64", Shape: []int{0, 4}},
		{Name: "stream", DType: "U8", Shape: []int{3}, From: strings.NewReader("xyz and more")},
		{Name: "nibbles", DType: "F4", Shape: []int{2}, Data: []byte{1}},
	}
	var b bytes.Buffer
	if err := Write(&b, entries, map[string]string{"format": "pt", "<&>": "ü"}); err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint64(b.Bytes()); n%8 != 0 {
		t.Errorf("the data starts at %d", 8+n)
	}
	s, err := Open(write(t, t.TempDir(), "m.safetensors", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	checkSet(t, s)
	for _, e := range entries {
		want := e.Data
		if e.From != nil {
			want = []byte("xyz")
		}
		x, ok := s.Tensor(e.Name)
		if !ok || x.DType != e.DType || !bytes.Equal(x.Bytes(), want) ||
			!reflect.DeepEqual(x.Shape, append([]int{}, e.Shape...)) {
			t.Errorf("tensor %q is not what was written", e.Name)
		}
	}
	if v, _ := s.Metadata("<&>"); v != "ü" {
		t.Errorf("metadata is %q", v)
	}
}

func TestWriteRefuses(t *testing.T) {
	ok := Entry{Name: "a", DType: "U8", Shape: []int{1}, Data: []byte{1}}
	for _, c := range []struct {
		name    string
		entries []Entry
		err     string
	}{
		{"name twice", []Entry{ok, ok}, `"a" is used twice or reserved`},
		{"reserved name", []Entry{{Name: "__metadata__", DType: "U8", Shape: []int{0}}}, "reserved"},
		{"name not UTF-8", []Entry{{Name: "\xff", DType: "U8", Shape: []int{0}}}, "is not UTF-8"},
		{"dtype", []Entry{{Name: "a", DType: "Q4"}}, `the dtype "Q4" is not known`},
		{"negative", []Entry{{Name: "a", DType: "U8", Shape: []int{-1}}}, "is not possible"},
		{"huge", []Entry{{Name: "a", DType: "F64", Shape: []int{1 << 40, 1 << 40}}}, "more than can be addressed"},
		{"part of a byte", []Entry{{Name: "a", DType: "F4", Shape: []int{3}, Data: []byte{1, 2}}}, "does not fill whole bytes"},
		{"too little data", []Entry{{Name: "a", DType: "F32", Shape: []int{1}, Data: []byte{1}}}, "takes 4 bytes, 1 were given"},
		{"both sources", []Entry{{Name: "a", DType: "U8", Shape: []int{1}, Data: []byte{1}, From: strings.NewReader("x")}}, "not from both"},
		{"reader too short", []Entry{{Name: "a", DType: "U8", Shape: []int{5}, From: strings.NewReader("x")}}, `tensor "a": EOF`},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.entries, nil); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		} else if b.Len() > 0 && c.name != "reader too short" {
			t.Errorf("%s: %d bytes were written all the same", c.name, b.Len())
		}
	}
}

// TestRealFiles reads whole checkpoints named in BALEEN_TEST_SAFETENSORS (paths, separated by commas).
func TestRealFiles(t *testing.T) {
	list := os.Getenv("BALEEN_TEST_SAFETENSORS")
	if list == "" {
		t.Skip("BALEEN_TEST_SAFETENSORS names no checkpoints")
	}
	for path := range strings.SplitSeq(list, ",") {
		s, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(s.Tensors()) == 0 {
			t.Errorf("%s has no tensors", path)
		}
		checkSet(t, s)
		s.Close()
	}
}

// TestOpenAllocatesInProportion holds opening a file, good or bad, to memory in proportion to its size, whatever counts
// it claims.
func TestOpenAllocatesInProportion(t *testing.T) {
	dir := t.TempDir()
	for _, c := range cases {
		path := write(t, dir, "m.safetensors", c.file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if s, err := Open(path); err == nil {
			s.Close()
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

// FuzzSafetensors opens any bytes: an error, or a checkpoint that keeps its promises and survives being written again.
func FuzzSafetensors(f *testing.F) {
	for _, c := range cases {
		f.Add(c.file)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newSet()
		if s.add(mmap.FromBytes("memory", data)) != nil {
			return
		}
		checkSet(t, s)
		var entries []Entry
		for _, x := range s.Tensors() {
			entries = append(entries, Entry{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: x.Bytes()})
		}
		var b bytes.Buffer
		if err := Write(&b, entries, s.metadata); err != nil {
			t.Fatal(err)
		}
		again := newSet()
		if err := again.add(mmap.FromBytes("copy", b.Bytes())); err != nil {
			t.Fatalf("a copy does not open: %v", err)
		}
		if len(again.Tensors()) != len(entries) || !reflect.DeepEqual(again.metadata, s.metadata) {
			t.Fatal("a copy differs")
		}
		for _, e := range entries {
			if x, ok := again.Tensor(e.Name); !ok || x.DType != e.DType || !bytes.Equal(x.Bytes(), e.Data) {
				t.Fatalf("tensor %q differs in a copy", e.Name)
			}
		}
	})
}

// FuzzIndex reads any bytes as an index: an error, or file names without paths for every tensor that is accepted.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":2},"weight_map":{"a":"x1.safetensors","b":"../x"}}`))
	f.Add([]byte(`{"weight_map":{"a":"/x","\u0061b":"\u002e\u002e"}} `))
	f.Fuzz(func(t *testing.T, data []byte) {
		weights, err := parseIndex(data)
		if err != nil {
			return
		}
		for _, shard := range weights {
			if plainName(shard) && filepath.Dir(filepath.Join("dir", shard)) != "dir" {
				t.Fatalf("%q leaves the folder", shard)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	var entries []Entry
	for i := range 50_000 {
		entries = append(
			entries,
			Entry{
				Name:  fmt.Sprintf("model.layers.%d.mlp.experts.%d.up_proj.weight", i/256, i%256),
				DType: "BF16",
				Shape: []int{1, 1},
				Data:  []byte{1, 2},
			},
		)
	}
	var buf bytes.Buffer
	if err := Write(&buf, entries, nil); err != nil {
		b.Fatal(err)
	}
	path := write(b, b.TempDir(), "m.safetensors", buf.Bytes())
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
