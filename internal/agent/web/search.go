package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// SearchHost is the host that searches are sent to. It needs no key.
const SearchHost = "html.duckduckgo.com"

// A Hit is a result of a search.
type Hit struct{ Title, URL, Text string }

// Search searches the web.
func (f *Fetcher) Search(ctx context.Context, query string, most int) ([]Hit, error) {
	return f.search(ctx, "https://"+SearchHost+"/html/", query, most)
}

func (f *Fetcher) search(ctx context.Context, base, query string, most int) ([]Hit, error) {
	if len(query) > 1000 {
		return nil, errors.New("the query is longer than 1000 bytes")
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"?q="+url.QueryEscape(query), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (compatible; baleen)")
	resp, err := f.client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // 202 is the page that asks whether one is a human
		return nil, fmt.Errorf("the search at %s was refused (%s): try later, or fetch an address that you know", SearchHost, resp.Status)
	}
	doc, err := html.Parse(http.MaxBytesReader(nil, resp.Body, maxBody))
	if err != nil {
		return nil, err
	}
	return hits(doc, resp.Request.URL, most), nil
}

// hits reads a page of results.
func hits(doc *html.Node, base *url.URL, most int) []Hit {
	var out []Hit
	for n := range doc.Descendants() {
		class := " " + attr(n, "class") + " "
		switch {
		case strings.Contains(class, " result__a "):
			u, err := base.Parse(attr(n, "href"))
			if err != nil || len(out) == most {
				continue
			}
			if to := u.Query().Get("uddg"); to != "" { // a link that counts clicks
				if u, err = url.Parse(to); err != nil {
					continue
				}
			}
			if (u.Scheme == "http" || u.Scheme == "https") && !strings.HasSuffix(u.Hostname(), "duckduckgo.com") { // not an advertisement's
				out = append(out, Hit{Title: plainText(n), URL: u.String()})
			}
		case strings.Contains(class, " result__snippet ") && len(out) > 0 && out[len(out)-1].Text == "":
			out[len(out)-1].Text = plainText(n)
		}
	}
	return out
}

func plainText(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
