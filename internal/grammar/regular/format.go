package regular

import (
	"strings"
	"sync"
)

// The formats of JSON Schema 2020-12 and draft-07 that are regular, as patterns over whole strings, with their
// sources.
var formatPatterns = func() map[string]string {
	const (
		leap = `(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
		date = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|` + leap + `-02-29)`
		zone = `(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
		// RFC 3339: a leap second is the last one of a day in UTC. Those spelled in other zones are left out.
		clock = `(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?` + zone + `|23:59:60(?:\.[0-9]+)?(?:[Zz]|[+-]00:00))`

		octet = `(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])`
		ipv4  = octet + `(?:\.` + octet + `){3}`
		h16   = `[0-9A-Fa-f]{1,4}`
		ls32  = `(?:` + h16 + `:` + h16 + `|` + ipv4 + `)`
		// RFC 3986, section 3.2.2
		ipv6 = `(?:(?:` + h16 + `:){6}` + ls32 +
			`|::(?:` + h16 + `:){5}` + ls32 +
			`|(?:` + h16 + `)?::(?:` + h16 + `:){4}` + ls32 +
			`|(?:(?:` + h16 + `:){0,1}` + h16 + `)?::(?:` + h16 + `:){3}` + ls32 +
			`|(?:(?:` + h16 + `:){0,2}` + h16 + `)?::(?:` + h16 + `:){2}` + ls32 +
			`|(?:(?:` + h16 + `:){0,3}` + h16 + `)?::` + h16 + `:` + ls32 +
			`|(?:(?:` + h16 + `:){0,4}` + h16 + `)?::` + ls32 +
			`|(?:(?:` + h16 + `:){0,5}` + h16 + `)?::` + h16 +
			`|(?:(?:` + h16 + `:){0,6}` + h16 + `)?::)`

		label = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
		host  = label + `(?:\.` + label + `)*`

		scheme  = `[A-Za-z][A-Za-z0-9+.-]*`
		pct     = `%[0-9A-Fa-f]{2}`
		unres   = `A-Za-z0-9._~\-`
		sub     = `!$&'()*+,;=`
		ucs     = `\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}`
		private = `\uE000-\uF8FF\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}`
		atext   = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
	)
	// uri builds RFC 3986's (with other: RFC 3987's) URI and relative reference.
	uri := func(other, query string) (absolute, reference string) {
		pchar := `(?:[` + unres + other + sub + `:@]|` + pct + `)`
		segment, segment1 := pchar+`*`, pchar+`+`
		noColon := `(?:[` + unres + other + sub + `@]|` + pct + `)+`
		authority := `(?:(?:[` + unres + other + sub + `:]|` + pct + `)*@)?` +
			`(?:\[(?:` + ipv6 + `|[vV][0-9A-Fa-f]+\.[` + unres + sub + `:]+)\]|(?:[` + unres + other + sub + `]|` + pct + `)*)(?::[0-9]*)?`
		hier := `//` + authority + `(?:/` + segment + `)*|/(?:` + segment1 + `(?:/` + segment + `)*)?`
		tail := `(?:\?(?:` + pchar + `|[/?` + query + `])*)?(?:#(?:` + pchar + `|[/?])*)?`
		absolute = scheme + `:(?:` + hier + `|` + segment1 + `(?:/` + segment + `)*|)` + tail
		reference = absolute + `|(?:` + hier + `|` + noColon + `(?:/` + segment + `)*|)` + tail
		return absolute, reference
	}
	u, ref := uri("", "")
	iri, iriRef := uri(ucs, private)
	local := `(?:` + atext + `+(?:\.` + atext + `+)*|"(?:[\x20\x21\x23-\x5B\x5D-\x7E]|\\[\x20-\x7E])*")`
	pointer := `(?:/(?:[^/~]|~[01])*)*`
	varname := `(?:[A-Za-z0-9_]|` + pct + `)(?:\.?(?:[A-Za-z0-9_]|` + pct + `))*`
	varspec := varname + `(?::[1-9][0-9]{0,3}|\*)?`
	return map[string]string{
		"date":      date,                  // RFC 3339, full-date
		"time":      clock,                 // RFC 3339, full-time
		"date-time": date + `[Tt]` + clock, // RFC 3339
		// RFC 3339, appendix A
		"duration": `P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))`,
		"ipv4":     ipv4, // RFC 2673, section 3.2
		"ipv6":     ipv6, // RFC 4291
		"hostname": host, // RFC 1123
		// RFC 5321: a mailbox
		"email":                 local + `@(?:` + host + `|\[(?:` + ipv4 + `|IPv6:` + ipv6 + `)\])`,
		"uri":                   u,                                                      // RFC 3986
		"uri-reference":         ref,                                                    // RFC 3986
		"iri":                   iri,                                                    // RFC 3987
		"iri-reference":         iriRef,                                                 // RFC 3987
		"uuid":                  `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`, // RFC 4122
		"json-pointer":          pointer,                                                // RFC 6901
		"relative-json-pointer": `(?:0|[1-9][0-9]*)(?:#|` + pointer + `)`,
		// RFC 6570
		"uri-template": `(?:[\x21\x23\x24\x26-\x3B\x3D\x3F-\x5B\x5D\x5F\x61-\x7A\x7E` + ucs + private + `]|` + pct +
			`|\{[+#./;?&=,!@|]?` + varspec + `(?:,` + varspec + `)*\})*`,
	}
}()

// Formats of JSON Schema that are not regular languages, or whose tables are not here.
var formatRefused = map[string]string{
	"regex":        "which strings are regular expressions cannot be said by an automaton",
	"idn-email":    "its internationalized host names need tables that are not built in",
	"idn-hostname": "it needs the tables of RFC 5892, which are not built in",
}

var formatCache sync.Map // name → func() (*DFA, error)

// Format is the language of a format that JSON Schema defines. known is false for any other name: those assert
// nothing. A format that cannot be enforced exactly is known and has an error.
// most bounds the code points, where the format has such a bound, and is -1 elsewhere.
func Format(name string) (d *DFA, most int, known bool, err error) {
	if why, ok := formatRefused[name]; ok {
		return nil, -1, true, &FormatError{name, why}
	}
	pattern, ok := formatPatterns[name]
	if !ok {
		return nil, -1, false, nil
	}
	f, _ := formatCache.LoadOrStore(name, sync.OnceValues(func() (*DFA, error) {
		d, err := Pattern(pattern, true)
		if err != nil {
			return nil, err
		}
		if name == "email" { // RFC 5321, section 4.5.3.1.1
			local, err := Pattern(`[^@"]{1,64}@[^@]*|"[^]{0,62}"@[^@]*`, true)
			if err != nil {
				return nil, err
			}
			if d, err = And(d, local); err != nil {
				return nil, err
			}
		}
		d.Finish()
		return d, nil
	}))
	d, err = f.(func() (*DFA, error))()
	most = -1
	if name == "hostname" {
		most = 253 // RFC 1123, section 2.1
	}
	return d, most, true, err
}

// A FormatError says why a format is not enforced.
type FormatError struct{ Name, Why string }

func (e *FormatError) Error() string { return strings.TrimSpace(`"` + e.Name + `": ` + e.Why) }
