#!/bin/sh
# Generates the assembly of this folder: ./generate.sh, or ./generate.sh part...
set -e
cd "$(dirname "$0")/_asm"
[ $# -gt 0 ] || set -- pack_avx2 few_avx512 tile_avx512 expand_avx512 float_avx512 quantize_avx512
for part; do
	go run . -part "$part" -out "../${part}_amd64.s" -stubs "../${part}_amd64.go" -pkg matmul
done
