package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/store"
)

const createLong = `Make a model of another one with settings of its own: a system message, parameters, messages
that stand before each conversation, a template. They stand in a Modelfile, as Ollama has it:

  FROM qwen2.5-coder-0.5b
  SYSTEM You answer in one sentence.
  PARAMETER temperature 0.2
  PARAMETER stop "END"

FROM names a model, which is fetched where need be, a GGUF file or a folder with safetensors. The
weights stay where they are: the new name points to them. Templates are in Jinja. Run, serve and
their clients know the model by its name; show prints what it was made with.`

func (a *app) createCommand() *cobra.Command {
	var file, quantize string
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a model of another one, with settings of its own",
		Long:    createLong,
		Example: "  baleen create terse -f Modelfile\n  echo 'FROM smollm2-135m' | baleen create small -f -",
		Args:    argsBetween(1, 1, "the NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if quantize != "" {
				return usagef("--quantize: weights stay as they are; quantize the file first")
			}
			return a.create(cmd.Context(), args[0], file)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "Modelfile", "the Modelfile; - reads standard input")
	cmd.Flags().StringVarP(&quantize, "quantize", "q", "", "")
	cmd.Flags().Lookup("quantize").Hidden = true
	return cmd
}

// maxModelfile bounds a Modelfile.
const maxModelfile = 16 << 20

func (a *app) create(ctx context.Context, name, file string) error {
	if err := store.CheckName(strings.TrimSuffix(name, ":latest")); err != nil {
		return usageError{err}
	}
	text, dir, err := a.modelfile(file)
	if err != nil {
		return err
	}
	c, err := ollama.ReadModelfile(text)
	if err != nil {
		return fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "modelfile: "))
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	if st.Dir() == "" {
		return store.ErrNoHome
	}
	k := a.keeper(st, models.New(st))
	if c.From, err = a.from(ctx, st, k.Catalog, c.From, dir); err != nil {
		return err
	}
	c.Name = name
	if err := k.Create(ctx, c, func(modeladmin.Progress) {}); err != nil {
		var e *chat.Error
		if errors.As(err, &e) {
			return errors.New(e.Message())
		}
		return err
	}
	_, err = fmt.Fprintf(a.io.Out, "created %s\n", printableLine(name))
	return err
}

// modelfile reads a Modelfile; paths in it are below dir.
func (a *app) modelfile(file string) (text, dir string, err error) {
	in := a.io.In
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			return "", "", fmt.Errorf(
				"there is no file %s: name the Modelfile with --file, or - for standard input",
				file,
			)
		}
		if err != nil {
			return "", "", err
		}
		defer f.Close()
		in, dir = f, filepath.Dir(file)
	}
	b, err := io.ReadAll(io.LimitReader(in, maxModelfile+1))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", file, err)
	}
	if len(b) > maxModelfile {
		return "", "", fmt.Errorf("%s has more than %d MiB", file, maxModelfile>>20)
	}
	return string(b), dir, nil
}

// from turns what FROM says into a name of the catalog.
func (a *app) from(ctx context.Context, st *store.Store, catalog *models.Catalog, arg, dir string) (string, error) {
	if _, err := catalog.Resolve(ctx, arg); err == nil {
		return arg, nil
	}
	if meansFile(arg) || strings.HasPrefix(arg, "~/") {
		path := arg
		if rest, ok := strings.CutPrefix(arg, "~/"); ok {
			path = filepath.Join(a.getenv("HOME"), rest)
		} else if !filepath.IsAbs(arg) {
			path = filepath.Join(dir, arg)
		}
		return a.fromPath(catalog, path)
	}
	spec, err := a.locateSpec(ctx, st, arg, false)
	if err != nil {
		return "", err
	}
	if _, err := catalog.Resolve(ctx, arg); err == nil { // it is there now
		return arg, nil
	}
	return a.fromPath(catalog, spec.Path)
}

// fromPath makes a file or folder known to the catalog, as long as this process lives.
func (a *app) fromPath(catalog *models.Catalog, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("FROM: there is no file or folder %s", path)
	}
	if err := model.Check(path); err != nil {
		return "", fmt.Errorf("FROM: %w", err)
	}
	return catalog.Serve(path+".gguf", path) // whose name is that of the file, with its ending
}
