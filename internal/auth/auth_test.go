package auth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func request(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "http://localhost/", nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestKeysOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "keys.json")
	k := NewKeys(nil, path)
	if any, err := k.Any(); any || err != nil {
		t.Fatalf("%v %v", any, err)
	}
	key, err := Add(path, "laptop", []Scope{Infer})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Add(path, "laptop", []Scope{Infer}); err == nil {
		t.Error("two keys of one name")
	}
	if any, _ := k.Any(); !any {
		t.Error("the new key is not seen")
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), key) {
		t.Errorf("the file holds the key itself: %v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	for _, c := range []struct {
		headers []string
		ok      bool
	}{
		{[]string{"Authorization", "Bearer " + key}, true},
		{[]string{"Authorization", "bearer " + key}, true},
		{[]string{"X-Api-Key", key}, true},
		{[]string{"Api-Key", key}, true},
		{[]string{"Authorization", "Basic " + key}, false},
		{[]string{"Authorization", "Bearer "}, false},
		{[]string{"Authorization", "Bearer " + key + "x"}, false},
		{nil, false},
	} {
		got, ok, err := k.Check(request(c.headers...))
		if ok != c.ok || err != nil {
			t.Errorf("%v: %v %v", c.headers, ok, err)
		}
		if ok && (!got.Allows(Infer) || got.Allows(Manage) || !got.Allows(Public)) {
			t.Errorf("scopes %v", got.Scopes)
		}
	}
	if err := Revoke(path, "laptop"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := k.Check(request("X-Api-Key", key)); ok {
		t.Error("a revoked key is accepted")
	}
	if err := Revoke(path, "laptop"); err == nil {
		t.Error("revoked what was not there")
	}
}

func TestDamagedFileLetsNobodyIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	for _, text := range []string{"{", `[{"name":"x","sha256":""}]`, "", "null"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k := NewKeys([]string{"fixed-key"}, path)
		if _, ok, err := k.Check(request("X-Api-Key", "fixed-key")); ok || err == nil {
			t.Errorf("%q: %v %v", text, ok, err)
		}
		if _, err := k.Any(); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestKeysAtOnce adds keys from many sides: each that was shown is kept.
func TestKeysAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	var wg sync.WaitGroup
	texts := make([]string, 12)
	for i := range texts {
		wg.Go(func() {
			var err error
			if texts[i], err = Add(path, fmt.Sprint("key ", i), Scopes()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	k := NewKeys(nil, path)
	for i, text := range texts {
		if _, ok, err := k.Check(request("X-Api-Key", text)); !ok || err != nil {
			t.Errorf("key %d: %v %v", i, ok, err)
		}
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// TestKeysThatAreDemanded takes away the last key of a server that other machines reach: nobody gets in then, where
// else everybody would.
func TestKeysThatAreDemanded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := Add(path, "laptop", Scopes()); err != nil {
		t.Fatal(err)
	}
	k, demanding := NewKeys(nil, path), NewKeys(nil, path)
	demanding.Demand()
	for _, take := range []func() error{func() error { return Revoke(path, "laptop") }, func() error { return os.Remove(path) }} {
		if err := take(); err != nil {
			t.Fatal(err)
		}
		if needed, err := k.Needed(); needed || err != nil {
			t.Errorf("of this machine alone: %v %v", needed, err)
		}
		if needed, err := demanding.Needed(); !needed || err != nil {
			t.Errorf("demanded: %v %v", needed, err)
		}
		if _, ok, err := demanding.Check(request("X-Api-Key", "any")); ok || err != nil {
			t.Errorf("demanded: %v %v", ok, err)
		}
	}
}

func TestParseScopes(t *testing.T) {
	if s, err := ParseScopes("infer, watch"); err != nil || len(s) != 2 {
		t.Errorf("%v %v", s, err)
	}
	if s, err := ParseScopes("all"); err != nil || len(s) != 3 {
		t.Errorf("%v %v", s, err)
	}
	for _, bad := range []string{"", "root", "infer,"} {
		if _, err := ParseScopes(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestHostsAndOrigins(t *testing.T) {
	h := &Hosts{
		Names:   []string{"box.lan"},
		Origins: []string{"https://ui.example.org/", "moz-extension://*", "chrome-extension://*"},
	}
	wide := &Hosts{Addresses: true}
	for _, c := range []struct {
		h    *Hosts
		host string
		want bool
	}{
		{h, "localhost:57455", true},
		{h, "127.0.0.1:57455", true},
		{h, "127.1.2.3", true},
		{h, "[::1]:57455", true},
		{h, "::1", true},
		{h, "[::ffff:127.0.0.1]:80", true},
		{h, "BOX.lan:1", true},
		{h, "box.lan.evil.org", false},
		{h, "localhost.evil.org", false},
		{h, "10.0.0.1", false},
		{h, "0.0.0.0:57455", false},
		{h, "evil.org", false},
		{h, "", true},
		{wide, "10.0.0.1:57455", true},
		{wide, "evil.org", false},
	} {
		r := request()
		r.Host = c.host
		if got := c.h.HostAllowed(r); got != c.want {
			t.Errorf("host %q: %v", c.host, got)
		}
	}
	over := request()
	over.Host = "x"
	over = over.WithContext(
		context.WithValue(over.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "/s", Net: "unix"}),
	)
	if !h.HostAllowed(over) {
		t.Error("over a socket file a host is refused")
	}
	for _, c := range []struct {
		host, origin  string
		allowed, cors bool
	}{
		{"localhost:1", "", true, false},
		{"localhost:1", "http://localhost:1", true, false},
		{"localhost:1", "http://localhost:2", false, false},
		{"localhost:1", "http://127.0.0.1:1", false, false},
		{"localhost:1", "https://ui.example.org", true, true},
		{"localhost:1", "http://ui.example.org", false, false},
		{"localhost:1", "https://ui.example.org.evil.org", false, false},
		{"localhost:1", "null", false, false},
		{"localhost:1", "chrome-extension://abcdefghijklmnop", true, true},
		{"localhost:1", "moz-extension://5d1e-4a", true, true},
		{"localhost:1", "moz-extension://", false, false},
		{"localhost:1", "xmoz-extension://5d1e-4a", false, false},
		{"localhost:1", "safari-web-extension://localhost:1", false, false},
		{"localhost:1", "http://%zz", false, false},
	} {
		r := request("Origin", c.origin)
		r.Host = c.host
		if c.origin == "" {
			r.Header.Del("Origin")
		}
		if a, cors := h.OriginAllowed(r); a != c.allowed || cors != c.cors {
			t.Errorf("origin %q at %q: %v %v", c.origin, c.host, a, cors)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "[::1]": true, "localhost": true,
		"0.0.0.0": false, "::": false, "": false, "10.0.0.1": false, "example.org": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestRedact(t *testing.T) {
	h := http.Header{"Authorization": {"Bearer x"}, "Accept": {"y"}}
	if r := Redact(h); r.Get("Authorization") != "(removed)" || r.Get("Accept") != "y" ||
		h.Get("Authorization") != "Bearer x" {
		t.Errorf("%v", r)
	}
}
