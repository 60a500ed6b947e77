package mmap

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenShowsTheFile(t *testing.T) {
	page := os.Getpagesize()
	for _, size := range []int{0, 1, page - 1, page, 3*page + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i*7 + i>>8)
		}
		m, err := Open(write(t, want))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Bytes(), want) || m.Len() != size {
			t.Errorf("%d bytes: the view differs from the file", size)
		}
		for _, r := range [][2]int{{0, size}, {1, max(0, size-1)}, {size, 0}, {0, size / 2}} {
			if r[0]+r[1] > size {
				continue
			}
			if err := m.Release(r[0], r[1]); err != nil {
				t.Errorf("%d bytes: release of %v: %v", size, r, err)
			}
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("%d bytes: the view is wrong after Release", size)
		}
		if got, err := io.ReadAll(io.NewSectionReader(m, 0, int64(size))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: ReadAt gives %d bytes, %v", size, len(got), err)
		}
		if n, err := m.ReadAt(make([]byte, 2), int64(max(0, size-1))); !errors.Is(err, io.EOF) || n > 1 {
			t.Errorf("%d bytes: ReadAt past the end gives %d, %v", size, n, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if _, err := m.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrClosed) {
			t.Errorf("ReadAt after Close: %v", err)
		}
		if err := m.Close(); !errors.Is(err, ErrClosed) || m.Bytes() != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

func TestReleaseRefusesOutside(t *testing.T) {
	m, err := Open(write(t, make([]byte, 100)))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, r := range [][2]int{{-1, 1}, {0, 101}, {101, 0}, {50, 51}, {0, -1}, {1, int(^uint(0) >> 1)}} {
		if m.Release(r[0], r[1]) == nil {
			t.Errorf("release of %v gives no error", r)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a folder opens")
	}
}

func TestFromBytes(t *testing.T) {
	want := []byte("some bytes")
	m := FromBytes("memory", want)
	got := make([]byte, 4)
	if _, err := m.ReadAt(got, 5); err != nil || string(got) != "byte" {
		t.Errorf("ReadAt gives %q, %v", got, err)
	}
	if m.Name() != "memory" || !bytes.Equal(m.Bytes(), want) || m.Release(0, len(want)) != nil {
		t.Errorf("%s holds %q", m.Name(), m.Bytes())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.ReadAt(got, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("ReadAt after Close: %v", err)
	}
}
