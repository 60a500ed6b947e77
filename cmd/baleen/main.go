// Command baleen runs open-weight language models on this machine.
package main

import (
	"os"

	"github.com/baleenrun/baleen/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
