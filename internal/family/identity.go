package family

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/mmap"
)

// files are those that a checkpoint and what belongs to it (tokenizer, template) are read from, as they were then.
type files struct {
	dir   string   // a folder of which all files of a model count; "": only those named
	names []string // with dir: in the folder; else paths
	ids   []mmap.Identity
}

// modelFiles are the names of what is read from a folder, here and by package tokenizer, and modelEnds the ends of
// others.
var (
	modelFiles = []string{
		"config.json", "generation_config.json", "chat_template.jinja", "chat_template.json", "tokenizer_config.json",
		"special_tokens_map.json", "tokenizer.json", "tokenizer.model", "tiktoken.model",
	}
	modelEnds = []string{".safetensors", ".safetensors.index.json", ".tiktoken"}
)

func isModelFile(name string) bool {
	return slices.Contains(modelFiles, name) ||
		slices.ContainsFunc(modelEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// filesIn identifies the files of a model in a folder. It is called before any of them is read.
func filesIn(dir string) (files, error) {
	f := files{dir: dir}
	var err error
	if f.names, err = listFiles(dir); err != nil {
		return f, fmt.Errorf("family: %w", err)
	}
	for _, name := range f.names {
		id, err := mmap.Identify(filepath.Join(dir, name))
		if err != nil {
			return f, fmt.Errorf("family: %w", err)
		}
		f.ids = append(f.ids, id)
	}
	return f, nil
}

// listFiles lists a folder's files of a model that are there: a link may lead nowhere.
func listFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !isModelFile(e.Name()) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// check returns an error that wraps mmap.ErrChanged where the names no longer lead to these files with their contents.
func (f *files) check() error {
	if f.dir != "" {
		names, err := listFiles(f.dir)
		if err != nil || !slices.Equal(names, f.names) {
			return &mmap.ChangedError{Path: f.dir, What: "its files are others"}
		}
	}
	for i := range f.ids {
		if err := f.ids[i].Check(filepath.Join(f.dir, f.names[i])); err != nil {
			return err
		}
	}
	return nil
}

// Current returns an error that wraps mmap.ErrChanged where the path that was opened no longer leads to what was
// opened: a file was written, replaced or removed.
func (c *Checkpoint) Current() error {
	if err := c.files.check(); err != nil {
		return fmt.Errorf("family: %w", err)
	}
	return nil
}
