package fairshare

import "testing"

func TestNobodyIsKeptOut(t *testing.T) {
	s := New(12)
	for range 12 {
		if ok, _ := s.Take("a", 1); !ok {
			t.Fatal("a caller that is alone does not get all of it")
		}
	}
	if ok, others := s.Take("a", 1); ok || others {
		t.Errorf("beyond the limit, alone: %v %v", ok, others)
	}
	got := map[string]int{}
	for range 12 {
		for _, c := range []string{"b", "c"} {
			if ok, _ := s.Take(c, 1); ok {
				got[c]++
			}
		}
	}
	if got["b"] != 4 || got["c"] != 4 { // a third of 12
		t.Errorf("%v, want 4 each", got)
	}
	if ok, others := s.Take("b", 1); ok || !others {
		t.Errorf("beyond its share: %v %v", ok, others)
	}
	for _, c := range []struct {
		caller string
		n      int64
	}{{"a", 12}, {"b", 4}, {"c", 4}} {
		s.Give(c.caller, c.n)
	}
	if s.Total() != 0 || len(s.by) != 0 {
		t.Errorf("%d left, %v", s.Total(), s.by)
	}
}

func TestOneCallerAlone(t *testing.T) {
	s := New(2)
	for i, want := range []bool{true, true, false} {
		if ok, others := s.Take("", 1); ok != want || others {
			t.Errorf("%d: %v %v", i, ok, others)
		}
	}
	if ok, _ := New(0).Take("", 1<<60); !ok {
		t.Error("no limit limits")
	}
}
