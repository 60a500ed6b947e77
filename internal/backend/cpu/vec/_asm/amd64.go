package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	avoreg "github.com/mmcloughlin/avo/reg"
)

// x86 emits AVX-512 (16 lanes) or AVX2 with FMA and F16C (8 lanes).
type x86 struct {
	*build.Context
	wide   bool
	consts map[string]operand.Mem
	kept   map[konst]vec  // constants in registers for the rest of the function
	used   map[konst]bool // constants that a rehearsed body loads; nil outside of rehearsals
	unique int
	scope  int
}

func newX86(wide bool) *x86 {
	x := &x86{Context: build.NewContext(), wide: wide, consts: map[string]operand.Mem{}}
	x.ConstraintExpr("amd64,!purego")
	return x
}

func (x *x86) suffix() string {
	if x.wide {
		return "AVX512"
	}
	return "AVX2"
}

func (x *x86) lanes() int {
	if x.wide {
		return 16
	}
	return 8
}

func (x *x86) tuning() tuning {
	if x.wide {
		return tuning{
			qkBlocks: []int{1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2},
			pvDims:   []int{1: 64, 2: 64, 3: 64, 4: 64},
			delta:    64,
		}
	}
	return tuning{
		qkBlocks: []int{1: 2, 2: 1, 3: 1, 4: 1},
		pvDims:   []int{1: 32, 2: 32, 3: 16, 4: 16},
		delta:    32,
	}
}

func (x *x86) write(dir string) {
	f, err := x.Result()
	check(err)
	check(pass.Compile.Execute(f))
	name := map[bool]string{true: "avx512", false: "avx2"}[x.wide]
	cfg := printer.Config{Name: "_asm", Pkg: "vec"}
	for out, p := range map[string]printer.Printer{
		"_amd64.s":       printer.NewGoAsm(cfg),
		"_stub_amd64.go": printer.NewStubs(cfg),
	} {
		b, err := p.Print(f)
		check(err)
		b = dropSelfMoves(b)
		b = bytes.Replace(b, []byte("by command: _asm DO NOT EDIT"), []byte("by _asm. DO NOT EDIT"), 1)
		check(os.WriteFile(dir+"/"+name+out, b, 0o644))
	}
}

// dropSelfMoves drops what assign leaves where the allocator gave both sides one register.
func dropSelfMoves(text []byte) []byte {
	return move.ReplaceAllFunc(text, func(line []byte) []byte {
		if m := move.FindSubmatch(line); bytes.Equal(m[1], m[2]) {
			return nil
		}
		return line
	})
}

var move = regexp.MustCompile(`(?m)^\tVMOVAPS +([XYZ]\d+), ([XYZ]\d+)\n`)

func (x *x86) begin(name, sig string) {
	x.Function(name + x.suffix())
	x.Attributes(attr.NOSPLIT)
	x.Pragma("noescape")
	x.SignatureExpr(sig)
	x.scope++
	x.unique = 0
	x.kept = map[konst]vec{}
}

// mostKept leaves half of the registers to what a loop computes with.
const mostKept = 16

// keep loads the constants of a loop's body before it, where there are registers to spare: loaded at each use, and half
// of them across cache lines, they take longer than the arithmetic of an exponential function.
func (x *x86) keep(body func()) {
	if !x.wide {
		return
	}
	context, consts, unique := x.Context, x.consts, x.unique
	x.Context, x.consts, x.used = build.NewContext(), map[string]operand.Mem{}, map[konst]bool{}
	x.Function("rehearsal")
	body()
	used := slices.Sorted(maps.Keys(x.used))
	x.Context, x.consts, x.unique, x.used = context, consts, unique, nil
	for _, c := range used[:min(len(used), mostKept)] {
		x.kept[c] = x.constant(c)
	}
}

func (x *x86) end() {
	x.VZEROUPPER()
	x.RET()
}

func (x *x86) vector() avoreg.VecVirtual {
	if x.wide {
		return x.ZMM()
	}
	return x.YMM()
}

func (x *x86) param(name string) reg {
	p := x.Param(name)
	if _, err := p.Resolve(); err != nil {
		return x.Load(p.Base(), x.GP64())
	}
	return x.Load(p, x.GP64())
}

func (x *x86) length(name string) reg { return x.Load(x.Param(name).Len(), x.GP64()) }

func (x *x86) spread(name string) vec {
	b, err := x.Param(name).Resolve()
	check(err)
	v := x.vector()
	x.VBROADCASTSS(b.Addr, v)
	return v
}

func op(r any) operand.Op { return r.(operand.Op) }

func at(m mem) operand.Mem { return operand.Mem{Base: m.base.(avoreg.Register), Disp: m.disp} }

func (x *x86) number(n int) reg {
	r := x.GP64()
	x.MOVQ(operand.I32(n), r)
	return r
}

func (x *x86) copyReg(r reg) reg {
	d := x.GP64()
	x.MOVQ(op(r), d)
	return d
}

func (x *x86) addImm(r reg, n int)   { x.ADDQ(operand.I32(n), op(r)) }
func (x *x86) addReg(r, s reg)       { x.ADDQ(op(s), op(r)) }
func (x *x86) shift(r reg, bits int) { x.SHLQ(operand.U8(bits), op(r)) }

func (x *x86) prefetch(m mem) { x.PREFETCHT1(at(m)) }

func (x *x86) local(l label) string { return fmt.Sprintf("%s", l) }

func (x *x86) label(l label) { x.Label(x.local(l)) }

func (x *x86) loop(n reg, step int, body func()) {
	x.unique++
	l := fmt.Sprintf("loop%d", x.unique)
	x.Label(l)
	body()
	x.SUBQ(operand.I32(step), op(n))
	x.JNZ(operand.LabelRef(l))
}

func (x *x86) jumpLess(r reg, n int, l label) {
	x.CMPQ(op(r), operand.I32(n))
	x.JLT(operand.LabelRef(x.local(l)))
}

func (x *x86) jumpZero(r reg, l label) {
	x.TESTQ(op(r), op(r))
	x.JZ(operand.LabelRef(x.local(l)))
}

func (x *x86) jump(l label) { x.JMP(operand.LabelRef(x.local(l))) }

// data returns the memory of a constant vector.
func (x *x86) data(name string, lane func(i int) uint32) operand.Mem {
	if m, ok := x.consts[name]; ok {
		return m
	}
	m := x.StaticGlobal(name + x.suffix())
	x.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range x.lanes() {
		x.AppendDatum(operand.U32(lane(i)))
	}
	x.consts[name] = m
	return m
}

// constOp returns a constant where it is: in a register or in memory.
func (x *x86) constOp(c konst) operand.Op {
	if v, ok := x.kept[c]; ok {
		return op(v)
	}
	if x.used != nil {
		x.used[c] = true
	}
	return x.data(fmt.Sprintf("c%08x", uint32(c)), func(int) uint32 { return uint32(c) })
}

func (x *x86) zero() vec {
	v := x.vector()
	x.VXORPS(v, v, v)
	return v
}

func (x *x86) constant(c konst) vec {
	v := x.vector()
	x.VMOVUPS(x.constOp(c), v)
	return v
}

func (x *x86) load(m mem) vec {
	v := x.vector()
	x.VMOVUPS(at(m), v)
	return v
}

func (x *x86) store(v vec, m mem) { x.VMOVUPS(op(v), at(m)) }

func (x *x86) loadHalf(m mem) vec {
	v := x.vector()
	x.VCVTPH2PS(at(m), v)
	return v
}

func (x *x86) storeHalf(v vec, m mem) { x.VCVTPS2PH(operand.U8(0), op(v), at(m)) }

func (x *x86) broadcast(m mem) vec {
	v := x.vector()
	x.VBROADCASTSS(at(m), v)
	return v
}

func (x *x86) dup(v vec) vec {
	d := x.vector()
	x.VMOVAPS(op(v), d)
	return d
}

func (x *x86) assign(dst, v vec) { x.VMOVAPS(op(v), op(dst)) }

func (x *x86) three(f func(ops ...operand.Op), a, b any) vec {
	d := x.vector()
	f(op(b), op(a), d)
	return d
}

func (x *x86) add(a, b vec) vec { return x.three(x.VADDPS, a, b) }
func (x *x86) sub(a, b vec) vec { return x.three(x.VSUBPS, a, b) }
func (x *x86) mul(a, b vec) vec { return x.three(x.VMULPS, a, b) }
func (x *x86) div(a, b vec) vec { return x.three(x.VDIVPS, a, b) }
func (x *x86) max(a, b vec) vec { return x.three(x.VMAXPS, a, b) }
func (x *x86) min(a, b vec) vec { return x.three(x.VMINPS, a, b) }
func (x *x86) and(a, b vec) vec { return x.three(x.VANDPS, a, b) }
func (x *x86) or(a, b vec) vec  { return x.three(x.VORPS, a, b) }
func (x *x86) xor(a, b vec) vec { return x.three(x.VXORPS, a, b) }

func (x *x86) mla(acc, a, b vec)             { x.VFMADD231PS(op(b), op(a), op(acc)) }
func (x *x86) nmla(acc, a, b vec)            { x.VFNMADD231PS(op(b), op(a), op(acc)) }
func (x *x86) mlaLoad(acc, a vec, m mem)     { x.VFMADD231PS(at(m), op(a), op(acc)) }
func (x *x86) mlaConst(acc, a vec, c konst)  { x.VFMADD231PS(x.constOp(c), op(a), op(acc)) }
func (x *x86) nmlaConst(acc, a vec, c konst) { x.VFNMADD231PS(x.constOp(c), op(a), op(acc)) }
func (x *x86) mulConst(a vec, c konst) vec   { return x.three(x.VMULPS, a, x.constOp(c)) }
func (x *x86) addConst(a vec, c konst) vec   { return x.three(x.VADDPS, a, x.constOp(c)) }
func (x *x86) subConst(a vec, c konst) vec   { return x.three(x.VSUBPS, a, x.constOp(c)) }
func (x *x86) andConst(a vec, c konst) vec   { return x.three(x.VANDPS, a, x.constOp(c)) }
func (x *x86) xorConst(a vec, c konst) vec   { return x.three(x.VXORPS, a, x.constOp(c)) }
func (x *x86) horner(p, y vec, c konst) vec {
	x.VFMADD213PS(x.constOp(c), op(y), op(p))
	return p
}

func (x *x86) selectLess(a, b, y, z vec) vec {
	d := x.vector()
	if x.wide {
		k := x.K()
		x.VCMPPS(operand.U8(1), op(b), op(a), k)
		x.VBLENDMPS(op(y), op(z), k, d)
		return d
	}
	mask := x.vector()
	x.VCMPPS(operand.U8(1), op(b), op(a), mask)
	x.VBLENDVPS(mask, op(y), op(z), d)
	return d
}

func (x *x86) ldexp(p, n, t vec) vec {
	if x.wide {
		return x.three(x.VSCALEFPS, p, n)
	}
	k := x.three(x.VPSUBD, t, x.constOp(magic))
	h := x.vector()
	x.VPSRAD(operand.U8(1), op(k), h)
	factor := func(e vec) vec {
		f := x.three(x.VPADDD, e, x.constOp(127))
		x.VPSLLD(operand.U8(23), op(f), op(f))
		return f
	}
	p = x.mul(p, factor(h))
	return x.mul(p, factor(x.three(x.VPSUBD, k, h)))
}

// permute picks lanes of a (0-15) and b (16-31).
func (x *x86) permute(a, b vec, name string, lane func(i int) uint32) vec {
	idx := x.vector()
	x.VMOVUPS(x.data(name, lane), idx)
	x.VPERMI2PS(op(b), op(a), idx)
	return idx
}

func (x *x86) unzip(a, b vec) (even, odd vec) {
	if x.wide {
		even = x.permute(a, b, "even", func(i int) uint32 { return uint32(2 * i) })
		return even, x.permute(a, b, "odd", func(i int) uint32 { return uint32(2*i + 1) })
	}
	pick := func(imm operand.U8) vec {
		d := x.vector()
		x.VSHUFPS(imm, op(b), op(a), d)
		x.VPERMPD(operand.U8(0xd8), d, d)
		return d
	}
	return pick(0x88), pick(0xdd)
}

func (x *x86) zip(even, odd vec) (a, b vec) {
	if x.wide {
		a = x.permute(even, odd, "low", func(i int) uint32 { return uint32(i/2 + i%2*16) })
		return a, x.permute(even, odd, "high", func(i int) uint32 { return uint32(8 + i/2 + i%2*16) })
	}
	l, h := x.three(x.VUNPCKLPS, even, odd), x.three(x.VUNPCKHPS, even, odd)
	d, e := x.vector(), x.vector()
	x.VPERM2F128(operand.U8(0x20), op(h), op(l), d)
	x.VPERM2F128(operand.U8(0x31), op(h), op(l), e)
	return d, e
}

func (x *x86) mlaRow(acc, v []vec, m mem) {
	if x.wide && len(v) == 1 {
		x.VFMADD231PS_BCST(at(m), op(v[0]), op(acc[0]))
		return
	}
	b := x.broadcast(m)
	for j := range v {
		x.mla(acc[j], v[j], b)
	}
}

func (x *x86) mlaRows(acc [][]vec, v []vec, m mem) {
	for r := range acc {
		x.mlaRow(acc[r], v, mem{m.base, m.disp + 4*r})
	}
}

func (x *x86) transpose(v []vec) []vec {
	shuffle := func(a, b vec, imm operand.U8) vec {
		d := x.vector()
		x.VSHUFPS(imm, op(b), op(a), d)
		return d
	}
	half := func(a, b vec, imm operand.U8) vec {
		d := x.vector()
		x.VPERM2F128(imm, op(b), op(a), d)
		return d
	}
	var pairs, quads [8]vec // values of two, then four rows
	for i := 0; i < 8; i += 2 {
		pairs[i] = x.three(x.VUNPCKLPS, v[i], v[i+1])
		pairs[i+1] = x.three(x.VUNPCKHPS, v[i], v[i+1])
	}
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			quads[i+2*j] = shuffle(pairs[i+j], pairs[i+j+2], 0x44)
			quads[i+2*j+1] = shuffle(pairs[i+j], pairs[i+j+2], 0xee)
		}
	}
	out := make([]vec, 8)
	for i := range 4 {
		out[i] = half(quads[i], quads[i+4], 0x20)
		out[i+4] = half(quads[i], quads[i+4], 0x31)
	}
	return out
}
