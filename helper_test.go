package baleen_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/synth"
)

// chatTemplate is a small one in the usual form.
const chatTemplate = `{% for m in messages %}<{{ m.role }}> {{ m.content }}
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`

var tiny struct {
	once sync.Once
	dir  string
	err  error
}

// tinyModel is a model of random weights, some 150 kB, whose answers have no sense but always the same tokens.
func tinyModel() string {
	tiny.once.Do(func() {
		if tiny.dir, tiny.err = os.MkdirTemp("", "baleen"); tiny.err == nil {
			tiny.err = writeTiny(filepath.Join(tiny.dir, "chat.gguf"), chatTemplate)
		}
	})
	if tiny.err != nil {
		panic(tiny.err)
	}
	return filepath.Join(tiny.dir, "chat.gguf")
}

func writeTiny(path, template string) error { return writeSeed(path, template, 7) }

// writeSeed writes a tiny model, also over one that is there.
func writeSeed(path, template string, seed uint64) error {
	shape, err := synth.Lookup("tiny")
	if err != nil {
		return err
	}
	shape.ChatTemplate = template
	recipe, err := synth.LookupRecipe("Q8_0")
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := synth.Write(context.Background(), f, shape, recipe, seed, nil); err != nil {
		return err
	}
	return f.Close()
}

func TestMain(m *testing.M) {
	status := m.Run()
	if tiny.dir != "" {
		os.RemoveAll(tiny.dir)
	}
	os.Exit(status)
}
