package matmul

import "github.com/baleenrun/baleen/internal/quant"

// The packed form. A group of 16 rows is a sequence of units; a unit is a head, which holds the scales of its blocks
// for all 16 rows, and planes. A plane is 64 bytes: 4 bytes of each of the 16 rows, lane after lane. The 4 bytes are
// taken from the source block as they are, so that packing is a transposition of 32-bit words; only scales, and the
// fifth bits of Q5_0 and Q5_1, are rearranged. A unit of a format with blocks of 32 may hold fewer blocks than its full
// number at the end of a row: its head has full size, planes that are not needed are left out.
//
// Block b of a unit consists of 8 quads; quad q of a lane holds elements 4q to 4q+3.

// shape says which arithmetic a format needs.
type shape uint8

const (
	signed32 shape = iota // one scale for 32 elements, signed values
	min32                 // one scale and one minimum for 32 elements, values from 0
	signed16              // one scale for 16 elements, signed values
	min16                 // one scale and one minimum for 16 elements, values from 0
)

// scales returns the number of scales of a shape's block of 32.
func (s shape) scales() int {
	if s >= signed16 {
		return 2
	}
	return 1
}

// vectors returns the number of scales and minimums of a block of 32.
func (s shape) vectors() int {
	if s.hasMin() {
		return 2 * s.scales()
	}
	return s.scales()
}

// hasMin reports whether values of the shape are lowered by a minimum.
func (s shape) hasMin() bool { return s == min32 || s == min16 }

// segmentBlocks is the number of 32-blocks after which the chain of additions starts anew.
const segmentBlocks = 16

// place says where a plane of a block's quad starts in the unit, and by how many bits its bytes are shifted.
type place func(block, quad int) (offset, shift int)

// format describes the packed form of a block format.
type format struct {
	typ    quant.Type
	shape  shape
	blocks int // blocks of 32 in a full unit
	head   int // bytes before the planes
	body   int // bytes of planes for one block

	low      place // lower bits of the values
	lowMask  byte
	high     place // upper bits, nil where there are none
	highMask byte
	highPos  int       // how far upper bits are shifted left
	offset   int       // subtracted from the bits
	table    *[16]int8 // what the bits stand for, instead of themselves less offset

	// scale returns the scale of 16 or 32 elements (sub counts them in the block) of a lane, and for formats with
	// minimums the minimum as it is added: negative where the format subtracts it.
	scale func(unit []byte, block, sub, lane int) (d, min float32)
	// packHead writes the scales of a unit's n blocks of one lane; packPlanes the rest.
	packHead   func(unit, src []byte, n, lane int)
	packPlanes func(unit, src []byte, n, lane int)
	source     int // bytes of n = blocks source blocks of 32, or of the one source block of 256
}

// index returns the format's place in the table of formats.
func (f *format) index() int {
	for i := range formats {
		if f == &formats[i] {
			return i
		}
	}
	return -1
}

// groupBytes returns the packed size of 16 rows of n blocks of 32.
func (f *format) groupBytes(n int) int {
	return (n+f.blocks-1)/f.blocks*f.head + n*f.body
}

// unit returns where the unit of block b starts within a group.
func (f *format) unit(b int) int { return b / f.blocks * (f.head + f.blocks*f.body) }

// formatOf returns the packed form of t, nil where it has none.
func formatOf(t quant.Type) *format {
	for i := range formats {
		if formats[i].typ == t {
			return &formats[i]
		}
	}
	return nil
}

// Values of the formats whose bits are indices; of MXFP4 doubled.
var (
	iq4Values   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	mxfp4Values = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

// Places. The first set is for source blocks of 32, whose low nibbles are the first half of the block.
func nibbles(head, body int) place {
	return func(b, q int) (int, int) { return head + b*body + q%4*64, q / 4 * 4 }
}

func fifthBits(head, body int) place {
	return func(b, q int) (int, int) { return head + b*body + 256, q }
}
func wholeBytes(b, q int) (int, int) { return 64 + b*512 + q*64, 0 }

// The second set is for source blocks of 256: bytes hold elements 32 or 64 apart.
func nibblePairs(head int) place {
	return func(b, q int) (int, int) { return head + b/2*512 + q*64, b % 2 * 4 }
}
func nibblesOfQ6K(b, q int) (int, int) { return 320 + b/4*1024 + b%2*512 + q*64, b / 2 % 2 * 4 }
func bitPairs(at int) place {
	return func(b, q int) (int, int) { return at + b/4*512 + q*64, b % 4 * 2 }
}

func singleBits(at int) place {
	return func(b, q int) (int, int) { return at + q*64, b }
}

var formats = [...]format{
	{
		typ: quant.Q4_0, shape: signed32, blocks: 2, head: 64, body: 256, low: nibbles(64, 256), lowMask: 15, offset: 8,
		scale: scaleF16, packHead: headF16(18), packPlanes: planes4(18, 2, 64), source: 36,
	},
	{
		typ: quant.Q4_1, shape: min32, blocks: 2, head: 128, body: 256, low: nibbles(128, 256), lowMask: 15,
		scale: scaleMinF16, packHead: headMinF16(20), packPlanes: planes4(20, 4, 128), source: 40,
	},
	{
		typ: quant.Q5_0, shape: signed32, blocks: 2, head: 64, body: 320, low: nibbles(64, 320), lowMask: 15,
		high: fifthBits(64, 320), highMask: 1, highPos: 4, offset: 16,
		scale: scaleF16, packHead: headF16(22), packPlanes: planes5(22, 6, 64), source: 44,
	},
	{
		typ: quant.Q5_1, shape: min32, blocks: 2, head: 128, body: 320, low: nibbles(128, 320), lowMask: 15,
		high: fifthBits(128, 320), highMask: 1, highPos: 4,
		scale: scaleMinF16, packHead: headMinF16(24), packPlanes: planes5(24, 8, 128), source: 48,
	},
	{
		typ: quant.Q8_0, shape: signed32, blocks: 2, head: 64, body: 512, low: wholeBytes, lowMask: 255, offset: 128,
		scale: scaleF16, packHead: headF16(34), packPlanes: planesQ8, source: 68,
	},
	{
		typ: quant.IQ4_NL, shape: signed32, blocks: 2, head: 64, body: 256, low: nibbles(64, 256), lowMask: 15, table: &iq4Values,
		scale: scaleF16, packHead: headF16(18), packPlanes: planes4(18, 2, 64), source: 36,
	},
	{
		typ: quant.MXFP4, shape: signed32, blocks: 4, head: 64, body: 256, low: nibbles(64, 256), lowMask: 15, table: &mxfp4Values,
		scale: scaleE8M0, packHead: headE8M0, packPlanes: planes4(17, 1, 64), source: 68,
	},
	{
		typ: quant.IQ4_XS, shape: signed32, blocks: 8, head: 192, body: 256, low: nibbles(192, 256), lowMask: 15, table: &iq4Values,
		scale: scaleSigned(1), packHead: headIQ4XS, packPlanes: planesK(8, 192, 32), source: 136,
	},
	{
		typ: quant.Q2_K, shape: min16, blocks: 8, head: 320, body: 128, low: bitPairs(320), lowMask: 3,
		scale: scaleQ2K, packHead: headQ2K, packPlanes: planesK(16, 320, 16), source: 84,
	},
	{
		typ: quant.Q3_K, shape: signed16, blocks: 8, head: 320, body: 192, low: bitPairs(320), lowMask: 3,
		high: singleBits(320 + 1024), highMask: 1, highPos: 2, offset: 4,
		scale: scaleSigned(2), packHead: headQ3K, packPlanes: planesQ3K, source: 110,
	},
	{
		typ: quant.Q4_K, shape: min32, blocks: 8, head: 320, body: 256, low: nibblePairs(320), lowMask: 15,
		scale: scaleMinK, packHead: headMinK, packPlanes: planesK(16, 320, 32), source: 144,
	},
	{
		typ: quant.Q5_K, shape: min32, blocks: 8, head: 320, body: 320, low: nibblePairs(320), lowMask: 15,
		high: singleBits(320 + 2048), highMask: 1, highPos: 4,
		scale: scaleMinK, packHead: headMinK, packPlanes: planesQ5K, source: 176,
	},
	{
		typ: quant.Q6_K, shape: signed16, blocks: 8, head: 320, body: 384, low: nibblesOfQ6K, lowMask: 15,
		high: bitPairs(320 + 2048), highMask: 3, highPos: 4, offset: 32,
		scale: scaleSigned(2), packHead: headQ6K, packPlanes: planesK(0, 320, 48), source: 210,
	},
}

// value returns what the bits of an element stand for.
func (f *format) value(raw byte) int8 {
	if f.table != nil {
		return f.table[raw]
	}
	return int8(int(raw) - f.offset)
}

// raw returns the bits of an element of block b of a unit: byte i of quad q of a lane.
func (f *format) raw(unit []byte, b, q, lane, i int) byte {
	at, shift := f.low(b, q)
	v := unit[at+4*lane+i] >> shift & f.lowMask
	if f.high != nil {
		at, shift = f.high(b, q)
		v |= unit[at+4*lane+i] >> shift & f.highMask << f.highPos
	}
	return v
}
