package tool

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiff bounds a diff that is kept, in bytes; it is for people, who do not read more.
const maxDiff = 128 << 10

// diff returns what changed, as unified diffs have it.
func diff(name, before, after string) string {
	if len(before)+len(after) > 4<<20 {
		return fmt.Sprintf("--- %s\n+++ %s\n(%s before, %s after)\n", name, name, size(int64(len(before))), size(int64(len(after))))
	}
	d := udiff.Unified("a/"+name, "b/"+name, before, after)
	if len(d) > maxDiff {
		d = cut(d, maxDiff)
		d = d[:strings.LastIndexByte(d, '\n')+1] + "(the diff goes on)\n"
	}
	return d
}
