package tokenizer

import "fmt"

// maxGrowth bounds how many times longer a hostile file may make a text.
const maxGrowth = 4096

// checkGrowth refuses components that together could blow up a text, such as a
// hundred replacements of one letter by two.
func checkGrowth(norm []normalizer, pre []preTokenizer) error {
	growth := 1
	for i := 0; i < len(norm)+len(pre) && growth <= maxGrowth; i++ {
		if i < len(norm) {
			growth *= normalizerGrowth(norm[i])
		} else {
			growth *= preTokenizerGrowth(pre[i-len(norm)])
		}
	}
	if growth > maxGrowth {
		return fmt.Errorf("normalizers and pre-tokenizers could make a text more than %d times longer", maxGrowth)
	}
	return nil
}

// normalizerGrowth returns how many times longer n can make a text.
func normalizerGrowth(n normalizer) int {
	switch n := n.(type) {
	case replaceString:
		return ratio(len(n.new), len(n.old))
	case replaceRegex:
		return ratio(len(n.new)+1, 1)
	case prepend:
		return 1 + len(n)
	case form, bertNormalizer:
		return 3 // the most for text, not for single characters
	case lowercase, alphabet:
		return 2
	case precompiled:
		return n.chars.growth()
	case spmNormalizer:
		if n.chars != nil {
			return 3 * n.chars.growth()
		}
		return 3
	}
	return 1
}

func preTokenizerGrowth(p preTokenizer) int {
	switch p := p.(type) {
	case *byteLevel:
		if !p.raw || p.addPrefixSpace {
			return 2
		}
	case *metaspace:
		return 2 * ratio(len(p.mark), 1)
	}
	return 1
}

// ratio returns a/b rounded up, at least 1.
func ratio(a, b int) int { return max(1, (a+max(b, 1)-1)/max(b, 1)) }

// growth returns the length of the longest replacement.
func (m *charsMap) growth() int {
	longest, start := 1, 0
	for i := range len(m.text) {
		if m.text[i] == 0 {
			longest = max(longest, i-start)
			start = i + 1
		}
	}
	return max(longest, len(m.text)-start)
}
