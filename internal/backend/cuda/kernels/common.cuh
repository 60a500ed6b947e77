// What all kernels share: rounding, the functions of NUMERICS.md, sums over lanes, and quantized activations.
//
// Compiled with -fmad=false -ftz=false -prec-div=true -prec-sqrt=true, so that an operation rounds as it is written and
// a fused multiply-add is one only where fma() stands. No headers are included: what CUDA's own would give stands here.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEV __device__ __forceinline__
#define KERNEL extern "C" __global__ void

DEV float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEV float bits(u32 u) { return __uint_as_float(u); }

// The second operand wins if either is a NaN, and of two zeros.
DEV float maxf(float a, float b) { return a > b ? a : b; }
DEV float minf(float a, float b) { return a < b ? a : b; }
DEV float absf(float x) { return bits(__float_as_uint(x) & 0x7fffffffu); }

DEV float half_to_float(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
DEV u16 float_to_half(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
DEV float low_half(u32 w) { return half_to_float((u16)w); }
DEV float high_half(u32 w) { return half_to_float((u16)(w >> 16)); }

#define MAGIC 12582912.0f  // 1.5*2^23: adding it rounds to a whole number, which stands in the low bits
#define MAGIC_BITS 0x4b400000

DEV float expf_(float x) {
  x = maxf(-104.0f, minf(89.0f, x));
  float t = fma(x, bits(0x3fb8aa3b), MAGIC);
  float n = t - MAGIC;
  float r = fma(-n, bits(0x3f317218), x);
  r = fma(-n, bits(0xb102e308), r);
  float p = 0.00139517034f;
  p = fma(p, r, 0.00836959761f);
  p = fma(p, r, 0.0416661873f);
  p = fma(p, r, 0.166665122f);
  p = fma(p, r, 0.5f);
  p = fma(p, r, 1.0f);
  p = fma(p, r, 1.0f);
  // Two factors, so that neither overflows and a subnormal result is rounded once, by the second.
  int k = (int)__float_as_uint(t) - MAGIC_BITS;
  int h = k >> 1;
  p = p * bits((u32)(h + 127) << 23);
  return p * bits((u32)(k - h + 127) << 23);
}

DEV float tanhf_(float x) {
  float a = absf(x);
  if (a < 0.625f) {
    float z = x * x;
    float p = -0.0057170419f;
    p = fma(p, z, 0.0206505843f);
    p = fma(p, z, -0.0537434965f);
    p = fma(p, z, 0.133314908f);
    p = fma(p, z, -0.333332837f);
    return fma(p * z, x, x);
  }
  float r = 1.0f - 2.0f / (expf_(a + a) + 1.0f);
  return bits(__float_as_uint(r) | (__float_as_uint(x) & 0x80000000u));
}

DEV float geluf(float x) {
  float a = minf(14.5f, absf(x));
  float t = 1.0f / fma(0.3f, a, 1.0f);
  float p = -0.0206234753f;
  p = fma(p, t, 0.112435639f);
  p = fma(p, t, -0.228213638f);
  p = fma(p, t, 0.191784561f);
  p = fma(p, t, -0.0794234946f);
  p = fma(p, t, 0.0961568281f);
  p = fma(p, t, 0.0783896521f);
  p = fma(p, t, 0.110235423f);
  p = fma(p, t, 0.119571812f);
  p = fma(p, t, 0.119686693f);
  float hi = a * a;
  float lo = fma(a, a, -hi);
  float e = expf_(hi * -0.5f);
  e = fma(e * -0.5f, lo, e);
  float q = (p * t) * e;
  float y = x * q;
  return x > 0.0f ? x - y : y;
}

DEV float gelu_tanhf(float x) {
  const float a = (float)(2 * 0.79788456080286535588 * 0.044715), b = (float)(2 * 0.79788456080286535588);
  float z = x * x;
  float u = fma(z, a, b) * x;
  return x / (1.0f + expf_(-u));
}

DEV float softplusf(float x) {
  float y = expf_(-absf(x));
  float s = y / (2.0f + y);
  float z = s * s;
  float p = 0.121504612f;
  p = fma(p, z, 0.107138306f);
  p = fma(p, z, 0.143084422f);
  p = fma(p, z, 0.199994385f);
  p = fma(p, z, 0.333333373f);
  s = s + s;
  return maxf(0.0f, x) + fma(p * z, s, s);
}

// The numbers are those of plan.ActKind.
DEV float activate(int kind, float x) {
  switch (kind) {
    case 1: return x / (1.0f + expf_(-x));
    case 2: return geluf(x);
    case 3: return gelu_tanhf(x);
    case 4: return maxf(0.0f, x);
    case 5: { float y = maxf(0.0f, x); return y * y; }
    case 6: return 1.0f / (1.0f + expf_(-x));
    case 7: return tanhf_(x);
    case 9: return softplusf(x);
    case 10: return expf_(x);
  }
  return x;
}

DEV float gated(int kind, float g, float u, float limit, float alpha) {
  if (kind == 8) {  // ActSwiGLUOAI
    g = minf(limit, g);
    u = maxf(-limit, minf(limit, u));
    float s = g / (1.0f + expf_(-(alpha * g)));
    return (u + 1.0f) * s;
  }
  return activate(kind, g) * u;
}

// lane_sum adds up n values of shared memory: 16 lanes, in segments of 8,192, and the tree. All threads of a warp call it and
// get the sum. SQUARES adds squares.
template <bool SQUARES> DEV float lane_sum(const float* x, int n, int lane) {
  float total = 0;
  for (int s = 0; s < n; s += 8192) {
    int end = min(n, s + 8192);
    float acc = 0;
    if (lane < 16) {
      int i = s + lane, n16 = s + (end - s & ~255);
      float v[16], w[16];  // what is added, and what comes next: loads do not wait for the chain
      if (i < n16)
#pragma unroll
        for (int j = 0; j < 16; j++) v[j] = x[i + 16 * j];
      for (; i < n16; i += 256) {
        if (i + 256 < n16)
#pragma unroll
          for (int j = 0; j < 16; j++) w[j] = x[i + 256 + 16 * j];
#pragma unroll
        for (int j = 0; j < 16; j++) acc = SQUARES ? fma(v[j], v[j], acc) : acc + v[j];
#pragma unroll
        for (int j = 0; j < 16; j++) v[j] = w[j];
      }
      for (; i < end; i += 16) acc = SQUARES ? fma(x[i], x[i], acc) : acc + x[i];
    }
    total = s == 0 ? acc : total + acc;
  }
  total += __shfl_down_sync(~0u, total, 8);
  total += __shfl_down_sync(~0u, total, 4);
  total += __shfl_down_sync(~0u, total, 2);
  total += __shfl_down_sync(~0u, total, 1);
  return __shfl_sync(~0u, total, 0);
}

// With programmatic launches a kernel begins while the one before it ends. begin lets the next one do so too, and waits until
// all that came before is complete: every kernel calls it before it reads or writes what others do.
DEV void begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// given reads a number of the step's input, which is complete before the first kernel of a step begins: it may be read before
// begin().
DEV int given(const int* p) {
  int v;
  asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

// Quantized activations, in the order of the tensor cores' B fragments. Columns (rows of the step) lie in tiles of 8; for a
// tile and a block of 32 there are 32 lanes of 8 bytes, 4 pairs of columns with {d0, d1, s0, s1}, and 4 pairs with the sums of
// the first and the last 16 numbers {low0, low1, high0, high1}. Index: tile*PADDED(blocks) + block. Blocks beyond the last, up to
// those of a whole unit of weights, are zeros, and add nothing.
#define PADDED(blocks) ((blocks) + 7 & ~7)
struct Quantized {
  uint2* frag;
  float4* meta;
  int4* sums;
};

// quantize_block quantizes a block of a column; each lane of the warp has one value. It writes nothing where store is false.
DEV void quantize_block(const Quantized q, float v, int col, int block, int blocks, int lane, bool store) {
  u32 top = __reduce_max_sync(~0u, __float_as_uint(v) & 0x7fffffffu);
  float largest = bits(top);
  float d = largest / 127.0f, inv = 127.0f / largest;
  int n = 0;
  bool bad = top >= 0x7f800000u, none = inv > 3.40282347e38f;
  if (!bad && !none) n = (int)__float_as_uint(v * inv + MAGIC) - MAGIC_BITS;
  int low = __reduce_add_sync(~0u, lane < 16 ? n : 0), high = __reduce_add_sync(~0u, lane < 16 ? 0 : n);
  u32 w = (u32)(n & 255) << (8 * (lane & 3));
  w |= __shfl_xor_sync(~0u, w, 1);
  w |= __shfl_xor_sync(~0u, w, 2);
  if (!store) return;
  int c = col & 7;
  long at = (long)(col >> 3) * PADDED(blocks) + block;
  if (block == blocks - 1)
    for (long pad = at + 1; pad < (long)((col >> 3) + 1) * PADDED(blocks); pad++) {
      if ((lane & 3) == 0) ((u32*)(q.frag + pad * 32 + c * 4 + ((lane & 15) >> 2)))[lane >> 4] = 0;
      if (lane < 2) ((float*)(q.meta + pad * 4 + (c >> 1)))[(c & 1) + 2 * lane] = 0;
      if (lane < 2) ((int*)(q.sums + pad * 4 + (c >> 1)))[(c & 1) + 2 * lane] = 0;
    }
  if ((lane & 3) == 0) ((u32*)(q.frag + at * 32 + c * 4 + ((lane & 15) >> 2)))[lane >> 4] = w;
  if (lane == 0) {
    float s = d * (float)(low + high);
    if (none) d = 0, s = 0;
    if (bad) d = bits(0x7fc00000), s = bits(0x7fc00000);
    float* m = (float*)(q.meta + at * 4 + (c >> 1)) + (c & 1);
    int* t = (int*)(q.sums + at * 4 + (c >> 1)) + (c & 1);
    m[0] = d;
    m[2] = s;
    t[0] = low;
    t[2] = high;
  }
}
