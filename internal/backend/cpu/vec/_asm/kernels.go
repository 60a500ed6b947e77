package main

import (
	"fmt"
	"math"
)

const magic konst = 0x4b400000 // 1.5*2^23

func f32(x float64) konst { return konst(math.Float32bits(float32(x))) }

const absMask, signMask konst = 0x7fffffff, 0x80000000

// The tables of ../function.go, lowest power first.
var (
	expPoly   = []float64{1, 1, 0.5, 0.166665122, 0.0416661873, 0.00836959761, 0.00139517034}
	tanhPoly  = []float64{-0.333332837, 0.133314908, -0.0537434965, 0.0206505843, -0.0057170419}
	atanhPoly = []float64{0.333333373, 0.199994385, 0.143084422, 0.107138306, 0.121504612}
	phiPoly   = []float64{
		0.119686693, 0.119571812, 0.110235423, 0.0783896521, 0.0961568281, -0.0794234946,
		0.191784561, -0.228213638, 0.112435639, -0.0206234753,
	}
)

func poly(m machine, x vec, table []float64) vec {
	p := m.constant(f32(table[len(table)-1]))
	for i := len(table) - 2; i >= 0; i-- {
		p = m.horner(p, x, f32(table[i]))
	}
	return p
}

func exp(m machine, x vec) vec {
	x = m.max(m.constant(f32(-104)), m.min(m.constant(f32(89)), x))
	t := m.constant(magic)
	m.mlaConst(t, x, 0x3fb8aa3b)
	n := m.subConst(t, magic)
	r := m.dup(x)
	m.nmlaConst(r, n, 0x3f317218)
	m.nmlaConst(r, n, 0xb102e308)
	return m.ldexp(poly(m, r, expPoly), n, t)
}

func expNeg(m machine, x vec) vec { return exp(m, m.xorConst(x, signMask)) }

func sigmoid(m machine, x vec) vec {
	return m.div(m.constant(f32(1)), m.addConst(expNeg(m, x), f32(1)))
}

func silu(m machine, x vec) vec { return m.div(x, m.addConst(expNeg(m, x), f32(1))) }

func tanh(m machine, x vec) vec {
	a := m.andConst(x, absMask)
	z := m.mul(x, x)
	p := m.mul(poly(m, z, tanhPoly), z)
	small := m.dup(x)
	m.mla(small, p, x)
	e := m.addConst(exp(m, m.add(a, a)), f32(1))
	r := m.sub(m.constant(f32(1)), m.div(m.constant(f32(2)), e))
	r = m.or(r, m.andConst(x, signMask))
	return m.selectLess(a, m.constant(f32(0.625)), small, r)
}

func gelu(m machine, x vec) vec {
	a := m.min(m.constant(f32(14.5)), m.andConst(x, absMask))
	one := m.constant(f32(1))
	d := m.dup(one)
	m.mlaConst(d, a, konst(math.Float32bits(0.3)))
	t := m.div(one, d)
	pt := m.mul(poly(m, t, phiPoly), t)
	hi := m.mul(a, a)
	lo := m.xorConst(hi, signMask)
	m.mla(lo, a, a)
	e := exp(m, m.mulConst(hi, f32(-0.5)))
	h := m.mulConst(e, f32(-0.5))
	m.mla(e, h, lo)
	y := m.mul(x, m.mul(pt, e))
	return m.selectLess(m.zero(), x, m.sub(x, y), y)
}

func geluTanh(m machine, x vec) vec {
	u := m.constant(f32(2 * 0.79788456080286535588))
	m.mlaConst(u, m.mul(x, x), f32(2*0.79788456080286535588*0.044715))
	return m.div(x, m.addConst(expNeg(m, m.mul(u, x)), f32(1)))
}

func softplus(m machine, x vec) vec {
	y := exp(m, m.or(x, m.constant(signMask)))
	s := m.div(y, m.addConst(y, f32(2)))
	z := m.mul(s, s)
	p := m.mul(poly(m, z, atanhPoly), z)
	l := m.add(s, s)
	two := m.dup(l)
	m.mla(l, p, two)
	return m.add(m.max(m.zero(), x), l)
}

func relu(m machine, x vec) vec { return m.max(m.zero(), x) }

func relu2(m machine, x vec) vec {
	x = relu(m, x)
	return m.mul(x, x)
}

func oai(m machine, g, u, limit, alpha vec) vec {
	g = m.min(limit, g)
	u = m.max(m.xorConst(limit, signMask), m.min(limit, u))
	s := m.div(g, m.addConst(expNeg(m, m.mul(alpha, g)), f32(1)))
	return m.mul(m.addConst(u, f32(1)), s)
}

// elementwise emits dst[i] = f(args[i]); dst is the first of slices, and its old value is among the arguments if
// readsDst. scalars are float32 parameters.
func elementwise(m machine, name string, slices, scalars []string, readsDst bool, f func(x, s []vec) vec) {
	sig := "func("
	for i, s := range slices {
		if i > 0 {
			sig += ", "
		}
		sig += s
	}
	sig += " []float32"
	for _, s := range scalars {
		sig += ", " + s + " float32"
	}
	m.begin(name, sig+")")
	var ptr []reg
	for _, s := range slices {
		ptr = append(ptr, m.param(s))
	}
	var sc []vec
	for _, s := range scalars {
		sc = append(sc, m.spread(s))
	}
	step := 4 * m.lanes()
	body := func() {
		var x []vec
		for i, p := range ptr {
			if i > 0 || readsDst {
				x = append(x, m.load(mem{p, 0}))
			}
		}
		m.store(f(x, sc), mem{ptr[0], 0})
		for _, p := range ptr {
			m.addImm(p, step)
		}
	}
	m.keep(body)
	m.loop(m.length(slices[0]), m.lanes(), body)
	m.end()
}

// reductions emits loops over groups of 16 values with 16 lanes of partial results, which they store to acc. They begin
// with start, or with nil as start with what acc holds. f updates the partial result part in place and returns x's new
// value, or nil to leave x.
func reductions(m machine) {
	emit := func(name string, start func() vec, scalars []string, f func(part, x vec, s []vec) vec) {
		sig := "func(x []float32, "
		for _, s := range scalars {
			sig += s + " float32, "
		}
		m.begin(name, sig+"acc *[16]float32)")
		x, acc := m.param("x"), m.param("acc")
		var s []vec
		for _, name := range scalars {
			s = append(s, m.spread(name))
		}
		w := m.lanes()
		parts := make([]vec, 16/w)
		for i := range parts {
			if start != nil {
				parts[i] = start()
			} else {
				parts[i] = m.load(mem{acc, 4 * w * i})
			}
		}
		body := func() {
			for i := range parts {
				if v := f(parts[i], m.load(mem{x, 4 * w * i}), s); v != nil {
					m.store(v, mem{x, 4 * w * i})
				}
			}
			m.addImm(x, 64)
		}
		m.keep(body)
		m.loop(m.length("x"), 16, body)
		for i := range parts {
			m.store(parts[i], mem{acc, 4 * w * i})
		}
		m.end()
	}
	emit("sum", nil, nil, func(part, x vec, _ []vec) vec {
		m.assign(part, m.add(part, x))
		return nil
	})
	emit("sumSq", nil, nil, func(part, x vec, _ []vec) vec {
		m.mla(part, x, x)
		return nil
	})
	emit("maxOf", func() vec { return m.constant(f32(math.Inf(-1))) }, nil, func(part, x vec, _ []vec) vec {
		m.assign(part, m.max(part, x))
		return nil
	})
	emit("expSum", m.zero, []string{"f", "m"}, func(part, x vec, s []vec) vec {
		x = exp(m, m.sub(m.mul(x, s[0]), s[1]))
		m.assign(part, m.add(part, x))
		return x
	})
}

func kernels(m machine) {
	unary := func(name string, f func(machine, vec) vec) {
		elementwise(m, name, []string{"dst", "x"}, nil, false, func(x, _ []vec) vec { return f(m, x[0]) })
	}
	unary("silu", silu)
	unary("gelu", gelu)
	unary("geluTanh", geluTanh)
	unary("relu", relu)
	unary("relu2", relu2)
	unary("sigmoid", sigmoid)
	unary("tanh", tanh)
	unary("softplus", softplus)
	unary("exp", exp)

	elementwise(m, "scale", []string{"dst", "x"}, []string{"f"}, false, func(x, s []vec) vec { return m.mul(x[0], s[0]) })
	elementwise(m, "subConst", []string{"dst", "x"}, []string{"c"}, false, func(x, s []vec) vec { return m.sub(x[0], s[0]) })
	elementwise(m, "softCap", []string{"dst", "x"}, []string{"c"}, false, func(x, s []vec) vec {
		return m.mul(s[0], tanh(m, m.div(x[0], s[0])))
	})
	elementwise(m, "axpy", []string{"dst", "x"}, []string{"f"}, true, func(x, s []vec) vec {
		m.mla(x[0], x[1], s[0])
		return x[0]
	})
	elementwise(m, "axpby", []string{"dst", "x"}, []string{"p", "q"}, true, func(x, s []vec) vec {
		d := m.mul(x[0], s[0])
		m.mla(d, x[1], s[1])
		return d
	})
	elementwise(m, "add", []string{"dst", "x", "y"}, nil, false, func(x, _ []vec) vec { return m.add(x[0], x[1]) })
	elementwise(m, "mul", []string{"dst", "x", "y"}, nil, false, func(x, _ []vec) vec { return m.mul(x[0], x[1]) })
	elementwise(m, "mulAdd", []string{"dst", "x", "y"}, nil, true, func(x, _ []vec) vec {
		m.mla(x[0], x[1], x[2])
		return x[0]
	})
	elementwise(m, "scaleMul", []string{"dst", "x", "w"}, []string{"f"}, false, func(x, s []vec) vec {
		return m.mul(m.mul(x[0], s[0]), x[1])
	})
	elementwise(m, "scaleFMA", []string{"dst", "x", "w", "b"}, []string{"f"}, false, func(x, s []vec) vec {
		m.mla(x[2], m.mul(x[0], s[0]), x[1])
		return x[2]
	})
	elementwise(m, "oai", []string{"dst", "gate", "up"}, []string{"limit", "alpha"}, false, func(x, s []vec) vec {
		return oai(m, x[0], x[1], s[0], s[1])
	})

	reductions(m)
	halves(m)
	rotations(m)
	for _, half := range []bool{true, false} {
		for n := 1; n < len(m.tuning().qkBlocks); n++ {
			qk(m, half, n)
		}
		for n := 1; n < len(m.tuning().pvDims); n++ {
			pv(m, half, n)
		}
		if m.lanes() <= 8 { // the widest levels use the kernel of 8 lanes
			turn(m, half)
		}
	}
	deltaRead(m)
	deltaWrite(m)
}

func halves(m machine) {
	w := m.lanes()
	m.begin("toHalf", "func(dst []uint16, x []float32)")
	d, x := m.param("dst"), m.param("x")
	m.loop(m.length("dst"), w, func() {
		m.storeHalf(m.load(mem{x, 0}), mem{d, 0})
		m.addImm(x, 4*w)
		m.addImm(d, 2*w)
	})
	m.end()
	m.begin("fromHalf", "func(dst []float32, x []uint16)")
	d, x = m.param("dst"), m.param("x")
	m.loop(m.length("dst"), w, func() {
		m.store(m.loadHalf(mem{x, 0}), mem{d, 0})
		m.addImm(x, 2*w)
		m.addImm(d, 4*w)
	})
	m.end()
}

// rotatePair returns fma(a, cos, -(b*sin)) and fma(b, cos, a*sin).
func rotatePair(m machine, a, b, c, s vec) (vec, vec) {
	x := m.xorConst(m.mul(b, s), signMask)
	y := m.mul(a, s)
	m.mla(x, a, c)
	m.mla(y, b, c)
	return x, y
}

func rotations(m machine) {
	w := m.lanes()
	m.begin("rotate", "func(x, y, cos, sin []float32)")
	a, b, c, s := m.param("x"), m.param("y"), m.param("cos"), m.param("sin")
	m.loop(m.length("x"), w, func() {
		x, y := rotatePair(m, m.load(mem{a, 0}), m.load(mem{b, 0}), m.load(mem{c, 0}), m.load(mem{s, 0}))
		m.store(x, mem{a, 0})
		m.store(y, mem{b, 0})
		for _, r := range []reg{a, b, c, s} {
			m.addImm(r, 4*w)
		}
	})
	m.end()
	m.begin("rotateI", "func(x, cos, sin []float32)")
	a, c, s = m.param("x"), m.param("cos"), m.param("sin")
	m.loop(m.length("cos"), w, func() {
		x, y := m.unzip(m.load(mem{a, 0}), m.load(mem{a, 4 * w}))
		x, y = m.zip(rotatePair(m, x, y, m.load(mem{c, 0}), m.load(mem{s, 0})))
		m.store(x, mem{a, 0})
		m.store(y, mem{a, 4 * w})
		m.addImm(a, 8*w)
		m.addImm(c, 4*w)
		m.addImm(s, 4*w)
	})
	m.end()
}

func width(half bool) (bits, bytes int) {
	if half {
		return 16, 2
	}
	return 32, 4
}

func loadElem(m machine, half bool, at mem) vec {
	if half {
		return m.loadHalf(at)
	}
	return m.load(at)
}

// fetch asks for the cache lines of bytes at p to be brought into the cache, and moves p on by step.
func fetch(m machine, p reg, bytes int, step reg) {
	for i := 0; i < bytes; i += 64 {
		m.prefetch(mem{p, i})
	}
	m.addReg(p, step)
}

// qk emits the key kernel for n rows: both blocks of a page, one or two at once. q advances qStep bytes per dimension,
// so that a tile of n rows may be part of a wider one. Bytes from ahead bytes further on are fetched in step with the
// arithmetic, pace of them for each dimension of a block or of two at once: asked for at once, they would fill the
// queue of missing lines and hold up all loads.
func qk(m machine, half bool, n int) {
	bits, bytes := width(half)
	blocks := m.tuning().qkBlocks[n]
	m.begin(fmt.Sprintf("qk%dx%d", bits, n), "func(q *float32, qStep, dims int, k *byte, kStride int, s *float32, sStride, add, ahead, pace int)")
	parts := 16 / m.lanes() // registers per block
	k, s, left := m.param("k"), m.param("s"), m.number(2/blocks)
	step, pace, next := m.param("qStep"), m.param("pace"), m.copyReg(k)
	m.addReg(next, m.param("ahead"))
	m.loop(left, 1, func() {
		q := m.param("q")
		acc := make([][]vec, n)
		for r := range acc {
			for range blocks * parts {
				acc[r] = append(acc[r], m.zero())
			}
		}
		kp := []reg{m.copyReg(k)}
		if blocks == 2 {
			kp = append(kp, m.copyReg(k))
			m.addReg(kp[1], m.param("kStride"))
		}
		m.loop(m.param("dims"), 1, func() {
			fetch(m, next, 16*bytes*blocks, pace)
			var kv []vec
			for _, p := range kp {
				for i := range parts {
					kv = append(kv, loadElem(m, half, mem{p, i * m.lanes() * bytes}))
				}
			}
			m.mlaRows(acc, kv, mem{q, 0})
			m.addReg(q, step)
			for _, p := range kp {
				m.addImm(p, 16*bytes)
			}
		})
		for _, adding := range []bool{true, false} {
			if adding {
				m.jumpZero(m.param("add"), "replace")
			} else {
				m.label("replace")
			}
			sp := m.copyReg(s)
			for r := range acc {
				for i := range acc[r] {
					at := mem{sp, 4 * m.lanes() * i}
					v := acc[r][i]
					if adding {
						v = m.add(m.load(at), v)
					}
					m.store(v, at)
				}
				if r < n-1 {
					m.addReg(sp, m.param("sStride"))
				}
			}
			if adding {
				m.jump("stored")
			}
		}
		m.label("stored")
		if blocks == 1 {
			m.addImm(s, 64)
			m.addReg(k, m.param("kStride"))
		}
	})
	m.end()
}

// tiles emits body for tiles of wide columns while that many are left, then of 16. left counts down.
func tiles(m machine, left reg, wide int, body func(columns int)) {
	if wide > 16 {
		m.label("wide")
		m.jumpLess(left, wide, "narrow")
		body(wide)
		m.addImm(left, -wide)
		m.jump("wide")
		m.label("narrow")
		m.jumpLess(left, 16, "done")
	}
	m.label("sixteen")
	body(16)
	m.addImm(left, -16)
	m.jumpLess(left, 16, "done")
	m.jump("sixteen")
	m.label("done")
}

// pv emits the value kernel for n rows. That for float16 fetches as many bytes as it reads, ahead bytes further on;
// values of float32 are mostly a page that was widened before, and lie in the cache.
func pv(m machine, half bool, n int) {
	bits, bytes := width(half)
	m.begin(fmt.Sprintf("pv%dx%d", bits, n), "func(o *float32, oStride, dims int, p *float32, pStride, keys int, v *byte, vStride, ahead int)")
	o, v, left, vStride := m.param("o"), m.param("v"), m.param("dims"), m.param("vStride")
	tiles(m, left, m.tuning().pvDims[n], func(columns int) {
		w := m.lanes()
		acc := make([][]vec, n)
		op := m.copyReg(o)
		for r := range acc {
			for i := range columns / w {
				acc[r] = append(acc[r], m.load(mem{op, 4 * w * i}))
			}
			if r < n-1 {
				m.addReg(op, m.param("oStride"))
			}
		}
		p := []reg{m.param("p")}
		for r := 1; r < n; r++ {
			p = append(p, m.copyReg(p[r-1]))
			m.addReg(p[r], m.param("pStride"))
		}
		vp := m.copyReg(v)
		var next reg
		if half {
			next = m.copyReg(v)
			m.addReg(next, m.param("ahead"))
		}
		m.loop(m.param("keys"), 1, func() {
			var vv []vec
			if half {
				fetch(m, next, columns*bytes, vStride)
			}
			for i := range columns / w {
				vv = append(vv, loadElem(m, half, mem{vp, i * w * bytes}))
			}
			for r := range acc {
				m.mlaRow(acc[r], vv, mem{p[r], 0})
			}
			m.addReg(vp, vStride)
			for _, r := range p {
				m.addImm(r, 4)
			}
		})
		op = m.copyReg(o)
		for r := range acc {
			for i := range acc[r] {
				m.store(acc[r][i], mem{op, 4 * w * i})
			}
			if r < n-1 {
				m.addReg(op, m.param("oStride"))
			}
		}
		m.addImm(o, 4*columns)
		m.addImm(v, bytes*columns)
	})
	m.end()
}

func deltaRead(m machine) {
	m.begin("deltaRead", "func(t, s []float32, stride int, key []float32)")
	t, s, left, stride := m.param("t"), m.param("s"), m.length("t"), m.param("stride")
	m.shift(stride, 2)
	tiles(m, left, m.tuning().delta, func(columns int) {
		w := m.lanes()
		acc := make([]vec, columns/w)
		for i := range acc {
			acc[i] = m.zero()
		}
		sp, key := m.copyReg(s), m.param("key")
		m.loop(m.length("key"), 1, func() {
			kv := m.broadcast(mem{key, 0})
			for i := range acc {
				m.mlaLoad(acc[i], kv, mem{sp, 4 * w * i})
			}
			m.addReg(sp, stride)
			m.addImm(key, 4)
		})
		for i := range acc {
			m.store(acc[i], mem{t, 4 * w * i})
		}
		m.addImm(t, 4*columns)
		m.addImm(s, 4*columns)
	})
	m.end()
}

func deltaWrite(m machine) {
	m.begin("deltaWrite", "func(o, s []float32, stride int, decay, key, q, u []float32)")
	o, s, u, left, stride := m.param("o"), m.param("s"), m.param("u"), m.length("u"), m.param("stride")
	m.shift(stride, 2)
	tiles(m, left, m.tuning().delta, func(columns int) {
		w := m.lanes()
		acc, uv := make([]vec, columns/w), make([]vec, columns/w)
		for i := range acc {
			acc[i] = m.zero()
			uv[i] = m.load(mem{u, 4 * w * i})
		}
		sp, g, key, q := m.copyReg(s), m.param("decay"), m.param("key"), m.param("q")
		m.loop(m.length("decay"), 1, func() {
			gv, kv, qv := m.broadcast(mem{g, 0}), m.broadcast(mem{key, 0}), m.broadcast(mem{q, 0})
			for i := range acc {
				row := m.mul(m.load(mem{sp, 4 * w * i}), gv)
				m.mla(row, kv, uv[i])
				m.store(row, mem{sp, 4 * w * i})
				m.mla(acc[i], row, qv)
			}
			m.addReg(sp, stride)
			for _, r := range []reg{g, key, q} {
				m.addImm(r, 4)
			}
		})
		for i := range acc {
			m.store(acc[i], mem{o, 4 * w * i})
		}
		for _, r := range []reg{o, s, u} {
			m.addImm(r, 4*columns)
		}
	})
	m.end()
}

// turn emits the transposition of a page's key blocks, dims (a multiple of the lanes) of each key, kStride and
// dStride in bytes.
func turn(m machine, half bool) {
	bits, bytes := width(half)
	m.begin(fmt.Sprintf("turnKeys%d", bits), "func(dst *float32, dStride int, k *byte, kStride, dims int)")
	w := m.lanes()
	block, rows, dStride := m.param("k"), m.param("dst"), m.param("dStride")
	m.loop(m.number(2), 1, func() {
		k, d := m.copyReg(block), m.copyReg(rows)
		m.loop(m.param("dims"), w, func() {
			row := m.copyReg(d)
			for g := range 16 / w {
				var v []vec
				for i := range w {
					v = append(v, loadElem(m, half, mem{k, (i*16 + g*w) * bytes}))
				}
				for _, t := range m.transpose(v) {
					m.store(t, mem{row, 0})
					m.addReg(row, dStride)
				}
			}
			m.addImm(k, 16*w*bytes)
			m.addImm(d, 4*w)
		})
		m.addReg(block, m.param("kStride"))
		for range 16 {
			m.addReg(rows, dStride)
		}
	})
	m.end()
}
