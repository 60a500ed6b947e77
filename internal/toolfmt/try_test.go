package toolfmt

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestTry(t *testing.T) {
	fn := os.Getenv("TRY")
	if fn == "" {
		t.Skip()
	}
	f, _ := os.Open(fn)
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var x []string
		if json.Unmarshal(sc.Bytes(), &x) != nil {
			continue
		}
		o := parseSplit(t, formatNamed(t, x[0]), everyday, Options{}, x[1])
		fmt.Printf("%s %q\n%s\n\n", x[0], x[1], o)
	}
}
