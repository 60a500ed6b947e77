// Package web fetches pages for an agent, and searches the web. It reaches public addresses alone: what a name resolves
// to is looked at when the connection is made, so that no name, redirect or second answer leads into the user's own
// network. It knows no tools, permissions or models.
//
// RATIONALE: How is a fetched page kept from reaching into the user's network?
package web

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// A ForbiddenError says that an address is not public.
type ForbiddenError struct {
	Addr netip.Addr
	Why  string
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s is not reached: it is %s", e.Addr, e.Why)
}

// special are ranges of addresses that are not public, after the registries of special-purpose addresses of IANA
// (RFC 6890 and its successors).
var special = func() (out []struct {
	p   netip.Prefix
	why string
},
) {
	for _, s := range []struct{ p, why string }{
		{"0.0.0.0/8", "of this network"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "a provider's or a VPN's"},
		{"127.0.0.0/8", "of this machine"},
		{"169.254.0.0/16", "of the link, where clouds keep their keys"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "of a protocol"},
		{"192.0.2.0/24", "for documents"},
		{"192.88.99.0/24", "a relay"},
		{"192.168.0.0/16", "private"},
		{"198.18.0.0/15", "for benchmarks"},
		{"198.51.100.0/24", "for documents"},
		{"203.0.113.0/24", "for documents"},
		{"224.0.0.0/3", "for groups, or reserved"},
		{"2001::/23", "of a protocol, or a tunnel"},
		{"2001:db8::/32", "for documents"},
		{"2002::/16", "a tunnel to an address of version 4"},
		{"3fff::/20", "for documents"},
	} {
		out = append(out, struct {
			p   netip.Prefix
			why string
		}{netip.MustParsePrefix(s.p), s.why})
	}
	return out
}()

// public is where addresses of version 6 are given out. All others are of links, sites, groups and machines, or have
// addresses of version 4 in them (mapped, compatible, NAT64).
var public = netip.MustParsePrefix("2000::/3")

// check returns a *ForbiddenError for an address that is not public, or this machine's own.
func check(a netip.Addr) error {
	if a.Zone() != "" {
		return &ForbiddenError{a, "of the link"}
	}
	plain := a.Unmap()
	if plain != a { // connections to these reach addresses of version 4
		if err := check(plain); err != nil {
			return &ForbiddenError{a, err.(*ForbiddenError).Why}
		}
	}
	if plain.Is6() && !public.Contains(plain) {
		return &ForbiddenError{a, "not public"}
	}
	for _, s := range special {
		if s.p.Contains(plain) {
			return &ForbiddenError{a, s.why}
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return &ForbiddenError{a, "perhaps this machine's own: " + err.Error()}
	}
	for _, o := range own {
		if n, ok := o.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == plain {
				return &ForbiddenError{a, "this machine's own"}
			}
		}
	}
	return nil
}

// control looks at the address of a connection before it is made.
func control(allowed func(netip.Addr) error) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("no connections by %s", network)
		}
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return allowed(ap.Addr())
	}
}
