package tokenizer

import "unicode/utf8"

// The split patterns of the common families, as they are written in
// tokenizer.json, and the scanners that match them.

const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	tailRules    = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	wordCased    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	wordCased2   = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	tailCased    = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patternGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternQwen2  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + tailRules
	patternLlama3 = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + tailRules
	patternNumber = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|` + tailRules
	patternPlain  = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + tailRules
	patternQwen35 = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternSeed   = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternO200k  = wordCased + contractions + `?|` + wordCased2 + contractions + `?|\p{N}{1,3}|` + tailCased
	patternYoutu  = wordCased + contractions + `?|` + wordCased2 + contractions + `?|\p{N}|` + tailCased
	patternTekken = wordCased + `|` + wordCased2 + `|\p{N}|` + tailCased

	patternKimi = `[\p{Han}]+|` + kimiCased + contractions + `?|` + kimiCased2 + contractions + `?|\p{N}{1,3}|` + tailRules
	kimiCased   = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+`
	kimiCased2  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*`
	// The name that GGUF readers give to a rule that no pattern states: digits
	// in groups of three from the right.
	patternAFMoE = `\p{AFMoE_digits}`

	patternDigits3  = `\p{N}{1,3}`
	patternDigit    = `\p{N}`
	patternCJK      = "[一-龥\u3040-ゟ゠-ヿ]+"
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	patternLines    = `[^\n]+|[\n]+`
)

const wordOrSpace = propSpace | catL | catN

var (
	rulesQwen2 = &wordRules{
		letters:  catL,
		noPrefix: catL | catN,
		symbols:  wordOrSpace,
		digits:   1,
		apart:    true,
		symTail:  true,
	}
	rulesLlama3 = &wordRules{
		letters:  catL,
		noPrefix: catL | catN,
		symbols:  wordOrSpace,
		digits:   3,
		apart:    true,
		symTail:  true,
	}
	rulesNumber = &wordRules{letters: catL, noPrefix: catL | catN, symbols: wordOrSpace, apart: true, symTail: true}
	rulesPlain  = &wordRules{letters: catL, noPrefix: catL | catN, symbols: wordOrSpace, digits: 1, symTail: true}
	rulesSeed   = &wordRules{letters: catL, noPrefix: catL | catN, symbols: wordOrSpace, digits: 1, apart: true}
	rulesQwen35 = &wordRules{
		letters:  catL | catM,
		noPrefix: catL | catN,
		symbols:  wordOrSpace | catM,
		digits:   1,
		apart:    true,
		symTail:  true,
	}
	rulesO200k = &wordRules{
		letters: catL | catM,
		symbols: wordOrSpace,
		digits:  3,
		cases:   true,
		suffix:  true,
		symTail: true,
		tail:    "/",
	}
	rulesKimi = &wordRules{
		letters: catL | catM,
		symbols: wordOrSpace,
		digits:  3,
		cases:   true,
		suffix:  true,
		symTail: true,
		han:     true,
	}
	rulesYoutu = &wordRules{
		letters: catL | catM,
		symbols: wordOrSpace,
		digits:  1,
		cases:   true,
		suffix:  true,
		symTail: true,
		tail:    "/",
	}
	rulesTekken = &wordRules{
		letters: catL | catM,
		symbols: wordOrSpace,
		digits:  1,
		cases:   true,
		symTail: true,
		tail:    "/",
	}
)

var scanners = map[string]scanner{
	patternGPT2:     scanGPT2,
	patternQwen2:    rulesQwen2.scan,
	patternLlama3:   rulesLlama3.scan,
	patternNumber:   rulesNumber.scan,
	patternPlain:    rulesPlain.scan,
	patternSeed:     rulesSeed.scan,
	patternQwen35:   rulesQwen35.scan,
	patternO200k:    rulesO200k.scan,
	patternYoutu:    rulesYoutu.scan,
	patternKimi:     rulesKimi.scan,
	patternTekken:   rulesTekken.scan,
	patternDigits3:  runScanner(catN, 3),
	patternDigit:    runScanner(catN, 1),
	`\p{N}+`:        runScanner(catN, -1),
	patternCJK:      scanCJK,
	patternDeepSeek: scanDeepSeek,
	patternLines:    scanLines,

	// The same patterns in other spellings.
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:      rulesQwen2.scan,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: rulesLlama3.scan,
}

// scanLines separates lines from the line feeds between them.
func scanLines(s string, i int) int {
	feed := s[i] == '\n'
	for i++; i < len(s) && (s[i] == '\n') == feed; i++ {
	}
	return i
}

// coversAll holds the patterns of which some alternative matches everywhere.
var coversAll = map[string]bool{
	patternGPT2: true, patternQwen2: true, patternLlama3: true, patternNumber: true, patternPlain: true, patternSeed: true,
	patternQwen35: true, patternO200k: true, patternYoutu: true, patternTekken: true, patternLines: true, patternKimi: true,
}

// digitGroups matches digits in groups of three from the end of their run.
type digitGroups struct{}

func (digitGroups) matches(_ *budget, out []int, s string) []int {
	for i := 0; i < len(s); {
		end := runOf(s, i, catNd, -1)
		if end == i {
			i = runScanner(catNd, -1)(s, i)
			continue
		}
		for left := utf8.RuneCountInString(s[i:end]); left > 0; left = left / 3 * 3 {
			n := left % 3
			if n == 0 {
				n = 3
				left -= 3
			}
			next := runOf(s, i, catNd, n)
			out = append(out, i, next)
			i = next
		}
	}
	return out
}
