package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/store"
)

// nameLike are the characters of names, paths and addresses. A word of these alone is one of them, or a mistake in it;
// it is never a prompt, which would make a newcomer who misspelt a name fetch the default model and read its answer.
var nameLike = regexp.MustCompile(`^[A-Za-z0-9~._/\\:@+#=%-]*[A-Za-z0-9][A-Za-z0-9~._/\\:@+#%-]*$`)

// notSums are characters of sums and the like, which name nothing where nothing else stands.
var notSums = regexp.MustCompile(`[A-Za-z]`)

// isPrompt reports whether a lone argument that names no model is a prompt: it has spaces, or characters that no name
// has.
func isPrompt(word string) bool { return !nameLike.MatchString(word) || !notSums.MatchString(word) }

// weightsEnding is what files with weights end in, of programs that are read here and of others.
var weightsEnding = regexp.MustCompile(`(?i)\.(gguf|ggml|safetensors|bin|pt|pth|onnx|npz|zip|tar|gz)$`)

// meansFile reports whether someone who wrote word meant a file or folder.
func meansFile(word string) bool {
	if store.LooksLikePath(word) || weightsEnding.MatchString(word) && !strings.Contains(word, ":") ||
		strings.Contains(word, `\`) {
		return true
	}
	dir, _, below := strings.Cut(word, "/")
	if !below || dir == "" {
		return false
	}
	fi, err := os.Stat(dir)
	return err == nil && fi.IsDir()
}

// runArgs says which model and prompt the arguments mean; has is false where there is no prompt.
// RATIONALE: Why is one word never a prompt?
func (f *runFlags) runArgs(st *store.Store, args []string, def string) (modelArg, prompt string, has bool, err error) {
	if f.hfRepo != "" {
		if f.model != "" {
			return "", "", false, usagef("--model and --hf-repo exclude each other")
		}
		f.model = "hf.co/" + f.hfRepo
	}
	flag, fromFlag, err := f.promptOfFlags()
	if err != nil {
		return "", "", false, err
	}
	most, want := 2, "MODEL and PROMPT"
	switch {
	case f.model != "" && fromFlag:
		most, want = 0, "none beside --model and the prompt's flag"
	case f.model != "":
		most, want = 1, "the PROMPT"
	case fromFlag:
		most, want = 1, "the MODEL"
	}
	switch {
	case len(args) > most && most == 0:
		return "", "", false, usagef("got the argument %q, want %s", args[0], want)
	case len(args) > most:
		return "", "", false, usagef("got %d arguments, want at most %s; put the prompt in quotes", len(args), want)
	case fromFlag:
		return first(append(args, f.model, def)), flag, true, nil
	case f.model != "":
		return f.model, strings.Join(args, ""), len(args) == 1, nil
	case len(args) == 0:
		return def, "", false, nil
	case len(args) == 2:
		if _, err := st.Resolve(args[0]); errors.Is(err, store.ErrNotFound) && !strings.ContainsAny(args[1], " \n") {
			f.twoWords = strings.Join(args, " ")
		}
		return args[0], args[1], true, nil
	}
	switch _, err = st.Resolve(args[0]); {
	case err == nil:
		return args[0], "", false, nil
	case errors.Is(err, store.ErrNotFound) && isPrompt(args[0]):
		return def, args[0], true, nil
	case errors.Is(err, store.ErrNotFound):
		f.oneWord = true
		return args[0], "", false, nil // which says what it is, or that it is not here
	}
	return "", "", false, err
}

// first is the first that is not empty.
func first(all []string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// promptOfFlags is the prompt of --prompt or --file.
func (f *runFlags) promptOfFlags() (prompt string, has bool, err error) {
	flags := f.flags.Flags()
	switch {
	case flags.Changed("prompt") && flags.Changed("file"):
		return "", false, usagef("--prompt and --file exclude each other")
	case flags.Changed("prompt"):
		return f.prompt, true, nil
	case !flags.Changed("file"):
		return "", false, nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return "", false, fmt.Errorf("--file: %w", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxPrompt+1))
	if err != nil {
		return "", false, fmt.Errorf("--file: %w", err)
	}
	if len(b) > maxPrompt {
		return "", false, fmt.Errorf("--file %s has more than %d MiB", f.file, maxPrompt>>20)
	}
	return strings.TrimRight(string(b), "\r\n"), true, nil
}

// locateSpec turns what "run" was told into a model with the settings that it was made with, and fetches it where it
// is not there yet: a model of the catalog and a full address at once, a repository of Hugging Face after asking.
func (a *app) locateSpec(ctx context.Context, st *store.Store, arg string, oneWord bool) (chat.Spec, error) {
	ref, err := st.Resolve(arg)
	if errors.Is(err, store.ErrNotFound) {
		d, ok, derr := models.New(st).Derived(arg)
		if ok || derr != nil {
			return d.Spec, derr
		}
		e, hub := repository(arg)
		if !hub {
			return chat.Spec{}, a.noModel(st, arg, oneWord, err)
		}
		if err := a.mayFetch(e, arg); err != nil {
			return chat.Spec{}, err
		}
		path, err := a.fetch(ctx, st, e)
		return chat.Spec{Path: path}, err
	}
	if err != nil {
		return chat.Spec{}, err
	}
	own := ref.Model
	spec := chat.Spec{Path: ref.Path}
	if ref.Entry != nil {
		spec.Name = ref.Entry.Name
		path, err := a.fetch(ctx, st, *ref.Entry)
		if err != nil {
			return chat.Spec{}, err
		}
		spec.Path = path
		if now, err := st.Resolve(arg); err == nil { // it is there now, perhaps with settings
			own = now.Model
		}
	}
	if own != nil {
		path := spec.Path
		spec = models.SpecOf(*own)
		spec.Path = path
	}
	return spec, nil
}

// repository reads ORG/REPO, with a quantization and a revision perhaps.
func repository(arg string) (store.Entry, bool) {
	if meansFile(arg) || !strings.Contains(arg, "/") {
		return store.Entry{}, false
	}
	e, ok, err := store.Remote(arg, true)
	return e, ok && err == nil && len(e.Sources) > 0 && e.Sources[0].Repo != nil
}

// mayFetch asks whether a model may be fetched.
func (a *app) mayFetch(e store.Entry, arg string) error {
	from := e.Sources[0].Address()
	if !a.io.InTTY || !a.io.ErrTTY {
		return fmt.Errorf("%s is not on this machine: fetch it from %s with: baleen pull %s", arg, from, arg)
	}
	fmt.Fprintf(a.io.Err, "%s is not on this machine. Fetch it from %s? [y/N] ", arg, from)
	line, err := bufio.NewReader(a.io.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was fetched")
}

// noModel says that there is no model of that name, what may have been meant, and what to do. err is the store's word.
func (a *app) noModel(st *store.Store, arg string, oneWord bool, err error) error {
	var misspelt *store.MisspeltError
	var hints []string
	_, pullable, perr := store.Remote(arg, true)
	switch {
	case errors.As(err, &misspelt):
	case meansFile(arg):
		err = missingError(fmt.Sprintf("there is no file or folder %s", arg))
	case isPrompt(arg): // the first of two arguments
		return usagef("%q is no model; a prompt stands in quotes", arg)
	default:
		err = missingError(fmt.Sprintf("there is no model %q on this machine, which has %s", arg, a.have(st)))
		if pullable && perr == nil {
			hints = append(hints, "to fetch it: baleen pull "+arg)
		}
	}
	if oneWord {
		hints = append(hints, "to say it as a prompt: baleen run -p "+arg)
	}
	if len(hints) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(hints, "; "))
}

// missingError is a store.ErrNotFound in words of its own.
type missingError string

func (e missingError) Error() string { return string(e) }

// Is makes it an ErrNotFound.
func (e missingError) Is(target error) bool { return target == store.ErrNotFound }

// have names the models that are here.
func (a *app) have(st *store.Store) string {
	list, err := st.List()
	if err != nil {
		return "others perhaps"
	}
	var names []string
	for _, m := range list {
		if m.Problem == "" {
			names = append(names, strings.TrimSuffix(m.Name, ":latest"))
		}
	}
	const most = 6
	switch n := len(names); {
	case n == 0:
		return "none yet"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// byName reports whether a model was named as the store and servers know it, and not by a path.
func byName(arg string) bool {
	if meansFile(arg) {
		return false
	}
	_, err := os.Stat(filepath.FromSlash(arg))
	return err != nil
}
