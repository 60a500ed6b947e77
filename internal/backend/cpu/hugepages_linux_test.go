package cpu

import "testing"

func TestFreeBlocks(t *testing.T) {
	const info = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1     " +
		" 3 \n" +
		"Node 0, zone   Normal     14  19879  15539    285    803   1361    740    337    196     69    240 \n"
	for _, c := range []struct {
		order int
		want  int64
	}{{10, 243 << 10}, {9, 243<<10 + 70<<9}, {11, 0}} {
		if got := freeBlocks([]byte(info), c.order); got != c.want {
			t.Errorf("%d pages in blocks of order %d and above, want %d", got, c.order, c.want)
		}
	}
	for _, damaged := range []string{"", "Node", "Node 0, zone Normal 1 2 3 4 5 6 7 8 9 10 x\n"} {
		if got := freeBlocks([]byte(damaged), 10); got != 0 {
			t.Errorf("%q: %d pages", damaged, got)
		}
	}
}
