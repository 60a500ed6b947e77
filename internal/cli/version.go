package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/config"
)

// buildInfo is what "version --json" prints.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPU      string `json:"cpu,omitempty"` // instruction set that the kernels use here
}

// version is set by the linker where a release is built.
var version string

func versionInfo() buildInfo {
	v := buildInfo{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if version != "" {
		v.Version = version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if mv := info.Main.Version; version == "" && mv != "" && mv != "(devel)" {
		v.Version = mv
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is the version in one line.
func (v buildInfo) String() string {
	return fmt.Sprintf("baleen %s (%s, %s/%s, kernels: %s)", v.Version, v.Go, v.OS, v.Arch, v.CPU)
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and what this machine can do",
		Args:  argsBetween(0, 0, "none"),
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo()
			level, err := isa.Best(a.cfg.CPULimit())
			if err != nil {
				return err
			}
			v.CPU = level.String()
			if asJSON {
				return a.writeJSON(v)
			}
			_, err = fmt.Fprintln(a.io.Out, v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.settings(cmd, config.CPU)
	return cmd
}
