package kernels

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

// TestCodeBelongsToSource: the PTX that is embedded was made from the sources that stand beside it, with these options.
func TestCodeBelongsToSource(t *testing.T) {
	manifest, err := os.ReadFile("ptx/manifest.txt")
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile("common.cuh")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, u := range Units {
		source, err := os.ReadFile(u.Source)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%s %s\n", u.Name, Digest(source, header, []byte(u.Define)))
	}
	if string(manifest) != want.String() {
		t.Errorf(
			"the kernels were changed and not compiled again: go generate "+
				"./internal/backend/cuda/kernels\nhave\n%swant\n%s",
			manifest,
			want.String(),
		)
	}
}

// TestParametersHaveTheKernelsSize compares the structures in Go with what the compiler made of those in the sources.
func TestParametersHaveTheKernelsSize(t *testing.T) {
	sizes := map[string]uintptr{
		"elementwise": unsafe.Sizeof(Element{}), "quantize_heads": unsafe.Sizeof(HeadQuantize{}),
		"norm": unsafe.Sizeof(Norm{}),
		"rope": unsafe.Sizeof(Rope{}), "gather": unsafe.Sizeof(Gather{}),
		"store": unsafe.Sizeof(Store{}), "rope_store_f16": unsafe.Sizeof(RopeStore{}),
		"rope_store_f32": unsafe.Sizeof(RopeStore{}), "attend": unsafe.Sizeof(Attend{}),
		"route": unsafe.Sizeof(Route{}), "sort": unsafe.Sizeof(Sort{}), "expert": unsafe.Sizeof(Expert{}),
		"short": unsafe.Sizeof(Conv{}), "delta": unsafe.Sizeof(Delta{}),
		"float": unsafe.Sizeof(
			FloatProduct{},
		), "one": unsafe.Sizeof(QuantProduct{}), "few": unsafe.Sizeof(QuantProduct{}),
		"many":  unsafe.Sizeof(QuantProduct{}),
		"split": unsafe.Sizeof(QuantProduct{}), "sum": unsafe.Sizeof(QuantProduct{}),
	}
	entry := regexp.MustCompile(`\.entry (\w+)\(\s*\.param \.align \d+ \.b8 \w+\[(\d+)\]`)
	for i := range len(Units) * len(Images) {
		u := Units[i/len(Images)]
		ptx, err := PTX(u.Name, Images[i%len(Images)])
		if err != nil {
			t.Fatal(err)
		}
		found := entry.FindAllSubmatch(ptx, -1)
		for _, m := range found {
			name := string(m[1])
			want, ok := sizes[name]
			if !ok {
				first, _, _ := strings.Cut(name, "_")
				want = sizes[first]
			}
			if got := string(m[2]); got != fmt.Sprint(want) {
				t.Errorf("%s: %s takes %s bytes, its structure has %d", u.Name, name, got, want)
			}
		}
		if n := bytes.Count(ptx, []byte(".entry ")); n == 0 || n != len(found) {
			t.Errorf("%s has %d kernels, of %d the parameters are understood", u.Name, n, len(found))
		}
	}
}

func TestUnknownCode(t *testing.T) {
	if _, err := PTX("no such", 80); err == nil || !strings.Contains(err.Error(), `no kernels "no such"`) {
		t.Errorf("error %v", err)
	}
}
