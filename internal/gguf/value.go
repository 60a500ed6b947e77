// Package gguf owns the GGUF container: it reads versions 2 and 3, split files included, through a mapping, and writes
// version 3. Files come from strangers, so every number is checked before it is used, and what is allocated is bounded
// by the size of the file. It knows keys, values, tensors and byte ranges, not what any key or tensor means to a model.
package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ValueType is the type of a metadata value, numbered as in the file.
type ValueType uint32

// The types of metadata values.
const (
	Uint8   ValueType = 0
	Int8    ValueType = 1
	Uint16  ValueType = 2
	Int16   ValueType = 3
	Uint32  ValueType = 4
	Int32   ValueType = 5
	Float32 ValueType = 6
	Bool    ValueType = 7
	String  ValueType = 8
	Array   ValueType = 9
	Uint64  ValueType = 10
	Int64   ValueType = 11
	Float64 ValueType = 12
)

var valueTypes = [...]struct {
	name string
	size int // bytes of a scalar, 0 for strings and arrays
}{
	{"uint8", 1},
	{"int8", 1},
	{"uint16", 2},
	{"int16", 2},
	{"uint32", 4},
	{"int32", 4},
	{"float32", 4},
	{"bool", 1},
	{"string", 0},
	{"array", 0},
	{"uint64", 8},
	{"int64", 8},
	{"float64", 8},
}

func (t ValueType) String() string {
	if uint64(t) < uint64(len(valueTypes)) {
		return valueTypes[t].name
	}
	return fmt.Sprintf("value type %d", uint32(t))
}

func (t ValueType) known() bool   { return uint64(t) < uint64(len(valueTypes)) }
func (t ValueType) size() int     { return valueTypes[t].size }
func (t ValueType) integer() bool { return t <= Int32 || t == Uint64 || t == Int64 }
func (t ValueType) signed() bool {
	return t == Int8 || t == Int16 || t == Int32 || t == Int64
}

// Value is one metadata value: a scalar, a string, or an array. It owns its memory and outlives the file.
type Value struct {
	Type ValueType
	Elem ValueType // of an array's elements

	bits    uint64   // a scalar: integers sign-extended, floats as their own bits
	str     string   // a string
	raw     []byte   // an array of scalars, as in the file
	strs    []string // an array of strings, views of one arena
	nested  []Value  // an array of arrays
	entries int      // length of an array
}

// Len returns the number of elements of an array, 0 for anything else.
func (v Value) Len() int { return v.entries }

// Text returns a string value.
func (v Value) Text() (string, bool) { return v.str, v.Type == String }

// Int returns an integer value of any width that fits.
func (v Value) Int() (int64, bool) { return intOf(v.Type, v.bits) }

// Uint returns an integer value of any width that is not negative.
func (v Value) Uint() (uint64, bool) {
	if !v.Type.integer() || v.Type.signed() && int64(v.bits) < 0 {
		return 0, false
	}
	return v.bits, true
}

// Float returns a float value of either width.
func (v Value) Float() (float64, bool) { return floatOf(v.Type, v.bits) }

// Bool returns a boolean value.
func (v Value) Bool() (bool, bool) { return v.bits != 0, v.Type == Bool }

// Strings returns an array of strings. The slice is shared; do not change it.
func (v Value) Strings() ([]string, bool) {
	return v.strs, v.Type == Array && v.Elem == String
}

// Ints returns an array of integers of any width, if all fit.
func (v Value) Ints() ([]int64, bool) {
	if v.Type != Array || !v.Elem.integer() {
		return nil, false
	}
	out := make([]int64, v.entries)
	for i := range out {
		n, ok := intOf(v.Elem, v.scalar(i))
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// Floats returns an array of floats; float64 elements are rounded.
func (v Value) Floats() ([]float32, bool) {
	if v.Type != Array || v.Elem != Float32 && v.Elem != Float64 {
		return nil, false
	}
	out := make([]float32, v.entries)
	for i := range out {
		f, _ := floatOf(v.Elem, v.scalar(i))
		out[i] = float32(f)
	}
	return out, true
}

// Bools returns an array of booleans.
func (v Value) Bools() ([]bool, bool) {
	if v.Type != Array || v.Elem != Bool {
		return nil, false
	}
	out := make([]bool, v.entries)
	for i := range out {
		out[i] = v.raw[i] != 0
	}
	return out, true
}

// Arrays returns an array of arrays. The slice is shared; do not change it.
func (v Value) Arrays() ([]Value, bool) { return v.nested, v.Type == Array && v.Elem == Array }

// scalar returns element i of an array of scalars, in the form of Value.bits.
func (v Value) scalar(i int) uint64 {
	return scalarBits(v.Elem, v.raw[i*v.Elem.size():])
}

// scalarBits reads a scalar of type t from the start of b.
func scalarBits(t ValueType, b []byte) uint64 {
	switch t {
	case Int8:
		return uint64(int64(int8(b[0])))
	case Uint16:
		return uint64(binary.LittleEndian.Uint16(b))
	case Int16:
		return uint64(int64(int16(binary.LittleEndian.Uint16(b))))
	case Uint32, Float32:
		return uint64(binary.LittleEndian.Uint32(b))
	case Int32:
		return uint64(int64(int32(binary.LittleEndian.Uint32(b))))
	case Uint64, Int64, Float64:
		return binary.LittleEndian.Uint64(b)
	}
	return uint64(b[0]) // Uint8, Bool
}

func intOf(t ValueType, bits uint64) (int64, bool) {
	if !t.integer() || !t.signed() && bits > math.MaxInt64 {
		return 0, false
	}
	return int64(bits), true
}

func floatOf(t ValueType, bits uint64) (float64, bool) {
	switch t {
	case Float32:
		return float64(math.Float32frombits(uint32(bits))), true
	case Float64:
		return math.Float64frombits(bits), true
	}
	return 0, false
}
