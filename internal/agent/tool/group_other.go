//go:build !unix

package tool

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
