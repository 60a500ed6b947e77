package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestCloseWhileEverythingComesAndGoes(t *testing.T) {
	for round := range 20 {
		k := kinds[round%len(kinds)]
		m := mode{"tight", 16, 4, 4, 340, 5000}
		o := m.options(k)
		f := newFake(k, o.Exec)
		e, err := New(f, k.plan(300), Decoders(newLetters), o)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rnd := seeded(uint64(g + 100*round))
				for range 1000 {
					ctx, cancel := context.WithCancel(context.Background())
					q := &Request{Tokens: make([]int32, 1+rnd.IntN(200)), Stop: []string{"AB", "é"}, LogProbs: rnd.IntN(3), Progress: true}
					s, err := e.Generate(ctx, q)
					if err != nil {
						cancel()
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					n, done := rnd.IntN(20), 0
					go func() { <-s.Ended(); e.Stats() }()
					for ev := range s.All() {
						if ev.Done {
							done++
						} else if n--; n == 0 {
							switch rnd.IntN(3) {
							case 0:
								cancel()
							case 1:
								s.Close()
							}
						}
					}
					if done != 1 {
						t.Errorf("%d last events", done)
					}
					cancel()
				}
			})
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		var cl sync.WaitGroup
		for range 3 {
			cl.Go(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		cl.Wait()
		wg.Wait()
		if f.problem != nil {
			t.Fatal(f.problem)
		}
	}
}
