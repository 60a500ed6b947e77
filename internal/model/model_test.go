package model

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/synth"
)

func tinyFile(t *testing.T, template string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	writeTiny(t, path, template, 1)
	return path
}

// writeTiny writes a model whose weights follow from the seed. A file that is there is overwritten in place.
func writeTiny(t *testing.T, path, template string, seed uint64) {
	t.Helper()
	s, err := synth.Lookup("tiny")
	if err != nil {
		t.Fatal(err)
	}
	s.ChatTemplate = template
	r, err := synth.LookupRecipe("Q4_0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), f, s, r, seed, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, template string, o Options) *Model {
	t.Helper()
	o.Threads = 1
	m, err := Open(t.Context(), tinyFile(t, template), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestWhatDoesNotFitIsRefusedWithTheCounts(t *testing.T) {
	_, err := Open(
		t.Context(),
		tinyFile(t, ""),
		Options{Budget: &Budget{Available: 100 << 10, Total: 1 << 30, Source: "cgroup"}},
	)
	var no *NoMemoryError
	if !errors.As(err, &no) || no.Weights <= 0 || no.Cache <= 0 || no.Context != 2048 {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"weights", "2048 tokens", "of 1.00 GiB are free (cgroup)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestCacheShrinksToTheMemory gives just enough for less than all streams.
func TestCacheShrinksToTheMemory(t *testing.T) {
	roomy := open(t, "", Options{Budget: &Budget{Available: 1 << 40, Total: 1 << 40}})
	all := roomy.Engine.Stats().Groups[0].Total
	if all < 8*2048/backend.PageTokens {
		t.Errorf("%d pages with all the memory there is", all)
	}
	one := cacheBytes(roomy.Plan, roomy.Memory, roomy.Context, 512)
	tight := open(
		t,
		"",
		Options{Budget: &Budget{Available: roomy.Memory.Weights + roomy.Memory.Scratch + 2*one, Total: 1 << 40}},
	)
	if got := tight.Engine.Stats().Groups[0].Total; got >= all || got < 2048/backend.PageTokens {
		t.Errorf("%d pages with little memory, %d with much", got, all)
	}
}

func TestContextFor(t *testing.T) {
	for _, tc := range []struct {
		limit, want, got int
		problem          string
	}{
		{32768, 0, 8192, ""},
		{2048, 0, 2048, ""},
		{0, 0, 8192, ""},
		{32768, 32768, 32768, ""},
		{0, 100000, 100000, ""},
		{2048, 4096, 0, "context 4096 is more than the model's 2048"},
		{2048, -1, 0, "a context of -1"},
	} {
		got, err := contextFor(family.Info{MaxContext: tc.limit}, tc.want)
		if tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) ||
			tc.problem == "" && (err != nil || got != tc.got) {
			t.Errorf("%+v: %d, %v", tc, got, err)
		}
	}
}

func TestWindowsTakeFewerPages(t *testing.T) {
	p := &plan.Plan{Groups: []plan.Group{{}, {Window: 128}}}
	eo := backend.Options{MaxRows: 64, Pages: make([]int, 2)}
	setPages(&eo, p, 4*8192, 8192)
	if eo.Pages[0] < 4*8192/backend.PageTokens {
		t.Errorf("the full group has %d pages", eo.Pages[0])
	}
	per := (128+64)/backend.PageTokens + 2
	if eo.Pages[1] < 4*per || eo.Pages[1] > 4*(per+2) {
		t.Errorf("the window has %d pages, a sequence needs %d", eo.Pages[1], per)
	}
}

func TestLinuxBudget(t *testing.T) {
	const meminfo = "MemTotal:       8000000 kB\nMemFree: 100 kB\nMemAvailable:   4000000 kB\n"
	const kb = 1 << 10
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  Budget
		ok    bool
	}{
		{"no proc", nil, Budget{}, false},
		{"no cgroup", map[string]string{"/proc/meminfo": meminfo}, Budget{4000000 * kb, 8000000 * kb, "system"}, true},
		{"no limit", map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "max\n",
		}, Budget{4000000 * kb, 8000000 * kb, "system"}, true},
		{"limit of the parent", map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "max\n",
			"/sys/fs/cgroup/a/memory.max": "1000000\n", "/sys/fs/cgroup/a/memory.current": "700000\n",
			"/sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 200000\n",
		}, Budget{500000, 1000000, "cgroup"}, true},
		{"the tighter one counts", map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "900000\n", "/sys/fs/cgroup/a/b/memory.current": "100000\n",
			"/sys/fs/cgroup/a/memory.max": "1000000\n", "/sys/fs/cgroup/a/memory.current": "990000\n",
		}, Budget{10000, 900000, "cgroup"}, true},
		{"in a container, at the root", map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/\n",
			"/sys/fs/cgroup/memory.max": "1000000\n", "/sys/fs/cgroup/memory.current": "1100000\n",
		}, Budget{0, 1000000, "cgroup"}, true},
		{"version 1", map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "5:cpu:/x\n4:hugetlb,memory:/x\n",
			"/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1000000\n", "/sys/fs/cgroup/memory/x/memory.usage_in_bytes": "300000\n",
		}, Budget{700000, 1000000, "cgroup"}, true},
		{"version 1 without a limit", map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "4:memory:/\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "/sys/fs/cgroup/memory/memory.usage_in_bytes": "300000\n",
		}, Budget{4000000 * kb, 8000000 * kb, "system"}, true},
	} {
		got, ok := linuxBudget(func(path string) []byte {
			if s, ok := tc.files[path]; ok {
				return []byte(s)
			}
			return nil
		})
		if got != tc.want || ok != tc.ok {
			t.Errorf("%s: %+v %v, want %+v", tc.name, got, ok, tc.want)
		}
	}
}

func TestThisSystemTellsItsMemory(t *testing.T) {
	b, ok := SystemBudget()
	if !ok {
		t.Skip("this system does not say")
	}
	if b.Available <= 0 || b.Total < b.Available {
		t.Errorf("%+v", b)
	}
}
