// Command _asm writes the assembly of package vec: go run . in this folder.
package main

import "log"

func main() {
	wide, narrow, arm := newX86(true), newX86(false), newNEON()
	for _, m := range []machine{wide, narrow, arm} {
		kernels(m)
	}
	wide.write("..")
	narrow.write("..")
	arm.write("..")
	table(wide, "../avx512_table_amd64.go", "amd64")
	table(narrow, "../avx2_table_amd64.go", "amd64")
	table(arm, "../neon_table_arm64.go", "arm64")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
