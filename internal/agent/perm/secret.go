package perm

import (
	"os"
	"path/filepath"
	"strings"
)

// Within reports whether a clean path is dir or lies below it.
func Within(path, dir string) bool {
	return path == dir || dir == string(filepath.Separator) || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// secretFolders are names of folders that hold keys and tokens, wherever they are.
var secretFolders = map[string]bool{
	".ssh": true, ".gnupg": true, ".aws": true, ".azure": true, ".kube": true, ".password-store": true, ".docker": true,
	".gcloud": true, "keyrings": true, ".mozilla": true, ".thunderbird": true, ".terraform.d": true,
}

// secretFiles are names of files that hold keys and tokens, in lower case.
var secretFiles = map[string]bool{
	".netrc": true, "_netrc": true, ".npmrc": true, ".pypirc": true, ".git-credentials": true, ".pgpass": true, ".my.cnf": true,
	".htpasswd": true, ".vault-token": true, "credentials": true, "credentials.json": true, "credentials.toml": true, "service-account.json": true,
	"secrets.json": true, "secrets.yaml": true, "secrets.yml": true, "secrets.toml": true, "secrets.env": true, "token": true, ".token": true, "token.json": true,
	"kubeconfig": true, "terraform.tfstate": true, ".bash_history": true, ".zsh_history": true, ".envrc": true,
	"shadow": true, "gshadow": true,
}

// Secret tells whether a file is one of those that usually hold keys or tokens. Reading one is asked for, wherever it is,
// and searches leave it out.
func Secret(path string) bool {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i, p := range parts {
		if secretFolders[p] || p == "gh" && i > 0 && parts[i-1] == ".config" || p == "gcloud" && i > 0 && parts[i-1] == ".config" {
			return true
		}
	}
	name := strings.ToLower(parts[len(parts)-1])
	if secretFiles[name] {
		return true
	}
	if name == ".env" || strings.HasPrefix(name, ".env.") {
		switch strings.TrimPrefix(name, ".env") {
		case ".example", ".sample", ".template", ".dist", ".defaults":
			return false
		}
		return true
	}
	for _, end := range []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc.key"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.HasPrefix(name, "id_") && !strings.HasSuffix(name, ".pub") && sshKeys[name]
}

var sshKeys = map[string]bool{
	"id_rsa": true, "id_dsa": true, "id_ecdsa": true, "id_ed25519": true, "id_ecdsa_sk": true, "id_ed25519_sk": true,
}

// procSecret tells whether a file of the kernel's says what is in a process: its environment and memory.
func procSecret(path string) bool {
	rest, ok := strings.CutPrefix(path, "/proc/")
	if !ok {
		return false
	}
	for _, name := range []string{"environ", "mem", "maps", "fd", "root", "cwd", "cmdline", "auxv", "kcore"} {
		if filepath.Base(rest) == name || strings.Contains(rest, "/"+name+"/") {
			return true
		}
	}
	return false
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
