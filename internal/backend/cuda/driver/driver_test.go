package driver

import (
	"strings"
	"testing"
	"time"
)

// TestNoDeviceIsSaidAtOnce: where there is no driver, that costs no time and is said in words.
func TestNoDeviceIsSaidAtOnce(t *testing.T) {
	began := time.Now()
	infos, err := Devices()
	if err == nil {
		t.Skipf("there are %d devices", len(infos))
	}
	if !strings.Contains(err.Error(), "no device") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := NewContext(0); err == nil {
		t.Error("there is no device, but a context")
	}
}
