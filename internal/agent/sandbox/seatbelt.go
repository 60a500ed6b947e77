package sandbox

import (
	"fmt"
	"strings"
)

// seatbeltProfile is the policy in the language of macOS's sandbox-exec. Later rules win over earlier ones.
func seatbeltProfile(p *Policy) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	subpaths := func(list []string) string {
		var parts []string
		for _, path := range list {
			parts = append(parts, fmt.Sprintf("(subpath %s)", quoteSBPL(path)))
		}
		return strings.Join(parts, " ")
	}
	line("(version 1)")
	line("(deny default)")
	line("(allow process-exec process-fork)")
	line("(allow signal (target same-sandbox))")
	line("(allow process-info* (target same-sandbox))")
	line("(allow sysctl-read)")
	line("(allow pseudo-tty)")
	line("(allow file-read-metadata)")
	line("(allow file-read* (literal \"/\") %s)", subpaths([]string{
		"/usr", "/bin", "/sbin", "/opt", "/System", "/Library/Developer", "/Library/Frameworks", "/Applications/Xcode.app",
		"/private/etc", "/private/var/db/timezone", "/private/var/select", "/dev",
	}))
	line(
		"(deny file-read* (subpath \"/private/etc/ssh\") (literal \"/private/etc/master.passwd\") (literal " +
			"\"/private/etc/sudoers\"))",
	)
	line("(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))")
	line("(allow file-ioctl (literal \"/dev/null\"))")
	line(
		"(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\") (global-name " +
			"\"com.apple.system.logger\"))",
	)
	if len(p.Read) > 0 {
		line("(allow file-read* %s)", subpaths(p.Read))
	}
	line("(allow file-read* file-write* %s)", subpaths(append(append([]string(nil), p.Write...), p.Scratch)))
	if len(p.Protect) > 0 {
		line("(deny file-write* %s)", subpaths(p.Protect))
	}
	if p.Proxy != "" {
		line("(allow network-outbound (remote unix-socket (path-literal %s)))", quoteSBPL(p.Proxy))
	}
	return b.String()
}

func quoteSBPL(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
