package tokenizer

// ggufPre is what a name in tokenizer.ggml.pre stands for.
type ggufPre struct {
	patterns     []string
	norm         []normalizer
	ignoreMerges bool
	addBOS       bool
	characters   bool // words are cut into characters, not bytes
}

var ggufPres = map[string]ggufPre{
	"gpt-2":     {patterns: []string{patternGPT2}},
	"smollm":    {patterns: []string{patternDigit, patternGPT2}},
	"starcoder": {patterns: []string{patternDigit, patternGPT2}},
	"qwen2":     {patterns: []string{patternQwen2}, norm: []normalizer{nfc}},
	"llama-bpe": {patterns: []string{patternLlama3}, ignoreMerges: true, addBOS: true},
}
