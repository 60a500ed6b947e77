// Package auth decides who may ask: API keys with names and scopes, and the hosts and origins that requests may name.
// It knows headers and files of keys; it knows no routes' meaning and no dialects.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Scope is what a key allows.
type Scope string

// Scopes. Public routes need no key.
const (
	Public Scope = ""
	Infer  Scope = "infer"  // run models, list them
	Manage Scope = "manage" // fetch, create, delete, load and unload models
	Watch  Scope = "watch"  // metrics
)

// Scopes lists all scopes that a key can have.
func Scopes() []Scope { return []Scope{Infer, Manage, Watch} }

// ParseScopes reads a list such as "infer,watch"; "all" stands for every scope.
func ParseScopes(s string) ([]Scope, error) {
	var out []Scope
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		switch {
		case part == "all":
			return Scopes(), nil
		case !slices.Contains(Scopes(), Scope(part)):
			return nil, fmt.Errorf("there is no scope %q: want infer, manage, watch or all", part)
		}
		out = append(out, Scope(part))
	}
	return out, nil
}

// A Key is what is kept of an API key: never the key itself.
type Key struct {
	Name   string    `json:"name"`
	Hash   string    `json:"sha256"` // of the whole key, hexadecimal
	Scopes []Scope   `json:"scopes"`
	Made   time.Time `json:"made"`
}

func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Keys are the keys that a server accepts: fixed ones and those of a file, which is read again when it changes. The
// zero value accepts none.
type Keys struct {
	fixed    []Key
	path     string
	demanded bool // see Demand

	mu   sync.Mutex
	time time.Time
	size int64
	file []Key
	err  error
}

// NewKeys returns the keys given as texts, with all scopes, and those of the file at path, which need not exist.
func NewKeys(texts []string, path string) *Keys {
	k := &Keys{path: path}
	for i, t := range texts {
		k.fixed = append(k.fixed, Key{Name: fmt.Sprintf("given %d", i+1), Hash: hash(t), Scopes: Scopes()})
	}
	return k
}

// Demand makes requests need a key whether there is one or not: a server that other machines reach must not open up
// when the last key is revoked. It is called before the keys are used.
func (k *Keys) Demand() { k.demanded = true }

// Any reports whether there is a key at all.
func (k *Keys) Any() (bool, error) {
	list, err := k.all()
	return len(list) > 0, err
}

// Needed reports whether requests need a key: where there is one, or where keys are demanded.
func (k *Keys) Needed() (bool, error) {
	any, err := k.Any()
	return any || k.demanded, err
}

// all returns the keys. A file that cannot be read is an error, so that nobody gets in by damaging it.
func (k *Keys) all() ([]Key, error) {
	if k.path == "" {
		return k.fixed, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	st, err := os.Stat(k.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.file, k.err, k.time, k.size = nil, nil, time.Time{}, 0
	case err != nil:
		return nil, fmt.Errorf("auth: key file: %w", err)
	case !st.ModTime().Equal(k.time) || st.Size() != k.size:
		k.file, k.err = ReadFile(k.path)
		k.time, k.size = st.ModTime(), st.Size()
	}
	if k.err != nil {
		return nil, k.err
	}
	return append(slices.Clone(k.fixed), k.file...), nil
}

// Check finds the key of a request. ok is false where it has none that is known. Every known key is compared, in
// constant time.
func (k *Keys) Check(r *http.Request) (key Key, ok bool, err error) {
	list, err := k.all()
	if err != nil {
		return Key{}, false, err
	}
	text := FromRequest(r)
	sum := []byte(hash(text))
	for _, c := range list {
		if subtle.ConstantTimeCompare(sum, []byte(c.Hash)) == 1 && text != "" {
			key, ok = c, true
		}
	}
	return key, ok, nil
}

// Allows reports whether the key has a scope.
func (k Key) Allows(s Scope) bool { return s == Public || slices.Contains(k.Scopes, s) }

// FromRequest returns the key that a request brings: as Bearer, x-api-key or api-key.
func FromRequest(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "bearer") && token != "" {
		return strings.TrimSpace(token)
	}
	for _, h := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header.Get(h); v != "" {
			return v
		}
	}
	return ""
}

// Redact removes keys from a header's copy, for records.
func Redact(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization"} {
		if h.Get(name) != "" {
			h.Set(name, "(removed)")
		}
	}
	return h
}

// ReadFile reads a file of keys; one that does not exist has none.
func ReadFile(path string) ([]Key, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("auth: key file: %w", err)
	}
	var keys []Key
	if err := json.Unmarshal(b, &keys); err != nil {
		return nil, fmt.Errorf("auth: key file %s is damaged: %w", path, err)
	}
	if keys == nil { // null: an empty list is written as []
		return nil, fmt.Errorf("auth: key file %s is damaged: it holds no list", path)
	}
	for _, k := range keys {
		if len(k.Hash) != sha256.Size*2 {
			return nil, fmt.Errorf("auth: key file %s is damaged: key %q has no checksum", path, k.Name)
		}
	}
	return keys, nil
}

// patience is how long a change of a key file waits for another one.
const patience = 5 * time.Second

// change replaces the keys of a file. The new file is made under a name that only one can have at a time, so that no
// change is lost to another.
func change(path string, f func([]Key) ([]Key, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("auth: key file: %w", err)
	}
	next := path + ".new"
	w, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	for end := time.Now().Add(patience); errors.Is(err, fs.ErrExist) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		w, err = os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf(
			"auth: %s is there: another command changes the keys, or one was killed; if none runs, remove that file",
			next,
		)
	}
	if err != nil {
		return fmt.Errorf("auth: key file: %w", err)
	}
	keys, err := ReadFile(path)
	if err == nil {
		keys, err = f(keys)
	}
	if err == nil {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(keys)
	}
	if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("auth: key file: %w", errors.Join(err, os.Remove(next)))
	}
	return nil
}

// Add makes a key, adds it to a file, and returns its text: the only time that it can be seen.
func Add(path, name string, scopes []Scope) (string, error) {
	switch {
	case name == "":
		return "", errors.New("auth: a key needs a name")
	case len(scopes) == 0:
		return "", errors.New("auth: a key needs a scope")
	}
	var b [24]byte
	rand.Read(b[:]) // never fails
	text := "bl-" + base64.RawURLEncoding.EncodeToString(b[:])
	return text, change(path, func(keys []Key) ([]Key, error) {
		if slices.ContainsFunc(keys, func(k Key) bool { return k.Name == name }) {
			return nil, fmt.Errorf("auth: there is a key named %q already: revoke it first", name)
		}
		return append(
			keys,
			Key{Name: name, Hash: hash(text), Scopes: scopes, Made: time.Now().UTC().Truncate(time.Second)},
		), nil
	})
}

// Revoke removes a key from a file.
func Revoke(path, name string) error {
	return change(path, func(keys []Key) ([]Key, error) {
		n := len(keys)
		if keys = slices.DeleteFunc(keys, func(k Key) bool { return k.Name == name }); len(keys) == n {
			return nil, fmt.Errorf("auth: there is no key named %q", name)
		}
		return keys, nil
	})
}
