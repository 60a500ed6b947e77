package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/store"
)

// hub is Hugging Face's address, HF_ENDPOINT or the usual one, and the token for it.
func (f *Fetcher) hub() (*url.URL, string, error) {
	u, err := url.Parse(orDefault(f.HFEndpoint, defaultEndpoint))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, "", fmt.Errorf("HF_ENDPOINT is %q, which is no http or https address", f.HFEndpoint)
	}
	return u, f.HFToken, nil
}

// listHFFile is a file whose size and sum the catalog knows.
func (f *Fetcher) listHFFile(e store.Entry, src store.HFFile) (*listing, error) {
	u, token, err := f.hub()
	if err != nil {
		return nil, err
	}
	return &listing{files: []remoteFile{{
		name: fixedName, url: u.JoinPath(src.Repo, "resolve", "main", src.File).String(),
		size: e.Size, sum: checksum{sumSHA256, e.SHA256}, token: token,
	}}}, nil
}

// hubFile is a line of a repository's list of files.
type hubFile struct {
	Type string `json:"type"`
	Path string `json:"path"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

var (
	hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hexSHA1   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

func (h hubFile) remote(u *url.URL, repo, rev, token string) remoteFile {
	r := remoteFile{url: u.JoinPath(repo, "resolve", rev, h.Path).String(), size: h.Size, token: token, name: h.Path}
	switch {
	case h.LFS != nil && hexSHA256.MatchString(h.LFS.OID):
		r.size, r.sum = h.LFS.Size, checksum{sumSHA256, h.LFS.OID}
	case h.LFS == nil && hexSHA1.MatchString(h.OID):
		r.sum = checksum{sumGit, h.OID}
	}
	return r
}

// listRepo asks Hugging Face for a repository's files at one commit and chooses the model.
func (f *Fetcher) listRepo(ctx context.Context, src store.HFRepo) (*listing, error) {
	u, token, err := f.hub()
	if err != nil {
		return nil, err
	}
	rev := orDefault(src.Revision, "main")
	var info struct {
		SHA  string `json:"sha"`
		Card struct {
			Licence any `json:"license"`
		} `json:"cardData"`
	}
	base := u.JoinPath("api", "models", src.Repo)
	if _, err := f.getJSON(ctx, base.String()+"/revision/"+url.PathEscape(rev), token, nil, &info); err != nil {
		return nil, f.hubError(src, token, err)
	}
	if !hexSHA1.MatchString(info.SHA) {
		return nil, final("%s does not say which commit %s is", u.Host, rev)
	}
	files, err := f.hubFiles(ctx, base.String()+"/tree/"+info.SHA+"?recursive=true", token)
	if err != nil {
		return nil, f.hubError(src, token, err)
	}
	chosen, err := chooseFiles(src, files)
	if err != nil {
		return nil, finalError{err}
	}
	l := &listing{man: store.Manifest{Revision: info.SHA}}
	l.man.Licence, _ = info.Card.Licence.(string)
	for _, c := range chosen {
		r := c.remote(u, src.Repo, info.SHA, token)
		if strings.HasSuffix(c.Path, ".gguf") {
			r.name = path.Base(c.Path)
		}
		if r.sum.kind == "" {
			return nil, final("%s gives no checksum for %s", u.Host, c.Path)
		}
		l.files = append(l.files, r)
	}
	return l, nil
}

// hubError says what to do about a refusal.
func (f *Fetcher) hubError(src store.HFRepo, token string, err error) error {
	s, ok := asStatus(err)
	switch {
	case !ok:
		return err
	case s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden:
		if token == "" {
			return final(
				"%s is not there, private or gated: accept its terms on its page and set HF_TOKEN: %w",
				src.Repo,
				s,
			)
		}
		return final("HF_TOKEN does not give access to %s: %w", src.Repo, s)
	case s.Code == http.StatusNotFound:
		return notFound("there is no %s, or not its revision %s", src.Repo, orDefault(src.Revision, "main"))
	}
	return err
}

// hubFiles reads all pages of a list of files.
func (f *Fetcher) hubFiles(ctx context.Context, address, token string) ([]hubFile, error) {
	host := hostOf(address)
	var all []hubFile
	for range 50 {
		var page []hubFile
		header, err := f.getJSON(ctx, address, token, nil, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		next := nextPage(header.Get("Link"))
		if next == "" || len(all) > 10*maxFiles {
			return all, nil
		}
		if hostOf(next) != host {
			return nil, final("the list of files goes on at another host, %s", hostOf(next))
		}
		address = next
	}
	return nil, final("the list of files has no end")
}

var linkNext = regexp.MustCompile(`<([^<>]+)>;\s*rel="next"`)

func nextPage(link string) string {
	if m := linkNext.FindStringSubmatch(link); m != nil {
		return m[1]
	}
	return ""
}

// preferred are the quantizations to take where none is named, the best compromise first.
var preferred = []string{"Q4_K_M", "MXFP4", "Q4_K_S", "Q4_K_XL", "Q5_K_M", "Q8_0", "Q4_0", "Q6_K", "BF16", "F16"}

// chooseFiles picks the files of one model: a GGUF file with all of its parts, or the safetensors with what belongs
// to them.
func chooseFiles(src store.HFRepo, files []hubFile) ([]hubFile, error) {
	groups := map[string][]hubFile{} // GGUF files by name without the parts' numbers
	for _, h := range files {
		if h.Type == "file" && strings.HasSuffix(h.Path, ".gguf") {
			lower := strings.ToLower(path.Base(h.Path))
			if strings.Contains(lower, "mmproj") || strings.Contains(lower, "imatrix") {
				continue
			}
			groups[ggufStem(h.Path)] = append(groups[ggufStem(h.Path)], h)
		}
	}
	if len(groups) == 0 {
		if src.Pick != "" {
			return nil, notFound("%s holds no GGUF files, so there is no %s", src.Repo, src.Pick)
		}
		return tensorFiles(src.Repo, files)
	}
	stem, err := chooseStem(src, groups)
	if err != nil {
		return nil, err
	}
	chosen := groups[stem]
	slices.SortFunc(chosen, func(a, b hubFile) int { return cmp.Compare(a.Path, b.Path) })
	if m := shardName.FindStringSubmatch(chosen[0].Path); m != nil {
		var n int
		if _, err := fmt.Sscanf(m[3], "%d", &n); err != nil || n != len(chosen) {
			return nil, fmt.Errorf("%s has %d of %s parts of %s", src.Repo, len(chosen), m[3], stem)
		}
	} else if len(chosen) != 1 {
		return nil, fmt.Errorf("%s has %d files called %s", src.Repo, len(chosen), stem)
	}
	return chosen, nil
}

var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

func ggufStem(name string) string {
	if m := shardName.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return strings.TrimSuffix(name, ".gguf")
}

func chooseStem(src store.HFRepo, groups map[string][]hubFile) (string, error) {
	var stems []string
	for s := range groups {
		stems = append(stems, s)
	}
	slices.Sort(stems)
	if src.Pick == "" {
		if len(stems) == 1 {
			return stems[0], nil
		}
		for _, q := range preferred {
			if found := matching(stems, q); len(found) == 1 {
				return found[0], nil
			}
		}
		return "", fmt.Errorf(
			"%s has several models: name one of them, as %s:QUANTIZATION: %s",
			src.Repo,
			src.Repo,
			short(stems),
		)
	}
	want := ggufStem(src.Pick)
	for _, s := range stems {
		if strings.EqualFold(s, want) || strings.EqualFold(path.Base(s), want) {
			return s, nil
		}
	}
	found := matching(stems, src.Pick)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("%s has no %s; there are %s", src.Repo, src.Pick, short(stems))
	}
	return "", fmt.Errorf("%s has several files for %s: %s", src.Repo, src.Pick, short(found))
}

// matching are the names that a quantization fits. "Q4_K_XL" fits "UD-Q4_K_XL" too, unless there is one without more.
func matching(stems []string, quant string) []string {
	var found, plain []string
	for _, s := range stems {
		base := path.Base(s)
		if !store.HasQuant(base, quant) {
			continue
		}
		found = append(found, s)
		if !strings.Contains(strings.ToUpper(base), "UD-"+strings.ToUpper(quant)) {
			plain = append(plain, s)
		}
	}
	if len(plain) == 1 {
		return plain
	}
	return found
}

func short(names []string) string {
	const most = 24
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// beside are the files that a model of safetensors needs or is better with; patterns of path.Match.
var beside = []string{
	"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "*.tiktoken",
	"tiktoken.model", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
	"chat_template.jinja", "chat_template.json", "preprocessor_config.json", "model.safetensors.index.json", "LICENSE*",
	"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "*_Pooling/config.json",
	"*_Dense/config.json", "*_Dense/*.safetensors", "*_Normalize/config.json",
}

func tensorFiles(repo string, files []hubFile) ([]hubFile, error) {
	var out []hubFile
	config, weights, hasModel := false, false, false
	for _, h := range files {
		hasModel = hasModel || strings.HasPrefix(h.Path, "model") && strings.HasSuffix(h.Path, ".safetensors")
	}
	for _, h := range files {
		if h.Type != "file" {
			continue
		}
		take := false
		for _, p := range beside {
			ok, _ := path.Match(p, h.Path)
			take = take || ok
		}
		if !strings.Contains(h.Path, "/") && strings.HasSuffix(h.Path, ".safetensors") {
			// The original form lies beside the converted one in some repositories.
			take = !(hasModel && strings.HasPrefix(h.Path, "consolidated"))
			weights = weights || take
		}
		config = config || h.Path == "config.json"
		if take {
			out = append(out, h)
		}
	}
	if !config || !weights {
		return nil, fmt.Errorf("%s holds neither GGUF files nor config.json with safetensors", repo)
	}
	// Small files first: what is wrong with them shows before the weights are fetched.
	slices.SortStableFunc(out, func(a, b hubFile) int { return cmp.Compare(a.Size, b.Size) })
	return out, nil
}

// listURL is a file of which nothing is known but where it is, and the other parts of a split one.
func (f *Fetcher) listURL(e store.Entry, address string) (*listing, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, final("%q is no address", address)
	}
	base := path.Base(u.Path)
	m := shardName.FindStringSubmatch(base)
	if m == nil {
		return &listing{files: []remoteFile{{name: base, url: u.String(), size: -1}}}, nil
	}
	if len(e.Files) > 0 {
		return nil, final("%s is one part of several, so that one checksum is not enough: leave #sha256= out", base)
	}
	var n int
	if _, err := fmt.Sscanf(m[3], "%d", &n); err != nil || n < 1 || n > 999 {
		return nil, final("%s is one of too many parts", base)
	}
	l := &listing{}
	for i := range n {
		part := *u
		name := fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3])
		part.Path, part.RawPath = path.Join(path.Dir(u.Path), name), ""
		l.files = append(l.files, remoteFile{name: name, url: part.String(), size: -1})
	}
	return l, nil
}

// maxBlob bounds what of an Ollama model is small enough to be no weights.
const maxBlob = 16 << 20

// listOllama reads a manifest of an Ollama registry.
func (f *Fetcher) listOllama(ctx context.Context, t store.OllamaTag) (*listing, error) {
	endpoint := orDefault(f.OllamaEndpoint, defaultRegistry)
	if t.Host != "" {
		endpoint = "https://" + t.Host
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, final("%q is no address of a registry", endpoint)
	}
	base := u.JoinPath("v2", t.Namespace, t.Model)
	var raw json.RawMessage
	header := map[string]string{"Accept": "application/vnd.docker.distribution.manifest.v2+json"}
	if _, err := f.getJSON(ctx, base.JoinPath("manifests", t.Tag).String(), "", header, &raw); err != nil {
		if s, ok := asStatus(err); ok {
			switch s.Code {
			case http.StatusNotFound:
				return nil, notFound("the registry has no %s", t)
			case http.StatusUnauthorized, http.StatusForbidden:
				return nil, final("the registry does not give %s to everybody, and Baleen does not sign in there", t)
			}
		}
		return nil, err
	}
	layers, problem, err := store.ParseOllama(raw)
	if err != nil {
		return nil, finalError{err}
	}
	if problem != "" {
		return nil, final("%s cannot be used here: %s", t, problem)
	}
	l := &listing{}
	count := map[string]int{}
	for _, layer := range layers {
		name := store.LayerFile(layer.Kind())
		if name == "" {
			continue
		}
		if layer.Kind() != "model" && layer.Size > maxBlob {
			return nil, final("the %s of %s has %d bytes", layer.Kind(), t, layer.Size)
		}
		if count[name]++; count[name] > 1 {
			name += fmt.Sprintf(".%d", count[name])
		}
		if layer.Kind() == "model" {
			l.man.Revision = layer.Digest
		}
		l.files = append(l.files, remoteFile{
			name: name, url: base.JoinPath("blobs", layer.Digest).String(), size: layer.Size, sum: checksum{sumSHA256, layer.Sum()},
		})
	}
	slices.SortStableFunc(l.files, func(a, b remoteFile) int { return cmp.Compare(a.size, b.size) })
	return l, nil
}

func copyContext(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	buf := make([]byte, 1<<20)
	var n int64
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.Read(buf)
		if _, werr := w.Write(buf[:k]); werr != nil {
			return n, werr
		}
		n += int64(k)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
