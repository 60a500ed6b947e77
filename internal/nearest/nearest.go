// Package nearest tells how far a misspelt name is from one that exists. It knows no names.
package nearest

import (
	"slices"
	"strconv"
	"strings"
)

// Distance is Levenshtein's, over bytes, with two neighbours in the wrong order as one mistake (optimal string
// alignment). Names of more than 64 bytes are as far from everything as it gets: 64.
func Distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// Names returns those of the known names that word most probably misspells, in their order and at most three: all
// are equally far, no more than a letter in four is wrong, and upper and lower case do not count. Words of fewer than
// five letters misspell nothing, as half of all short words are near one another. Names that equal word are returned
// too.
func Names(word string, known []string) []string {
	const most = 3
	if len(word) < 5 {
		return nil
	}
	word = strings.ToLower(word)
	best, found := min(len(word)/4, 3), []string(nil)
	for _, name := range known {
		d := Distance(word, strings.ToLower(name))
		if d < best {
			best, found = d, nil
		}
		if d == best && len(found) < most && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// Quoted lists names as a question does: "a", "b" or "c".
func Quoted(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(name))
	}
	return b.String()
}
