//go:build !unix

package files

// NonBlock opens what may be a pipe without waiting for its other end; here there is no need.
const NonBlock = 0
