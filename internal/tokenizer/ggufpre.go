package tokenizer

// ggufPre is what a name in tokenizer.ggml.pre stands for.
type ggufPre struct {
	patterns     []string // each splits the words of the one before
	norm         []normalizer
	ignoreMerges bool
	addBOS       bool
	addSEP       bool
	characters   bool // words are cut into characters, not bytes
}

const (
	patternASCIIDigits3 = `[0-9][0-9][0-9]`
	patternCJKBlocks    = "[\u4E00-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+"
	patternBloom        = " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+"
	patternHanBlocks    = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"
	patternExaoneMoE    = contractions + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	patternJais2        = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	patternSpark        = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|\\s+(?!\\S)|\\s+"
	patternYoutuHan     = "[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
	patternDigitGroups  = `\d{1,3}(?=(?:\d{3})*\b)`
	patternDeepSeekWord = "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943]+"
	patternDeepSeekMark = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+"
)

var (
	gpt2Pre     = ggufPre{patterns: []string{patternGPT2}}
	digitPre    = ggufPre{patterns: []string{patternDigit, patternGPT2}}
	llama3Pre   = ggufPre{patterns: []string{patternLlama3}, ignoreMerges: true, addBOS: true}
	llama3Plain = ggufPre{patterns: []string{patternLlama3}}
	glm4Pre     = ggufPre{patterns: []string{patternLlama3}, ignoreMerges: true}
	qwen2Plain  = ggufPre{patterns: []string{patternQwen2}}
	// Qwen's own tokenizer.json normalizes to NFC, which GGUF does not say.
	qwen2Pre  = ggufPre{patterns: []string{patternQwen2}, norm: []normalizer{nfc}}
	qwen35Pre = ggufPre{patterns: []string{patternQwen35}, norm: []normalizer{nfc}}
	o200kPre  = ggufPre{patterns: []string{patternO200k}}
	deepSeek3 = ggufPre{patterns: []string{patternDigits3, patternCJK, patternDeepSeek}}
	bloomPre  = ggufPre{patterns: []string{patternBloom}}
	ayaPre    = ggufPre{patterns: []string{patternDigitGroups, patternO200k}}
	robertaBP = ggufPre{patterns: []string{patternGPT2}, addBOS: true, addSEP: true}
	linesPre  = ggufPre{
		patterns:   []string{patternLines},
		norm:       []normalizer{replaceString{" ", spaceMark}},
		characters: true,
	}
)

// ggufPres are the names that are known. Any other fails to load, for a wrong
// split would go unnoticed.
var ggufPres = map[string]ggufPre{
	"default": {patterns: []string{`[\p{P}\$\+<=>\^~\|]+`, patternGPT2, `\p{N}+`, patternASCIIDigits3}},
	"falcon":  {patterns: []string{"[\\p{P}\\$\\+<=>\\^~\\|`]+", patternGPT2, patternASCIIDigits3}},

	"gpt-2": gpt2Pre, "phi-2": gpt2Pre, "jina-es": gpt2Pre, "jina-de": gpt2Pre, "gigachat": gpt2Pre, "jina-v2-es": gpt2Pre,
	"jina-v2-de": gpt2Pre, "a.x-4.0": gpt2Pre, "mellum": gpt2Pre, "modern-bert": gpt2Pre, "mpt": gpt2Pre, "olmo": gpt2Pre,
	"jais": gpt2Pre, "trillion": gpt2Pre, "granite-docling": gpt2Pre, "exaone4": gpt2Pre,
	"jina-v1-en": robertaBP, "jina-v2-code": robertaBP, "roberta-bpe": robertaBP,

	"starcoder": digitPre, "refact": digitPre, "command-r": digitPre, "smollm": digitPre, "codeshell": digitPre,
	"exaone": digitPre, "minerva-7b": digitPre, "mellum2": digitPre,

	"llama3": llama3Pre, "llama-v3": llama3Pre, "llama-bpe": llama3Pre, "falcon3": llama3Pre, "falcon-h1": llama3Pre,
	"pixtral": llama3Pre, "midm-2.0": llama3Pre, "lfm2": llama3Pre, "jina-v5-nano": llama3Pre,
	"dbrx": llama3Plain, "smaug-bpe": llama3Plain, "chatglm-bpe": llama3Plain, "glm4": glm4Pre, "glm5": glm4Pre,
	"jais-2":   {patterns: []string{patternJais2}},
	"minicpm5": {patterns: []string{patternDigits3, patternNumber}, ignoreMerges: true},

	"qwen2": qwen2Pre, "qwen35": qwen35Pre, "deepseek-r1-qwen": qwen2Plain, "kormo": qwen2Plain, "f2llmv2": qwen2Plain,
	"stablelm2": qwen2Plain, "megrez": qwen2Plain, "hunyuan": qwen2Plain, "solar-open": qwen2Plain, "grok-2": qwen2Plain,
	"bailingmoe": qwen2Plain, "bailingmoe2": qwen2Plain, "llada-moe": qwen2Plain,
	"ufakzeka":   {patterns: []string{patternPlain}},
	"seed-coder": {patterns: []string{patternSeed}},
	"laguna":     {patterns: []string{patternLines, patternQwen2}},
	"exaone-moe": {patterns: []string{patternExaoneMoE}},

	"gpt-4o": o200kPre, "llama4": o200kPre, "kanana2": o200kPre, "talkie": o200kPre, "minimax-m2": o200kPre,
	"granite-embed-multi-97m": {patterns: []string{patternO200k}, ignoreMerges: true},
	"tekken":                  {patterns: []string{patternTekken}, ignoreMerges: true, addBOS: true},
	"tiny_aya":                ayaPre, "cohere2moe": ayaPre,
	"youtu":   {patterns: []string{patternYoutuHan, patternYoutu}, ignoreMerges: true},
	"kimi-k2": {patterns: []string{patternKimi}, ignoreMerges: true},

	"deepseek-v3": deepSeek3, "hunyuan-dense": deepSeek3, "joyai-llm": deepSeek3, "hy_v4": deepSeek3,
	"spark2_5":       {patterns: []string{patternDigits3, patternCJK, patternSpark, patternDigit}},
	"deepseek-coder": {patterns: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, patternHanBlocks, patternDigit}},
	"deepseek-llm": {
		patterns: []string{`[\r\n]`, patternDeepSeekWord, patternDeepSeekMark, `\s+$`, patternHanBlocks, `\p{N}+`},
	},
	"afmoe": {patterns: []string{patternAFMoE, patternCJKBlocks, patternDeepSeek}},

	"poro-chat": bloomPre, "bloom": bloomPre, "gpt3-finnish": bloomPre,
	"viking":   {patterns: []string{patternBloom, patternDigit}},
	"superbpe": {patterns: []string{`\p{N}+`, `(?=(\d{3})+(?!\d))`}},
	"chameleon": {addBOS: true, patterns: []string{
		`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`,
		patternDigit, "[\\p{P}!-/:-@\\[-`{-~]", patternGPT2,
	}},

	"gemma4": linesPre, "granite-embed-multi-311m": linesPre, "sarvam-moe": linesPre,
}
