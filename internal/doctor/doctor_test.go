package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestQuota(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"none":      {map[string]string{}, 0},
		"unlimited": {map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0},
		"outer limit": {map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "400000 100000\n", "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
		}, 1.5},
		"version 1": {map[string]string{
			"/proc/self/cgroup": "3:cpu,cpuacct:/x\n2:memory:/y\n", "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "50000\n",
			"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
		}, 0.5},
		"version 1, unlimited": {map[string]string{
			"/proc/self/cgroup": "3:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
		}, 0},
	} {
		got := quota(func(path string) ([]byte, error) {
			if s, ok := tc.files[path]; ok {
				return []byte(s), nil
			}
			return nil, os.ErrNotExist
		})
		if got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestGPUs(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " +
			"570.86.15  Thu\n",
		"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H200\nIRQ: 1\n",
		"sys/class/drm/card0/device/vendor":                "0x10de\n",
		"sys/class/drm/card1/device/vendor":                "0x1002\n",
		"sys/class/drm/card1/device/device":                "0x744c\n",
		"sys/class/drm/card1/device/mem_info_vram_total":   "25753026560\n",
		"sys/class/drm/card2/device/vendor":                "0x1234\n",
		"sys/class/drm/card1-HDMI-A-1/device/vendor":       "0x1002\n",
	} {
		p := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := linuxGPUs(root)
	want := []GPU{
		{Name: "NVIDIA H200", Vendor: "NVIDIA", Driver: "570.86.15"},
		{Name: "AMD graphics (0x744c)", Vendor: "AMD", Memory: 25753026560},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
	if got := linuxGPUs(t.TempDir()); len(got) != 0 {
		t.Errorf("a machine without GPUs has %+v", got)
	}
}

func TestMeasurements(t *testing.T) {
	if got := Bandwidth(1, time.Millisecond); got < 1e8 || got > 1e13 {
		t.Errorf("bandwidth %g bytes/s", got)
	}
	if got := TokensPerSecond(100e9, 0); got != 0 {
		t.Errorf("a model of nothing: %g tokens/s", got)
	}
	if got := TokensPerSecond(100e9, 1e9); got < 50 || got > 100 {
		t.Errorf("1 GB at 100 GB/s: %g tokens/s", got)
	}
	if p := FindProcessor(); p.Cores < 1 || p.Machine < p.Cores/2 {
		t.Errorf("%+v", p)
	}
	if got := ReadSpeed(filepath.Join(t.TempDir(), "none"), time.Millisecond); got != 0 {
		t.Errorf("a missing file reads at %g", got)
	}
}
