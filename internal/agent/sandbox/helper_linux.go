//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// helped tells that this program calls Helper. One that does not would do all its own work where it is started as the
// helper, and start itself again.
var helped atomic.Bool

// Helper is called first of all in main. Where this process was started to be the sandbox's helper, it does that work
// and does not return.
func Helper() {
	helped.Store(true)
	if len(os.Args) != 2 || os.Args[0] != helperName {
		return
	}
	switch os.Args[1] {
	case "init", "exec":
	default:
		return
	}
	for _, fd := range []int{fdSpec, fdLife, fdStatus, fdListener} {
		unix.CloseOnExec(fd)
	}
	status := os.NewFile(fdStatus, "status")
	fail := func(err error) {
		fmt.Fprintf(status, "setup:%v", err)
		os.Exit(ExitSetup)
	}
	var s spec
	f := os.NewFile(fdSpec, "spec")
	if err := json.NewDecoder(io.NewSectionReader(f, 0, 16<<20)).Decode(&s); err != nil {
		fail(fmt.Errorf("what to do: %w", err))
	}
	if os.Args[1] == "exec" {
		fail(become(&s))
	}
	code, err := supervise(&s, f, status)
	if err != nil {
		fail(err)
	}
	os.Exit(code)
}

// supervise makes the namespaces fit to live in, runs the command, watches it, and ends with it.
func supervise(s *spec, told, status *os.File) (int, error) {
	runtime.LockOSThread()
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE)
	life := os.NewFile(fdLife, "life")
	var begin [1]byte
	if _, err := io.ReadFull(life, begin[:]); err != nil {
		return 0, errors.New("the caller is gone")
	}
	// The kernel's own limit of a user's processes does not hold root.
	bounded := begin[0] == beginBounded || os.Getuid() != 0
	if s.Level == Namespaces {
		proxy := -1
		if s.Policy.Proxy != "" { // opened here, since its folder may be hidden below
			var err error
			if proxy, err = unix.Open(s.Policy.Proxy, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
				return 0, fmt.Errorf("the proxy's socket %s: %w", s.Policy.Proxy, err)
			}
		}
		if err := furnish(&s.Policy, s.Home); err != nil {
			return 0, err
		}
		bounded = boundProcesses(&s.Policy) || bounded
		if err := loopback(); err != nil {
			return 0, err
		}
		if proxy >= 0 {
			if err := relay(fmt.Sprintf("/proc/self/fd/%d", proxy)); err != nil {
				return 0, err
			}
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	if !bounded {
		return 0, errors.New(
			"root's processes cannot be bounded here: there is neither a cgroup for them nor a bound of the " +
				"namespace's",
		)
	}
	w := newWatch(s)
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{helperName, "exec"}, Dir: "/", Env: []string{},
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{told, life, status},
	}
	questions, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("a way for the filter's questions: %w", err)
	}
	theirs := os.NewFile(uintptr(questions[1]), "listener")
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting the command: %w", err)
	}
	_ = theirs.Close()
	go func() {
		if listener, ok := receive(questions[0]); ok {
			answerAttributes(listener, &s.Policy)
		}
	}()
	go func() {
		_, _ = life.Read(make([]byte, 1)) // returns when the caller is gone
		w.killAll()
		os.Exit(128 + int(unix.SIGKILL))
	}()
	over := make(chan string, 1)
	go w.run(over)
	code := reap(cmd.Process.Pid)
	w.killAll()
	select {
	case what := <-over:
		fmt.Fprintf(status, "limit:%s", what)
		return ExitLimit, nil
	default:
	}
	return code, nil
}

// receive takes a descriptor from a socket; false where the other end was closed without one.
func receive(socket int) (int, bool) {
	defer unix.Close(socket)
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, b[:], oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return -1, false
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return -1, false
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, false
	}
	return fds[0], true
}

// reap waits for all children, as the first process of a namespace and the parent of orphans must, until the command
// has ended.
func reap(pid int) int {
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return ExitSetup
		case got == pid && ws.Exited():
			return ws.ExitStatus()
		case got == pid && ws.Signaled():
			return 128 + int(ws.Signal())
		}
	}
}

// furnish makes the mounts: a /proc of the own processes, nothing in the folders where others keep sockets and secrets,
// and protected paths that cannot be written.
func furnish(p *Policy, home string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	// All is read-only but for what is given: Landlock alone does not hold modes, owners and times of files.
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("making the mounts read-only: %w", err)
	}
	for _, dir := range append(slices.Clone(p.Write), p.Scratch) {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("giving %s: %w", dir, err)
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("giving %s: %w", dir, err)
		}
	}
	keep := slices.Concat(p.Write, p.Read, []string{p.Scratch})
	for _, dir := range []string{"/run", "/var/run", "/tmp", "/var/tmp", "/dev/shm", home} {
		if err := hide(dir, keep); err != nil {
			return err
		}
	}
	for _, path := range p.Protect {
		if _, err := os.Lstat(path); err != nil {
			continue // the guard removes it if it comes into being
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("protecting %s: %w", path, err)
		}
		if err := readOnly(path); err != nil {
			return fmt.Errorf("protecting %s: %w", path, err)
		}
	}
	return nil
}

// boundProcesses bounds the ids of this namespace, which Linux counts apart since 6.14; the first 300 are used but
// once. It reports whether that is possible.
func boundProcesses(p *Policy) bool {
	const file = "/proc/sys/kernel/pid_max"
	want := fmt.Sprint(p.Limits.Processes + 301)
	if !kernelAtLeast(6, 14) { // there, it would be the whole machine's
		return false
	}
	if os.WriteFile(file, []byte(want), 0) != nil {
		return false
	}
	got, err := os.ReadFile(file)
	return err == nil && strings.TrimSpace(string(got)) == want
}

func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	var a, b int
	if unix.Uname(&u) != nil {
		return false
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// readOnly makes a bind mount read-only. Flags that the mount below has cannot be taken off in a namespace of users.
func readOnly(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY)
	for _, f := range []struct{ st, ms uintptr }{
		{unix.ST_NOSUID, unix.MS_NOSUID},
		{unix.ST_NODEV, unix.MS_NODEV},
		{unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME},
		{unix.ST_NODIRATIME, unix.MS_NODIRATIME},
		{unix.ST_RELATIME, unix.MS_RELATIME},
	} {
		if uintptr(st.Flags)&f.st != 0 {
			flags |= f.ms
		}
	}
	return unix.Mount("", path, "", flags, "")
}

// hide puts an empty folder in the place of dir, with what is kept of it at its place. It leaves dir alone where it is
// to be kept as a whole, or lies in what is.
func hide(dir string, keep []string) error {
	fi, err := os.Lstat(dir)
	if dir == "" || dir == "/" || err != nil || !fi.IsDir() {
		return nil
	}
	type kept struct {
		path string
		fd   int
		dir  bool
	}
	var list []kept
	defer func() {
		for _, k := range list {
			_ = unix.Close(k.fd)
		}
	}()
	slices.Sort(keep)
	for _, path := range keep {
		if within(dir, path) {
			return nil
		}
		if !within(path, dir) || len(list) > 0 && within(path, list[len(list)-1].path) {
			continue
		}
		fi, err := os.Stat(path)
		if err != nil {
			continue
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("keeping %s: %w", path, err)
		}
		list = append(list, kept{path, fd, fi.IsDir()})
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,mode=0755"); err != nil {
		return fmt.Errorf("hiding %s: %w", dir, err)
	}
	for _, k := range list {
		if k.dir {
			err = os.MkdirAll(k.path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(k.path), 0o755); err == nil {
			err = os.WriteFile(k.path, nil, 0o644)
		}
		if err == nil {
			err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", k.fd), k.path, "", unix.MS_BIND|unix.MS_REC, "")
		}
		if err != nil {
			return fmt.Errorf("keeping %s: %w", k.path, err)
		}
	}
	return nil
}

// loopback starts the network of this namespace, where nobody else is.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("starting the loopback network: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("starting the loopback network: %w", err)
	}
	return nil
}

// ProxyAddress is where a command finds the policy's proxy.
const ProxyAddress = "127.0.0.1:3128"

// relay hands connections from this namespace to the proxy, which is on a socket outside.
func relay(path string) error {
	l, err := net.Listen("tcp", ProxyAddress)
	if err != nil {
		return fmt.Errorf("listening for the proxy: %w", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				up, err := net.Dial("unix", path)
				if err != nil {
					return
				}
				defer up.Close()
				go func() {
					_, _ = io.Copy(up, c)
					_ = up.(*net.UnixConn).CloseWrite()
				}()
				_, _ = io.Copy(c, up)
			}()
		}
	}()
	return nil
}

// become takes away all that the command must not have, and then is the command. It returns only errors.
func become(s *spec) error {
	runtime.LockOSThread()
	p := &s.Policy
	if err := limit(p); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if err := confine(p); err != nil {
		return err
	}
	err := os.Chdir(s.Dir)
	if err != nil {
		return err
	}
	env := p.Env
	if p.Proxy != "" {
		for _, k := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
			env = append(env, k+"=http://"+ProxyAddress)
		}
		env = append(env, "no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1")
	}
	var program string
	if len(s.Args) > 0 {
		if program, err = findProgram(s.Args[0], env); err != nil {
			return err
		}
	}
	families := []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if s.Level == Landlock {
		families = nil // sockets of other programs could be reached by their paths
		if landlockABI() >= 9 {
			families = []uint32{unix.AF_UNIX}
		}
	}
	listener, err := loadFilter(families, s.Level == Landlock)
	if err != nil {
		return err
	}
	if listener >= 0 {
		if err := unix.Sendmsg(fdListener, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
			return fmt.Errorf("handing the filter's questions on: %w", err)
		}
		_ = unix.Close(listener)
	}
	if program == "" { // Probe's trial ends here
		os.Exit(0)
	}
	if err := unix.Exec(program, s.Args, env); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// findProgram looks a program up in the PATH of the environment that it gets.
func findProgram(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		full := filepath.Join(dir, name)
		if fi, err := os.Stat(full); err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", fmt.Errorf("%s: there is no such program on the PATH", name)
}

func limit(p *Policy) error {
	set := func(what int, n uint64) error {
		var have unix.Rlimit
		if err := unix.Getrlimit(what, &have); err != nil {
			return fmt.Errorf("reading a limit: %w", err)
		}
		n = min(n, have.Max)
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
		return nil
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return errors.Join(
		set(unix.RLIMIT_CORE, 0),
		set(unix.RLIMIT_FSIZE, uint64(p.Limits.FileSize)),
		set(unix.RLIMIT_NPROC, uint64(p.Limits.Processes+othersOfUser())),
		set(unix.RLIMIT_MEMLOCK, 64<<10),
		set(unix.RLIMIT_MSGQUEUE, 1<<20),
	)
}

// dropCapabilities leaves none, and none that a program run later could have.
func dropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); c <= 63; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// As root, a program that is run gets what is left in the bounding set: nothing must be.
	for c := uintptr(0); c <= 63; c++ {
		v, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break
		}
		if v != 0 {
			return fmt.Errorf("capability %d cannot be given up", c)
		}
	}
	return nil
}

// confine restricts this process to the files of the policy.
func confine(p *Policy) error {
	cfg := landlock.V9
	cfg.HandledAccessNet = 0 // there is no network but its own
	cfg = cfg.BestEffort()
	rules := []landlock.Rule{
		landlock.RWDirs(append(slices.Clone(p.Write), p.Scratch)...).WithRefer(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").
			WithIoctlDev().
			IgnoreIfMissing(),
		landlock.RWDirs("/dev/shm", "/dev/fd").IgnoreIfMissing(),
	}
	for _, path := range slices.Concat(SystemPaths(), p.Read) {
		fi, err := os.Stat(path)
		switch {
		case err != nil:
		case fi.IsDir():
			rules = append(rules, landlock.RODirs(path).IgnoreIfMissing())
		default:
			rules = append(rules, landlock.ROFiles(path).IgnoreIfMissing())
		}
	}
	if err := cfg.Restrict(rules...); err != nil {
		return fmt.Errorf("restricting files: %w", err)
	}
	return nil
}
