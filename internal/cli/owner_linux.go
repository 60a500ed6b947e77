package cli

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ownServer reports whether what listens at a loopback address or on a socket file belongs to this user, or to root.
// What people ask is theirs: on a machine of several users, anyone may listen on the usual port.
func ownServer(r *remote) bool {
	trusted := func(uid int) bool { return uid == os.Getuid() || uid == 0 }
	if r.socket != "" {
		fi, err := os.Stat(r.socket)
		if err != nil {
			return false
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		return ok && trusted(int(st.Uid))
	}
	var uids []int
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if f, err := os.Open(file); err == nil {
			uids = append(uids, listeners(f, r.port)...)
			f.Close()
		}
	}
	// Others may listen on the same port of another of the addresses: which of them answers is not looked into.
	return len(uids) > 0 && !slices.ContainsFunc(uids, func(uid int) bool { return !trusted(uid) })
}

// listeners finds who listens on a port of the loopback addresses, in a table of the kernel.
func listeners(f io.Reader, port int) (uids []int) {
	const listening = "0A"
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 8 || fields[3] != listening {
			continue
		}
		address, number, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(number, 16, 16); err != nil || int(n) != port {
			continue
		}
		if ip := kernelIP(address); ip == nil || !ip.IsLoopback() && !ip.IsUnspecified() {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		if err != nil {
			uid = -1 // nobody's
		}
		uids = append(uids, uid)
	}
	return uids
}

// kernelIP reads an address as the kernel writes it: words of four bytes, each in the processor's order.
func kernelIP(text string) net.IP {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return nil
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	return net.IP(b)
}
