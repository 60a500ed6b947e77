//go:build unix

package bench

import "testing"

func TestHighWater(t *testing.T) {
	if got := highWater([]byte("Name:\tx\nVmHWM:\t  121432 kB\nVmRSS:\t 1 kB\n")); got != 121432<<10 {
		t.Errorf("%d", got)
	}
	if got := highWater([]byte("VmHWM: none\n")); got != 0 {
		t.Errorf("%d", got)
	}
	if got := peakRSS(); got < 1<<20 || got > 1<<40 {
		t.Errorf("this process has %d bytes", got)
	}
}
