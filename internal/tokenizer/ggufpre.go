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
	patternCJKBlocks    = "[一-鿿㐀-䶿豈-\uFAFF\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2FDFเ-๿\u0E80-\u0EFFក-\u17FFက-႟ꩠ-ꩿꧠ-\uA9FF가-\uD7AFᄀ-ᇿ]+"
	patternBloom        = ` ?[^(\s|.,!?…。，、।۔،)]+`
	patternHanBlocks    = "[一-龥ࠀ-一가-퟿]+"
	patternExaoneMoE    = contractions + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	patternJais2        = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	patternSpark        = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|\\s+(?!\\S)|\\s+"
	patternYoutuHan     = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+"
	patternDigitGroups  = `\d{1,3}(?=(?:\d{3})*\b)`
	patternDeepSeekWord = "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
	patternDeepSeekMark = "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"
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
	linesPre  = ggufPre{patterns: []string{patternLines}, norm: []normalizer{replaceString{" ", spaceMark}}, characters: true}
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
	"deepseek-llm":   {patterns: []string{`[\r\n]`, patternDeepSeekWord, patternDeepSeekMark, `\s+$`, patternHanBlocks, `\p{N}+`}},
	"afmoe":          {patterns: []string{patternAFMoE, patternCJKBlocks, patternDeepSeek}},

	"poro-chat": bloomPre, "bloom": bloomPre, "gpt3-finnish": bloomPre,
	"viking":   {patterns: []string{patternBloom, patternDigit}},
	"superbpe": {patterns: []string{`\p{N}+`, `(?=(\d{3})+(?!\d))`}},
	"chameleon": {addBOS: true, patterns: []string{`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`,
		patternDigit, "[\\p{P}!-/:-@\\[-`{-~]", patternGPT2}},

	"gemma4": linesPre, "granite-embed-multi-311m": linesPre, "sarvam-moe": linesPre,
}
