// Package doctor measures and reads what decides how models run on this machine: processor, memory, disks and GPUs.
// It knows hardware, not models; what it cannot find out stays zero.
package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// A Processor is what runs the kernels.
type Processor struct {
	Name    string  `json:"name,omitempty"`
	Cores   int     `json:"cores"`           // that this process may use
	Quota   float64 `json:"quota,omitempty"` // processors' worth of time that its cgroup allows; 0: no limit
	Machine int     `json:"machine_cores"`   // of the machine, with hyperthreads
}

// A Disk is the file system of a folder.
type Disk struct {
	Path  string  `json:"path"`
	Type  string  `json:"type,omitempty"`
	Free  int64   `json:"free"`
	Total int64   `json:"total"`
	Read  float64 `json:"read_bytes_per_second,omitempty"` // measured, past the system's cache; 0: not measured
}

// A GPU is one that the system shows.
type GPU struct {
	Name   string `json:"name"`
	Vendor string `json:"vendor,omitempty"`
	Driver string `json:"driver,omitempty"`
	Memory int64  `json:"memory,omitempty"`
}

// FindProcessor reads what the system says of the processor.
func FindProcessor() Processor {
	p := Processor{Name: processorName(), Cores: runtime.GOMAXPROCS(0), Machine: runtime.NumCPU()}
	p.Quota = quota(os.ReadFile)
	return p
}

// quota reads the limit of processor time of the cgroups that the process is in.
func quota(read func(string) ([]byte, error)) float64 {
	self, err := read("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := 0.0
	note := func(limit, period string) {
		l, err1 := strconv.ParseFloat(limit, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && l > 0 && p > 0 && (least == 0 || l/p < least) {
			least = l / p
		}
	}
	for line := range strings.Lines(string(self)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root := "/sys/fs/cgroup"
		if parts[1] != "" {
			if !slices.Contains(strings.Split(parts[1], ","), "cpu") {
				continue
			}
			root += "/cpu"
		}
		for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
			if b, err := read(filepath.Join(root, dir, "cpu.max")); err == nil {
				if f := strings.Fields(string(b)); len(f) == 2 {
					note(f[0], f[1])
				}
			}
			limit, err1 := read(filepath.Join(root, dir, "cpu.cfs_quota_us"))
			period, err2 := read(filepath.Join(root, dir, "cpu.cfs_period_us"))
			if err1 == nil && err2 == nil {
				note(strings.TrimSpace(string(limit)), strings.TrimSpace(string(period)))
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// bandwidthBytes is what each pass of the measurement reads: more than caches hold.
const bandwidthBytes = 512 << 20

// Bandwidth measures how fast memory can be read by all threads together, in bytes per second: the best of some passes,
// in about limit of time. It is what bounds the speed of decoding.
func Bandwidth(threads int, limit time.Duration) float64 {
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	words := make([]uint64, bandwidthBytes/8)
	each := len(words) / threads / 8 * 8
	var wg sync.WaitGroup
	for t := range threads { // touch every page, by the thread that reads it
		wg.Go(func() { clear(words[t*each : (t+1)*each]) })
	}
	wg.Wait()
	best := 0.0
	sums := make([]uint64, threads*8)
	for began := time.Now(); time.Since(began) < limit; {
		pass := time.Now()
		for t := range threads {
			wg.Go(func() { sums[t*8] = sum(words[t*each : (t+1)*each]) })
		}
		wg.Wait()
		best = max(best, float64(each*threads*8)/time.Since(pass).Seconds())
	}
	runtime.KeepAlive(sums)
	return best
}

// sum adds words in eight chains, so that memory and not the adder is the limit.
func sum(w []uint64) uint64 {
	var a, b, c, d, e, f, g, h uint64
	for ; len(w) >= 8; w = w[8:] {
		a += w[0]
		b += w[1]
		c += w[2]
		d += w[3]
		e += w[4]
		f += w[5]
		g += w[6]
		h += w[7]
	}
	return a + b + c + d + e + f + g + h
}

// readBlock is what one read of the disk measurement asks for.
const readBlock = 4 << 20

// ReadSpeed measures how fast a file's disk gives its bytes, past the system's cache, in bytes per second. 0: the
// system cannot leave its cache out, or the file is too small to tell.
func ReadSpeed(path string, limit time.Duration) float64 {
	f, err := openDirect(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() < 4*readBlock {
		return 0
	}
	raw := make([]byte, readBlock+4096)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & 4095 // direct reads want aligned memory
	buf := raw[skip : skip+readBlock]
	var n int64
	began := time.Now()
	for off := int64(0); off+readBlock <= fi.Size() && time.Since(began) < limit; off += readBlock {
		k, err := f.ReadAt(buf, off)
		if err != nil {
			return 0
		}
		n += int64(k)
	}
	return float64(n) / time.Since(began).Seconds()
}

// GPUs lists what the system shows of graphics processors.
func GPUs() []GPU { return linuxGPUs("/") }

// vendors are PCI's numbers for makers of GPUs.
var vendors = map[string]string{"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}

// linuxGPUs reads /proc and /sys below root.
func linuxGPUs(root string) []GPU {
	var out []GPU
	driver := ""
	if b, err := os.ReadFile(filepath.Join(root, "proc/driver/nvidia/version")); err == nil {
		for _, word := range strings.Fields(string(b)) {
			if strings.Count(word, ".") >= 1 && word[0] >= '0' && word[0] <= '9' {
				driver = word
				break
			}
		}
	}
	infos, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	for _, path := range infos {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(b) {
			if name, ok := bytes.CutPrefix(line, []byte("Model:")); ok {
				out = append(out, GPU{Name: strings.TrimSpace(string(name)), Vendor: "NVIDIA", Driver: driver})
			}
		}
	}
	cards, _ := filepath.Glob(filepath.Join(root, "sys/class/drm/card[0-9]*/device/vendor"))
	for _, path := range cards {
		b, err := os.ReadFile(path)
		if err != nil || strings.Contains(filepath.Base(filepath.Dir(filepath.Dir(path))), "-") {
			continue
		}
		vendor, known := vendors[strings.TrimSpace(string(b))]
		if !known || vendor == "NVIDIA" && len(infos) > 0 {
			continue
		}
		g := GPU{Name: vendor + " graphics", Vendor: vendor}
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "device")); err == nil {
			g.Name += " (" + strings.TrimSpace(string(b)) + ")"
		}
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "mem_info_vram_total")); err == nil {
			g.Memory, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		}
		out = append(out, g)
	}
	return out
}

// Load is the number of threads that ran or waited to run in the last minute, where the system counts them.
func Load() (float64, bool) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(b), " ")
	load, err := strconv.ParseFloat(first, 64)
	return load, err == nil
}

// decodeShare is the part of a plain read's speed at which decoding reads its weights: the median of the table in
// docs/BENCHMARKS.md, six models on one machine with AVX-512, whose shares lie between 70 % and all of it.
const decodeShare = 0.83

// TokensPerSecond estimates how fast a model decodes alone with kernels that are bound by memory: each token reads its
// active weights once. An estimate for choosing a model, not a measurement.
func TokensPerSecond(bandwidth float64, active int64) float64 {
	if active <= 0 {
		return 0
	}
	return decodeShare * bandwidth / float64(active)
}
