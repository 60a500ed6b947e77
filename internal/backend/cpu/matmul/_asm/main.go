// Command asm generates the amd64 kernels of package matmul: go generate in the package's folder runs it once for each
// part. The layouts that it assumes stand in format.go and act.go of the package.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// fetchAhead is how far in bytes ahead of themselves kernels fetch float weights, into the second-level cache: a fetch
// into the first waits for one of few places, and holds up the loads behind it. Kernels of quantized weights are told
// how far.
const fetchAhead = 12288

var parts = map[string]func(){
	"tile_avx512":     tilesAVX512,
	"few_avx512":      fewAVX512,
	"pack_avx2":       packAVX2,
	"tile_avx2":       tilesAVX2,
	"tile_avxvnni":    tilesVNNI,
	"expand_avx2":     expandersAVX2,
	"float_avx2":      floatsAVX2,
	"quantize_avx2":   quantizeAVX2,
	"expand_avx512":   expandersAVX512,
	"float_avx512":    floatsAVX512,
	"quantize_avx512": quantizeAVX512,
}

// RATIONALE: Why are the loops of assembly aligned?
func main() {
	part := flag.String("part", "", "which part to generate")
	flag.Parse()
	if *part == "neon" {
		if err := neon(); err != nil {
			fmt.Fprintln(os.Stderr, "asm:", err)
			os.Exit(1)
		}
		return
	}
	generate := parts[*part]
	if generate == nil {
		fmt.Fprintf(os.Stderr, "asm: no part %q\n", *part)
		os.Exit(1)
	}
	ConstraintExpr("amd64")
	ConstraintExpr("!purego")
	generate()
	Generate()
	if *part == "tile_avxvnni" {
		if err := vexEncode(flag.Lookup("out").Value.String()); err != nil {
			fmt.Fprintln(os.Stderr, "asm:", err)
			os.Exit(1)
		}
	}
}

var dotProduct = regexp.MustCompile(`VPDPBUSD\s+Y(\d+), Y(\d+), Y(\d+)`)

// vexEncode replaces VPDPBUSD, which Go's assembler encodes for AVX-512 only, with the bytes of its AVX-VNNI encoding.
func vexEncode(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text = dotProduct.ReplaceAllFunc(text, func(line []byte) []byte {
		var r [3]int // signed source, unsigned source, destination
		for i, digits := range dotProduct.FindSubmatch(line)[1:] {
			r[i], _ = strconv.Atoi(string(digits))
		}
		// VEX.256.66.0F38.W0 50 /r
		b := []int{0xc4, 0xe2 ^ r[2]>>3<<7 ^ r[0]>>3<<5, 0x05 | (^r[1]&15)<<3, 0x50, 0xc0 | r[2]&7<<3 | r[0]&7}
		var s []byte
		for _, v := range b {
			s = fmt.Appendf(s, "BYTE $0x%02x; ", v)
		}
		return fmt.Appendf(s, "// %s", line)
	})
	return os.WriteFile(file, text, 0o644)
}

// neon generates everything for arm64.
func neon() error {
	c := newCode("go run . -part neon")
	c.expanders()
	c.tiles()
	c.floats()
	c.quantize()
	c.packPlanes()
	return c.write("../neon_arm64.s", "../neon_arm64.go")
}

// The activation record (act.go).
const (
	record     = 48
	recScale   = 32
	recSum     = 36
	recCorr    = 40
	recCorr16  = 44
	segmentLen = 16 // blocks of 32 in a segment
)

// function starts a function with a signature.
func function(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}

// param loads a parameter into a register.
func param(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// arg addresses a parameter where the caller left it.
func arg(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

func mem(base Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

// rowsBase addresses rows a stride apart with a pointer for every third row.
type rowsBase struct {
	ptr    []GPVirtual
	stride GPVirtual
	offset int
}

// from addresses what lies n bytes further on in each row.
func (r rowsBase) from(n int) rowsBase {
	r.offset += n
	return r
}

func newRows(n int, stride GPVirtual) rowsBase {
	r := rowsBase{stride: stride}
	for range (n + 2) / 3 {
		r.ptr = append(r.ptr, GP64())
	}
	return r
}

// set points row 0 to base.
func (r rowsBase) set(base GPVirtual) {
	for i, p := range r.ptr {
		if i == 0 {
			MOVQ(base, p)
		} else {
			LEAQ(Mem{Base: r.ptr[i-1], Index: r.stride, Scale: 2}, p)
			ADDQ(r.stride, p)
		}
	}
}

// at addresses a byte of row m.
func (r rowsBase) at(m, disp int) Mem {
	a := Mem{Base: r.ptr[m/3], Disp: r.offset + disp}
	if m%3 > 0 {
		a.Index, a.Scale = r.stride, uint8(m%3)
	}
	return a
}

func (r rowsBase) advance(n int) {
	for _, p := range r.ptr {
		ADDQ(I32(int32(n)), p)
	}
}

// dwords makes a vector of one 32-bit constant.
func dwords(v uint32) VecVirtual {
	t, z := GP32(), ZMM()
	MOVL(U32(v), t)
	VPBROADCASTD(t, z)
	return z
}

func zeroed(z VecVirtual) { VPXORD(z, z, z) }

func vectors(n int) (v []VecVirtual) {
	for range n {
		v = append(v, ZMM())
	}
	return v
}
