//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

func landlockABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// A watch holds a command to the limits that no call of the kernel sets for a group of processes without privileges.
type watch struct {
	limits Limits
	self   int
	whole  bool // the process namespace is the command's alone
	disks  map[string]int64
	began  time.Time
}

// How often the watch looks. In between, a command can take at most what the machine gives it in that time.
const watchEvery = 25 * time.Millisecond

func newWatch(s *spec) *watch {
	w := &watch{
		limits: s.Policy.Limits,
		self:   os.Getpid(),
		whole:  s.Level == Namespaces,
		disks:  map[string]int64{},
		began:  time.Now(),
	}
	for _, dir := range append([]string{s.Policy.Scratch}, s.Policy.Write...) {
		if free, ok := freeDisk(dir); ok {
			w.disks[dir] = min(w.limits.FreeDisk, free/2)
		}
	}
	return w
}

func freeDisk(dir string) (int64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}

// run looks until something is too much, says what it is, and kills everything: in this order, since the command's end
// is noticed elsewhere, and what ended it must be known then.
func (w *watch) run(over chan<- string) {
	for n := 0; ; n++ {
		time.Sleep(watchEvery)
		what := w.over(n)
		if what == "" {
			continue
		}
		over <- what
		w.killAll()
		return
	}
}

// over says what is more than allowed, "" where nothing is.
func (w *watch) over(n int) string {
	var private, shared int64
	list := w.processes()
	for _, pid := range list {
		p, s := w.memory(pid)
		private += p
		shared = max(shared, s)
	}
	switch {
	case len(list) > w.limits.Processes:
		return fmt.Sprintf("more than %d processes", w.limits.Processes)
	case private+shared > w.limits.Memory:
		return fmt.Sprintf("more than %d MiB of memory", w.limits.Memory>>20)
	case w.limits.Time > 0 && time.Since(w.began) > w.limits.Time:
		return fmt.Sprintf("more than %v", w.limits.Time)
	}
	if n%8 == 0 {
		for dir, least := range w.disks {
			if free, ok := freeDisk(dir); ok && free < least {
				return fmt.Sprintf("all but %d MiB of the disk of %s", least>>20, dir)
			}
		}
		if total, available, ok := w.system(); ok && available < min(256<<20, total/50) {
			return "the system's last memory"
		}
	}
	return ""
}

// memory returns the resident bytes of a process that are its own, and those that it may share.
func (w *watch) memory(pid int) (private, shared int64) {
	b := read(fmt.Sprintf("/proc/%d/statm", pid))
	var size, resident, sh int64
	if _, err := fmt.Sscan(string(b), &size, &resident, &sh); err != nil {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	return (resident - sh) * page, sh * page
}

// system returns the memory of the machine, and what of it is available.
func (w *watch) system() (total, available int64, ok bool) {
	for line := range bytes.Lines(read("/proc/meminfo")) {
		var kb int64
		if n, _ := fmt.Sscanf(string(line), "MemTotal: %d kB", &kb); n == 1 {
			total = kb << 10
		}
		if n, _ := fmt.Sscanf(string(line), "MemAvailable: %d kB", &kb); n == 1 {
			return total, kb << 10, true
		}
	}
	return 0, 0, false
}

// read returns the begin of a small file of /proc.
func read(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, _ := f.Read(buf)
	return buf[:n]
}

// processes lists the command's processes.
func (w *watch) processes() []int {
	parents := map[int]int{}
	for _, pid := range allProcesses() {
		if pid != w.self {
			parents[pid] = w.parent(pid)
		}
	}
	var out []int
	for pid := range parents {
		if w.whole || w.descends(pid, parents) {
			out = append(out, pid)
		}
	}
	return out
}

func (w *watch) descends(pid int, parents map[int]int) bool {
	for range 4096 {
		p, ok := parents[pid]
		if p == w.self {
			return true
		}
		if !ok || p == 0 {
			return false
		}
		pid = p
	}
	return false
}

func (w *watch) parent(pid int) int {
	b := read(fmt.Sprintf("/proc/%d/stat", pid))
	if i := bytes.LastIndexByte(b, ')'); i >= 0 { // the name in front may contain anything
		if f := bytes.Fields(b[i+1:]); len(f) > 1 {
			p, _ := strconv.Atoi(string(f[1]))
			return p
		}
	}
	return 0
}

func allProcesses() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// othersOfUser counts the processes that the user has already, which the kernel's limit counts too.
func othersOfUser() int {
	n := 0
	for _, pid := range allProcesses() {
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) == nil && int(st.Uid) == os.Getuid() {
			n++
		}
	}
	return n
}

// killAll kills the command's processes until there is none. New ones are stopped before they can make more.
func (w *watch) killAll() {
	if w.whole {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		list := w.processes()
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		for _, pid := range list {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		var ws unix.WaitStatus
		for {
			if pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}
