package web

import (
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// left out are elements that have nothing to read.
var leftOut = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Iframe: true, atom.Nav: true, atom.Footer: true,
	atom.Form: true, atom.Button: true, atom.Select: true, atom.Input: true, atom.Textarea: true, atom.Dialog: true, atom.Aside: true, atom.Head: true,
	atom.Object: true, atom.Canvas: true, atom.Video: true, atom.Audio: true, atom.Map: true,
}

// maxNodes and maxNested bound what is read of a page.
const (
	maxNodes  = 200_000
	maxNested = 400
)

// markdown returns the title and the text of a page: of its main part where it says which that is, without what surrounds
// it, such as navigation.
func markdown(text string, base *url.URL) (title, body string) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil { // nested deeper than the parser goes
		return "", words(text)
	}
	w := &writer{base: base}
	if t := find(doc, func(n *html.Node) bool { return n.DataAtom == atom.Title }); t != nil && t.FirstChild != nil {
		title = strings.Join(strings.Fields(t.FirstChild.Data), " ")
	}
	main := find(doc, func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" })
	if main == nil {
		main = only(doc, atom.Article)
	}
	if main == nil {
		main = doc
	}
	w.node(main, 0)
	body = strings.TrimSpace(w.b.String())
	if main != doc && len(body) < 200 { // it was not the main part after all
		w = &writer{base: base}
		w.node(doc, 0)
		if all := strings.TrimSpace(w.b.String()); len(all) > 4*len(body) {
			body = all
		}
	}
	return title, body
}

// words are the words of a page that cannot be parsed.
func words(text string) string {
	var out []string
	z := html.NewTokenizer(strings.NewReader(text))
	skip := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(out, " ")
		case html.StartTagToken:
			name, _ := z.TagName()
			skip = leftOut[atom.Lookup(name)] && atom.Lookup(name) != atom.Head
		case html.EndTagToken:
			skip = false
		case html.TextToken:
			if !skip {
				out = append(out, strings.Fields(string(z.Text()))...)
			}
		}
	}
}

func find(n *html.Node, is func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && is(d) {
			return d
		}
	}
	return nil
}

// only returns the one element of its kind; nil: there are none, or several.
func only(n *html.Node, a atom.Atom) *html.Node {
	var out *html.Node
	for d := range n.Descendants() {
		if d.DataAtom == a {
			if out != nil {
				return nil
			}
			out = d
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// A writer writes Markdown.
type writer struct {
	b     strings.Builder
	base  *url.URL
	nodes int

	pre   bool
	list  []int // numbers of the lists that are open; 0: without numbers
	blank bool  // a space is due before the next word
}

// block ends a paragraph.
func (w *writer) block() {
	w.blank = false
	s := w.b.String()
	switch {
	case s == "" || strings.HasSuffix(s, "\n\n"):
	case strings.HasSuffix(s, "\n"):
		w.b.WriteByte('\n')
	default:
		w.b.WriteString("\n\n")
	}
}

// line ends a line.
func (w *writer) line() {
	w.blank = false
	if s := w.b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.b.WriteByte('\n')
	}
}

func (w *writer) text(s string) {
	if w.pre {
		w.b.WriteString(s)
		return
	}
	if s == "" {
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		w.blank = true
		return
	}
	if w.blank || strings.ContainsAny(s[:1], " \t\n\r") {
		w.space()
	}
	w.b.WriteString(strings.Join(words, " "))
	w.blank = strings.ContainsAny(s[len(s)-1:], " \t\n\r")
}

func (w *writer) space() {
	if s := w.b.String(); s != "" && !strings.HasSuffix(s, "\n") && !strings.HasSuffix(s, " ") {
		w.b.WriteByte(' ')
	}
	w.blank = false
}

func (w *writer) children(n *html.Node, deep int) {
	for c := range n.ChildNodes() {
		w.node(c, deep+1)
	}
}

// around writes marks around what is in an element, if anything is.
func (w *writer) around(n *html.Node, deep int, mark string) {
	inner := &writer{base: w.base, nodes: w.nodes}
	inner.children(n, deep)
	w.nodes = inner.nodes
	s := strings.TrimSpace(inner.b.String())
	if s == "" {
		return
	}
	if strings.Contains(s, "\n") {
		mark = ""
	}
	if w.blank {
		w.space()
	}
	w.b.WriteString(mark + s + mark)
	w.blank = inner.blank
}

func (w *writer) node(n *html.Node, deep int) {
	if w.nodes++; w.nodes > maxNodes || deep > maxNested {
		return
	}
	switch n.Type {
	case html.TextNode:
		w.text(n.Data)
		return
	case html.ElementNode:
	default:
		w.children(n, deep)
		return
	}
	if leftOut[n.DataAtom] || attr(n, "hidden") != "" || attr(n, "aria-hidden") == "true" || hiddenStyle(attr(n, "style")) {
		return
	}
	switch a := n.DataAtom; a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.block()
		w.b.WriteString(strings.Repeat("#", int(n.Data[1]-'0')) + " ")
		w.around(n, deep, "")
		w.block()
	case atom.Br:
		w.line()
	case atom.Hr:
		w.block()
		w.b.WriteString("---")
		w.block()
	case atom.Pre:
		w.block()
		w.b.WriteString("```\n")
		w.pre = true
		w.children(n, deep)
		w.pre = false
		w.line()
		w.b.WriteString("```")
		w.block()
	case atom.Code, atom.Kbd, atom.Samp:
		if w.pre {
			w.children(n, deep)
			return
		}
		w.around(n, deep, "`")
	case atom.Strong, atom.B:
		w.around(n, deep, "**")
	case atom.Em, atom.I:
		w.around(n, deep, "*")
	case atom.A:
		w.link(n, deep)
	case atom.Img:
		if alt := strings.TrimSpace(attr(n, "alt")); alt != "" {
			w.text("[image: " + alt + "]")
		}
	case atom.Ul, atom.Ol:
		number := 0
		if a == atom.Ol {
			number = 1
		}
		if len(w.list) == 0 {
			w.block()
		}
		w.list = append(w.list, number)
		w.children(n, deep)
		w.list = w.list[:len(w.list)-1]
		if len(w.list) == 0 {
			w.block()
		}
	case atom.Li:
		w.line()
		mark := "- "
		if i := len(w.list) - 1; i >= 0 && w.list[i] > 0 {
			mark = fmt.Sprintf("%d. ", w.list[i])
			w.list[i]++
		}
		w.b.WriteString(strings.Repeat("  ", max(len(w.list)-1, 0)) + mark)
		inner := &writer{base: w.base, nodes: w.nodes, list: w.list}
		inner.children(n, deep)
		w.nodes = inner.nodes
		w.b.WriteString(strings.ReplaceAll(strings.TrimSpace(inner.b.String()), "\n\n", "\n"))
		w.line()
	case atom.Tr:
		w.line()
		w.b.WriteString("|")
		for c := range n.ChildNodes() {
			if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
				inner := &writer{base: w.base, nodes: w.nodes}
				inner.children(c, deep)
				w.nodes = inner.nodes
				w.b.WriteString(" " + strings.Join(strings.Fields(inner.b.String()), " ") + " |")
			}
		}
		w.line()
	case atom.Table:
		w.block()
		w.children(n, deep)
		w.block()
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Main, atom.Header, atom.Blockquote, atom.Dl, atom.Dt, atom.Dd, atom.Figure, atom.Details, atom.Summary,
		atom.Body, atom.Html:
		w.block()
		w.children(n, deep)
		w.block()
	default:
		w.children(n, deep)
	}
}

// link writes a link whose address a reader could use.
func (w *writer) link(n *html.Node, deep int) {
	inner := &writer{base: w.base, nodes: w.nodes}
	inner.children(n, deep)
	w.nodes = inner.nodes
	s := strings.TrimSpace(inner.b.String())
	u, err := w.base.Parse(attr(n, "href"))
	if s == "" {
		return
	}
	if w.blank {
		w.space()
	}
	w.blank = inner.blank
	if err != nil || attr(n, "href") == "" || strings.HasPrefix(attr(n, "href"), "#") || u.Scheme != "http" && u.Scheme != "https" || strings.Contains(s, "\n") {
		w.b.WriteString(s)
		return
	}
	w.b.WriteString("[" + s + "](" + u.String() + ")")
}

func hiddenStyle(s string) bool {
	s = strings.ReplaceAll(strings.ToLower(s), " ", "")
	return strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") || strings.Contains(s, "font-size:0")
}
