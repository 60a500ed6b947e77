package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxParts bounds how many components a Sequence may have in all.
const maxParts = 256

// jsonNormalizers reads a normalizer; Sequences become one flat list.
func jsonNormalizers(raw json.RawMessage) ([]normalizer, error) {
	return jsonSequence(raw, "normalizers", jsonNormalizer)
}

func jsonPreTokenizers(raw json.RawMessage) ([]preTokenizer, error) {
	return jsonSequence(raw, "pretokenizers", jsonPreTokenizer)
}

// jsonSequence reads a component or a Sequence, whose parts are in field.
func jsonSequence[T any](
	raw json.RawMessage,
	field string,
	one func(kind string, raw json.RawMessage) ([]T, error),
) ([]T, error) {
	kind, err := jsonKind(raw)
	if err != nil || kind == "" {
		return nil, err
	}
	if kind != "Sequence" {
		return one(kind, raw)
	}
	var fields map[string]json.RawMessage
	if err := unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	var parts []json.RawMessage
	if err := unmarshal(fields[field], &parts); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	var out []T
	for i, p := range parts {
		v, err := jsonSequence(p, field, one)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		if out = append(out, v...); len(out) > maxParts {
			return nil, fmt.Errorf("more than %d components", maxParts)
		}
	}
	return out, nil
}

func jsonNormalizer(kind string, raw json.RawMessage) ([]normalizer, error) {
	var o struct {
		Pattern    jsonPattern `json:"pattern"`
		Content    string      `json:"content"`
		Prepend    string      `json:"prepend"`
		CleanText  *bool       `json:"clean_text"`
		Chinese    *bool       `json:"handle_chinese_chars"`
		Accents    *bool       `json:"strip_accents"`
		Lowercase  *bool       `json:"lowercase"`
		StripLeft  *bool       `json:"strip_left"`
		StripRight *bool       `json:"strip_right"`
		Charsmap   []byte      `json:"precompiled_charsmap"` // base64
	}
	if err := unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	switch kind {
	case "Replace":
		if o.Pattern.String != nil {
			return []normalizer{replaceString{*o.Pattern.String, o.Content}}, nil
		}
		m, err := o.Pattern.matcher()
		return []normalizer{replaceRegex{m, o.Content}}, err
	case "Precompiled":
		m, err := newCharsMap(o.Charsmap)
		if m == nil || err != nil {
			return nil, err
		}
		return []normalizer{precompiled{m}}, nil
	case "BertNormalizer":
		b := bertNormalizer{
			cleanText:    orTrue(o.CleanText),
			chineseChars: orTrue(o.Chinese),
			lowercase:    orTrue(o.Lowercase),
		}
		b.stripAccents = b.lowercase
		if o.Accents != nil {
			b.stripAccents = *o.Accents
		}
		return []normalizer{b}, nil
	case "Prepend":
		return []normalizer{prepend(o.Prepend)}, nil
	case "Strip":
		return []normalizer{stripSpace{orTrue(o.StripLeft), orTrue(o.StripRight)}}, nil
	}
	if n, ok := plainNormalizers[kind]; ok {
		return []normalizer{n}, nil
	}
	return nil, fmt.Errorf("unknown type %q", kind)
}

// plainNormalizers are those without settings.
var plainNormalizers = map[string]normalizer{
	"NFC": nfc, "NFD": nfd, "NFKC": nfkc, "NFKD": nfkd,
	"Lowercase": lowercase{}, "StripAccents": stripAccents{}, "Nmt": nmt{}, "ByteLevel": alphabet{},
}

func jsonPreTokenizer(kind string, raw json.RawMessage) ([]preTokenizer, error) {
	var o struct {
		Pattern        jsonPattern `json:"pattern"`
		Behavior       string      `json:"behavior"`
		Invert         bool        `json:"invert"`
		AddPrefixSpace *bool       `json:"add_prefix_space"`
		UseRegex       *bool       `json:"use_regex"`
		Replacement    string      `json:"replacement"`
		PrependScheme  string      `json:"prepend_scheme"`
		Split          *bool       `json:"split"`
		Individual     bool        `json:"individual_digits"`
		Length         int         `json:"length"`
		Delimiter      string      `json:"delimiter"`
	}
	if err := unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	switch kind {
	case "Split":
		b, err := jsonBehavior(o.Behavior)
		if err != nil {
			return nil, err
		}
		s, err := o.Pattern.splitter(b, o.Invert)
		if err != nil {
			return nil, fmt.Errorf("pre-tokenizer Split: %w", err)
		}
		return []preTokenizer{s}, nil
	case "ByteLevel":
		return []preTokenizer{&byteLevel{addPrefixSpace: orTrue(o.AddPrefixSpace), useRegex: orTrue(o.UseRegex)}}, nil
	case "Metaspace":
		m, err := jsonMetaspace(o.Replacement, o.PrependScheme, o.AddPrefixSpace, o.Split)
		if err != nil {
			return nil, err
		}
		return []preTokenizer{m}, nil
	case "Digits":
		limit := -1
		if o.Individual {
			limit = 1
		}
		return []preTokenizer{&splitter{scan: flagScanner(flagNumeric, limit)}}, nil
	case "Punctuation":
		if o.Behavior == "" {
			o.Behavior = "Isolated"
		}
		b, err := jsonBehavior(o.Behavior)
		return []preTokenizer{&splitter{pattern: charMatcher(isPunct), behavior: b}}, err
	case "Whitespace":
		return []preTokenizer{&splitter{pattern: wordMatcher{}, behavior: removed, invert: true}}, nil
	case "WhitespaceSplit":
		return []preTokenizer{&splitter{pattern: charMatcher(isSpace), behavior: removed}}, nil
	case "BertPreTokenizer":
		return []preTokenizer{
			&splitter{pattern: charMatcher(isSpace), behavior: removed},
			&splitter{pattern: charMatcher(isPunct), behavior: isolated},
		}, nil
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(o.Delimiter) != 1 {
			return nil, fmt.Errorf("CharDelimiterSplit: delimiter %q is not one character", o.Delimiter)
		}
		return []preTokenizer{&splitter{pattern: literal(o.Delimiter), behavior: removed}}, nil
	case "FixedLength":
		if o.Length <= 0 {
			return nil, fmt.Errorf("FixedLength: length %d is not positive", o.Length)
		}
		return []preTokenizer{&splitter{scan: fixedLength(o.Length)}}, nil
	}
	return nil, fmt.Errorf("unknown type %q", kind)
}

func orTrue(b *bool) bool { return b == nil || *b }

func jsonBehavior(name string) (behavior, error) {
	for b, n := range []string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		if n == name {
			return behavior(b), nil
		}
	}
	return 0, fmt.Errorf("unknown behavior %q", name)
}

func jsonMetaspace(replacement, scheme string, addPrefix, split *bool) (*metaspace, error) {
	if replacement == "" {
		replacement = spaceMark
	}
	m := &metaspace{mark: replacement, cut: orTrue(split)}
	switch scheme {
	case "":
		m.prepend = orTrue(addPrefix)
	case "always":
		m.prepend = true
	case "first":
		m.prepend, m.firstOnly = true, true
	case "never":
	default:
		return nil, fmt.Errorf("pre-tokenizer Metaspace: unknown prepend_scheme %q", scheme)
	}
	return m, nil
}

func (t *Tokenizer) jsonAdded(raw json.RawMessage) error {
	if isNull(raw) {
		var err error
		t.added, err = newAddedTokens(nil, nil)
		return err
	}
	var list []struct {
		ID         int64  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		Lstrip     bool   `json:"lstrip"`
		Rstrip     bool   `json:"rstrip"`
		Normalized *bool  `json:"normalized"`
		Special    bool   `json:"special"`
	}
	if err := unmarshal(raw, &list); err != nil {
		return err
	}
	var tokens []addedToken
	for _, a := range list {
		if a.Content == "" {
			continue
		}
		if a.ID < 0 || a.ID >= maxVocab {
			return fmt.Errorf("id %d of %q is out of range", a.ID, a.Content)
		}
		id := int32(a.ID)
		if k, ok := t.vocab.modelID(a.Content); ok {
			id = k
		}
		t.vocab.addExtra(id, a.Content)
		control := a.Special || looksControl(a.Content)
		if a.Special {
			t.setControl(id)
		}
		normalized := !a.Special
		if a.Normalized != nil {
			normalized = *a.Normalized
		}
		tokens = append(tokens, addedToken{id, a.Content, control, normalized, a.SingleWord, a.Lstrip, a.Rstrip})
	}
	var err error
	t.added, err = newAddedTokens(tokens, t.norm)
	return err
}

// jsonPost reads a post-processor and folds it to what a single sequence gets.
func (t *Tokenizer) jsonPost(raw json.RawMessage) (postProcessor, error) {
	var post postProcessor
	parts, err := jsonSequence(raw, "processors", func(kind string, raw json.RawMessage) ([]postProcessor, error) {
		p, err := t.jsonPostPart(kind, raw)
		return []postProcessor{p}, err
	})
	for _, p := range parts {
		post.before = append(p.before, post.before...)
		post.after = append(post.after, p.after...)
	}
	return post, err
}

func (t *Tokenizer) jsonPostPart(kind string, raw json.RawMessage) (postProcessor, error) {
	var post postProcessor
	switch kind {
	case "ByteLevel": // only moves offsets
		return post, nil
	case "BertProcessing", "RobertaProcessing":
		var o struct{ Sep, Cls [2]json.RawMessage }
		if err := unmarshal(raw, &o); err != nil {
			return post, err
		}
		var sep, cls int32
		if err := errors.Join(unmarshal(o.Sep[1], &sep), unmarshal(o.Cls[1], &cls)); err != nil {
			return post, fmt.Errorf("%s: %w", kind, err)
		}
		if sep < 0 || cls < 0 {
			return post, fmt.Errorf("%s: negative id", kind)
		}
		return postProcessor{[]int32{cls}, []int32{sep}}, nil
	case "TemplateProcessing":
		return jsonTemplate(raw)
	}
	return post, fmt.Errorf("unknown type %q", kind)
}

func jsonTemplate(raw json.RawMessage) (postProcessor, error) {
	var post postProcessor
	var o struct {
		Single []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
			Sequence *struct {
				ID string `json:"id"`
			}
		} `json:"single"`
		Tokens map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := unmarshal(raw, &o); err != nil {
		return post, err
	}
	seen := false
	for _, p := range o.Single {
		switch {
		case p.Sequence != nil:
			if seen {
				return post, errors.New("TemplateProcessing: the sequence occurs twice in single")
			}
			seen = true
		case p.SpecialToken != nil:
			tok, ok := o.Tokens[p.SpecialToken.ID]
			if !ok {
				return post, fmt.Errorf("TemplateProcessing: special token %q is not defined", p.SpecialToken.ID)
			}
			for _, id := range tok.IDs {
				if id < 0 {
					return post, fmt.Errorf("TemplateProcessing: negative id of %q", p.SpecialToken.ID)
				}
			}
			if seen {
				post.after = append(post.after, tok.IDs...)
			} else {
				post.before = append(post.before, tok.IDs...)
			}
		}
	}
	return post, nil
}

// jsonDecoder reads a decoder.
func jsonDecoder(raw json.RawMessage) ([]decodeStep, error) {
	if isNull(raw) {
		return []decodeStep{{kind: decodeSpaces}}, nil
	}
	return jsonSequence(raw, "decoders", jsonDecodeStep)
}

func jsonDecodeStep(kind string, raw json.RawMessage) ([]decodeStep, error) {
	var o struct {
		Pattern       jsonPattern     `json:"pattern"`
		Content       string          `json:"content"`
		Start         int             `json:"start"`
		Stop          int             `json:"stop"`
		Prefix        *string         `json:"prefix"`
		Suffix        *string         `json:"suffix"`
		Cleanup       *bool           `json:"cleanup"`
		Pad           *string         `json:"pad_token"`
		Delimiter     *string         `json:"word_delimiter_token"`
		Replacement   string          `json:"replacement"`
		PrependScheme string          `json:"prepend_scheme"`
		AddPrefix     *bool           `json:"add_prefix_space"`
		Split         *bool           `json:"split"`
		_             json.RawMessage `json:"-"`
	}
	if err := unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	step := func(s decodeStep) ([]decodeStep, error) { return []decodeStep{s}, nil }
	switch kind {
	case "ByteLevel":
		return step(decodeStep{kind: decodeByteLevel})
	case "ByteFallback":
		return step(decodeStep{kind: decodeByteFallback})
	case "Fuse":
		return step(decodeStep{kind: decodeFuse})
	case "Replace":
		if o.Pattern.String == nil {
			return nil, errors.New("decoder Replace: only a String pattern is supported in a decoder")
		}
		return step(decodeStep{kind: decodeReplace, old: *o.Pattern.String, new: o.Content})
	case "Strip":
		return step(decodeStep{kind: decodeStrip, old: o.Content, start: o.Start, stop: o.Stop})
	case "Metaspace":
		m, err := jsonMetaspace(o.Replacement, o.PrependScheme, o.AddPrefix, o.Split)
		if err != nil {
			return nil, err
		}
		s := decodeStep{kind: decodeMetaspace, old: m.mark, new: " "}
		if m.prepend {
			s.new = ""
		}
		return step(s)
	case "WordPiece":
		return step(decodeStep{kind: decodeWordPiece, old: orString(o.Prefix, "##"), cleanup: orTrue(o.Cleanup)})
	case "BPEDecoder":
		return step(decodeStep{kind: decodeBPE, old: orString(o.Suffix, "</w>")})
	case "CTC":
		return step(
			decodeStep{
				kind:    decodeCTC,
				old:     orString(o.Pad, "<pad>"),
				new:     orString(o.Delimiter, "|"),
				cleanup: orTrue(o.Cleanup),
			},
		)
	}
	return nil, fmt.Errorf("unknown type %q", kind)
}

func orString(s *string, def string) string {
	if s == nil {
		return def
	}
	return *s
}
