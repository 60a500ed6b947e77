package cli

import (
	"errors"
	"strconv"
	"time"
)

// keepAlive is a time to stay loaded as a flag: 30s, 5m, a number of seconds as Ollama has it, or a negative one for
// good.
type keepAlive struct {
	d   time.Duration
	set bool
}

func (k *keepAlive) String() string {
	if k == nil || !k.set && k.d == 0 {
		return ""
	}
	return k.d.String()
}

func (k *keepAlive) Type() string { return "TIME" }

func (k *keepAlive) Set(v string) error {
	d, err := time.ParseDuration(v)
	if n, nerr := strconv.ParseInt(v, 10, 32); nerr == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil {
		return errors.New("want a time such as 30s or 5m, or -1 for good")
	}
	if d < 0 {
		d = -1
	}
	k.d, k.set = d, true
	return nil
}
