package packaging

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPackagesAreTheSame compares what packaging/check builds with what a release builds.
func TestPackagesAreTheSame(t *testing.T) {
	var release struct {
		Nfpms []map[string]any `yaml:"nfpms"`
	}
	var own map[string]any
	if err := yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, "packaging/nfpm.yaml")), &own); err != nil {
		t.Fatal(err)
	}
	if len(release.Nfpms) != 1 {
		t.Fatalf("%d packages in .goreleaser.yaml", len(release.Nfpms))
	}
	r := release.Nfpms[0]
	for _, key := range []string{"vendor", "homepage", "maintainer", "description", "license", "section"} {
		if r[key] == nil || !reflect.DeepEqual(r[key], own[key]) {
			t.Errorf("%s: %q in a release, %q in nfpm.yaml", key, r[key], own[key])
		}
	}
	contents := own["contents"].([]any)
	if first := contents[0].(map[string]any); first["dst"] != "/usr/bin/baleen" { // a release puts it there by itself
		t.Errorf("the first file is %v", first["dst"])
	}
	if !reflect.DeepEqual(r["contents"], any(contents[1:])) {
		t.Errorf("contents: %v in a release, %v in nfpm.yaml", r["contents"], contents[1:])
	}
}

// TestFilesAreThere: what the packages name from the repository exists, but for what is built.
func TestFilesAreThere(t *testing.T) {
	for _, file := range []string{".goreleaser.yaml", "packaging/nfpm.yaml"} {
		for _, m := range regexp.MustCompile(`(?m)src: (\S+)`).FindAllStringSubmatch(read(t, file), -1) {
			if strings.HasPrefix(m[1], "build/") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestVersionsAgree: the image is built with the Go that go.mod asks for, and every builder says the version in the
// variable that the program reads.
func TestVersionsAgree(t *testing.T) {
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	if !strings.Contains(read(t, "packaging/Dockerfile"), "FROM golang:"+want+" ") {
		t.Errorf("the Dockerfile is not of Go %s", want)
	}
	const variable = "github.com/baleenrun/baleen/internal/cli.version="
	for _, file := range []string{".goreleaser.yaml", "packaging/Dockerfile", "packaging/baleen.rb", "packaging/check"} {
		if !strings.Contains(read(t, file), "-X "+variable) {
			t.Errorf("%s does not set %s", file, variable)
		}
	}
	if !regexp.MustCompile(`(?m)^var version string$`).MatchString(read(t, "internal/cli/version.go")) {
		t.Error("there is no such variable")
	}
}

// TestUnit holds the unit to what the server needs: its own grace for running answers, and where settings stand.
func TestUnit(t *testing.T) {
	unit := read(t, "packaging/baleen.service")
	for _, want := range []string{"ExecStart=/usr/bin/baleen serve\n", "EnvironmentFile=-%E/baleen/environment\n", "TimeoutStopSec=330\n", "WantedBy=default.target\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if serve := read(t, "internal/cli/serve.go"); !regexp.MustCompile(`"grace",\s+5\*time\.Minute`).MatchString(serve) {
		t.Error("the server's grace is no longer five minutes: TimeoutStopSec is to be half a minute more")
	}
}

// TestNoLoaderIsNeeded: in an image without a C library, only a program that names no loader starts.
func TestNoLoaderIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("a build")
	}
	binary := filepath.Join(t.TempDir(), "baleen")
	build := exec.Command("go", "build", "-o", binary, "./cmd/baleen")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program names a loader")
		}
	}
}
