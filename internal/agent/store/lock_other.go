//go:build !unix

package store

import "os"

// lock does nothing here: two programs may write to one session.
func lock(*os.File) error { return nil }

// ignoreUnsupported passes over systems whose folders cannot be synced.
func ignoreUnsupported(error) error { return nil }
