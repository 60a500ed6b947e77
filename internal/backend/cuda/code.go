package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/baleenrun/baleen/internal/backend/cuda/driver"
	"github.com/baleenrun/baleen/internal/backend/cuda/kernels"
	"github.com/baleenrun/baleen/internal/quant"
)

// code holds loaded kernels.
// RATIONALE: Why is CUDA's code stored as PTX, and compiled by whom?
type code struct {
	modules map[string]*driver.Module
	funcs   map[string]*driver.Function
}

func (c *code) unload() error {
	var errs []error
	for _, m := range c.modules {
		errs = append(errs, m.Unload())
	}
	return errors.Join(errs...)
}

// kernel returns a kernel of a unit, loading the unit where that has not been done.
func (e *exec) kernel(unit, name string) (*driver.Function, error) {
	c := &e.code
	if c.modules == nil {
		c.modules, c.funcs = map[string]*driver.Module{}, map[string]*driver.Function{}
	}
	key := unit + "/" + name
	if f := c.funcs[key]; f != nil {
		return f, nil
	}
	m := c.modules[unit]
	if m == nil {
		binary, err := e.binary(unit)
		if err != nil {
			return nil, err
		}
		if m, err = e.c.Load(binary); err != nil {
			return nil, fmt.Errorf("kernels %q: %w", unit, err)
		}
		c.modules[unit] = m
	}
	f, err := m.Function(name, usableShared(e.info.Shared))
	if err != nil {
		return nil, err
	}
	c.funcs[key] = f
	return f, nil
}

var building sync.Mutex

// binary returns a unit's code for the device: from the cache on disk, or compiled and put there. A file that cannot be
// written, or that is damaged, costs the time of compiling and nothing else.
func (e *exec) binary(unit string) ([]byte, error) {
	building.Lock() // once for all models of the process
	defer building.Unlock()
	image := kernels.Images[0]
	for _, i := range kernels.Images {
		if i <= e.info.Capability {
			image = i
		}
	}
	packed, err := kernels.Packed(unit, image)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(packed[:len(packed):len(packed)], "\n%d %d", e.info.Driver, e.info.Capability))
	path := ""
	if dir := cacheDir(); dir != "" {
		path = filepath.Join(dir, unit+"-"+hex.EncodeToString(sum[:16]))
		if b, err := readChecked(path); err == nil {
			return b, nil
		}
	}
	ptx, err := kernels.PTX(unit, image)
	if err != nil {
		return nil, err
	}
	b, err := e.c.Build(ptx)
	if err != nil {
		return nil, fmt.Errorf("kernels %q: %w", unit, err)
	}
	if path != "" {
		_ = writeChecked(path, b)
	}
	return b, nil
}

// readChecked reads a file that ends with the digest of what comes before.
func readChecked(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n := len(b) - sha256.Size
	if n <= 0 || sha256.Sum256(b[:n]) != [sha256.Size]byte(b[n:]) {
		return nil, errors.New("damaged")
	}
	return b[:n], nil
}

func writeChecked(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	_, err = f.Write(append(b[:len(b):len(b)], sum[:]...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// unitOf names the kernels of products with a format.
func unitOf(t quant.Type) string { return fmt.Sprintf("matmul%d", uint32(t)) }
