package cli

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestAllListenersAreFound: a port may have several owners, one for each address, and all of them count.
func TestAllListenersAreFound(t *testing.T) {
	address := func(ip ...byte) string { // as the kernel writes it
		return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(ip))
	}
	local, any, far := address(127, 0, 0, 1), address(0, 0, 0, 0), address(10, 0, 0, 1)
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	for i, row := range []struct {
		address string
		port    int
		state   string
		uid     string
	}{
		{local, 7000, "0A", "1000"},
		{any, 7000, "0A", "1001"},
		{local, 7000, "01", "1002"}, // a connection
		{far, 7000, "0A", "1003"},
		{local, 7001, "0A", "1004"},
	} {
		table += fmt.Sprintf(
			"%4d: %s:%04X 00000000:0000 %s 00000000:00000000 00:00000000 00000000 %s 0 1\n",
			i,
			row.address,
			row.port,
			row.state,
			row.uid,
		)
	}
	if got := listeners(strings.NewReader(table), 7000); !slices.Equal(got, []int{1000, 1001}) {
		t.Errorf("%v", got)
	}
}
