package kernels

// The parameters of kernels, as their sources declare them; a test compares the sizes. Ptr is an address of the
// device's memory.
type Ptr = uint64

// Quantized is where quantized activations lie.
type Quantized struct{ Frag, Meta, Sums Ptr }

// Element is the parameter of elementwise.
type Element struct {
	Rows, Out, A, B, V, V2, Index Ptr
	Q                             Quantized
	OutStride, AStride, BStride   int32
	Width                         int32
	Op, Kind                      int32
	N, N2, M, M2                  int32
	OffIn, OffOut, VLen           int32
	F, F2                         float32
	_                             int32
}

// What elementwise does.
const (
	OpAct = iota
	OpGLU
	OpGate
	OpAdd
	OpScale
	OpSoftCap
	OpRowScale
	OpClamp
	OpCopyHeads
	OpCopy
	OpDecay
	OpQuantize
)

// HeadQuantize is the parameter of quantize_heads.
type HeadQuantize struct {
	Rows, X                           Ptr
	Q                                 Quantized
	Stride, HeadStride, Off, K, Tiles int32
	_                                 int32
}

// Norm is the parameter of norm.
type Norm struct {
	Rows, Out, X, W, B, Add                   Ptr
	Q                                         Quantized
	OutStride, XStride, N, Kind, WStep, BStep int32
	AddStride                                 int32
	Eps, AddScale                             float32
	_                                         int32
}

// Rope is the parameter of rope.
type Rope struct {
	Rows, Pos, X, Cos, Sin                          Ptr
	Stride, Heads, HeadDim, Off, Pairs, Interleaved int32
}

// Gather is the parameter of gather.
type Gather struct {
	Outs, Index, X Ptr
	Stride, Width  int32
}

// Tables are the page tables of a step.
type Tables struct{ Pages, Stride Ptr }

// Store is the parameter of store_kv.
type Store struct {
	Rows, Pos, Seq                      Ptr
	Tables                              Tables
	K, V, Base                          Ptr
	PageBytes                           int64
	KStride, VStride, Heads, KDim, VDim int32
	HeadBytes, VOff                     int32
	_                                   int32
}

// RopeStore is the parameter of rope_store.
type RopeStore struct {
	Q, K  Rope
	Store Store
}

// Attend is the parameter of attention.
type Attend struct {
	Rows, Tiles, Pos, Seq             Ptr
	Tables                            Tables
	Q, Out, Sinks, Parts, Base        Ptr
	Quantized                         Quantized
	PageBytes                         int64
	QStride, OutStride                int32
	Heads, Group, PerTile             int32
	KDim, VDim, HeadBytes, VOff, VInK int32
	Window, Split, Chunks             int32
	Ring                              int32
	Scale, Cap                        float32
}

// Conv is the parameter of short_conv.
type Conv struct {
	Seqs, Spans, X, Out, W, B, Slots                  Ptr
	SlotFloats                                        int64
	XStride, OutStride, Channels, Kernel, Kind, State int32
}

// Delta is the parameter of delta_scan.
type Delta struct {
	Seqs, Spans, Q, K, V, Decay, Beta, Out, Slots                 Ptr
	SlotFloats                                                    int64
	QStride, KStride, VStride, DecayStride, BetaStride, OutStride int32
	KHeads, VHeads, KDim, VDim, PerChannel, Tiled, State          int32
	Scale                                                         float32
}

// Route is the parameter of route.
type Route struct {
	Rows, Logits, Bias, IDs, Weights   Ptr
	Stride, Experts, TopK, Kind        int32
	Groups, GroupTopK, GroupSum2, Norm int32
	NormEps, Scale                     float32
}

// Sort is the parameter of sort_slots.
type Sort struct {
	Rows, IDs, Col, Slot, Expert, Tiles Ptr
	TopK, Experts                       int32
}

// Expert is the parameter of the kernels around experts' products.
type Expert struct {
	Cols, Slot, Col, Expert, IDs, Weights        Ptr
	X, U, Out, Bias, Bias2                       Ptr
	Q                                            Quantized
	XStride, OutStride, Width, TopK, Kind, Weigh int32
	Limit, Alpha                                 float32
}

// Matrices are what a product multiplies by: up to 4 matrices that share their input.
type Matrices struct {
	W, Y, Bias            [4]Ptr
	Rows, Groups, YStride [4]int32
}

// FloatProduct is the parameter of products with float weights.
type FloatProduct struct {
	Cols, Expert  Ptr
	M             Matrices
	X             Ptr
	MatrixBytes   int64
	XStride, K, N int32
	HeadX, HeadY  int32
	_             int32
}

// QuantProduct is the parameter of products with block-quantized weights.
type QuantProduct struct {
	Cols, Expert     Ptr
	M                Matrices
	Q                Quantized
	MatrixBytes      int64
	Blocks, N        int32
	HeadTiles, HeadY int32
	Part             Ptr
	Split, PartRows  int32
	Sum              Ptr
	SumStride        int32
	SumScale         float32
}
