// Operations on the values of a row: norms, activations, rotary embedding, copies, and quantization.
#include "common.cuh"

struct ElementArgs {
  const int* rows;
  float* out;
  const float* a;
  const float* b;
  const float* v;   // vector, by column; cosines
  const float* v2;  // second vector; sines
  const int* index; // positions; rows to gather
  Quantized q;      // where the result goes in quantized form too; frag 0: nowhere
  int out_stride, a_stride, b_stride;
  int width;        // values to compute in a row
  int op, kind;
  int n, n2, m, m2; // shapes, by operation
  int off_in, off_out, vlen;
  float f, f2;
};

enum { ACT, GLU, GATE, ADD, SCALE, SOFTCAP, ROWSCALE, CLAMP, COPYHEADS, COPY, DECAY, QUANTIZE };

KERNEL elementwise(ElementArgs p) {
  int rows = given(p.rows);
  begin();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.y >= rows) return;
  int row = blockIdx.y;
  bool in = i < p.width;
  float y = 0;
  if (in) {
    const float* a = p.a + (long)row * p.a_stride;
    float* out = p.out + (long)row * p.out_stride;
    int at = i;
    switch (p.op) {
      case ACT: y = activate(p.kind, a[i]); break;
      case GLU: y = gated(p.kind, a[i], p.b[(long)row * p.b_stride + i], p.f, p.f2); break;
      case GATE: y = a[i] * activate(p.kind, p.b[(long)row * p.b_stride + i / p.n]); break;
      case ADD: y = fma(a[i], p.f, out[i]); break;
      case SCALE:
        y = a[i] * p.f;
        if (p.v) y = y * p.v[p.vlen == 1 ? 0 : i];
        break;
      case SOFTCAP: y = p.f * tanhf_(a[i] / p.f); break;
      case ROWSCALE: y = a[i] * p.v[row]; break;
      case CLAMP:
        y = a[i];
        if (y > p.f) y = p.f;
        else if (y < -p.f) y = -p.f;
        break;
      case COPYHEADS:  // n values a head, from stride m to stride m2
        y = a[i / p.n * p.m + p.off_in + i % p.n];
        at = i / p.n * p.m2 + p.off_out + i % p.n;
        break;
      case DECAY: {
        y = a[i];
        if (p.v2) y = y + p.v2[i];
        y = softplusf(y);
        float d = p.v[i / p.n];
        if (!p.kind) d = -expf_(d);
        y = y * d;
        break;
      }
      default: y = a[i];
    }
    if (p.op != QUANTIZE) out[at] = y;
  }
  if (p.q.frag) quantize_block(p.q, y, row, i >> 5, p.width >> 5, threadIdx.x & 31, in);
}

struct HeadQuantizeArgs {
  const int* rows;
  const float* x;
  Quantized q;
  int stride, head_stride, off, k, tiles;  // tiles: capacity of a head
};

// Slices of a row, each quantized for a matrix of its own.
KERNEL quantize_heads(HeadQuantizeArgs p) {
  begin();
  if (blockIdx.y >= *p.rows) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool in = i < p.k;
  float v = in ? p.x[(long)blockIdx.y * p.stride + blockIdx.z * p.head_stride + p.off + i] : 0;
  quantize_block(p.q, v, blockIdx.z * p.tiles * 8 + blockIdx.y, i >> 5, p.k >> 5, threadIdx.x & 31, in);
}

struct NormArgs {
  const int* rows;
  float* out;
  float* x;
  const float* w;
  const float* b;
  const float* add;  // added to x, times add_scale, before anything else; 0: nothing
  Quantized q;
  int out_stride, x_stride, n, kind, w_step, b_step;  // w_step: n where each head has its own weights, else 0
  int add_stride;
  float eps, add_scale;
};

// One block of threads a head (blockIdx.x) of a row (blockIdx.y), or gridDim.z of them: each finds the same sums and writes its
// part. Nothing is added to x then, which all read. A thread keeps up to KEEP values in registers.
#define KEEP 4
KERNEL __launch_bounds__(1024) norm(NormArgs p) {
  extern __shared__ float x[];
  __shared__ float result;
  int head = blockIdx.x, lane = threadIdx.x & 31, n = p.n, step = blockDim.x;
  const float* w = p.w ? p.w + head * p.w_step : 0;
  const float* b = p.b ? p.b + head * p.b_step : 0;
  float wk[KEEP], v[KEEP], a[KEEP];
#pragma unroll
  for (int j = 0; j < KEEP; j++) {  // weights do not change: they are read before what comes before is complete
    int i = threadIdx.x + j * step;
    wk[j] = w && i < n ? w[i] : 0;
  }
  int rows = given(p.rows);
  begin();
  if (blockIdx.y >= rows) return;
  float* src = p.x + (long)blockIdx.y * p.x_stride + head * n;
  float* dst = p.out + (long)blockIdx.y * p.out_stride + head * n;
  const float* add = p.add ? p.add + (long)blockIdx.y * p.add_stride + head * n : 0;
#pragma unroll
  for (int j = 0; j < KEEP; j++) {
    int i = threadIdx.x + j * step;
    v[j] = i < n ? src[i] : 0;
    a[j] = add && i < n ? add[i] : 0;
  }
#pragma unroll
  for (int j = 0; j < KEEP; j++) {
    int i = threadIdx.x + j * step;
    if (i >= n) continue;
    if (add) src[i] = v[j] = fma(a[j], p.add_scale, v[j]);
    x[i] = v[j];
  }
  for (int i = threadIdx.x + KEEP * step; i < n; i += step) {
    float y = src[i];
    if (add) src[i] = y = fma(add[i], p.add_scale, y);
    x[i] = y;
  }
  __syncthreads();
  if (p.kind == 1) {
    if (threadIdx.x < 32) {
      float mean = lane_sum<false>(x, n, lane) / (float)n;
      if (lane == 0) result = mean;
    }
    __syncthreads();
    float mean = result;
    for (int i = threadIdx.x; i < n; i += step) x[i] = x[i] - mean;
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    float y = lane_sum<true>(x, n, lane);
    if (p.kind != 2) y = y / (float)n;
    if (lane == 0) result = 1.0f / __fsqrt_rn(y + p.eps);
  }
  __syncthreads();
  float f = result;
  auto one = [&](int i, float wi) {
    bool in = i < n;
    float y = 0;
    if (in) {
      y = x[i] * f;
      if (w && b) y = fma(y, wi, b[i]);
      else if (w) y = y * wi;
      else if (b) y = y + b[i];
      dst[i] = y;
    }
    if (p.q.frag) quantize_block(p.q, y, blockIdx.y, (head * n + i) >> 5, gridDim.x * n >> 5, lane, in);
  };
  // Whole warps and blocks of 32: those whose number is blockIdx.z modulo gridDim.z.
  int end = n + 31 & ~31, parts = gridDim.z;
  auto mine = [&](int i) { return i < end && (parts == 1 || (i >> 5) % parts == blockIdx.z); };
#pragma unroll
  for (int j = 0; j < KEEP; j++) {
    int i = threadIdx.x + j * step;
    if (mine(i)) one(i, wk[j]);
  }
  for (int i = threadIdx.x + KEEP * step; i < end; i += step)
    if (mine(i)) one(i, w && i < n ? w[i] : 0);
}

struct GatherArgs {
  const int* outs;   // number of rows with logits
  const int* index;  // which they are, ascending
  float* x;
  int stride, width;
};

// Rows move to the front in order, each thread its own columns: none overwrites what it still needs.
KERNEL gather(GatherArgs p) {
  begin();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.width) return;
  for (int r = 0; r < *p.outs; r++) {
    int from = p.index[r];
    if (from != r) p.x[(long)r * p.stride + i] = p.x[(long)from * p.stride + i];
  }
}
