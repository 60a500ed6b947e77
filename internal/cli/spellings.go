package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/baleenrun/baleen/internal/config"
)

// Flags are accepted as llama.cpp and Ollama spell them, so that a command line that somebody knows works. What has no
// effect here says so.

// otherNames are names of flags elsewhere, and what they are called here.
var otherNames = map[string]string{
	// llama.cpp
	"temp": "temperature", "ctx-size": "context", "predict": "max-tokens", "n-predict": "max-tokens", "repeat-penalty": "repetition-penalty",
	"system-prompt": "system", "n-gpu-layers": "gpu-layers", "cache-type-k": "kv", "cache-type-v": "kv", "hf": "hf-repo", "hfr": "hf-repo",
	// Ollama
	"verbose": "stats", "keepalive": "keep-alive", "license": "licence",
}

// alias lets a command know other programs' names of its flags.
func alias(cmd *cobra.Command) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if n, ok := otherNames[name]; ok {
			name = n
		}
		return pflag.NormalizedName(name)
	})
}

// longFor are llama.cpp's flags of one hyphen and several letters, which would be read as one flag for each letter.
var longFor = map[string]string{
	"-ngl": "--gpu-layers", "-fa": "--flash-attn", "-ctk": "--kv", "-ctv": "--kv", "-cnv": "--conversation", "-no-cnv": "--no-conversation",
	"-st": "--single-turn", "-sys": "--system", "-hf": "--hf-repo", "-hfr": "--hf-repo", "-np": "--parallel", "-ub": "--ubatch-size",
	"-b": "--batch-size",
}

// wordsAfter are flags whose value may be left out, and the words that are one when they stand behind it.
var wordsAfter = map[string][]string{
	"--flash-attn": {"on", "off", "auto"},
	"--think":      {"true", "false", "on", "off", "low", "medium", "high"},
}

// spelled rewrites a command line of "run" or "serve" as it is understood.
func spelled(args []string) []string {
	if len(args) == 0 || args[0] != "run" && args[0] != "serve" {
		return args
	}
	out := slices.Clone(args)
	for i := 1; i < len(out); i++ {
		if out[i] == "--" {
			break
		}
		name, value, has := strings.Cut(out[i], "=")
		if long, ok := longFor[name]; ok {
			out[i] = long
			if has {
				out[i] += "=" + value
			}
		}
		if words := wordsAfter[out[i]]; i+1 < len(out) && slices.Contains(words, out[i+1]) {
			out[i] += "=" + out[i+1]
			out = slices.Delete(out, i+1, i+2)
		}
	}
	return out
}

// without are flags of llama.cpp that have no effect, each with the reason.
var without = []struct {
	name, value, why string // value: "" for a flag that takes none; "?..." for one that may
}{
	{"gpu-layers", "N", "a model runs on one device as a whole, which --device names"},
	{"flash-attn", "?on", "attention is always computed in tiles"},
	{"batch-size", "N", "prompts are read in chunks that follow from what else runs"},
	{"ubatch-size", "N", "prompts are read in chunks that follow from what else runs"},
	{"mlock", "", "weights are held in memory already"},
	{"no-mmap", "", "weights are held in memory already"},
	{"conversation", "", "it is what happens when there is no prompt"},
	{"no-conversation", "", "a prompt is answered once; --raw leaves the chat template out"},
	{"single-turn", "", "a prompt is answered once"},
	{"jinja", "", "templates are always read as Jinja"},
	{"no-warmup", "", "nothing is computed before the first request"},
	{"color", "?on", "colours follow the terminal and NO_COLOR"},
	{"simple-io", "", "where there is no terminal, text is plain"},
}

// ineffective adds the flags that have no effect; they are in no help.
func ineffective(cmd *cobra.Command) {
	for _, w := range without {
		if w.value == "" {
			cmd.Flags().Bool(w.name, false, w.why)
		} else {
			cmd.Flags().String(w.name, "", w.why)
			if def, ok := strings.CutPrefix(w.value, "?"); ok {
				cmd.Flags().Lookup(w.name).NoOptDefVal = def
			}
		}
		cmd.Flags().Lookup(w.name).Hidden = true
	}
}

// noteIneffective says which flags of the command line have no effect. That none of a model's layers are to be on a
// GPU means something: that it runs on the processor.
func (a *app) noteIneffective(cmd *cobra.Command) error {
	for _, w := range without {
		flag := cmd.Flags().Lookup(w.name)
		if flag == nil || !flag.Changed {
			continue
		}
		if w.name == "gpu-layers" && flag.Value.String() == "0" {
			if device := cmd.Flags().Lookup(config.Get(config.Device).Flag); device.Changed {
				continue
			}
			if err := cmd.Flags().Set(config.Get(config.Device).Flag, "cpu"); err != nil {
				return err
			}
			continue
		}
		a.note("--%s has no effect: %s", w.name, w.why)
	}
	return nil
}
