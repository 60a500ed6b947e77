//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Descriptors of the helper.
const (
	fdSpec     = 3
	fdLife     = 4 // closed when the caller is gone, however it went
	fdStatus   = 5
	fdListener = 6 // of the second helper: where it hands on what seccomp asks at
)

// What the helper is told to begin with: whether its group bounds processes.
const (
	beginBounded   = 'b'
	beginUnbounded = 'u'
)

// Probe reports what this system can do, and why not more. It runs a command that does nothing, once.
func Probe() (Level, string) { return probe() }

var probe = sync.OnceValues(func() (Level, string) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 3 {
		return None, "the kernel has no Landlock of version 3 or later (Linux 6.2)"
	}
	dir, err := os.MkdirTemp("", "baleen-sandbox-*")
	if err != nil {
		return None, err.Error()
	}
	defer os.RemoveAll(dir)
	full := try(Namespaces, dir)
	if full == nil {
		return Namespaces, ""
	}
	if abi < 6 {
		return None, fmt.Sprintf(
			"namespaces for users are not to be had (%v), and Landlock of version %d does not hold signals (Linux "+
				"6.12 does)",
			full,
			abi,
		)
	}
	if err := try(Landlock, dir); err != nil {
		return None, err.Error()
	}
	return Landlock, full.Error()
})

// try sets all limits of a level, and runs nothing.
func try(l Level, scratch string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s := spec{Policy: Policy{Scratch: scratch}, Level: l, Dir: scratch}
	if err := s.resolve(); err != nil {
		return err
	}
	p, err := start(ctx, &s, Command{})
	if err != nil {
		return err
	}
	p.guard = &guard{}
	r, err := p.Wait()
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("a trial ended with %d", r.Code)
	}
	return err
}

// Capabilities that the helper has inside its namespaces, and the command does not.
const (
	capSetPCap  = 8
	capNetAdmin = 12
	capSysAdmin = 21
)

func start(ctx context.Context, s *spec, c Command) (*Process, error) {
	if !helped.Load() {
		return nil, &UnavailableError{"this program does not call sandbox.Helper first of all"}
	}
	told, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	var open []*os.File
	closeAll := func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			open = append(open, r, w)
		}
		return r, w, err
	}
	memory, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	specFile := os.NewFile(uintptr(memory), "sandbox")
	open = append(open, specFile)
	_, err1 := specFile.WriteAt(told, 0)
	lifeR, lifeW, err2 := pipe()
	statusR, statusW, err3 := pipe()
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("sandbox: %w", err)
		}
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{helperName, "init"}, Dir: "/", Env: []string{},
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, ExtraFiles: []*os.File{specFile, lifeR, statusW},
		WaitDelay: 2 * time.Second,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.Level == Namespaces {
		uid, gid := os.Getuid(), os.Getgid()
		a := cmd.SysProcAttr
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{capSetPCap, capNetAdmin, capSysAdmin}
	}
	if err := cmd.Start(); err != nil {
		closeAll()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	for _, f := range []*os.File{specFile, lifeR, statusW} {
		_ = f.Close()
	}
	group := newCgroup(s.Policy.Limits)
	group.take(cmd.Process.Pid)
	begin := byte(beginUnbounded)
	if group.pids != "" {
		begin = beginBounded
	}
	_, _ = lifeW.Write([]byte{begin}) // it waits for that; where it is gone already, Wait says why
	p := &Process{cmd: cmd, life: lifeW, status: statusR, ended: group.remove}
	p.forget = context.AfterFunc(ctx, p.Stop)
	return p, nil
}

func signalOf(e *exec.ExitError) int {
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}

// SystemPaths are what every command may read: programs, libraries and configuration of the system, without the files
// of /etc that hold secrets, and what the kernel says of itself.
func SystemPaths() []string {
	out := []string{
		"/usr",
		"/bin",
		"/sbin",
		"/lib",
		"/lib32",
		"/lib64",
		"/libx32",
		"/opt",
		"/nix/store",
		"/snap",
		"/proc",
		"/sys",
	}
	secret := map[string]bool{
		"shadow": true, "shadow-": true, "gshadow": true, "gshadow-": true, "sudoers": true, "sudoers.d": true, "ssh": true,
		"krb5.keytab": true, "security": true, "docker": true, "kubernetes": true, "wireguard": true, "NetworkManager": true,
		"wpa_supplicant": true, "ppp": true, "openvpn": true, "ipsec.secrets": true, "machine-id": true, "cloud": true,
	}
	entries, _ := os.ReadDir("/etc")
	for _, e := range entries {
		switch {
		case secret[e.Name()]:
		case e.Name() == "ssl":
			out = append(out, "/etc/ssl/certs", "/etc/ssl/openssl.cnf")
		default:
			out = append(out, filepath.Join("/etc", e.Name()))
		}
	}
	return out
}
