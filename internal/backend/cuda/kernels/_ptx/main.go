// Command ptx compiles the kernels beside it to PTX with NVRTC, NVIDIA's run-time compiler, and writes them packed,
// with a manifest of what was made from what. It wants CUDA 12.1's NVRTC, so that PTX is of version 8.1 and drivers
// from 530 on take it:
//
//	NVRTC=/path/to/libnvrtc.so.12 go generate ./internal/backend/cuda/kernels
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/baleenrun/baleen/internal/backend/cuda/kernels"
)

var (
	create  func(prog *uintptr, src, name string, headers int32, sources, names unsafe.Pointer) int32
	compile func(prog uintptr, n int32, options unsafe.Pointer) int32
	logSize func(prog uintptr, n *uint64) int32
	getLog  func(prog uintptr, text *byte) int32
	ptxSize func(prog uintptr, n *uint64) int32
	getPTX  func(prog uintptr, text *byte) int32
)

func main() {
	path := os.Getenv("NVRTC")
	if path == "" {
		path = "libnvrtc.so.12"
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		log.Fatal(err)
	}
	purego.RegisterLibFunc(&create, lib, "nvrtcCreateProgram")
	purego.RegisterLibFunc(&compile, lib, "nvrtcCompileProgram")
	purego.RegisterLibFunc(&logSize, lib, "nvrtcGetProgramLogSize")
	purego.RegisterLibFunc(&getLog, lib, "nvrtcGetProgramLog")
	purego.RegisterLibFunc(&ptxSize, lib, "nvrtcGetPTXSize")
	purego.RegisterLibFunc(&getPTX, lib, "nvrtcGetPTX")
	only := os.Args[1:] // units to compile; none: all that were changed
	before, _ := os.ReadFile("ptx/manifest.txt")
	old := string(before)
	var manifest strings.Builder
	for _, u := range kernels.Units {
		source, err := os.ReadFile(u.Source)
		if err != nil {
			log.Fatal(err)
		}
		header, err := os.ReadFile("common.cuh")
		if err != nil {
			log.Fatal(err)
		}
		made := kernels.Digest(source, header, []byte(u.Define))
		if i := strings.Index("\n"+old, "\n"+u.Name+" "); i >= 0 &&
			(len(only) > 0 && !slices.Contains(only, u.Name) || strings.HasPrefix(old[i:], u.Name+" "+made+"\n")) {
			line, _, _ := strings.Cut(old[i:], "\n")
			fmt.Fprintln(&manifest, line)
			continue
		}
		for _, image := range kernels.Images {
			write(u.Name, image, build(u, image, source, header))
		}
		fmt.Fprintf(&manifest, "%s %s\n", u.Name, made)
	}
	if err := os.WriteFile("ptx/manifest.txt", []byte(manifest.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

func write(name string, image int, ptx []byte) {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if _, err := z.Write(ptx); err != nil {
		log.Fatal(err)
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("ptx", fmt.Sprintf("%s-%d.ptx.gz", name, image)), packed.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s for %d: %d bytes, packed %d\n", name, image, len(ptx), packed.Len())
}

func build(u kernels.Unit, image int, source, header []byte) []byte {
	headers, names := cString(string(header)), cString("common.cuh")
	hs, ns := []*byte{headers}, []*byte{names}
	var prog uintptr
	check(
		create(&prog, string(source)+"\x00", u.Source+"\x00", 1, unsafe.Pointer(&hs[0]), unsafe.Pointer(&ns[0])),
		"create",
	)
	options := []*byte{}
	for _, o := range append([]string{fmt.Sprintf("--gpu-architecture=compute_%d", image)}, kernels.Options...) {
		options = append(options, cString(o))
	}
	if u.Define != "" {
		options = append(options, cString("-D"+u.Define))
	}
	r := compile(prog, int32(len(options)), unsafe.Pointer(&options[0]))
	var n uint64
	check(logSize(prog, &n), "log size")
	text := make([]byte, n+1)
	check(getLog(prog, &text[0]), "log")
	if s := strings.Trim(string(text), "\x00\n "); s != "" {
		fmt.Println(s)
	}
	check(r, "compile "+u.Name)
	check(ptxSize(prog, &n), "size")
	ptx := make([]byte, n+1)
	check(getPTX(prog, &ptx[0]), "ptx")
	return bytes.TrimRight(ptx, "\x00")
}

func cString(s string) *byte { return &append([]byte(s), 0)[0] }

func check(r int32, what string) {
	if r != 0 {
		log.Fatalf("nvrtc: %s: error %d", what, r)
	}
}
