package cpu_test

import (
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/backendtest"
	"github.com/baleenrun/baleen/internal/backend/cpu"
	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

func TestContract(t *testing.T) {
	var cpus []string
	for _, l := range isa.Levels() {
		cpus = append(cpus, l.String())
	}
	maker := func(limit string, threads int) backend.Backend {
		return cpu.New(cpu.Options{Threads: threads, Limit: limit})
	}
	backendtest.Run(t, maker, cpus)
	t.Run("long sequences", func(t *testing.T) { backendtest.RunLong(t, maker) })
}
