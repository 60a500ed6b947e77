package bench

import (
	"bytes"
	"sync"
	"time"
)

// bandwidthBytes is what each thread reads, far more than caches hold.
const bandwidthBytes = 192 << 20

// ReadBandwidth measures how many 10^9 bytes per second so many threads read from memory together: the best of the
// passes that fit into the duration, since anything else that runs can only slow a pass down. Each thread searches
// its own part for a byte that is not there, which the standard library does with vector loads.
func ReadBandwidth(threads int, duration time.Duration) float64 {
	parts := make([][]byte, threads)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			parts[i] = make([]byte, bandwidthBytes)
			for j := 0; j < len(parts[i]); j += 4096 {
				parts[i][j] = 1 // fresh pages would all be one page of zeros
			}
		})
	}
	wg.Wait()
	best := 0.0
	for end := time.Now().Add(duration); time.Now().Before(end); {
		best = max(best, pass(parts))
	}
	return best
}

func pass(parts [][]byte) float64 {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(len(parts))
	for _, part := range parts {
		done.Go(func() {
			ready.Done()
			<-start
			if bytes.IndexByte(part, 0xff) >= 0 {
				panic("bench: a byte that nobody wrote")
			}
		})
	}
	ready.Wait()
	began := time.Now()
	close(start)
	done.Wait()
	return float64(len(parts)*bandwidthBytes) / time.Since(began).Seconds() / 1e9
}
