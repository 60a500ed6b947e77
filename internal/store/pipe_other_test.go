//go:build !unix

package store

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
