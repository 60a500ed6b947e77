// Short convolutions and the gated delta rule: rows of a sequence follow each other.
#include "common.cuh"

struct ConvArgs {
  const int* seqs;
  const int* spans;  // {first row, rows, slot} of each sequence
  const float* x;
  float* out;
  const float* w;  // [channels][kernel]
  const float* b;
  float* slots;
  long slot_floats;
  int x_stride, out_stride, channels, kernel, kind, state;
};

// A thread has a channel of a sequence (blockIdx.y). The state is [kernel-1][channels], oldest first.
KERNEL short_conv(ConvArgs p) {
  begin();
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.y >= *p.seqs || c >= p.channels) return;
  const int* span = p.spans + 3 * blockIdx.y;
  float* state = p.slots + span[2] * p.slot_floats + p.state;
  const float* w = p.w + (long)c * p.kernel;
  for (int r = span[0]; r < span[0] + span[1]; r++) {
    float x = p.x[(long)r * p.x_stride + c];
    float acc = 0;
    for (int j = 0; j < p.kernel - 1; j++) {
      float s = state[(long)j * p.channels + c];
      acc = fma(s, w[j], acc);
      if (j > 0) state[(long)(j - 1) * p.channels + c] = s;
    }
    acc = fma(x, w[p.kernel - 1], acc);
    if (p.kernel > 1) state[(long)(p.kernel - 2) * p.channels + c] = x;
    if (p.b) acc = acc + p.b[c];
    p.out[(long)r * p.out_stride + c] = activate(p.kind, acc);
  }
}

struct DeltaArgs {
  const int* seqs;
  const int* spans;
  const float* q;
  const float* k;
  const float* v;
  const float* decay;
  const float* beta;
  float* out;
  float* slots;
  long slot_floats;
  int q_stride, k_stride, v_stride, decay_stride, beta_stride, out_stride;
  int kheads, vheads, kdim, vdim, per_channel, tiled, state;
  float scale;
};

// A thread has a column of a head's state: 32 columns (blockIdx.z) of a head (blockIdx.y) of a sequence (blockIdx.x).
KERNEL delta_scan(DeltaArgs p) {
  begin();
  extern __shared__ float mem[];
  float* s = mem;  // [kdim][32]
  float *g = s + p.kdim * 32, *key = g + p.kdim, *gk = key + p.kdim, *q = gk + p.kdim;
  if (blockIdx.x >= *p.seqs) return;
  const int* span = p.spans + 3 * blockIdx.x;
  int h = blockIdx.y, t = threadIdx.x, c = blockIdx.z * 32 + t;
  int kh = p.tiled ? h % p.kheads : h / (p.vheads / p.kheads);
  bool in = c < p.vdim;
  float* state = p.slots + span[2] * p.slot_floats + p.state + (long)h * p.kdim * p.vdim + c;
  for (int i = 0; i < p.kdim; i++) s[i * 32 + t] = in ? state[(long)i * p.vdim] : 0;
  for (int r = span[0]; r < span[0] + span[1]; r++) {
    __syncwarp();
    const float* decay = p.decay + (long)r * p.decay_stride;
    for (int i = t; i < p.kdim; i += 32) {
      float e = expf_(p.per_channel ? decay[h * p.kdim + i] : decay[h]);
      float k = p.k[(long)r * p.k_stride + kh * p.kdim + i];
      g[i] = e;
      key[i] = k;
      gk[i] = e * k;
      q[i] = p.q[(long)r * p.q_stride + kh * p.kdim + i] * p.scale;
    }
    __syncwarp();
    float acc = 0;
#pragma unroll 8
    for (int i = 0; i < p.kdim; i++) acc = fma(s[i * 32 + t], gk[i], acc);
    float v = in ? p.v[(long)r * p.v_stride + h * p.vdim + c] : 0;
    float u = (v - acc) * p.beta[(long)r * p.beta_stride + h];
    float o = 0;
#pragma unroll 8
    for (int i = 0; i < p.kdim; i++) {
      float x = fma(key[i], u, s[i * 32 + t] * g[i]);
      s[i * 32 + t] = x;
      o = fma(x, q[i], o);
    }
    if (in) p.out[(long)r * p.out_stride + h * p.vdim + c] = o;
  }
  if (in)
    for (int i = 0; i < p.kdim; i++) state[(long)i * p.vdim] = s[i * 32 + t];
}
