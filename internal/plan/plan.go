// Package plan defines the lowered program of a model: a flat list of block-level operations over named
// buffers with fixed shapes per row, together with the weights, vectors and states that they use.
//
// A family (package family) lowers a checkpoint into a Plan once, at load; a backend compiles the Plan and
// executes it step by step over ragged batches. The package knows no files, no families and no backends.
//
// Shapes. A step has R rows, one per token; a buffer holds Width float32 values for every row. Matrices are
// stored with one output feature per row: y[o] = sum over i of W[o][i]*x[i].
package plan

// A Plan is a model ready to be compiled by a backend. It is immutable after lowering.
// RATIONALE: Why plans and not a Forward method per family?
type Plan struct {
	Family  string // registered name of the family, such as "qwen2"
	Vocab   int    // width of a row of logits
	Context int    // positions that the model was loaded for
	// LongFrom is how many tokens a sequence has at most while it turns by the ropes' InvFreq; one that has more turns
	// by Long, from its first position on. 0: there is no Long.
	LongFrom int

	Buffers []Buffer
	Weights []Weight
	Vectors []Vector
	Ropes   []Rope
	Groups  []Group // paged key/value caches, by window
	States  []State // recurrent states, one float32 array per sequence each
	Routes  []Route // routing results, one per MoE layer shape in use
	Ops     []Op    // in order; the last one writes the logits
	Logits  Val     // width Vocab, valid for the output rows after the last op
}

// A Buffer holds Width float32 values for each row of a step.
type Buffer struct {
	Name  string
	Width int
}

// A Val is a view of a buffer: Width values from Off on in each row.
type Val struct {
	Buf, Off, Width int
}

// Slice returns the part of v that starts at off and is width values wide.
func (v Val) Slice(off, width int) Val { return Val{v.Buf, v.Off + off, width} }

// Identifiers index the Plan's tables. None means that an operation goes without.
type (
	WeightID int
	VectorID int
	RopeID   int
	RouteID  int
	StateID  int
)

// None is the absent weight, vector, rope, route or state.
const None = -1

// A Vector is a small float32 parameter: norm weights, biases, sinks, convolution kernels.
type Vector struct {
	Name string
	Data []float32
}

// A Rope is a table of rotary angles: pair j of position p turns by p*InvFreq[j] rounded to float32, and cosine and
// sine are multiplied by Scale (YaRN and LongRoPE attention factors).
// RATIONALE: Why is a sequence computed again when it outgrows LongRoPE's first factors?
type Rope struct {
	InvFreq []float64 // length: rotary dimensions / 2
	Long    []float64 // of the same length, instead of InvFreq for long sequences (LongRoPE); nil: InvFreq for all
	Scale   float64   // 1 unless the variant scales
}

// A Group is a set of layers whose keys and values live in pages of the same lifetime: all positions for
// Window 0, else the last Window positions (a page wholly before them may be returned).
type Group struct {
	Window int
	Layers []KVLayer
}

// A KVLayer is the cache of one attention layer: for each position Heads keys of KDim values and Heads values
// of VDim. With VInK the values are the first VDim values of the key (latent attention) and not stored.
type KVLayer struct {
	Heads, KDim, VDim int
	VInK              bool
}

// A State is an array of Size float32 values that a sequence carries from token to token. A new sequence
// starts with zeros.
type State struct {
	Name string
	Size int
}

// A Route describes one router result: TopK expert numbers and weights per row.
type Route struct {
	Experts, TopK int
}

// NormKind selects the normalization.
type NormKind uint8

const (
	NormRMS   NormKind = iota // x / sqrt(mean(x²)+eps) * w
	NormLayer                 // (x-mean) / sqrt(var+eps) * w + b
	NormL2                    // x / sqrt(sum(x²)+eps), no weight
)

// ActKind selects an activation function.
type ActKind uint8

const (
	ActNone     ActKind = iota
	ActSiLU             // x*sigmoid(x)
	ActGELU             // exact: x*Phi(x) by erf
	ActGELUTanh         // tanh approximation
	ActReLU
	ActReLU2   // max(x,0)²
	ActSigmoid // 1/(1+exp(-x))
	ActTanh
	ActSwiGLUOAI // gpt-oss, only in GLU: g=min(g,Limit), u=clamp(u,±Limit), (u+1)*g*sigmoid(Alpha*g)
	ActSoftplus  // log(1+exp(x))
	ActExp
)

// GateKind selects how a router turns logits into expert weights.
type GateKind uint8

const (
	GateSoftmax     GateKind = iota // softmax over all experts, then top k
	GateSigmoid                     // sigmoid of each, bias added for the choice only, then top k
	GateTopKSoftmax                 // top k of the logits, then softmax over these
)

// An Op is one operation of a plan. Rows are independent in all ops except Attention (which reads the rows'
// sequences) and the recurrent ops (which walk the rows of a sequence in order).
type Op interface{ op() }

type (
	// Embed writes row Tokens[r] of W, times Scale, into Out. W has Vocab rows.
	Embed struct {
		Out   Val
		W     WeightID
		Scale float32 // 1: none
	}

	// Norm normalizes each of Heads equal slices of In into Out (in place allowed). W and B have the
	// slice's length, or In's whole width with PerHead weights laid end to end.
	Norm struct {
		In, Out Val
		Kind    NormKind
		W, B    VectorID
		Heads   int // 1: the whole row
		Eps     float32
	}

	// MatMul multiplies In by each weight; Out[i] has W[i].Rows values. Bias[i] is added where not None
	// (Bias may be nil). Weights share the input, so that it is quantized once.
	MatMul struct {
		In   Val
		Out  []Val
		W    []WeightID
		Bias []VectorID
	}

	// HeadMatMul multiplies each of W.Experts equal slices of In (stride InStride, W.K values used from
	// InOff on) by its own matrix; slice h of Out starts at h*OutStride+OutOff.
	HeadMatMul struct {
		In, Out           Val
		W                 WeightID
		InStride, InOff   int
		OutStride, OutOff int
	}

	// RopeOp rotates 2*len(InvFreq) values at Off of each of Heads slices of HeadDim values in X, in place.
	// Interleaved pairs are (2j, 2j+1), otherwise (j, j+n/2).
	RopeOp struct {
		X           Val
		Heads       int
		HeadDim     int
		Off         int
		Rope        RopeID
		Interleaved bool
	}

	// StoreKV writes K and V (Heads slices each) of every row to its position in the cache. V is unused
	// (zero Val) where the layer has VInK.
	StoreKV struct {
		K, V  Val
		Group int
		Layer int // index into Groups[Group].Layers
	}

	// Attention computes softmax(Scale*q·k)·v for each of Heads query heads of KDim values over the row's
	// own sequence, positions up to its own; Heads is a multiple of the layer's key heads, query head h
	// uses key head h/(Heads/KVHeads). Out has Heads slices of VDim values. The window is the group's
	// unless Window is smaller and not 0. SoftCap c>0 replaces a score s by c*tanh(s/c). Sinks has one
	// value per head that joins the softmax denominator.
	Attention struct {
		Q, Out  Val
		Heads   int
		Group   int
		Layer   int
		Scale   float32
		SoftCap float32
		Window  int
		Sinks   VectorID
	}

	// Act applies Kind to each value of In.
	Act struct {
		In, Out Val
		Kind    ActKind
	}

	// GLU writes act(Gate)*Up. Limit and Alpha are ActSwiGLUOAI's.
	GLU struct {
		Gate, Up, Out Val
		Kind          ActKind
		Limit, Alpha  float32
	}

	// Gate writes X times act(G): G has X's width, or one value for each of X.Width/G.Width slices.
	Gate struct {
		X, G, Out Val
		Kind      ActKind // ActSigmoid, ActSiLU, ...
	}

	// Add adds In times Scale to Out.
	Add struct {
		In, Out Val
		Scale   float32
	}

	// Scale multiplies X by Factor, and by the vector V (X's width or one value) where not None.
	Scale struct {
		X      Val
		Factor float32
		V      VectorID
	}

	// SoftCap replaces x by Cap*tanh(x/Cap).
	SoftCap struct {
		X   Val
		Cap float32
	}

	// PosScale multiplies X by 1 + Beta*log(1+floor((position+Offset)/Length)): attention temperature that
	// grows with the distance from the start.
	PosScale struct {
		X      Val
		Beta   float64
		Length int
		Offset int
	}

	// Clamp limits each value of X to [-Limit, Limit].
	Clamp struct {
		X     Val
		Limit float32
	}

	// CopyHeads copies Width values for each of Heads slices: from In at h*InStride+InOff to Out at
	// h*OutStride+OutOff. In and Out do not overlap.
	CopyHeads struct {
		In, Out           Val
		Heads, Width      int
		InStride, InOff   int
		OutStride, OutOff int
	}

	// Copy copies In to Out.
	Copy struct{ In, Out Val }

	// Router chooses TopK experts per row from the logits In. Ties go to the lower expert number. The chosen
	// are in descending order of the score used for the choice. Bias is added for the choice only. With
	// Groups>1 only experts of the GroupTopK best groups may be chosen: a group's score is the sum of its
	// two best (GroupSum2) or its best. Norm divides the weights by their sum (plus NormEps); Scale multiplies them.
	Router struct {
		In        Val
		Route     RouteID
		Kind      GateKind
		Bias      VectorID
		Groups    int
		GroupTopK int
		GroupSum2 bool
		Norm      bool
		NormEps   float32
		Scale     float32
	}

	// Experts runs the chosen experts' gated FFN on In: down(act(gate(x))*up(x)), weighted and summed in
	// router order into Out. Biases are [experts][rows] vectors or None. With WeightInput the weight
	// multiplies the input instead of the output.
	Experts struct {
		In, Out           Val
		Route             RouteID
		Gate, Up, Down    WeightID
		GateB, UpB, DownB VectorID
		Kind              ActKind
		Limit, Alpha      float32
		WeightInput       bool
	}

	// ShortConv is a causal depthwise convolution over the rows of a sequence: channel c of row t is
	// sum over j of W[c][j]*x[t-Kernel+1+j], plus B[c], then act. W is [channels][Kernel]. The state holds
	// the Kernel-1 inputs before the next row, oldest first: [Kernel-1][channels].
	ShortConv struct {
		In, Out Val
		W, B    VectorID
		Kernel  int
		Kind    ActKind
		State   StateID
	}

	// DeltaScan is the gated delta rule, one step per row of a sequence and value head, with S [KDim][VDim]:
	//   S = S * exp(Decay);  u = Beta*(v - Sᵀk);  S = S + k uᵀ;  out = Sᵀ(q*Scale)
	// Q and K have KHeads slices of KDim, V and Out VHeads of VDim; value head h uses key head h/(VHeads/KHeads), or
	// h%KHeads where Tiled is set (the order of GGUF files). Decay (log space, not positive) has VHeads values, or
	// VHeads*KDim with PerChannel (Kimi delta attention). Beta has VHeads values. State is [VHeads][KDim][VDim].
	DeltaScan struct {
		Q, K, V, Decay, Beta, Out Val
		KHeads, VHeads            int
		KDim, VDim                int
		Scale                     float32
		PerChannel                bool
		Tiled                     bool
		State                     StateID
	}

	// Decay writes -exp(ALog)*softplus(X+Bias) per value: the log decay of delta and state-space layers.
	// ALog has X's width, or one value per slice of X.
	Decay struct {
		X, Out     Val
		ALog, Bias VectorID // ALog holds A itself (negative) where AIsNeg is set
		AIsNeg     bool
	}

	// Gather drops all rows but those that the batch wants logits for: from here on the step has len(Out)
	// rows. Vals lists the views whose values are needed afterwards. It comes once, after everything that reads rows'
	// tokens, positions or sequences.
	Gather struct{ Vals []Val }
)

func (*Embed) op()      {}
func (*Norm) op()       {}
func (*MatMul) op()     {}
func (*HeadMatMul) op() {}
func (*RopeOp) op()     {}
func (*StoreKV) op()    {}
func (*Attention) op()  {}
func (*Act) op()        {}
func (*GLU) op()        {}
func (*Gate) op()       {}
func (*Add) op()        {}
func (*Scale) op()      {}
func (*SoftCap) op()    {}
func (*PosScale) op()   {}
func (*Clamp) op()      {}
func (*CopyHeads) op()  {}
func (*Copy) op()       {}
func (*Router) op()     {}
func (*Experts) op()    {}
func (*ShortConv) op()  {}
func (*DeltaScan) op()  {}
func (*Decay) op()      {}
func (*Gather) op()     {}
