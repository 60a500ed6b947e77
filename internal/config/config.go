// Package config owns the settings that hold for every command: one table with each setting's flag,
// environment variable, default, check and help. It knows values, not what they do.
package config

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/nearest"
)

// A Setting is one row of the table.
type Setting struct {
	Flag    string   // long flag without dashes; "" when only the variable exists
	Short   string   // short flag without dash, as llama.cpp has it
	Var     string   // environment variable
	Default string   // as text; "" means that the program chooses
	Help    string   // one line, for flags and documentation
	Kind    string   // what the value is, for help: "N", "NAME"; the values themselves where they are few
	Values  []string // the values that it takes, where they are few
	check   func(string) error
}

// Check reports why value is not one that the setting takes. The empty value means the default.
func (s Setting) Check(value string) error {
	switch {
	case value == "":
		return nil
	case len(s.Values) > 0:
		return oneOf(s.Values, value)
	case s.check != nil:
		return s.check(value)
	}
	return nil
}

// Names of the settings.
const (
	Home    = "home"
	Model   = "model"
	CPU     = "cpu"
	Device  = "device"
	Threads = "threads"
	Context = "context"
	KV      = "kv"
	Host    = "host"
	APIKey  = "api-key"
)

// table is keyed by the setting's name.
var table = map[string]Setting{
	Home: {Var: "BALEEN_HOME", Help: "folder for models and caches (default: the user's data folder)"},
	Model: {
		Var: "BALEEN_MODEL", Default: "qwen2.5-coder-0.5b",
		Help: "model used when none is named: a name, a file or a folder",
	},
	CPU: {
		Flag: "cpu", Var: "BALEEN_CPU",
		Help: "use at most this instruction set: auto, avx512, avx2, neon or generic",
		Kind: "LEVEL", Values: []string{"auto", "avx512", "avx2", "neon", "generic"},
	},
	Device: {
		Flag: "device", Var: "BALEEN_DEVICE", Default: "auto",
		Help: "where models run: auto, cpu, cuda or cuda:1; auto takes a GPU that executes and holds all of the " +
			"model", Kind: "DEVICE",
		check: deviceName,
	},
	Threads: {
		Flag: "threads", Short: "t", Var: "BALEEN_THREADS",
		Help: "worker threads (default: one for each available core)", check: intIn(1, 1024), Kind: "N",
	},
	Context: {
		Flag: "context", Short: "c", Var: "BALEEN_CONTEXT",
		Help: "tokens that a conversation may hold (default: the model's, at most 8192, of serve 32768)", check: intIn(1, 1<<24), Kind: "N",
	},
	KV: {
		Flag: "kv", Var: "BALEEN_KV", Default: "f16",
		Help: "storage of cached keys and values: f16 or f32", Kind: "TYPE", Values: []string{"f16", "f32"},
	},
	Host: {
		Var: "BALEEN_HOST", Default: "127.0.0.1:57455",
		Help: "where serve listens, and where run, ps and stop look for a server: HOST, HOST:PORT, an address, or " +
			"unix:PATH",
		check: func(v string) error { _, err := ParseAddress(v, DefaultPort); return err },
	},
	APIKey: {Var: "BALEEN_API_KEY", Help: "key that serve demands, and that run, ps and stop send"},
}

func oneOf(values []string, v string) error {
	if slices.Contains(values, v) {
		return nil
	}
	return fmt.Errorf("want one of %s", strings.Join(values, ", "))
}

// deviceName checks the form of a name; which devices there are is found out when one is used.
func deviceName(v string) error {
	kind, number, numbered := strings.Cut(v, ":")
	ok := kind == "cuda" || !numbered && (kind == "cpu" || kind == "auto")
	if numbered && ok {
		ok = intIn(0, 255)(number) == nil
	}
	if !ok {
		return errors.New("want auto, cpu, cuda or cuda:1")
	}
	return nil
}

func intIn(lo, hi int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("want a whole number from %d to %d", lo, hi)
		}
		return nil
	}
}

// Get returns the setting of that name; it must be one of the constants.
func Get(name string) Setting {
	s, ok := table[name]
	if !ok {
		panic("config: no setting " + name)
	}
	return s
}

// Names returns the names of all settings, sorted.
func Names() []string {
	names := make([]string, 0, len(table))
	for n := range table {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// A Config holds checked values. The zero value is not usable; Load makes one.
type Config struct {
	values map[string]string
}

// Load reads the variables of environ (in the form KEY=VALUE) and checks them. Warnings name variables that
// look like misspelt settings.
func Load(environ []string) (c Config, warnings []string, err error) {
	c.values = make(map[string]string, len(table))
	byVar := make(map[string]string, len(table))
	for name, s := range table {
		c.values[name] = s.Default
		byVar[s.Var] = name
	}
	for _, kv := range environ {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || !strings.HasPrefix(key, "BALEEN_") {
			continue
		}
		name, known := byVar[key]
		if !known {
			if near := closest(key); near != "" {
				warnings = append(warnings, fmt.Sprintf("%s is not a setting; did you mean %s?", key, near))
			}
			continue
		}
		if value == "" {
			continue
		}
		if err := table[name].Check(value); err != nil {
			return c, warnings, fmt.Errorf("%s=%q: %w", key, value, err)
		}
		c.values[name] = value
	}
	sort.Strings(warnings)
	return c, warnings, nil
}

// Set replaces a value, as a flag does.
func (c Config) Set(name, value string) error {
	s := Get(name)
	if err := s.Check(value); err != nil {
		return fmt.Errorf("--%s %q: %w", s.Flag, value, err)
	}
	c.values[name] = value
	return nil
}

// String returns the value of a setting, "" where the program chooses.
func (c Config) String(name string) string { Get(name); return c.values[name] }

// Int returns the value of a numeric setting, 0 where the program chooses.
func (c Config) Int(name string) int {
	n, _ := strconv.Atoi(c.String(name)) // checked when it was set
	return n
}

// CPULimit returns the instruction set limit as backends take it: "" for none.
func (c Config) CPULimit() string {
	if v := c.String(CPU); v != "auto" {
		return v
	}
	return ""
}

// closest returns the variable that key is at most two edits away from.
func closest(key string) string {
	best, dist := "", 3
	for _, name := range Names() {
		if d := nearest.Distance(key, table[name].Var); d < dist {
			best, dist = table[name].Var, d
		}
	}
	return best
}
