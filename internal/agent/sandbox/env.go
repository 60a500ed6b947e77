package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

// handedOn are the variables that say how to behave and nothing about who the user is.
var handedOn = []string{
	"PATH", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "USER", "LOGNAME", "SHELL", "CI",
	"GOFLAGS", "GOTOOLCHAIN", "GOPRIVATE", "GOPROXY", "GOROOT", "CGO_ENABLED", "JAVA_HOME", "VIRTUAL_ENV", "NODE_ENV", "NVM_DIR",
	"PYENV_ROOT", "RUSTUP_HOME", "CC", "CXX", "MAKEFLAGS", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// Environment returns the variables of a command whose home is home: those of environ that say how to behave, and where
// toolchains of the user's real home are, which it may read. Everything else, where keys and tokens are kept, is left
// out.
func Environment(environ []string, realHome, home string) []string {
	have := map[string]string{}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		have[k] = v
	}
	var out []string
	set := func(k, v string) { out = append(out, k+"="+v) }
	for _, k := range handedOn {
		// A proxy's address or a private module's may have a password in it.
		if v, ok := have[k]; ok && !strings.Contains(v, "@") {
			set(k, v)
		}
	}
	for k, v := range have {
		if strings.HasPrefix(k, "LC_") {
			set(k, v)
		}
	}
	set("HOME", home)
	for _, k := range []string{"TMPDIR", "TMP", "TEMP"} {
		set(k, filepath.Join(home, "tmp"))
	}
	set("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
	for _, t := range []struct{ env, dir string }{
		{"GOMODCACHE", "go/pkg/mod"},
		{"RUSTUP_HOME", ".rustup"},
		{"PYENV_ROOT", ".pyenv"},
		{"NVM_DIR", ".nvm"},
	} {
		dir := filepath.Join(realHome, t.dir)
		if _, ok := have[t.env]; ok && t.env != "GOMODCACHE" {
			continue // handed on
		}
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() && realHome != "" {
			set(t.env, dir)
		}
	}
	return out
}

// ToolPaths are the folders below a user's home where toolchains keep what they run and read, as far as they are there.
// None of them holds keys: of .cargo only the parts without credentials are named, and of .npm and .config nothing, nor
// .gitconfig, where people keep tokens in addresses and headers (git would not find it either: the command has another
// home).
func ToolPaths(realHome string) []string {
	var out []string
	for _, p := range []string{
		"go/pkg/mod", "go/bin", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env", ".rustup", ".pyenv", ".nvm", ".local/bin", ".local/lib",
		".local/share/pnpm", ".volta", ".bun/bin", ".deno/bin", ".sdkman", ".asdf", ".local/share/mise",
	} {
		path := filepath.Join(realHome, p)
		if _, err := os.Stat(path); err == nil && realHome != "" {
			out = append(out, path)
		}
	}
	return out
}
