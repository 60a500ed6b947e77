// Package kernels holds the CUDA kernels as PTX, made from the sources beside it, and the structures of their
// parameters. It
// knows nothing of plans or of the driver.
package kernels

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

//go:generate go run ./_ptx

// A Unit is a source file compiled with one definition.
type Unit struct {
	Name, Source, Define string
}

// Units are all of them. Those of matrix products are named after the number of the format in package quant.
var Units = []Unit{
	{"elementwise", "elementwise.cu", ""},
	{"attention", "attention.cu", ""},
	{"experts", "experts.cu", ""},
	{"recurrent", "recurrent.cu", ""},
	{"matmul0", "matmul_float.cu", "TYPE=0"},
	{"matmul1", "matmul_float.cu", "TYPE=1"},
	{"matmul30", "matmul_float.cu", "TYPE=2"},
	{"matmul2", "matmul_quant.cu", "FORMAT=2"},
	{"matmul3", "matmul_quant.cu", "FORMAT=3"},
	{"matmul6", "matmul_quant.cu", "FORMAT=6"},
	{"matmul7", "matmul_quant.cu", "FORMAT=7"},
	{"matmul8", "matmul_quant.cu", "FORMAT=8"},
	{"matmul10", "matmul_quant.cu", "FORMAT=10"},
	{"matmul11", "matmul_quant.cu", "FORMAT=11"},
	{"matmul12", "matmul_quant.cu", "FORMAT=12"},
	{"matmul13", "matmul_quant.cu", "FORMAT=13"},
	{"matmul14", "matmul_quant.cu", "FORMAT=14"},
	{"matmul20", "matmul_quant.cu", "FORMAT=20"},
	{"matmul23", "matmul_quant.cu", "FORMAT=23"},
	{"matmul39", "matmul_quant.cu", "FORMAT=39"},
}

// Images are the architectures that every unit is compiled for: a device takes the last one that it is not older than.
var Images = []int{80, 90}

// Options are what the sources are compiled with, beside the architecture and their definition: every operation rounds
// as it is
// written.
var Options = []string{"-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"}

// Digest names the inputs of a compilation.
func Digest(source, header, define []byte) string {
	h := sha256.New()
	for _, b := range [][]byte{source, header, define, []byte(strings.Join(Options, " "))} {
		fmt.Fprintf(h, "%d\n", len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

//go:embed ptx
var packed embed.FS

// Packed returns the packed code of a unit for an image.
func Packed(name string, image int) ([]byte, error) {
	b, err := packed.ReadFile(fmt.Sprintf("ptx/%s-%d.ptx.gz", name, image))
	if err != nil {
		return nil, fmt.Errorf("cuda: this build has no kernels %q", name)
	}
	return b, nil
}

// PTX returns the code of a unit for an image.
func PTX(name string, image int) ([]byte, error) {
	b, err := Packed(name, image)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("cuda: kernels %q: %w", name, err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("cuda: kernels %q: %w", name, err)
	}
	return out, nil
}
