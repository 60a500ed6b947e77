package server

import (
	"io"
	"testing"
)

// slowly gives one byte at a time, and counts the buffers that it is given.
type slowly struct {
	left, buffers int
	end           *byte // of the last buffer
}

func (s *slowly) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if end := &b[:cap(b)][cap(b)-1]; end != s.end {
		s.buffers++
		s.end = end
	}
	s.left--
	b[0] = 'x'
	return 1, nil
}

// TestBodiesUpToTheLimitAreCopiedSeldom: what a body costs does not depend on how small its pieces are, near the
// largest size either.
func TestBodiesUpToTheLimitAreCopiedSeldom(t *testing.T) {
	const limit = 100 << 10
	for _, c := range []struct {
		size int
		ok   bool
	}{{limit, true}, {limit + 1, false}} {
		from := &slowly{left: c.size}
		b, err := (&call{}).readAll(from, limit)
		if (err == nil) != c.ok || c.ok && len(b) != c.size {
			t.Errorf("%d bytes: %d, %v", c.size, len(b), err)
		}
		if from.buffers > 4 { // 16, 32, 64 and 100 KiB
			t.Errorf("%d bytes were read into %d buffers", c.size, from.buffers)
		}
	}
}
