package baleen

import "context"

// What is nil, or was made as a literal instead of by this package's functions, is an error that says so, and no
// panic far inside.

func checkContext(ctx context.Context) error {
	if ctx == nil {
		return wrong("ctx", "it is nil: want a context, such as context.Background()")
	}
	return nil
}

func (m *Model) usable() error {
	if m == nil || m.runtime == nil {
		return wrong("model", "there is none: want one that Open gave without an error")
	}
	return nil
}

func (r *Runtime) usable() error {
	if r == nil || r.pool == nil {
		return wrong("runtime", "there is none: want one of NewRuntime")
	}
	return nil
}

func (s *Session) usable() error {
	if s == nil || s.model == nil {
		return wrong("session", "there is none: want one of NewSession, NewSessionFrom or LoadSession")
	}
	return s.model.usable()
}
