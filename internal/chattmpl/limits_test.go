package chattmpl

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileTemplates wants each of these to end in an error, soon, and
// without taking much memory.
func TestHostileTemplates(t *testing.T) {
	loop := func(body string) string {
		return "{% set ns = namespace(x='a', l=[0], d={}) %}{% for i in range(100000) %}" + body + "{% endfor %}"
	}
	for name, source := range map[string]string{
		"self-calling macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"mutual macros": "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ " +
			"a() }}",
		"macro in its default":    "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
		"caller of itself":        "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
		"recursive loop":          "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"long range":              "{{ range(100000000)|list }}",
		"nested ranges":           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"nested ranges with text": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
		"empty inner loop": "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% " +
			"endfor %}",
		"huge string":          "{{ 'a' * 10000000000 }}",
		"huge string by steps": "{{ 'a' * 100000 * 100000 }}",
		"many large strings":   loop("{% set ns.l = ns.l + ['a' * 60000000] %}"),
		"doubling a string":    loop("{% set ns.x = ns.x + ns.x %}"),
		"doubling by format":   loop("{% set ns.x = '%s%s' % (ns.x, ns.x) %}"),
		"doubling by replace":  loop("{% set ns.x = ns.x|replace('a', 'aa') %}"),
		"doubling by join":     loop("{% set ns.x = [ns.x, ns.x]|join %}"),
		"doubling by tojson":   loop("{% set ns.x = ns.x|tojson|tojson %}"),
		"doubling by escape":   loop("{% set ns.x = (ns.x ~ '<')|e|string ~ ns.x %}"),
		"doubling a list":      loop("{% set ns.l = ns.l + ns.l %}"),
		"huge list":            "{{ [0] * 100000000000 }}",
		"huge tuple":           "{{ (0,) * 100000000000 }}",
		"shared nesting":       loop("{% set ns.l = [ns.l, ns.l] %}") + "{{ ns.l }}",
		"shared nesting to json": "{% set ns = namespace(l=[0]) %}{% for i in range(40) %}{% set ns.l = [ns.l, " +
			"ns.l] %}{% endfor %}{{ ns.l|tojson }}",
		"shared nesting equality": "{% set ns = namespace(l=[0], m=[0]) %}{% for i in range(40) %}{% set ns.l = " +
			"[ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
		"shared nesting as key": "{% set ns = namespace(l=(0,)) %}{% for i in range(45) %}{% set ns.l = (ns.l, " +
			"ns.l) %}{% endfor %}{{ {ns.l: 1} }}",
		"deep nesting":          loop("{% set ns.l = [ns.l] %}") + "{{ ns.l }}",
		"deep nesting to json":  loop("{% set ns.l = [ns.l] %}") + "{{ ns.l|tojson }}",
		"deep nesting compared": loop("{% set ns.l = [ns.l] %}{% set ns.x = [ns.x] %}") + "{{ ns.l == ns.x }}",
		"namespace in itself":   "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
		"chain of lazy filters": loop("{% set ns.l = ns.l|map('string') %}") + "{{ ns.l|list }}",
		"chain of selects":      loop("{% set ns.l = ns.l|select %}") + "{{ ns.l|list }}",
		"huge power":            "{{ 9 ** (9 ** 9) }}",
		"huge power of two":     "{{ 2 ** 10000000000 }}",
		"growing integer": "{% set ns = namespace(x=3) %}{% for i in range(1000) %}{% set ns.x = ns.x * " +
			"ns.x %}{% endfor %}",
		"wide format":             "{{ '%1000000000d' % 1 }}",
		"wide format by argument": "{{ '%*d' % (1000000000, 1) }}",
		"precise format":          "{{ '%.1000000000f' % 1.5 }}",
		"wide str.format":         "{{ '{:1000000000}'.format(1) }}",
		"wide center":             "{{ 'a'|center(10000000000) }}",
		"wide zfill":              "{{ 'a'.zfill(10000000000) }}",
		"wide expandtabs":         "{{ '\t'.expandtabs(10000000000) }}",
		"wide indent":             "{{ 'a\nb'|indent(10000000000) }}",
		"wide json indent":        "{{ [1]|tojson(indent=10000000000) }}",
		"nested json indent":      "{{ [[[[[[1]]]]]]|tojson(indent='a' * 30000000) }}",
		"filled batch":            "{{ [1]|batch(10000000000, 0)|list }}",
		"many slices":             "{{ [1]|slice(10000000000)|list }}",
		"output":                  "{% for i in range(99999) %}{{ 'a' * 10000 }}{% endfor %}",
		"output in macro": "{% macro m() %}{% for i in range(99999) %}{{ 'a' * 10000 }}{% endfor %}{% " +
			"endmacro %}{{ m()|length }}",
		"sorting again":            loop("{% set q = range(9999)|list|sort|length %}"),
		"searching again":          "{% set s = 'a' * 1000000 %}" + loop("{{ 'b' in s }}"),
		"stripping a wide set":     "{% set s = 'a' * 1000000 %}{% set c = 'b' * 1000000 ~ 'a' %}" + loop("{{ s.strip(c)|length }}"),
		"counting":                 "{% set s = 'a' * 1000000 %}" + loop("{{ s.count('a') }}"),
		"characters of a long one": "{% set s = 'é' * 1000000 %}{% for i in range(99999) %}{{ s[i] }}{% endfor %}",
		"slices of a long one":     "{% set s = 'é' * 1000000 %}{% for i in range(99999) %}{{ s[i:i+1] }}{% endfor %}",
		"lengths of a long one":    "{% set s = 'é' * 30000000 %}{% for i in range(99999) %}{{ s|length }}{% endfor %}",
		"lines of a long one": "{% set s = '\n' * 3000000 %}{% for i in range(99999) %}{% set q = s|indent " +
			"%}{% endfor %}",
		"words of a long one": "{% set s = 'a ' * 3000000 %}{% for i in range(99999) %}{% set q = " +
			"s|wordwrap(1) %}{% endfor %}",
		"strftime":       "{{ strftime_now('%c' * 10000000) }}",
		"star arguments": loop("{{ dict(*[[]]) }}{% set q = '%s'|format(*(range(99999))) %}"),
	} {
		t.Run(name, func(t *testing.T) {
			tm, err := Parse("hostile", source)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out, err := tm.Render(context.Background(), Input{}, Limits{})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("rendered %d bytes, want an error", len(out.Text()))
			}
			var e *Error
			if !errors.As(err, &e) || e.Line == 0 {
				t.Errorf("error %v has no place", err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<30 {
				t.Errorf("allocated %d MiB in all", grown>>20)
			}
		})
	}
}

// TestWrappingIsLinear wraps words of a megabyte, which took the square of their length.
func TestWrappingIsLinear(t *testing.T) {
	for _, word := range []string{"'a'", "'é'", "messages[0]", "'ab-'"} {
		tm, err := Parse("long", "{{ ("+word+" * 1000000)|wordwrap(1)|length }}")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		_, err = tm.Render(ctx, Input{Messages: NewList(Text("é"))}, Limits{})
		cancel()
		if took := time.Since(began); took > time.Minute || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%s took %v: %v", word, took, err)
		}
	}
}

// TestHostileSource wants sources that are nested or long beyond reason to be
// refused, or handled, without a crash.
func TestHostileSource(t *testing.T) {
	const n = 100000
	for name, source := range map[string]string{
		"brackets":       "{{ " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}",
		"lists":          "{{ " + strings.Repeat("[", n) + strings.Repeat("]", n) + " }}",
		"dicts":          "{{ " + strings.Repeat("{1:", n) + "1" + strings.Repeat("}", n) + " }}",
		"nots":           "{{ " + strings.Repeat("not ", n) + "1 }}",
		"minuses":        "{{ " + strings.Repeat("-", n) + "1 }}",
		"sum":            "{{ 1" + strings.Repeat("+1", n) + " }}",
		"power":          "{{ 1" + strings.Repeat("**1", n) + " }}",
		"attributes":     "{{ a" + strings.Repeat(".a", n) + " }}",
		"subscripts":     "{{ a" + strings.Repeat("[0]", n) + " }}",
		"calls":          "{{ a" + strings.Repeat("()", n) + " }}",
		"filters":        "{{ a" + strings.Repeat("|upper", n) + " }}",
		"filter block":   "{% filter upper" + strings.Repeat("|upper", n) + " %}{% endfilter %}",
		"tests":          "{{ a" + strings.Repeat(" is defined", n) + " }}",
		"conditions":     "{{ 1" + strings.Repeat(" if 1 else 1", n) + " }}",
		"conditions 2":   "{{ 1" + strings.Repeat(" if 1", n) + " }}",
		"ands":           "{{ 1" + strings.Repeat(" and 1", n) + " }}",
		"ifs":            strings.Repeat("{% if 1 %}", n) + strings.Repeat("{% endif %}", n),
		"loops":          strings.Repeat("{% for x in y %}", n) + strings.Repeat("{% endfor %}", n),
		"macros":         strings.Repeat("{% macro m() %}", n) + strings.Repeat("{% endmacro %}", n),
		"targets":        "{% set " + strings.Repeat("(", n) + "a" + strings.Repeat(")", n) + " = 1 %}",
		"many ifs":       strings.Repeat("{% if a %}{% set b = 1 %}{% endif %}", n),
		"unclosed raw":   strings.Repeat("{% raw %}", n),
		"unclosed":       strings.Repeat("{{", n),
		"openers":        strings.Repeat("{", 10*n),
		"digits":         "{{ " + strings.Repeat("1", n) + " }}",
		"hashes":         "{#" + strings.Repeat("#", 10*n),
		"too long":       strings.Repeat("x", MaxSource+1),
		"not UTF-8":      "{{ '\xff' }}",
		"many names":     manyNames(30000),
		"nested scoping": strings.Repeat("{% if a %}", 150) + manyNames(2000) + strings.Repeat("{% endif %}", 150),
	} {
		t.Run(name, func(t *testing.T) {
			// What is not refused ends: the test's own time limit catches what does not.
			if tm, err := Parse("hostile", source); err == nil {
				_, _ = tm.Render(context.Background(), Input{}, Limits{})
			}
		})
	}
}

// manyNames is a template of n branches that each set a name of their own.
func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("{% if a %}{% set v")
		b.WriteString(strings.Repeat("x", i%7))
		b.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)))
		b.WriteString(" = 1 %}{% endif %}")
	}
	return b.String()
}

func TestLimitsAreHonoured(t *testing.T) {
	for _, tc := range []struct {
		source string
		lim    Limits
	}{
		{"{% for x in range(1000) %}{% endfor %}", Limits{Steps: 500}},
		{"{{ 'a' * 100 }}", Limits{OutputBytes: 99}},
		{"{{ ('a' * 100)|length }}", Limits{StringBytes: 99}},
		{"{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(30) }}", Limits{Depth: 20}},
	} {
		tm, err := Parse("", tc.source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tm.Render(context.Background(), Input{}, Limits{}); err != nil {
			t.Errorf("%s: %v with the default limits", tc.source, err)
		}
		if _, err := tm.Render(context.Background(), Input{}, tc.lim); !errors.Is(err, ErrLimit) {
			t.Errorf("%s with %+v: error %v, want ErrLimit", tc.source, tc.lim, err)
		}
	}
}

func TestContextEndsRendering(t *testing.T) {
	tm, err := Parse("", "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tm.Render(ctx, Input{}, Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, tc := range []struct {
		source, want string
		kind         error
	}{
		{"a\nb {{ 1 + }}", "test:2:10: unexpected \"end of print statement\"", ErrSyntax},
		{"{% if x %}\n{% for y in x %}\n", "test:2:17: unexpected end of template, expected endfor or else to close " +
			"\"for\"", ErrSyntax},
		{"é{{ x|nope }}", "test:1:7: no filter named \"nope\"", ErrSyntax},
		{"{% nope %}", "test:1:4: unknown tag \"nope\"", ErrSyntax},
		{"x\n\n{{ a.b.c }}", "test:3:6: UndefinedError: 'a' is undefined", nil},
		{"{{ raise_exception('no system role') }}", "test:1:19: no system role", ErrRaised},
		{"{% include 'x' %}", "test:1:4: SecurityError: include is refused: a chat template cannot load other " +
			"templates", nil},
	} {
		tm, err := Parse("test", tc.source)
		if err == nil {
			_, err = tm.Render(context.Background(), Input{}, Limits{})
		}
		if err == nil || err.Error() != "chattmpl: "+tc.want {
			t.Errorf("%q:\n got %v\nwant chattmpl: %s", tc.source, err, tc.want)
		}
		if tc.kind != nil && !errors.Is(err, tc.kind) {
			t.Errorf("%q: error %v does not wrap %v", tc.source, err, tc.kind)
		}
	}
}
