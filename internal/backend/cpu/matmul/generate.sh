#!/bin/sh
# Generates the assembly of this folder: ./generate.sh, or ./generate.sh part...
set -e
cd "$(dirname "$0")/_asm"
[ $# -gt 0 ] || set -- few_avx512 tile_avx512 expand_avx512 float_avx512 quantize_avx512 \
	tile_avx2 tile_avxvnni expand_avx2 float_avx2 quantize_avx2 pack_avx2 neon
for part; do
	if [ "$part" = neon ]; then
		go run . -part neon
		continue
	fi
	go run . -part "$part" -out "../${part}_amd64.s" -stubs "../${part}_amd64.go" -pkg matmul
	../../align-loops "../${part}_amd64.s"
done
