//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pwned is what an attempt prints that got through.
const pwned = "GOT-THROUGH"

// attack is an attempt that needs system calls; the test binary runs itself for it. It prints pwned where it gets
// through.
func attack(name string, args []string) {
	ok := func(errno unix.Errno) {
		if errno == 0 {
			fmt.Println(pwned)
		} else {
			fmt.Println("refused:", errno)
		}
	}
	call := func(nr uintptr, a ...uintptr) {
		var x [6]uintptr
		copy(x[:], a)
		_, _, e := unix.RawSyscall6(nr, x[0], x[1], x[2], x[3], x[4], x[5])
		ok(e)
	}
	str := func(s string) uintptr { b, _ := unix.BytePtrFromString(s); return uintptr(unsafe.Pointer(b)) }
	switch name {
	case "ptrace":
		pid, _ := strconv.Atoi(args[0])
		call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(pid))
	case "process_vm_readv":
		pid, _ := strconv.Atoi(args[0])
		var b [8]byte
		local := unix.Iovec{Base: &b[0], Len: 8}
		call(
			unix.SYS_PROCESS_VM_READV,
			uintptr(pid),
			uintptr(unsafe.Pointer(&local)),
			1,
			uintptr(unsafe.Pointer(&local)),
			1,
			0,
		)
	case "pidfd_getfd":
		pid, _ := strconv.Atoi(args[0])
		fd, _, _ := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0)
		call(unix.SYS_PIDFD_GETFD, fd, 1, 0)
	case "mount":
		call(unix.SYS_MOUNT, str("none"), str("/"), str("tmpfs"), 0, 0)
	case "unshare":
		call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	case "clone-newuser":
		pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.CLONE_NEWUSER|unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 && e == 0 {
			unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		ok(e)
	case "setns":
		fd, err := unix.Open("/proc/1/ns/mnt", unix.O_RDONLY, 0)
		if err != nil {
			fmt.Println("refused:", err)
			return
		}
		call(unix.SYS_SETNS, uintptr(fd), 0)
	case "chroot":
		call(unix.SYS_CHROOT, str(args[0]))
	case "io_uring":
		var params [120]byte
		call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
	case "bpf":
		var attr [128]byte
		call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), 128)
	case "keyctl":
		call(unix.SYS_KEYCTL, 0, ^uintptr(2), 1) // the session's keyring
	case "userfaultfd":
		call(unix.SYS_USERFAULTFD, 1)
	case "perf":
		var attr [128]byte
		call(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&attr)), 0, ^uintptr(0), ^uintptr(0), 0)
	case "open_by_handle":
		var h [136]byte
		call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), uintptr(unsafe.Pointer(&h)), 0) // AT_FDCWD
	case "packet":
		call(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0)
	case "vsock":
		call(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	case "family-above-int": // the kernel reads an int: what is above must not hide the family
		call(unix.SYS_SOCKET, 1<<32|unix.AF_PACKET, unix.SOCK_RAW, 0)
	case "tiocsti":
		c := byte('x')
		call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
	case "tiocsti-above-int":
		c := byte('x')
		call(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
	case "sethostname":
		call(unix.SYS_SETHOSTNAME, str("owned"), 5)
	case "setuid":
		call(unix.SYS_SETUID, 12345)
	case "memfd": // memory that is no process's own
		page := bytes.Repeat([]byte{1}, 1<<20)
		for range 64 {
			fd, err := unix.MemfdCreate("x", 0)
			if err != nil {
				break
			}
			for range 64 {
				if _, err := unix.Write(fd, page); err != nil {
					break
				}
			}
			m, err := unix.Mmap(fd, 0, 64<<20, unix.PROT_READ, unix.MAP_SHARED)
			if err == nil {
				sum := 0
				for i := 0; i < len(m); i += 4096 {
					sum += int(m[i])
				}
				runtime.KeepAlive(sum)
			}
		}
		fmt.Println(pwned)
	case "memory":
		var all [][]byte
		for range 64 {
			all = append(all, bytes.Repeat([]byte{1}, 64<<20))
		}
		runtime.KeepAlive(all)
		fmt.Println(pwned)
	case "threads": // how many there were, the test counts
		for range 3000 {
			pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if e != 0 {
				time.Sleep(time.Millisecond)
			}
			_ = pid
		}
	default:
		fmt.Println("no such attempt: " + name)
	}
}

// TestEscapes tries to get out. Each attempt prints what it got, or changes something outside, and none may.
func TestEscapes(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	eachLevel(t, func(t *testing.T, l Level) {
		outside := t.TempDir() // what a command must not see
		secret := filepath.Join(outside, "secret.txt")
		if err := os.WriteFile(secret, []byte(pwned), 0o644); err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(outside, "home")
		for path, text := range map[string]string{".ssh/id_ed25519": pwned, ".aws/credentials": pwned, ".netrc": pwned, ".cargo/credentials.toml": pwned} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("python3", "-c", "import sys; print(sys.base_prefix)").Output(); err == nil {
			t.Setenv(
				"PATH",
				filepath.Join(strings.TrimSpace(string(out)), "bin")+":"+os.Getenv("PATH"),
			) // it may lie in the real home
		}
		t.Setenv("HOME", home)
		t.Setenv("OPENAI_API_KEY", pwned)
		t.Setenv("AWS_SECRET_ACCESS_KEY", pwned)
		t.Setenv("HTTPS_PROXY", "http://user:"+pwned+"@proxy:3128")

		// A server as ours is, on loopback, on a socket by path, and on an abstract one.
		web := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, pwned) }),
		}
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		sock := filepath.Join(outside, "s.sock")
		byPath, err1 := net.Listen("unix", sock)
		abstract, err2 := net.Listen("unix", "@baleen-"+filepath.Base(outside))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, ln := range []net.Listener{tcp, byPath, abstract} {
			go web.Serve(ln) //nolint:errcheck // it ends with the test
		}
		t.Cleanup(func() { _ = web.Close() })
		port := tcp.Addr().(*net.TCPAddr).Port

		// A process of the user, outside.
		victim := exec.Command("sleep", "600")
		victim.Env = append(os.Environ(), "TOKEN="+pwned)
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
		pid := victim.Process.Pid

		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r := newRoom(t, l)
		r.p.Read = []string{self}
		r.p.Limits = Limits{Memory: 256 << 20, Processes: 64, FileSize: 8 << 20, Time: 20 * time.Second}
		r.file(".git/config", "[core]\n")
		r.file(".git/hooks/pre-commit", "#!/bin/sh\n")
		r.p.Protect = []string{
			filepath.Join(r.w, ".git/hooks"),
			filepath.Join(r.w, ".git/config"),
			filepath.Join(r.w, ".baleen"),
		}

		raw := func(name string, args ...any) string {
			s := "SANDBOX_ATTACK=" + name + " " + self
			for _, a := range args {
				s += fmt.Sprint(" ", a)
			}
			return s
		}
		py := func(code string) string { return "python3 -c '" + code + "'" }
		get := func(family, address string) string {
			return py(fmt.Sprintf(`
import socket
s = socket.socket(socket.%s); s.settimeout(3); s.connect(%s)
s.sendall(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(4096).decode())`, family, address))
		}
		for _, a := range []struct{ name, script string }{
			{"read a file outside", "cat " + secret},
			{"list a folder outside", "ls " + outside + " && echo " + pwned},
			{"read by a link", "ln -s " + secret + " l; cat l"},
			{"read by a link to a folder", "ln -s / root; cat root" + secret},
			{"read by /proc/self/root", "cat /proc/self/root" + secret},
			{"read by a descriptor's path", "exec 9</; cat /proc/self/fd/9" + secret},
			{"read by ..", "cat ../../../../../../../.." + secret},
			{"hard link from outside", "ln " + secret + " stolen && cat stolen"},
			{"rename a file from outside", "mv " + secret + " stolen && cat stolen"},
			{"race of a link", "for i in $(seq 300); do ln -sfn . r; (cat r" + secret + " 2>/dev/null &); ln -sfn / " +
				"r; cat r" + secret + " 2>/dev/null; done; true"},
			{"keys of ssh", "cat " + home + "/.ssh/*"},
			{"credentials of clouds", "cat " + home + "/.aws/credentials"},
			{"passwords of the network", "cat " + home + "/.netrc"},
			{"tokens of cargo", "cat " + home + "/.cargo/credentials.toml"},
			{"passwords of the system", "cat /etc/shadow && echo " + pwned},
			{"keys of the machine", "cat /etc/ssh/ssh_host_* /etc/ssl/private/* 2>/dev/null && echo " + pwned},
			{"write outside", "echo x > " + outside + "/written && echo " + pwned},
			{"append outside", "echo x >> " + secret + " && echo " + pwned},
			{"truncate outside", ": > " + secret + " && echo " + pwned},
			{"delete outside", "rm -f " + secret + "; test -e " + secret + " || true"},
			{"change modes outside", "chmod 777 " + secret + " && echo " + pwned},
			{"change modes by an open folder", py(`import os; d = os.open("/", os.O_PATH); os.chmod("`+strings.TrimPrefix(secret, "/")+`", 0o777, dir_fd=d)`) + " && echo " + pwned},
			{"change times outside", "touch -d 2001-01-01 " + secret + " && echo " + pwned},
			{"setuid bit inside", "cp /bin/bash b && chmod 4755 b; test -u b && echo " + pwned},
			{"setgid bit of an open file", py(`import os; f = os.open("g", os.O_CREAT | os.O_WRONLY, 0o600); os.fchmod(f, 0o2755); print("` + pwned + `")`)},
			{"setuid bit at birth", py(`import os; os.close(os.open("s", os.O_CREAT | os.O_WRONLY, 0o4755)); print("` + pwned + `")`)},
			{"write to the system", "echo x > /etc/baleen-test && echo " + pwned},
			{"write a program", "cp /bin/true /usr/local/bin/baleen-test && echo " + pwned},
			{"write to /proc", "echo 1 > /proc/sys/kernel/panic && echo " + pwned},
			{"core pattern", "echo '|/bin/sh' > /proc/sys/kernel/core_pattern && echo " + pwned},
			{"device of the disk", "mknod d b 254 0 && cat d && echo " + pwned},
			{"hook of git", "echo evil > .git/hooks/pre-commit"},
			{"hook by renaming", "mv .git old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit"},
			{"configuration of git", "git config core.fsmonitor /tmp/evil"},
			{"configuration of ours", "mkdir -p .baleen && echo evil > .baleen/config.toml"},
			{"secrets of the environment", "env; cat /proc/self/environ"},
			{"environment of a process", fmt.Sprintf("cat /proc/%d/environ | tr '\\0' '\\n'; cat /proc/*/environ "+
				"2>/dev/null | tr '\\0' '\\n'", pid)},
			{"memory of a process", fmt.Sprintf("head -c 1 /proc/%d/mem && echo %s", pid, pwned)},
			{"files of a process", fmt.Sprintf("readlink /proc/%d/fd/0 && echo %s", pid, pwned)},
			{"kill a process", fmt.Sprintf("kill -9 %d && echo %s", pid, pwned)},
			{"kill the helper", "kill -9 $PPID && echo x; kill -9 1; true"},
			{"kill everything", "trap '' TERM; kill -TERM -1; true"},
			{"ptrace", raw("ptrace", pid)},
			{"ptrace of the parent", raw("ptrace", "$PPID")},
			{"process_vm_readv", raw("process_vm_readv", "$PPID")},
			{"pidfd_getfd", raw("pidfd_getfd", "$PPID")},
			{"mount", raw("mount")},
			{"unshare", raw("unshare")},
			{"unshare by its program", "unshare -Ur true && echo " + pwned},
			{"clone with a namespace", raw("clone-newuser")},
			{"setns", raw("setns")},
			{"chroot", raw("chroot", r.w)},
			{"io_uring", raw("io_uring")},
			{"bpf", raw("bpf")},
			{"keyrings", raw("keyctl")},
			{"userfaultfd", raw("userfaultfd")},
			{"perf events", raw("perf")},
			{"files by handle", raw("open_by_handle")},
			{"packets", raw("packet")},
			{"vsock", raw("vsock")},
			{"a family above int", raw("family-above-int")},
			{"typing into a terminal", raw("tiocsti")},
			{"typing above int", raw("tiocsti-above-int")},
			{"the machine's name", raw("sethostname")},
			{"another user", raw("setuid")},
			{"setuid programs", "su -c 'echo " + pwned + "' nobody < /dev/null; sudo -n true && echo " + pwned},
			{"our API on loopback", get("AF_INET", fmt.Sprintf(`("127.0.0.1", %d)`, port))},
			{"our API by another loopback address", get("AF_INET", fmt.Sprintf(`("127.1.2.3", %d)`, port))},
			{"a socket by its path", get("AF_UNIX", `"`+sock+`"`)},
			{"an abstract socket", get("AF_UNIX", `"\0baleen-`+filepath.Base(outside)+`"`)},
			{"an address outside", get("AF_INET", `("192.0.2.1", 80)`) + " && echo " + pwned},
			{"the metadata service", get("AF_INET", `("169.254.169.254", 80)`) + " && echo " + pwned},
			{"names", py(`import socket; print(socket.getaddrinfo("example.com", 80)); print("` + pwned + `")`)},
			{"IPv6", get("AF_INET6", fmt.Sprintf(`("::ffff:127.0.0.1", %d)`, port))},
			{"a large file", "head -c 64000000 /dev/zero > big && echo " + pwned},
			{"memory", raw("memory")},
			{"memory of nobody", raw("memfd")},
			{"a fork bomb", "bomb() { bomb | bomb & }; bomb; sleep 2; kill -9 $$"},
			{"processes", raw("threads")},
		} {
			t.Run(a.name, func(t *testing.T) {
				began, before, peak := time.Now(), len(allProcesses()), 0
				done := make(chan bool)
				go func() {
					for tick := time.Tick(50 * time.Millisecond); ; {
						select {
						case <-tick:
							peak = max(peak, len(allProcesses())-before)
						case <-done:
							done <- true
							return
						}
					}
				}()
				out, res := (&room{t, r.p, r.w}).sh(a.script)
				if strings.Contains(out, pwned) {
					t.Errorf("it got through: %.300s", out)
				}
				done <- true
				if <-done; peak > 500 { // of others, too
					t.Errorf("%d processes", peak)
				}
				// Limits.Time ends it, whose clock is the machine's; that many processes and much memory are taken
				// away may take a busy machine a while longer.
				if d := time.Since(began); d > r.p.Limits.Time+time.Minute {
					t.Errorf("it took %v", d)
				}
				t.Logf("%+v %.200q", res, out)
				if b, err := os.ReadFile(secret); err != nil || string(b) != pwned {
					t.Fatalf("the secret is %q, %v", b, err)
				}
				for _, p := range []string{outside + "/written", "/etc/baleen-test", "/usr/local/bin/baleen-test"} {
					if _, err := os.Lstat(p); err == nil {
						t.Fatalf("%s was written", p)
					}
				}
				if b, err := os.ReadFile(filepath.Join(r.w, ".git/hooks/pre-commit")); err != nil ||
					string(b) != "#!/bin/sh\n" {
					t.Fatalf("the hook is %q, %v", b, err)
				}
				if b, err := os.ReadFile(filepath.Join(r.w, ".git/config")); err != nil || string(b) != "[core]\n" {
					t.Fatalf("git's configuration is %q, %v", b, err)
				}
				if _, err := os.Lstat(filepath.Join(r.w, ".baleen")); err == nil {
					t.Fatal("our configuration was written")
				}
				if err := victim.Process.Signal(unix.Signal(0)); err != nil {
					t.Fatalf("the process outside is gone: %v", err)
				}
			})
		}
		// Nothing that was started is left.
		if out, _ := exec.Command("pgrep", "-f", r.w).Output(); len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("processes are left: %s", out)
		}
	})
}
