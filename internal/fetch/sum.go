package fetch

import (
	"context"
	"crypto/sha1" // Git names small files by it
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// A checksum is what a source or the catalog says of a file. The zero value says nothing.
type checksum struct{ kind, hex string }

const (
	sumSHA256 = "SHA-256"
	sumGit    = "Git's SHA-1"
)

// checkFile reads a file and returns its size and SHA-256, or a *ChecksumError where it is not what want says.
func checkFile(ctx context.Context, path string, want checksum) (n int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	sha := sha256.New()
	out := io.Writer(sha)
	var git hash.Hash
	if want.kind == sumGit {
		git = sha1.New()
		fmt.Fprintf(git, "blob %d\x00", fi.Size())
		out = io.MultiWriter(sha, git)
	}
	if n, err = copyContext(ctx, out, f); err != nil {
		return n, "", err
	}
	sum = hex.EncodeToString(sha.Sum(nil))
	got := sum
	if git != nil {
		got = hex.EncodeToString(git.Sum(nil))
	}
	if want.kind != "" && got != want.hex {
		return n, sum, &ChecksumError{Kind: want.kind, Got: got, Want: want.hex}
	}
	return n, sum, nil
}
