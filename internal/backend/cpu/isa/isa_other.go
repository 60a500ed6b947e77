//go:build purego || !(amd64 || arm64)

package isa

var detected []Level
