// Command baleen runs open-weight language models on this machine.
package main

import (
	"os"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
	"github.com/baleenrun/baleen/internal/cli"
)

func main() {
	sandbox.Helper() // does not return where this process is to hold a command
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
