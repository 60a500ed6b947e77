package cpu

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hugeOrder is the order of the smallest blocks in /proc/buddyinfo that count: 4 MiB of pages of 4 KiB.
const hugeOrder = 10

// askHuge asks for huge pages for memory that nobody has touched, if the kernel has enough of them at hand: where it
// has to move other pages first, the first touch of each takes longer than everything that is gained.
// RATIONALE: Why are huge pages asked for only at times?
func askHuge(blocks [][]byte) {
	total := 0
	for _, b := range blocks {
		total += len(b)
	}
	info, err := os.ReadFile("/proc/buddyinfo")
	if err != nil || freeBlocks(info, hugeOrder)*int64(os.Getpagesize()) < int64(total)+int64(total)/4 {
		return
	}
	for _, b := range blocks {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // without it everything works as well
	}
}

// freeBlocks returns how many pages lie in free blocks of at least 1<<order pages, by the text of /proc/buddyinfo: a
// line for each zone, "Node 0, zone Normal" and then the number of free blocks of each order from 0 on.
func freeBlocks(info []byte, order int) (pages int64) {
	for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
		f := bytes.Fields(lines.Bytes())
		for i := 4 + order; i < len(f); i++ {
			n, err := strconv.ParseInt(string(f[i]), 10, 64)
			if err != nil {
				return 0
			}
			pages += n << (i - 4)
		}
	}
	return pages
}
