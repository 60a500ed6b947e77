package main

// The kernels are written once (kernels.go) for an abstract vector machine whose registers hold lanes() float32
// values. Two implementations emit it: amd64.go through avo, arm64.go by itself. Registers are virtual; each
// operation returns a new one, except assign, mla and nmla, which change their first argument.

type (
	vec any // a vector register
	reg any // a general register
	// mem is disp bytes after base.
	mem struct {
		base reg
		disp int
	}
	konst uint32 // a constant by its bits, the same in all lanes
	label string
)

// RATIONALE: Why do loops of assembly keep their constants in registers?
type machine interface {
	suffix() string
	lanes() int
	tuning() tuning

	// A function: its parameters are loaded by name; p is a pointer, number or slice base, n a slice's length.
	begin(name, signature string)
	param(name string) reg
	length(name string) reg
	spread(name string) vec // a float32 parameter in all lanes
	end()

	// General registers and control flow. Bodies of loop run at least once.
	copyReg(r reg) reg
	addImm(r reg, n int)
	addReg(r, s reg)
	shift(r reg, bits int)
	loop(n reg, step int, body func()) // until n, lessened by step each time, is 0
	number(n int) reg
	label(l label)
	jumpLess(r reg, n int, l label)
	jumpZero(r reg, l label)
	jump(l label)

	prefetch(m mem)

	// keep may load the constants of a loop's body before it. The body is called, and what it emits is dropped.
	keep(body func())

	// Vectors.
	zero() vec
	constant(c konst) vec
	load(m mem) vec
	store(v vec, m mem)
	loadHalf(m mem) vec
	storeHalf(v vec, m mem)
	broadcast(m mem) vec
	dup(v vec) vec
	assign(dst, v vec)
	add(a, b vec) vec
	sub(a, b vec) vec
	mul(a, b vec) vec
	div(a, b vec) vec
	max(a, b vec) vec // a > b ? a : b
	min(a, b vec) vec // a < b ? a : b
	and(a, b vec) vec
	or(a, b vec) vec
	xor(a, b vec) vec
	selectLess(a, b, x, y vec) vec // a < b ? x : y
	mla(acc, a, b vec)             // acc += a*b, fused
	nmla(acc, a, b vec)            // acc -= a*b, fused
	mlaLoad(acc, a vec, m mem)     // acc += a times the vector at m
	mlaConst(acc, a vec, c konst)
	nmlaConst(acc, a vec, c konst)
	mulConst(a vec, c konst) vec
	addConst(a vec, c konst) vec
	subConst(a vec, c konst) vec
	andConst(a vec, c konst) vec
	xorConst(a vec, c konst) vec
	horner(p, x vec, c konst) vec // p*x + c, fused; p is used up
	ldexp(p, n, t vec) vec        // p*2^n; t holds n+magic

	unzip(a, b vec) (even, odd vec)
	zip(even, odd vec) (a, b vec)
	transpose(v []vec) []vec // lanes() registers; for at most 8 lanes

	// mlaRow adds v[j] times the value at m to each acc[j]; mlaRows v[j] times the r-th value at m to acc[r][j].
	mlaRow(acc, v []vec, m mem)
	mlaRows(acc [][]vec, v []vec, m mem)
}

// tuning is how many registers the larger kernels may use.
type tuning struct {
	qkBlocks []int // key blocks at once, by rows of the key kernel
	pvDims   []int // values at once, by rows of the value kernel
	delta    int   // columns at once of the delta kernels
}
