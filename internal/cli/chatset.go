package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/ollama"
)

// asOllama are Ollama's names of what flags set here.
var asOllama = map[string]string{"num-predict": "max-tokens", "repeat-penalty": "repetition-penalty"}

// fixed are Ollama's names of what is settled when a model is loaded, and the flags for it.
var fixed = map[string]string{
	"num-ctx":    "--context",
	"num-thread": "--threads",
	"num-gpu":    "--device",
	"main-gpu":   "--device",
}

// ollamaOption is a setting that has no flag.
type ollamaOption struct {
	name   string
	lo, hi float64
	to     func(*conversation) **float32
}

var ollamaOptions = []ollamaOption{
	{"typical-p", 0, 1, func(c *conversation) **float32 { return &c.extra.TypicalP }},
	{"presence-penalty", -2, 2, func(c *conversation) **float32 { return &c.extra.PresencePenalty }},
	{"frequency-penalty", -2, 2, func(c *conversation) **float32 { return &c.extra.FrequencyPenalty }},
}

func (o ollamaOption) get(c *conversation) string {
	if p := *o.to(c); p != nil {
		return fmt.Sprint(*p)
	}
	return ""
}

func (o ollamaOption) set(c *conversation, value string) error {
	if value == asModel {
		*o.to(c) = nil
		return nil
	}
	v, err := strconv.ParseFloat(value, 32)
	if err != nil || math.IsNaN(v) || v < o.lo || v > o.hi {
		return fmt.Errorf("%s wants a number from %v to %v, not %q", o.name, o.lo, o.hi, value)
	}
	*o.to(c) = new(float32(v))
	return nil
}

// set changes how answers are made.
func (c *conversation) set(args string) (string, error) {
	name, value, _ := strings.Cut(args, " ")
	value = strings.TrimSpace(value)
	switch name { // Ollama's words for what has another one here
	case "":
		return c.settings(), nil
	case "parameter":
		if name, value, _ = strings.Cut(value, " "); name == "" {
			return "", errors.New("want /set parameter NAME VALUE; /set lists them")
		}
		value = strings.TrimSpace(value)
	case "verbose":
		name, value = "stats", first([]string{value, "on"})
	case "quiet":
		name, value = "stats", "off"
	case "nothink":
		name, value = "think", "off"
	case "think":
		value = first([]string{value, "on"})
	case "format":
		return c.hold(first([]string{value, "json"}), "")
	case "grammar":
		if value == "" {
			return "", errors.New("want /set grammar FILE; /set noformat ends it")
		}
		return c.hold("", value)
	case "noformat":
		return c.hold("", "")
	case "wordwrap", "history", "nowordwrap", "nohistory":
		return "", fmt.Errorf(
			"%s cannot be set here: lines are always broken between words, and what was typed is kept",
			name,
		)
	}
	name = strings.ReplaceAll(name, "_", "-")
	if n, ok := asOllama[name]; ok {
		name = n
	}
	if err := c.setTo(name, value); err != nil {
		return "", err
	}
	return name + " is set.", nil
}

// hold sets what answers are held to from now on.
func (c *conversation) hold(format, grammar string) (string, error) {
	f, err := formatOf(format, grammar)
	if err != nil {
		return "", err
	}
	c.f.held, c.f.format, c.f.grammar = f, format, grammar
	if f.Kind == "" {
		return "Answers have no format.", nil
	}
	return "Answers are held to " + f.Kind + "; /set noformat ends it.", nil
}

func (c *conversation) setTo(name, value string) error {
	onOff := func() (bool, error) {
		switch value {
		case "on", "true", "yes":
			return true, nil
		case "off", "false", "no":
			return false, nil
		}
		return false, fmt.Errorf("%s is on or off", name)
	}
	if flag, ok := fixed[name]; ok {
		return fmt.Errorf("%s is settled when the model is loaded: leave, and run it with %s", name, flag)
	}
	for _, o := range ollamaOptions {
		if o.name == name {
			return o.set(c, value)
		}
	}
	var err error
	switch name {
	case "system":
		if c.f.raw {
			return errors.New("a text that is continued has no system message")
		}
		c.f.system = strings.Trim(value, `"`)
	case "stats":
		c.f.showStats, err = onOff()
	case "markdown":
		c.markdown, err = onOff()
	case "thinking", "think":
		c.thinking, c.effort, err = thinkingOf(value)
		if err != nil {
			err = fmt.Errorf("%s %w, or default", name, err)
		}
	case "stop":
		if c.stop = strings.Fields(value); value == asModel {
			c.stop = nil
		}
	case "repeat-last-n":
		n, perr := strconv.Atoi(value)
		switch {
		case value == asModel:
			c.extra.RepeatLastN = nil
		case perr != nil || n < -1:
			return fmt.Errorf("%s wants a whole number, not %q", name, value)
		default:
			c.extra.RepeatLastN = &n
		}
	case "temperature", "top-p", "top-k", "min-p", "seed", "max-tokens", "repetition-penalty":
		if err = c.f.set(name, value); err != nil { // in the chat it is no flag
			err = errors.New(strings.TrimPrefix(err.Error(), "--"))
		}
	default:
		return fmt.Errorf("there is no setting %s; /set lists them", name)
	}
	return err
}

// asModel stands where the model's own setting counts.
const asModel = "default"

func (c *conversation) settings() string {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-20s %s\n", name, value) }
	for _, name := range []string{"temperature", "top-p", "top-k", "min-p", "repetition-penalty", "max-tokens"} {
		switch flag := c.f.flags.Flags().Lookup(name); {
		case !flag.Changed:
			row(name, asModel)
		case name == "max-tokens" && flag.Value.String() == offValues[name]: // of the others, the number says it
			row(name, "off")
		default:
			row(name, flag.Value.String())
		}
	}
	seed := "random"
	if c.f.flags.Flags().Changed("seed") {
		seed = strconv.FormatUint(c.f.seed, 10)
	}
	row("seed", seed)
	for _, o := range ollamaOptions {
		if v := o.get(c); v != "" {
			row(o.name, v)
		}
	}
	thinking := asModel
	if c.thinking != nil {
		thinking = onOrOff(*c.thinking)
	} else if c.effort != "" {
		thinking = c.effort
	}
	row("thinking", thinking)
	if c.f.held.Kind != "" {
		row("format", first([]string{c.f.format, c.f.grammar}))
	}
	row("stats", onOrOff(c.f.showStats))
	row("markdown", onOrOff(c.markdown))
	system := c.f.system
	if system == "" {
		system = "none"
	}
	row("system", strings.ReplaceAll(system, "\n", " "))
	return strings.TrimRight(b.String(), "\n")
}

func onOrOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// show says what the conversation is made of. The words are Ollama's, too.
func (c *conversation) show(what string) (string, error) {
	spec := c.about.Spec
	if c.f.system != "" {
		spec.System = c.f.system
	}
	switch what {
	case "", "settings":
		return c.settings(), nil
	case "model", "info":
		i := c.about.Info
		return fmt.Sprintf(
			"  %s: %s, %s parameters, %s, %d layers\n  context of %d tokens of at most %d\n  %s",
			printableLine(i.Name),
			i.Family,
			count(i.Parameters),
			i.Quantization,
			i.Layers,
			c.about.Context,
			i.MaxContext,
			c.a.tilde(i.Path),
		), nil
	case "template":
		if spec.Template != "" {
			return spec.Template, nil
		}
		if c.about.Info.ChatTemplate == "" {
			return "", model.ErrNoTemplate
		}
		return c.about.Info.ChatTemplate, nil
	case "system":
		if c.f.system == "" {
			return "There is no system message.", nil
		}
		return c.f.system, nil
	case "parameters":
		text := ollama.Parameters(spec)
		if text == "" {
			text = "The model was made without parameters."
		}
		return text + "\n\nThis conversation has:\n" + c.settings(), nil
	case "modelfile":
		return ollama.Modelfile(spec, c.licence()), nil
	case "license", "licence":
		if text := c.licence(); text != "" {
			return text, nil
		}
		return "The model does not say its licence.", nil
	case "conversation", "history":
		var b strings.Builder
		for _, m := range c.msgs {
			fmt.Fprintf(&b, "%s: %s\n", m.Role, textOf(m))
		}
		if b.Len() == 0 {
			return "Nothing was said yet.", nil
		}
		return strings.TrimRight(b.String(), "\n"), nil
	}
	return "", errors.New("want /show settings, info, modelfile, parameters, system, template, license or conversation")
}

// licence is what is known of the model's terms.
func (c *conversation) licence() string {
	text, _ := c.a.licenceOf(c.about.Info.Path)
	return text
}
